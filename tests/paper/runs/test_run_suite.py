"""From runs to records: options, failures, and reuse of earlier runs."""

from dataclasses import replace

import pytest

from pyspar.errors import InputError
from pyspar.paper.experiments.reproduce import reproduce
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.output.page import select_newest
from pyspar.paper.runs import heads
from pyspar.paper.runs import run as run_module
from pyspar.paper.runs import spec as registry
from pyspar.paper.runs.heads import lower_is_better, measure, pearson, spearman
from pyspar.paper.runs.records import read_records
from pyspar.paper.runs.run_suite import Options

pytest.importorskip("torch")


def forbid_training(monkeypatch):
    monkeypatch.setattr(run_module, "train_network", lambda *_, **__: pytest.fail("trained again"))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"seeds": 1001}, r"--seeds.* 1000, got 1001"),
        ({"seeds": 0}, "--seeds must be at least 1"),
        ({"jobs": 0}, "--jobs must be at least 1"),
        ({"eval_batch": 0}, "--eval-batch must be at least 1"),
    ],
)
def test_options_outside_their_range_raise(options, match):
    with pytest.raises(InputError, match=match):
        Options(**options)


def test_methods_select_rows_and_unknown_ones_raise(mini):
    suite = read_suite("tabular")
    assert {spec.objective for spec in replace(mini, methods=("ERM",)).specs(suite)} == {"ERM"}
    with pytest.raises(InputError, match="unknown method of suite tabular: 'DANN'"):
        replace(mini, methods=("DANN",)).specs(suite)


def test_a_second_call_trains_nothing_and_writes_the_same_files(mini, monkeypatch):
    suite = read_suite("tabular")
    first = reproduce(suite, mini)
    assert first.notices == []
    files = sorted(p for p in (mini.out / "tabular").iterdir() if p.suffix != ".png")
    before = [p.read_bytes() for p in files]
    forbid_training(monkeypatch)
    (notice,) = reproduce(suite, mini).notices
    assert "8 of 8 networks" in notice
    assert [p.read_bytes() for p in files] == before
    # Another suite has the same networks, and heads with other values of alpha.
    assert reproduce(read_suite("alpha"), mini).failures == []


def test_processes_give_the_same_records_in_the_same_order(mini, tmp_path):
    suite = read_suite("tabular")
    reproduce(suite, mini)
    reproduce(suite, replace(mini, out=tmp_path / "two", jobs=2))
    texts = [(out / "tabular" / "records.jsonl").read_text() for out in (mini.out, tmp_path / "two")]
    assert texts[0] == texts[1]


def test_a_failed_run_is_reported_and_tried_again_and_does_not_stop_the_others(mini, monkeypatch):
    suite, train = read_suite("tabular"), run_module.train_network
    mini = replace(mini, jobs=1)

    def fail(spec, *rest, **options):
        if spec.objective == "C-Mixup":
            raise RuntimeError("the cat\n on the keyboard")
        return train(spec, *rest, **options)

    monkeypatch.setattr(run_module, "train_network", fail)
    result = reproduce(suite, mini)
    assert len(result.failures) == 4
    assert all("RuntimeError: the cat on the keyboard" in failure for failure in result.failures)
    assert "the cat on the keyboard" in (mini.out / "tabular" / "table.md").read_text()
    monkeypatch.setattr(run_module, "train_network", train)
    again = reproduce(suite, mini)
    assert again.failures == []
    assert any(row[0] == "C-Mixup + SpAR" for row in again.sheets[0].rows)


def test_dropped_features_are_computed_again_for_a_new_head_only(mini, monkeypatch):
    options = replace(mini, keep=False)
    reproduce(read_suite("tabular"), options)
    assert not [*mini.out.glob("runs/*/features*.npz"), *mini.out.glob("runs/*/model.pt")]
    with monkeypatch.context() as patch:
        forbid_training(patch)
        assert reproduce(read_suite("tabular"), options).failures == []
    assert reproduce(read_suite("alpha"), options).failures == []


def test_a_head_with_a_changed_rule_is_scored_again_without_training_and_replaces_the_old_scores(mini, monkeypatch):
    mini = replace(mini, jobs=1)
    suite, file = read_suite("tabular"), mini.out / "tabular" / "records.jsonl"

    def values_by_head():
        values = {}
        for record in select_newest(read_records(file), suite):
            values.setdefault(record.method.partition(" + ")[2], []).append(record.value)
        return values

    reproduce(suite, mini)
    before = values_by_head()
    recipe = registry.recipe_of("Bayes-SpAR") + 1
    monkeypatch.setitem(registry.RECIPES, "Bayes-SpAR", recipe)
    compute = heads.new_head_weights

    def change(source, target, w0, b0, method, **options):
        new = compute(source, target, w0, b0, method, **options)
        return replace(new, coef=new.coef + 1.0) if method == "bayes" else new

    monkeypatch.setattr(heads, "new_head_weights", change)
    forbid_training(monkeypatch)
    assert reproduce(suite, mini).failures == []
    after = values_by_head()
    assert {name for name in before if before[name] != after[name]} == {"Bayes-SpAR"}
    # With the old scores, the table would have four values for each of two seeds.
    assert "4 seeds" not in (mini.out / "tabular" / "table.md").read_text()


def test_metrics_of_groups_and_of_constant_predictions():
    import numpy as np

    y, group = np.array([1.0, 2.0, 3.0, 3.0, 2.0, 1.0]), np.array([0, 0, 0, 1, 1, 1])
    assert measure("worst-group r", np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0]), y, group) == pytest.approx(-1.0)
    assert measure("worst-group rmse", y + 2 * group, y, group) == pytest.approx(2.0)
    assert np.isnan(pearson(np.ones(3), y[:3]))
    assert np.isnan(spearman(y[:3], np.ones(3)))
    assert np.isnan(measure("worst-group r", np.ones(6), y, group))
    assert (lower_is_better("worst-group rmse"), lower_is_better("worst-group spearman")) == (True, False)

"""From runs to records: options, failures, reuse of earlier runs, and the provenance of records."""

import json
from dataclasses import replace

import pytest

from pyspar.errors import InputError
from pyspar.paper.experiments.reproduce import make_miniature, reproduce
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.output.page import select_newest
from pyspar.paper.runs import heads, registry
from pyspar.paper.runs import run as run_module
from pyspar.paper.runs.records import current_provenance, read_records
from pyspar.paper.runs.run_suite import Options
from pyspar.paper.runs.store import RunFolder


def forbid_training(monkeypatch):
    monkeypatch.setattr(run_module, "train", lambda *_: pytest.fail("trained again"))


def test_the_number_of_seeds_is_limited():
    assert Options(seeds=1000).seeds == 1000
    with pytest.raises(InputError, match=r"--seeds.* 1000, got 1001"):
        Options(seeds=1001)


def test_a_second_call_trains_nothing_and_writes_the_same_files(mini, monkeypatch):
    pytest.importorskip("torch")
    suite = read_suite("tabular")
    first = reproduce(suite, mini)
    assert first.notices == []
    files = sorted(p for p in (mini.out / "tabular").iterdir() if p.suffix != ".png")
    before = [p.read_bytes() for p in files]
    forbid_training(monkeypatch)
    (notice,) = reproduce(suite, mini).notices
    assert "4 of 4 runs" in notice
    assert str(mini.out / "runs") in notice
    assert [p.read_bytes() for p in files] == before
    # Another suite has the same networks, and heads with other values of alpha.
    assert reproduce(read_suite("alpha"), mini).failures == []


def test_a_failed_run_is_recorded_and_tried_again_and_does_not_stop_the_others(mini, monkeypatch):
    pytest.importorskip("torch")
    suite = read_suite("tabular")
    train = run_module.train

    def fail(spec, *rest):
        if spec.objective == "C-Mixup":
            raise RuntimeError("the cat\n on the keyboard")
        return train(spec, *rest)

    monkeypatch.setattr(run_module, "train", fail)
    result = reproduce(suite, mini)
    assert len(result.failures) == 2
    assert all("RuntimeError: the cat on the keyboard" in failure for failure in result.failures)
    assert "the cat on the keyboard" in (mini.out / "tabular" / "table.md").read_text()
    failed = RunFolder.of(mini.out, mini.specs(make_miniature(suite))[1])
    assert failed.path.name in result.failures[0]
    assert "Traceback" in failed.read_json("failed.json")["traceback"]
    monkeypatch.setattr(run_module, "train", train)
    again = reproduce(suite, mini)
    assert again.failures == []
    assert any(row[0] == "C-Mixup + SpAR" for row in again.sheets[0].rows)


@pytest.mark.slow
def test_dropped_features_are_computed_again_for_a_new_head_only(mini, monkeypatch):
    pytest.importorskip("torch")
    options = replace(mini, keep=False)
    reproduce(read_suite("tabular"), options)
    assert not list(mini.out.glob("runs/*/features-*.npz"))
    with monkeypatch.context() as patch:
        forbid_training(patch)
        assert reproduce(read_suite("tabular"), options).failures == []
    assert reproduce(read_suite("alpha"), options).failures == []


def test_damaged_features_that_a_suite_reads_are_computed_again(mini):
    pytest.importorskip("torch")
    suite = read_suite("spectral-inflation")
    first = reproduce(suite, mini)
    for path in mini.out.glob("runs/*/features-0.npz"):
        path.write_bytes(path.read_bytes()[:100])
    again = reproduce(suite, mini)
    assert again.failures == []
    assert [sheet.rows for sheet in again.sheets] == [sheet.rows for sheet in first.sheets]


def test_a_head_with_a_changed_rule_is_scored_again_without_training_and_replaces_the_old_scores(mini, monkeypatch):
    pytest.importorskip("torch")
    suite = read_suite("tabular")
    file, table = mini.out / "tabular" / "records.jsonl", mini.out / "tabular" / "table.md"

    def values_by_head():
        values = {}
        for record in select_newest(read_records(file), suite):
            values.setdefault(record.method.partition(" + ")[2], []).append(record.value)
        return values

    reproduce(suite, mini)
    before, lines = values_by_head(), file.read_text().splitlines()
    recipe = registry.RECIPES["Bayes-SpAR"] + 1
    monkeypatch.setitem(registry.RECIPES, "Bayes-SpAR", recipe)
    fit_head = heads.fit_head

    def fit_other_head(source, target, method, **options):
        new = fit_head(source, target, method, **options)
        return replace(new, coef=new.coef + 1.0) if method == "bayes" else new

    monkeypatch.setattr(heads, "fit_head", fit_other_head)
    forbid_training(monkeypatch)
    assert reproduce(suite, mini).failures == []
    after, new_lines = values_by_head(), file.read_text().splitlines()
    assert new_lines[: len(lines)] == lines  # a file of records only grows
    new_records = [json.loads(line) for line in new_lines[len(lines) :]]
    assert {(r["method"].partition(" + ")[2], r["recipe"]) for r in new_records} == {("Bayes-SpAR", recipe)}
    assert {name for name in before if before[name] != after[name]} == {"Bayes-SpAR"}
    assert all(old != new for old, new in zip(before["Bayes-SpAR"], after["Bayes-SpAR"], strict=True))
    # With the old scores, the table would have four values for each of two seeds.
    assert "4 seeds" not in table.read_text()
    text = table.read_bytes()
    reproduce(suite, mini)
    assert table.read_bytes() == text
    assert file.read_text().splitlines() == new_lines


def test_records_contain_the_versions_of_training_and_of_scoring(mini):
    pytest.importorskip("torch")
    suite, file = read_suite("alpha"), mini.out / "alpha" / "records.jsonl"
    reproduce(suite, mini)
    for path in mini.out.glob("runs/*"):
        folder = RunFolder(path)
        results = folder.read_json("done.json")
        results["made"]["versions"]["torch"] = "0.1"
        results["made"]["machine"]["processor"] = "abacus"
        folder.write_json("done.json", results)
    file.unlink()
    reproduce(suite, mini)
    current = current_provenance()
    for record in read_records(file):
        assert record.versions["torch"] == "0.1"
        assert record.versions["torch, scoring"] == current["versions"]["torch"]
        assert record.machine["processor"] == "abacus"
        assert record.versions["numpy"] == current["versions"]["numpy"]


def test_measurements_of_a_suite_use_one_thread(mini, monkeypatch):
    torch = pytest.importorskip("torch")
    from pyspar.paper.experiments import inflation

    threads = []
    compute_inflation = inflation.compute_inflation

    def count_threads(*arguments):
        threads.append(torch.get_num_threads())
        return compute_inflation(*arguments)

    monkeypatch.setattr(inflation, "compute_inflation", count_threads)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        reproduce(read_suite("spectral-inflation"), mini)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert set(threads) == {1}

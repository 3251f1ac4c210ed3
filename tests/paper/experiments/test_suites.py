"""Suites are read from files; a name that is wrong is told its neighbours; bare machines can run them."""

import subprocess
import sys

import numpy as np
import pytest

from pyspar.errors import InputError
from pyspar.paper.experiments.methods import Comparison, compare, present
from pyspar.paper.experiments.names import known
from pyspar.paper.experiments.reproduce import listing, miniature, remarks_on
from pyspar.paper.experiments.suite import parse_suite, suite_named, suite_names
from pyspar.paper.output.page import current, page
from pyspar.paper.runs.metrics import measure
from pyspar.paper.runs.records import Record, write_records
from pyspar.paper.runs.run_suite import Options

BLOCK = {"task": "skillcraft", "network": "mlp", "config": {"epochs": 1}, "methods": {"ERM": {}}}
RAW = {"title": "t", "kind": "methods", "about": "a", "seeds": 2, "block": [BLOCK]}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"methods": {"CMixup": {}}}, "expected a method in suite x. Got 'CMixup'; did you mean 'C-Mixup'"),
        ({"network": "resnet19"}, "did you mean 'resnet18'"),
        ({"netwrok": "mlp"}, "a block has the wrong entries"),
    ],
)
def test_a_suite_with_a_misspelt_name_is_refused(changed, said):
    with pytest.raises(InputError, match=said):
        parse_suite("x", {**RAW, "block": [{**BLOCK, **changed}]})


def test_a_suite_with_an_unknown_head_or_entry_is_refused():
    with pytest.raises(InputError, match="did you mean 'SpAR'"):
        parse_suite("x", {**RAW, "heads": ["Spar"]})
    with pytest.raises(InputError, match="unexpected keyword argument 'colour'"):
        parse_suite("x", {**RAW, "colour": "red"})
    with pytest.raises(InputError, match="There are: a, b"):
        known("thing", "zzz", ["b", "a"])


def test_every_suite_can_be_read_and_names_its_runs():
    for name in suite_names():
        suite = suite_named(name)
        specs = suite.specs(suite.seeds, "cpu", lambda tasks: tasks[0])
        assert len({spec.key for spec in specs}) == len(specs)
        for block in suite.blocks:
            seeds = [s for spec in specs for s in spec.seeds if spec.task in block.tasks]
            assert set(seeds) == set(range(suite.seeds))


def test_folds_are_given_to_the_seeds_in_turn():
    suite = suite_named("povertymap")
    specs = [s for s in suite.specs(7, "cpu", lambda tasks: tasks[0]) if s.objective == "ERM"]
    assert [(s.options["fold"], s.seeds) for s in specs] == [
        ("A", (0, 5)), ("B", (1, 6)), ("C", (2,)), ("D", (3,)), ("E", (4,)),
    ]  # fmt: skip


def test_alpha_shares_the_networks_of_the_tabular_table():
    options = Options()
    keys = {spec.key for spec in options.specs(suite_named("tabular"))}
    assert {spec.key for spec in options.specs(suite_named("alpha"))} < keys
    assert {spec.key for spec in options.specs(suite_named("rank-cut"))} == keys


def test_a_difference_is_in_joint_standard_errors():
    cell = Comparison("t", "m", "rmse", ("6.0", "3.0"), 9, (7.0, 11.0))
    # Ours: mean 9, spread 2 over two seeds. Spreads have the divisor n, so the error is sqrt(9 / 8 + 4 / 1): the same
    # as from spreads with the divisor n - 1 over n, here 8 / 2 for ours.
    assert cell.difference == pytest.approx(3 / np.sqrt(9 / 8 + 4))
    assert np.var([7.0, 11.0], ddof=1) / 2 == pytest.approx(4)
    assert cell.ours == ("9.0", "2.0")


def test_the_table_says_where_adapting_helps_and_where_not():
    suite = suite_named("tabular")
    records = [
        Record("skillcraft", method, seed, metric, value + 0.01 * seed * seed)
        for method, value in (("ERM", 6.0), ("ERM + OLS", 8.0), ("ERM + SpAR", 7.0))
        for seed in range(3)
        for metric in suite.metrics
    ]
    assert len(compare(suite, records)) == 6
    sheets, _ = present(suite, records)
    verdicts = {(row[0], row[1]): row[-1] for row in sheets[-1].rows}
    assert verdicts == {("ERM + SpAR", "ERM"): "worse", ("ERM + SpAR", "ERM + OLS"): "better"}


def all_seeds(suite, seeds):
    return [
        Record(block.tasks[0], method, seed, suite.metrics[0], 6.0)
        for block in suite.blocks
        for method in block.methods
        for seed in range(seeds)
    ]


@pytest.mark.parametrize("name", ["tabular", "rcf-mnist", "rank-cut"])
def test_what_was_found_with_all_seeds_is_said_of_all_seeds_alone(name):
    suite = suite_named(name)
    assert suite.found
    assert remarks_on(suite, all_seeds(suite, suite.seeds)) == suite.found
    for few in (1, 2, suite.seeds - 1, suite.seeds + 1):
        assert remarks_on(suite, all_seeds(suite, few)) == ()
    assert remarks_on(suite, []) == ()
    skipped = [r for r in all_seeds(suite, suite.seeds) if r.method != "C-Mixup"]
    assert remarks_on(suite, skipped) == ()
    assert remarks_on(miniature(suite), all_seeds(suite, 2)) == ()


def test_the_page_says_what_was_found_in_the_records_it_is_made_from(tmp_path):
    suite = suite_named("rcf-mnist")
    (tmp_path / suite.name).mkdir()
    write_records(tmp_path / suite.name / "records.jsonl", all_seeds(suite, 3))
    assert all(note in page(tmp_path, tmp_path, "figures") for note in suite.found)


def test_a_suite_whose_packages_are_missing_is_not_called_ready(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "optuna", None)
    states = {name: state for name, _, state in listing(None)}
    assert states["table1"] == "ready"
    assert states["tabular"].startswith("needs pyspar[torch]")
    assert states["tabular-tuned"].startswith("needs pyspar[torch], needs pyspar[paper]")


def test_worst_groups_are_the_largest_error_and_the_lowest_correlation(rng):
    y, guess, group = rng.normal(size=30), rng.normal(size=30), np.arange(30) % 3
    each = [group == g for g in range(3)]
    assert measure("worst-group rmse", guess, y, group) == max(measure("rmse", guess[g], y[g], group) for g in each)
    assert measure("worst-group r", guess, y, group) == min(np.corrcoef(guess[g], y[g])[0, 1] for g in each)
    assert measure("spearman", guess**3, y, group) == pytest.approx(measure("spearman", guess, y, group))
    assert np.isnan(measure("r", np.ones(30), y, group))


def test_the_page_says_which_suites_were_not_run(tmp_path):
    text = page(tmp_path / "none", tmp_path, "figures")
    assert text.count("Not run here: needs ") == len(suite_names())


def test_the_newest_record_of_each_number_is_collected():
    suite = suite_named("tabular")
    old, new = (Record("skillcraft", "ERM", 0, "rmse", v, run=r) for v, r in ((1.0, "a"), (2.0, "b")))
    assert current(suite, [old, new]) == [new]


def test_suites_run_without_the_packages_of_the_command_line(tmp_path):
    pytest.importorskip("torch")
    gone = ["rich", "typer", "pandas", "pyarrow", "matplotlib", "optuna", "dask"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({gone})); "
        f"from pyspar.paper.__main__ import main; sys.exit(main(['alpha', '--mini', '--out', {str(tmp_path)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no figures" in done.stderr
    assert "ERM + SpAR" in (tmp_path / "alpha" / "table.md").read_text()


def test_a_group_without_a_correlation_is_left_out_wherever_it_stands(rng):
    y, guess = rng.normal(size=21), rng.normal(size=21)
    for lonely in (0, 9):  # the first group, or the last
        group = np.where(np.arange(21) == 20, lonely, 1 + np.arange(21) % 2)
        expected = min(np.corrcoef(guess[group == g], y[group == g])[0, 1] for g in (1, 2))
        assert measure("worst-group r", guess, y, group) == pytest.approx(expected)
        flat = np.where(group == 1, 0.5, guess)
        assert np.isnan(measure("worst-group r", flat, y, group))
    assert np.isnan(measure("worst-group r", guess[:1], y[:1], np.zeros(1)))
    assert np.isnan(measure("worst-group rmse", np.array([np.nan, 1.0]), y[:2], np.arange(2)))


def test_rows_with_fewer_seeds_say_so():
    suite = suite_named("tabular")
    records = [
        Record("skillcraft", method, seed, metric, 6.0 + seed)
        for method, seeds in (("ERM", 3), ("C-Mixup", 2))
        for seed in range(seeds)
        for metric in suite.metrics
    ]
    (sheet, *_), _ = present(suite, records)
    ours = {row[0]: row[2] for row in sheet.rows}
    assert ours["C-Mixup"].endswith("(2 seeds)")
    assert "seeds" not in ours["ERM"]


def test_a_gain_within_its_interval_is_no_difference():
    suite = suite_named("tabular")
    records = [
        Record("skillcraft", method, seed, metric, value)
        for metric in suite.metrics
        for method, values in (("ERM", (6.0, 6.0, 6.0)), ("ERM + SpAR", (7.0, 5.0, 5.5)))
        for seed, value in enumerate(values)
    ]
    sheets, _ = present(suite, records)
    assert {row[-1] for row in sheets[-1].rows} == {"no difference seen"}


def test_of_suites_without_metrics_one_run_of_each_data_set_and_method_is_collected():
    table1, inflation, cost = map(suite_named, ("table1", "spectral-inflation", "cost"))

    def records(run, seeds, places=(None,)):
        return [Record("t", "m", s, "x", 1.0, at=p, run=run) for s in seeds for p in places]

    many, few = records("10 draws", range(10)), records("3 draws", range(3))
    assert current(table1, many + few) == few
    assert current(table1, few + many) == many
    long, short = records("a", [0], range(5)), records("b", [0], range(3))
    assert current(inflation, long + short) == short
    alone = records("seed 0", [0]) + records("seed 1", [1])
    assert current(cost, alone) == alone


def test_folds_and_the_draws_of_a_search_are_all_collected():
    folds = [Record("p", "ERM", s, "r", 1.0, run=f, spec={"options": {"fold": f}}) for s, f in enumerate("ABCDE")]
    assert current(suite_named("povertymap"), folds) == folds
    draws = [Record("s", "ERM", 0, "validation mse", 1.0, run=run) for run in "abc"]
    chosen = [Record("s", "ERM", 0, "rmse", 1.0, run="d")]
    assert current(suite_named("tabular-tuned"), draws + chosen) == draws + chosen


def test_the_page_begins_with_what_was_run_on_what_and_why_the_rest_was_not(tmp_path):
    made = {"machine": {"processor": "abacus"}, "versions": {"torch": "1"}}
    records = [Record("skillcraft", "ERM", s, m, 6.0, **made) for s in range(2) for m in suite_named("tabular").metrics]
    (tmp_path / "tabular").mkdir()
    write_records(tmp_path / "tabular" / "records.jsonl", records)
    text = page(tmp_path, tmp_path, "figures")
    head = text[: text.index("\n## ")]
    assert "| `tabular` | yes, 2 seeds | abacus, one thread, torch 1 |" in head
    assert "| `povertymap` | no | needs PovertyMap, 13 GB, a GPU |" in head
    assert "| `povertymap-unlabeled` | no | needs PovertyMap, 13 GB, its unlabelled images, 173 GB, a GPU |" in head
    assert "| `rcf-mnist` | no | needs a GPU |" in head
    assert "| `cost` | no | needs only time |" in head

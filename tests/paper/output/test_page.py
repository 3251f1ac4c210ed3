"""The page of results, and the selection of the newest records."""

from pathlib import Path

from pyspar.paper.experiments.suite import list_suite_names, read_suite
from pyspar.paper.output.page import collect, main, render_page, select_newest
from pyspar.paper.runs.records import Record, read_records, write_records

RESULTS = Path(__file__).parents[3] / "results"


def write_suite(folder, name, records):
    (folder / name).mkdir(parents=True)
    write_records(folder / name / "records.jsonl", records)


def test_the_page_contains_the_findings_of_a_suite_with_records(tmp_path):
    suite = read_suite("rcf-mnist")
    methods = suite.blocks[0].methods
    records = [Record("rcf-mnist", method, seed, "rmse", 6.0) for method in methods for seed in range(3)]
    write_suite(tmp_path, suite.name, records)
    page = " ".join(render_page(tmp_path, tmp_path, "figures").split())  # lines are wrapped
    assert suite.found
    assert all(finding in page for finding in suite.found)


def read_overview(page):
    """Return the cells of the rows of the first table by the title of the experiment."""
    head = page[: page.index("\n## ")]
    cells = (line.strip("| ").split(" | ") for line in head.splitlines() if line.startswith("| "))
    return {first: rest for first, *rest in cells}


def test_the_first_table_lists_every_experiment_and_fits_on_one_screen(tmp_path):
    rows = read_overview(render_page(tmp_path / "none", None, "figures"))
    titles = [read_suite(name).title for name in list_suite_names()]
    assert set(titles) < set(rows)
    assert len(rows) <= 20
    assert {rows[title][-1] for title in titles} == {"not run"}
    committed = read_overview(render_page(RESULTS, None, "figures"))
    assert all(sum(map(len, cells)) < 130 for cells in committed.values())


def test_the_first_table_shows_seeds_and_machine_or_the_requirements(tmp_path):
    provenance = {"machine": {"gpu": "Maker X9"}, "versions": {"torch": "1"}}
    metrics = read_suite("tabular").metrics
    records = [Record("skillcraft", "ERM", seed, m, 6.0, **provenance) for seed in range(2) for m in metrics]
    write_suite(tmp_path, "tabular", records)
    rows = read_overview(render_page(tmp_path, None, "figures"))
    assert rows[read_suite("tabular").title][0] == "2 seeds, X9"
    assert rows[read_suite("povertymap").title][1] == "needs PovertyMap (13 GB), a GPU"
    unlabelled = rows[read_suite("povertymap-unlabeled").title][1]
    assert unlabelled == "needs PovertyMap (13 GB), its unlabelled images (173 GB), a GPU"
    assert rows[read_suite("rcf-mnist").title][1] == "needs a GPU"
    assert rows[read_suite("cost").title][1] == "needs only time"


def test_collect_copies_the_newest_record_of_each_number(tmp_path):
    old, new = (Record("skillcraft", "ERM", 0, "rmse", v, run=r) for v, r in ((1.0, "a"), (2.0, "b")))
    write_suite(tmp_path / "out", "tabular", [old, new])
    assert collect(tmp_path / "out", tmp_path / "results") == ["tabular"]
    assert read_records(tmp_path / "results" / "tabular" / "records.jsonl") == [new]


def test_the_command_collects_records_and_writes_the_page(tmp_path, capsys):
    write_suite(tmp_path / "out", "tabular", [Record("skillcraft", "ERM", 0, "rmse", 6.125)])
    results, page = tmp_path / "results", tmp_path / "docs" / "page.md"
    arguments = ["--collect", str(tmp_path / "out"), "--results", str(results), "--page", str(page)]
    assert main(arguments) == 0
    assert "6.125" in page.read_text()
    (results / "tabular" / "records.jsonl").write_text("not a record\n")
    assert main(arguments[2:]) == 2
    assert "line 1" in capsys.readouterr().err


def test_the_newest_run_of_each_data_set_and_method_is_selected_for_suites_without_metrics():
    table1, inflation, cost = map(read_suite, ("table1", "spectral-inflation", "cost"))

    def make_records(run, seeds, positions=(None,)):
        return [Record("t", "m", seed, "x", 1.0, at=at, run=run) for seed in seeds for at in positions]

    many, few = make_records("10 draws", range(10)), make_records("3 draws", range(3))
    assert select_newest(many + few, table1) == few
    assert select_newest(few + many, table1) == many
    long, short = make_records("a", [0], range(5)), make_records("b", [0], range(3))
    assert select_newest(long + short, inflation) == short
    single_seeds = make_records("seed 0", [0]) + make_records("seed 1", [1])
    assert select_newest(single_seeds, cost) == single_seeds


def test_all_folds_and_all_settings_of_a_search_are_selected():
    folds = [Record("p", "ERM", s, "r", 1.0, run=f, spec={"options": {"fold": f}}) for s, f in enumerate("ABCDE")]
    assert select_newest(folds, read_suite("povertymap")) == folds
    settings = [Record("s", "ERM", 0, "validation mse", 1.0, run=run) for run in "abc"]
    best = [Record("s", "ERM", 0, "rmse", 1.0, run="d")]
    assert select_newest(settings + best, read_suite("tabular-tuned")) == settings + best

"""The page of results: verdicts, statements, and the selection of the newest records."""

import pytest

from pyspar.paper.experiments.suite import list_suite_names, published, read_suite
from pyspar.paper.output.overview import judge, make_claims
from pyspar.paper.output.page import collect, main, make_numbers, render_page
from pyspar.paper.runs.records import Record, read_records, write_records


def write_suite(folder, name, records):
    (folder / name).mkdir(parents=True)
    write_records(folder / name / "records.jsonl", records)


def make_records(suite, change=lambda task, method, mean, spread: (mean, spread), task_name=None):
    """Return records whose means and spreads are ``change`` of the published ones."""
    records = []
    for metric in suite.metrics:
        for task, methods in published(suite.published, metric).cells.items():
            for method, printed in methods.items():
                mean, spread = change(task, method, *map(float, printed))
                values = (mean - spread, mean + spread) * 5
                name = task_name or task
                records += [Record(name, method, seed, metric, value) for seed, value in enumerate(values)]
    return records


@pytest.mark.parametrize(
    ("shifted", "verdict"),
    [
        ((), "agrees: 24 of 24 cells; SpAR's sign in 8 of 8"),
        (("skillcraft",), "partly agrees: 12 of 24 cells (12 higher)"),
        (("skillcraft", "communities-and-crime"), "differs: 0 of 24 cells (24 higher)"),
    ],
)
def test_the_verdict_counts_cells_within_two_standard_errors(shifted, verdict):
    suite = read_suite("tabular")

    def change(task, method, mean, spread):
        # Both means have the standard error spread / 3, so this is three joint standard errors.
        return mean + (spread * 2**0.5 if task in shifted else 0.0), spread

    assert judge(suite, make_records(suite, change)).startswith(verdict)


def test_other_data_are_never_called_agreement():
    chairs = read_suite("chair-angles-pretrained")
    recreated = make_records(chairs, task_name="chair-angles-recreated")
    assert judge(chairs, recreated).startswith("not comparable (re-created data)")
    assert "agrees" not in judge(chairs, recreated)


def test_verdicts_are_beside_our_gains_by_seed_and_the_published_ones():
    suite = read_suite("povertymap-angola")
    noise = [0.0, 0.1, 0.2, 0.3, 0.4]
    gains = dict.fromkeys(suite.verdicts, 0.0) | {"DANN": -0.25, "SwAV": 0.05}
    values = [(m, s, "r", noise[s] + g + 0.01 * (m == "SwAV") * (-1) ** s) for m, g in gains.items() for s in range(5)]
    records = [Record("povertymap-angola", m, s, metric, v) for m, s, metric, v in reversed(values)]
    rows = {row[0]: row[1:] for row in make_numbers(suite, records).rows}
    assert list(rows) == list(suite.verdicts)
    assert rows["ERM"] == ("0.200 ± 0.141", "-", "-", suite.verdicts["ERM"])
    assert rows["DANN"][1:3] == ("-0.250 ± 0.000, worse", "-0.10")  # the paper has 0.69 and 0.79
    assert rows["SwAV"][1:3] == ("+0.052 ± 0.005, better", "-0.01")
    assert set(suite.verdicts) == set(published("povertymap-unlabeled").cells["povertymap"])
    assert sum(len(text.split()) for text in suite.verdicts.values()) <= 150


def read_overview(page):
    """Return the cells of the rows of the first table by the title of the experiment."""
    head = page[: page.index("\n## Statement")]
    cells = (line.strip("| ").split(" | ") for line in head.splitlines() if line.startswith("| "))
    return {first: rest for first, *rest in cells}


def test_the_first_table_lists_every_experiment_with_records_or_requirements(tmp_path):
    provenance = {"machine": {"gpu": "Maker X9"}, "versions": {"torch": "1"}}
    metrics = read_suite("tabular").metrics
    records = [Record("skillcraft", "ERM", seed, m, 6.0, **provenance) for seed in range(2) for m in metrics]
    write_suite(tmp_path, "tabular", records)
    rows = read_overview(render_page(tmp_path, None, "figures"))
    titles = [read_suite(name).title for name in list_suite_names()]
    assert set(titles) < set(rows)
    assert rows[read_suite("tabular").title][1].startswith("2 seeds, X9")
    assert rows[read_suite("povertymap").title][1:] == ["none; needs PovertyMap (13 GB), a GPU", "not verified"]
    unlabelled = rows[read_suite("povertymap-unlabeled").title][1]
    assert unlabelled == "none; needs PovertyMap (13 GB), its unlabelled images (173 GB), a GPU"
    assert rows[read_suite("cost").title][1] == "none; needs only time"


def test_statements_are_answered_from_the_records_and_not_without(tmp_path):
    answers = {row[0]: row[1] for row in make_claims(tmp_path).rows}
    assert answers["SpAR beats least squares on tables"] == "not verified"
    write_suite(tmp_path, "tabular", make_records(read_suite("tabular")))
    row = next(row for row in make_claims(tmp_path).rows if row[0] == "SpAR beats least squares on tables")
    assert row[1:] == ("yes", "better in 8 of 8 cells, significantly in 8; significantly worse in 0")


def test_the_command_collects_the_newest_records_and_writes_the_page(tmp_path, capsys):
    old, new = (Record("skillcraft", "ERM", 0, "rmse", v, run=r) for v, r in ((1.0, "a"), (6.125, "b")))
    others = [Record("skillcraft", "ERM", 0, "worst-group rmse", 7.0, run="b")]
    write_suite(tmp_path / "out", "tabular", [old, new, *others])
    results, page = tmp_path / "results", tmp_path / "docs" / "page.md"
    assert collect(tmp_path / "out", tmp_path / "copy") == ["tabular"]
    assert read_records(tmp_path / "copy" / "tabular" / "records.jsonl") == [new, *others]
    arguments = ["--collect", str(tmp_path / "out"), "--results", str(results), "--page", str(page)]
    assert main(arguments) == 0
    assert "6.125" in page.read_text()
    (results / "tabular" / "records.jsonl").write_text("not a record\n")
    assert main(arguments[2:]) == 2
    assert "line 1" in capsys.readouterr().err

"""The figures that the remarks of the suites quote from benchmarks."""

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("benchmarks.tabular_cells", reason="the benchmarks are not part of an installed package")

from benchmarks import exploding_heads, tabular_cells
from pyspar.paper.experiments.methods import Comparison
from pyspar.paper.experiments.published import published
from pyspar.paper.experiments.suite import list_suite_names, read_suite
from pyspar.paper.runs.records import read_records

RESULTS = Path(__file__).parents[2] / "results"


def test_the_remarks_quote_the_variants_of_the_tabular_cells():
    text = " ".join(read_suite("tabular").found)
    cells = {
        (variant, cell.task, cell.method): f"{cell.mean:.2f} ({cell.difference:+.1f} SE)"
        for variant, of_variant in tabular_cells.compare_variants(tabular_cells.read_results()).items()
        for cell in of_variant
    }
    assert cells["last epoch", "skillcraft", "C-Mixup + OLS"] in text
    assert cells["last epoch", "skillcraft", "C-Mixup"] in text
    assert cells["random validation part", "skillcraft", "C-Mixup + OLS"] in text
    compared = tabular_cells.compare_variants(tabular_cells.read_results())
    for variant, method in (
        ("last epoch", "C-Mixup + SpAR"),
        ("random validation part", "C-Mixup + SpAR"),
        ("random validation part", "C-Mixup"),
    ):
        (crime,) = (c for c in compared[variant] if (c.task, c.method) == ("communities-and-crime", method))
        assert f"{crime.mean:.3f} ({crime.difference:+.1f} SE)" in text


def test_half_the_cutoff_brings_every_refitted_head_of_skillcraft_within_two_standard_errors():
    text = " ".join(read_suite("tabular").found)
    cells = {}
    for r in read_records(RESULTS / "rank-cut" / "records.jsonl"):
        if r.task == "skillcraft" and r.method.endswith(", half cut"):
            cells.setdefault((r.metric, r.method.removesuffix(", half cut")), []).append(r.value)
    assert len(cells) == 8
    for (metric, method), values in cells.items():
        table = published("tabular", metric)
        cell = Comparison("skillcraft", method, metric, table.cells["skillcraft"][method], table.n, tuple(values))
        assert abs(cell.difference) < 2
        if (metric, method) == ("rmse", "C-Mixup + OLS"):
            assert f"{cell.mean:.2f} ({cell.difference:+.1f} SE)" in text


def test_the_variants_start_from_the_cells_that_are_off():
    unchanged = tabular_cells.compare_variants({})[tabular_cells.UNCHANGED]
    off = {(cell.task, cell.method) for cell in unchanged if abs(cell.difference) > 2}
    assert off == {(task, f"C-Mixup + {head}") for task, head in tabular_cells.CELLS.items()}


def test_the_remarks_quote_the_exploded_heads():
    import json

    rows = exploding_heads.summarise(json.loads(exploding_heads.FILE.read_text())).values()
    total, uncut, cut = (sum(row[name] for row in rows) for name in ("networks", "exploded, uncut", "exploded, cut"))
    (text,) = (line for line in read_suite("rcf-mnist").found if "exploding_heads" in line)
    assert f"for {uncut} of {total} networks" in text
    assert cut == 0
    assert f"for none of the {total}." in text
    assert max(row["median dead"] for row in rows) == 0
    assert all(5e8 < row["median condition"] < 2e9 for row in rows)  # "a billionth"


def test_no_refitted_head_of_dann_on_images_has_exploded():
    heads = exploded = 0
    for name in list_suite_names():
        file = RESULTS / name / "records.jsonl"
        if not any(block.uses_images for block in read_suite(name).blocks) or not file.is_file():
            continue
        records = [r for r in read_records(file) if r.metric == "rmse" and r.method.startswith("DANN")]
        trained = {r.seed: r.value for r in records if r.method == "DANN"}
        refitted = [r for r in records if r.method != "DANN"]
        heads += len(refitted)
        exploded += sum(r.value > 2 * trained[r.seed] for r in refitted)
    (text,) = (line for line in read_suite("rcf-mnist").found if "exploding_heads" in line)
    assert exploded == 0
    assert f"Of {heads} refitted heads" in text


def test_the_validation_part_is_mixed_without_losing_rows():
    from pyspar.paper.data import load

    task = load("skillcraft")
    mixed = tabular_cells.mix_validation(task)
    assert (len(mixed.train), len(mixed.val)) == (len(task.train), len(task.val))
    before, after = (sorted([*one.train.y, *one.val.y]) for one in (task, mixed))
    assert before == after
    assert set(mixed.val.group) > set(task.val.group)

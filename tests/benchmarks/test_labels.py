"""The benchmark of labels: methods on a small target, and one record per set, model, method and number of labels."""

import numpy as np
import pytest

pytest.importorskip("benchmarks.labels", reason="the benchmarks are not part of an installed package")

from benchmarks.labels import report, run
from benchmarks.labels.methods import CANDIDATES, MAPPED, METHODS, SPAR, Case
from benchmarks.labels.run import BOOSTING, MEASUREMENT, NATURAL, Target, map_columns, measure
from benchmarks.records import read, update
from benchmarks.shifts.sets import REGISTER


@pytest.fixture
def target():
    """Labels that are the predictions plus 2; after mapping, the predictions are almost exact; SpAR's are bad."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(120, 2))
    y = Z @ [1.0, 2.0] + 2.0 + 0.1 * rng.normal(size=120)
    others = {MAPPED: y + 0.01 * rng.normal(size=120), SPAR: y + 3.0 * rng.normal(size=120)}
    return Target(sorted(REGISTER)[0], NATURAL, Z, y, {BOOSTING: Z @ [1.0, 2.0]}, others)


def test_every_method_uses_the_labels_of_its_rows_only(target):
    rows = np.arange(8)
    case = Case(target.Z, target.predictions[BOOSTING], rows, target.y[rows], target.others)
    for name, method in (METHODS | CANDIDATES).items():
        error = np.sqrt(np.mean((method(case).prediction - target.y)[8:] ** 2))
        assert error < (0.7 if "n + 2" in name else 0.4), name  # 2 without labels


def test_a_record_has_the_ratio_the_worst_draw_and_the_coverage(target):
    records = {r["method"]: r for r in measure(target, BOOSTING, 10, 3)}
    assert set(records) == {*METHODS, *CANDIDATES}
    corrected = records["TargetCorrection"]
    assert corrected["ratio"] <= corrected["worst"] < 0.2
    assert corrected["worse"] == 0.0
    assert 0.7 < corrected["coverage"] <= 1.0
    assert 0.5 < corrected["actual_to_expected"] < 2.0
    assert records["chosen_"]["ratio"] == records["chosen_, three candidates"]["ratio"] < 0.01
    assert "coverage" not in records["offset"]
    simulated = Target(target.name, MEASUREMENT, target.Z, target.y, target.predictions, target.others)
    assert {r["method"] for r in measure(simulated, BOOSTING, 10, 1)} == {"TargetCorrection", *CANDIDATES}


def test_columns_get_the_mean_and_spread_of_the_source():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(50, 2)), np.ones(50)])
    Z = np.column_stack([3.0 * rng.normal(size=(40, 2)) + 1.0, np.full(40, 7.0)])
    mapped = map_columns(X, Z)
    np.testing.assert_allclose(mapped[:, :2].mean(axis=0), X[:, :2].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(mapped[:, :2].std(axis=0), X[:, :2].std(axis=0))
    np.testing.assert_array_equal(mapped[:, 2], 7.0)


def test_the_page_is_written_from_the_records(target, tmp_path, monkeypatch):
    path = tmp_path / "labels.csv.gz"
    update(path, measure(target, BOOSTING, 10, 2), run.KEYS)
    monkeypatch.setattr(report, "RECORDS", path)
    monkeypatch.setattr(report, "PAGE", tmp_path / "labels.md")
    text = report.write_page()
    assert "James-Stein offset" in text
    assert "10 labels (1 sets)" in text
    assert (tmp_path / "labels.md").read_text(encoding="utf-8") == text
    assert len(read(path)) == len(METHODS) + len(CANDIDATES)

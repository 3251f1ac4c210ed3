"""The experience file is what the records give, and the check applies it as the package does."""

import json
import math

import numpy as np
import pytest
from benchmarks.trust.__main__ import COMMAND, LEARNT_FROM
from benchmarks.trust.check import apply, interval_of, interval_score, summarise
from benchmarks.trust.learn import QUANTILES, class_of, learn, safe_quantile, separation_of
from benchmarks.trust.measure import measure_linear, measure_other, read
from benchmarks.trust.page import write_tables

from pyspar.estimators.calibrated_forecasts import FILE, rmse_interval, row_factor, separation_class


@pytest.fixture(scope="module")
def records():
    return list(read().values())


@pytest.fixture(scope="module")
def experience():
    return json.loads(FILE.read_text(encoding="utf-8"))


def test_the_file_is_learnt_from_the_records_of_the_named_parts(records, experience):
    learnt = learn([r for r in records if r["part"] in LEARNT_FROM])
    assert experience == {"command": COMMAND, "learnt_from": list(LEARNT_FROM), **learnt}
    assert not {r["set"] for r in records if r["part"] not in LEARNT_FROM} & set(experience["sets"])


def test_the_check_uses_the_intervals_and_classes_of_the_package(records, experience):
    for r in records[:: len(records) // 60]:
        kind, separation = "linear" if r["regressor"] == "BayesSpAR" else "any", separation_of(r)
        assert class_of(r) == separation_class(separation)
        narrow = tuple(r["narrow95"])
        assert interval_of(r, 0.95, experience[kind]) == pytest.approx(
            rmse_interval(0.95, r["expected"], narrow, separation, kind)
        )


def test_a_safe_quantile_covers_more_than_its_share_of_new_values(rng):
    """Over many samples, the confidence is the share of samples whose quantile bound covers the quantile."""
    covered = [safe_quantile(rng.random(100), np.ones(100), 0.9) >= 0.9 for _ in range(400)]
    assert np.mean(covered) == pytest.approx(0.8, abs=0.08)
    values, one = rng.random(100), np.ones(100)
    assert safe_quantile(-values, one, 0.1) == pytest.approx(-safe_quantile(values, one, 0.9))
    copies = safe_quantile(np.repeat(values, 3), np.repeat(one, 3) / 3.0, 0.9)
    assert copies == safe_quantile(values, one, 0.9)


def test_a_measured_task_is_a_record_without_target_labels_in_its_forecast(rng):
    X, Z = rng.normal(size=(80, 3)), rng.normal(size=(60, 3)) + 1.0
    y, yz = X[:, 0] + rng.normal(size=80), Z[:, 0] + rng.normal(size=60)
    for one, two in (
        (measure_linear(X, y, Z, yz), measure_linear(X, y, Z, 100.0 * yz)),
        (measure_other(X, y, Z, yz, "RidgeCV"), measure_other(X, y, Z, 100.0 * yz, "RidgeCV")),
    ):
        assert {key for key in one if one[key] != two[key]} <= {"actual", "need"}
        assert one["actual"] != two["actual"]


def test_summaries_count_data_sets_once(experience):
    common = {"map": "raw", "split": "shift", "auc": 0.9, "p_value": 0.0, "matched": False, "home": 1.0,
              "expected": 1.0, "outside": 0.0, "narrow80": [0.9, 1.1], "narrow95": [0.8, 1.2]}  # fmt: skip
    need = [list(QUANTILES * 2.0)] * 4
    tasks = [
        {**common, "set": name, "actual": actual, "need": need} for name, actual in (("a", 1), ("a", 1), ("b", 99))
    ]
    found = summarise(apply(experience["linear"], tasks))
    assert (found["tasks"], found["sets"], found["covered95"]) == (3, 2, 0.5)
    factor = row_factor(0.9, separation_of({**common}))
    assert found["rows"] == pytest.approx(min(factor / 2.0, 1.0))
    assert interval_score(4.0, (1.0, 2.0), 0.9) == pytest.approx(math.log(2) + 20.0 * math.log(2))


def test_tables_replace_only_their_own_place(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    other = "<!-- table two -->\nkept\n<!-- end -->\n"
    monkeypatch.setattr("benchmarks.trust.page.PAGE", page)
    for old in ("", "old\n"):
        page.write_text(f"before\n<!-- table one -->\n{old}<!-- end -->\nafter\n{other}", encoding="utf-8")
        write_tables({"one": (["a"], [["1"]]), "three": (["b"], [])})
        new = "<!-- table one -->\n\n| a |\n| --- |\n| 1 |\n\n<!-- end -->\n"
        assert page.read_text() == f"before\n{new}after\n{other}"

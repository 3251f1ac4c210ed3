"""The experience file is what the records give, and the check applies it as the package does."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.shifts.sets import BLIND, CHECK, REGISTER, RESERVE, Shift
from benchmarks.trust.__main__ import COMMAND, PARTS, RANDOM_SPLITS, list_part_tasks
from benchmarks.trust.alternatives import VARIANTS, ratio_rows, stretch_rows, threshold_rows, variant_rows
from benchmarks.trust.check import (
    apply,
    binomial_interval,
    count_effective,
    interval_of,
    interval_score,
    leave_sets_out,
    summarise,
    summarise_groups,
)
from benchmarks.trust.learn import KINDS, POWERS, QUANTILES, class_of, learn, learn_kind, safe_quantile, separation_of
from benchmarks.trust.measure import load, measure_linear, measure_other, read, run
from benchmarks.trust.page import describe_rates, rate_rows, write_tables
from scipy.stats import binomtest

from pyspar.estimators.calibrated_forecasts import FILE, rmse_interval, row_factor, separation_class


@pytest.fixture(scope="module")
def records():
    return list(read().values())


@pytest.fixture(scope="module")
def experience():
    return json.loads(FILE.read_text(encoding="utf-8"))


def test_the_file_is_learnt_from_the_records_of_the_named_parts(records, experience):
    known = [r for r in records if r["part"] in PARTS]
    assert experience == {"command": COMMAND, "learnt_from": list(PARTS), **learn(known)}
    page = " ".join((Path(__file__).parents[2] / "docs" / "forecasts.md").read_text().split())
    assert f"tenth of the {len(experience['sets'])} data sets was left out" in page


@pytest.mark.parametrize("part", [RESERVE, CHECK, BLIND])
def test_the_intervals_of_the_package_hold_on_the_held_out_parts(records, experience, part):
    held_out = [r for r in records if r["part"] == part and r["regressor"] in KINDS["linear"]]
    assert not {r["set"] for r in held_out} & set(experience["sets"])
    found = summarise_groups(apply(experience["linear"], held_out))
    shift, random = found["shift"], found["random"]
    assert shift["covered95"] >= 0.9
    assert 0.72 <= shift["covered80"] <= 0.9
    assert shift["score95"] <= 2.6
    assert 0.85 <= shift["rows"] <= 0.95
    assert shift["rows_below_75"] <= 0.15
    assert shift["no_shift_if_distant"] <= 0.05
    assert random["no_shift"] >= 0.9
    assert random["width95"] <= 1.6
    assert 0.88 <= random["covered95"] <= 0.99


def test_the_check_uses_the_intervals_and_classes_of_the_package(records, experience):
    for r in records[:: len(records) // 60]:
        kind, separation = "linear" if r["regressor"] == "BayesSpAR" else "any", separation_of(r)
        assert class_of(r) == separation_class(separation)
        narrow = tuple(r["narrow95"])
        assert interval_of(r, 0.95, experience[kind]) == pytest.approx(
            rmse_interval(0.95, r["expected"], narrow, separation, kind, home=r["home"], spread=r["spread"])
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
    common = {"part": "new", "map": "raw", "split": "shift", "auc": 0.9, "p_value": 0.0, "matched": False, "home": 1.0,
              "spread": 1.0, "expected": 1.0, "outside": 0.0,
              "narrow80": [0.9, 1.1], "narrow95": [0.8, 1.2]}  # fmt: skip
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
    monkeypatch.setattr("benchmarks.trust.page.PAGES", (page,))
    for old in ("", "old\n"):
        page.write_text(f"before\n<!-- table one -->\n{old}<!-- end -->\nafter\n{other}", encoding="utf-8")
        write_tables({"one": (["a"], [["1"]]), "three": (["b"], [])})
        new = "<!-- table one -->\n\n| a |\n| --- |\n| 1 |\n\n<!-- end -->\n"
        assert page.read_text() == f"before\n{new}after\n{other}"


def test_alternatives_are_evaluated_by_their_own_classes(records):
    own = [r for r in records[::12] if r["part"] in PARTS]
    for name, share in (("level 10 %", 0.1), ("level 1 %", 0.01)):
        classes = [class_of(r) for r in VARIANTS[name].classify(own)]
        assert [label in ("none", "matched") for label in classes] == [r["p_value"] > share for r in own]
    assert "matched" not in map(class_of, VARIANTS["matched rows are not a class"].classify(own))
    scores = {row[0]: row[1:] for row in variant_rows(own)[1]}
    assert len({tuple(row) for row in scores.values()}) > 4
    linear = [r for r in own if r["regressor"] == "BayesSpAR"]
    natural = [r for r in leave_sets_out(linear) if r["split"] == "shift"]
    assert next(iter(scores.values()))[0] == f"{summarise(natural)['score95']:.2f}"
    covered = [float(row[2].split()[0]) for row in stretch_rows(own)[1]]
    assert covered == sorted(covered)
    counts = [[int(cell) for cell in row[1:]] for row in threshold_rows(records)[1]]
    assert counts[0][0] > counts[1][0] >= counts[1][1] > 0


def test_powers_that_made_the_records_are_learnt_from_them(rng):
    """Errors have tails of fixed width beyond ends that move with the ratios, so no other powers score better."""
    records = []
    for place in range(600):
        increase, signal = np.exp(rng.uniform(0.0, 2.0, 2))
        z = rng.normal()
        ends = 0.6 * math.log(signal) if z > 0.0 else 0.2 * math.log(increase)
        actual = increase * math.exp(0.1 * z + math.copysign(ends, z))
        records.append({"set": str(place), "split": "shift", "p_value": 0.0, "auc": 0.8 + 0.19 * (place % 2),
                        "matched": False, "home": 1.0, "spread": signal, "expected": increase, "actual": actual,
                        "outside": 0.0, "narrow80": [0.9, 9.0], "narrow95": [0.8, 9.0]})  # fmt: skip
    alike = [{**r, "split": "random", "p_value": 1.0, "expected": 1.0, "actual": 1.1} for r in records]
    learnt = learn_kind([*records, *alike])
    assert learnt["powers"] == pytest.approx([0.2, 0.6], abs=0.051)  # one step of the grid
    assert learn_kind([*records, *alike], powers=((0.0,), (0.0,)))["powers"] == [0.0, 0.0]
    for name in ("0.5-0.95", "0.95-1"):
        low, high = learnt["rmse"]["0.95"][name]
        assert (math.log(low), math.log(high)) == pytest.approx((-0.2, 0.2), abs=0.1)


def test_ratios_are_compared_with_whole_parts_left_out(records):
    own = [r for r in records if r["part"] in ("design", "held-back", "newest") and r["split"] in ("shift", "random")]
    rows = ratio_rows(own)[1]
    linear = [r for r in own if r["regressor"] == "BayesSpAR"]
    assert rows[0][5:7] == ["+0.00 ± 0.00", "0 of 3"]
    scores = {}
    for name, powers in (("constant", ((0.0,), (0.0,))), ("both", (POWERS, POWERS))):
        for part in ("design", "held-back", "newest"):
            learnt = learn_kind([r for r in linear if r["part"] != part], powers=powers)
            checked = apply(learnt, [r for r in linear if r["part"] == part and r["split"] == "shift"])
            for r in checked:  # each data set has three tasks
                scores.setdefault(name, {}).setdefault(r["set"], []).append(r["score0.95"])
    gains = [np.mean(scores["both"][key]) - np.mean(scores["constant"][key]) for key in scores["both"]]
    assert rows[-1][5] == f"{np.mean(gains):+.2f} ± {np.std(gains, ddof=1) / math.sqrt(len(gains)):.2f}"


def test_rates_are_compared_by_exact_tests():
    """With a rate of 1/2, 0 of 4 has the two-sided probability 2 / 16.

    Of 5 excessive errors among 14, the numbers 0, 3 and 4 among 4 are at most as probable as 0.
    """
    common = {"map": "raw", "auc": 0.9, "p_value": 0.0, "matched": False, "home": 1.0, "expected": 1.0, "outside": 0.0}
    shifts = [{**common, "set": name, "actual": 1.0} for name in "abcd"]
    printed = {"linear": {"base_rates": {"unverified": {"0.5-0.95": [10, 5]}}}}
    ((*_, two_samples, p_value),) = rows = rate_rows(printed, {"linear": shifts})[1]
    assert float(p_value) == pytest.approx(0.125, abs=0.006)
    counts = [math.comb(5, k) * math.comb(9, 4 - k) for k in (0, 3, 4)]
    assert float(two_samples) == pytest.approx(sum(counts) / math.comb(14, 4), abs=0.006)
    assert describe_rates(rows).startswith("0 of 1 ")
    assert describe_rates(rows, level=0.2).startswith("1 of 1 ")


def test_binomial_intervals_agree_with_those_of_scipy():
    for k, n in ((0, 7), (3, 32), (32, 32)):
        exact = binomtest(k, n).proportion_ci(method="exact")
        assert binomial_interval(k / n, n) == pytest.approx((exact.low, exact.high))
    low, high = binomial_interval(2.5 / 32, 32)
    assert binomial_interval(2 / 32, 32)[0] < low < high < binomial_interval(3 / 32, 32)[1]


def test_tasks_of_one_data_set_count_by_their_dependence(rng):
    held = rng.random((2000, 5)) < 0.9
    cases = {"independent": (held, 5.0), "copies": (np.repeat(held[:, :1], 5, axis=1), 1.0)}
    for values, expected in cases.values():
        tasks = [{"set": place, "held": value} for place, row in enumerate(values) for value in row]
        assert count_effective(tasks, "held") == pytest.approx(2000 * expected, rel=0.1)  # the variance has 3 %
    assert count_effective([{"set": 0, "held": True}] * 5, "held") == 1.0


@pytest.fixture
def small_set(tmp_path, monkeypatch, rng):
    """A data set of the part ``final``."""
    import pandas as pd

    frame = pd.DataFrame(rng.normal(size=(70, 2)), columns=["a", "b"])
    loaded = frame, frame["a"] + rng.normal(size=70), np.arange(70) >= 40
    monkeypatch.setitem(REGISTER, "small", Shift("small", "y", "", "", "", lambda: loaded, "final"))
    monkeypatch.setenv("PYSPAR_SHIFTS_CACHE", str(tmp_path))
    return "small"


def test_a_checked_part_has_several_random_splits_of_which_the_first_is_that_of_other_parts(small_set):
    tasks = [task for task in list_part_tasks(["final"]) if task[0].startswith("small/")]
    splits = RANDOM_SPLITS["final"]
    assert len(tasks) == len(set(tasks)) == 6 + 4 * splits  # 6 natural shifts; 4 regressors on raw columns
    assert len(list_part_tasks(["last"])) == 10 * sum(shift.part == "last" for shift in REGISTER.values())
    labels = {split: load(small_set, "raw", split)[1] for _, split, _ in tasks if split != "shift"}
    assert len({tuple(y) for y in labels.values()}) == splits
    assert {tuple(np.sort(np.r_[y, load(small_set, "raw", split)[3]])) for split, y in labels.items()} == {
        tuple(np.sort(np.r_[load(small_set, "raw", "shift")[1::2]]))
    }


def test_all_random_splits_are_summarised_together(experience, records):
    (record, *_) = (r for r in records if r["split"] == "random" and r["regressor"] == "BayesSpAR")
    several = [{**record, "split": f"random{suffix}"} for suffix in ("", "-2", "-3")]
    found = summarise_groups(apply(experience["linear"], several))
    assert (found["random"]["tasks"], found["random"]["sets"], found["shift"]["tasks"]) == (3, 1, 0)


def test_an_interrupted_run_continues_and_reports_what_failed(tmp_path, monkeypatch):
    path = tmp_path / "trust.jsonl"
    known, made, faulty = (("a/raw", "shift", name) for name in ("known", "made", "faulty"))
    record = dict(zip(("task", "split", "regressor"), known, strict=True))
    path.write_text(json.dumps(record) + '\n{"task": "a/raw", "spl')
    asked = []

    def fake(function, tasks, **_):
        asked.extend(tasks)
        yield made, {**record, "regressor": "made"}

    monkeypatch.setattr("benchmarks.trust.measure.RECORDS", path)
    monkeypatch.setattr("benchmarks.trust.measure.run_in_processes", fake)
    assert run([known, made, faulty], jobs=2) == [faulty]
    assert asked == [made, faulty]
    assert set(read()) == {known, made}

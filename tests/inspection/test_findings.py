"""Each finding: data made so that it is there, and data in which it is not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import pyspar
from pyspar import BayesSpARRegressor, SpARRegressor, inspect
from pyspar.core.evidence import Limit
from pyspar.inspection.findings import LIMITS


def data(n=400, m=300, d=4, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    return X, X @ np.linspace(1.0, 2.0, d) + noise * rng.normal(size=n), Z


def codes(est, Z):
    found = inspect(est, Z)
    findings = found.findings
    for finding in findings:
        assert finding.severity in ("good", "info", "warning", "serious")
        assert finding.text.endswith(".")
        assert finding.advice
    return {finding.code: finding for finding in findings}


@pytest.fixture
def calm():
    X, y, Z = data()
    return codes(SpARRegressor().fit(X, y), Z)


def test_without_a_shift_only_that_is_said(calm):
    assert set(calm) == {"SPAR002"}
    assert calm["SPAR002"].severity == "good"


def test_a_direction_that_only_the_target_varies_in_hurts():
    X, y, Z = data()
    X[:, 0] *= 1e-3
    found = codes(SpARRegressor().fit(X, y), Z)
    assert found["SPAR001"].severity == "serious"
    assert "x0" in found["SPAR001"].advice
    assert "SPAR002" not in found


def test_target_energy_outside_the_source_is_found(calm):
    X, y, Z = data()
    X[:, 3] = X[:, 2]
    found = codes(SpARRegressor().fit(X, y), Z)
    share = np.mean((Z[:, 3] - Z[:, 2]) ** 2) / 2 / np.sum(np.mean((Z - X.mean(axis=0)) ** 2, axis=0))
    assert f"{100 * share:.1f} % of" in found["SPAR003"].text
    assert "SPAR003" not in calm


def test_a_column_stuck_in_the_source_is_named(calm):
    X, y, Z = data()
    X[:, 2] = 7.0
    assert "x2" in codes(SpARRegressor().fit(X, y), Z)["SPAR004"].text
    Z[:, 2] = 7.0
    assert "SPAR004" not in codes(SpARRegressor().fit(X, y), Z)
    assert "SPAR004" not in calm


@pytest.mark.parametrize(("rows", "severity"), [(5, "serious"), (20, "warning")])
def test_few_rows_for_each_direction_are_counted(rows, severity, calm):
    X, y, Z = data(n=rows, seed=1)
    found = codes(BayesSpARRegressor().fit(X, y), Z)["SPAR005"]
    assert found.severity == severity
    assert f"{rows} rows for 4 directions" in found.text
    assert "SPAR005" not in calm


def test_equal_singular_values_on_both_sides_of_the_line_are_told(calm):
    # Without an intercept, and with a target whose directions are the axes: two of equal length, one of them removed.
    X, _, _ = data(d=2)
    y = X[:, 0] + np.random.default_rng(3).normal(size=len(X))
    equal, apart = (np.vstack([np.diag([5.0, length]), np.zeros((8, 2))]) for length in (5.0 * (1 - 1e-6), 3.0))
    est = SpARRegressor(fit_intercept=False).fit(X, y)
    assert "SPAR006" in codes(est, equal)
    assert "SPAR006" not in codes(est, apart)
    assert "SPAR006" not in calm


def test_evidence_at_a_limit_is_told(calm):
    X, _, Z = data()
    assert "no-noise" in codes(SpARRegressor().fit(X, X @ [1.0, 2.0, 3.0, 4.0]), Z)["SPAR007"].text
    assert "no-signal" in codes(SpARRegressor().fit(X, np.ones(len(X))), Z)["SPAR007"].text
    assert "SPAR007" not in calm


def test_rows_that_repeat_others_are_told():
    rng = np.random.default_rng(0)
    turn = np.geomspace(1.0, 1e-3, 90)[:, None] * np.linalg.qr(rng.normal(size=(90, 90)))[0]
    X = rng.normal(size=(40, 90)) @ turn
    y = X @ rng.normal(size=90) + 0.5 * rng.normal(size=40)
    copies = np.r_[np.arange(40), np.arange(0, 40, 5)]
    found = codes(BayesSpARRegressor().fit(X[copies], y[copies]), X + 0.1)["SPAR007"]
    assert "repeated-rows" in found.text
    assert "copies" in found.advice


def test_every_limit_that_the_evidence_may_end_at_is_explained():
    inside, given = {"interior"}, {"fixed", "flat"}  # nothing to tell, and nothing that was found
    assert set(get_args(Limit)) - inside - given == set(LIMITS)


def test_that_most_of_the_target_was_taken_away_is_told(calm):
    X, _, Z = data()
    noise = np.random.default_rng(1).normal(size=len(X))
    assert "SPAR008" in codes(SpARRegressor().fit(X, noise), Z)
    assert "SPAR008" not in calm


def test_a_mean_far_away_is_told_with_its_column(calm):
    X, y, Z = data()
    Z[:, 1] += 9.0
    found = codes(SpARRegressor().fit(X, y), Z)["SPAR009"]
    assert "x1 by 9" in found.text or "x1 by 8.9" in found.text
    assert "SPAR009" not in calm


def test_a_forecast_that_says_little_says_so(calm):
    X, y, Z = data()
    X[:, 0] *= 1e-3
    assert "SPAR010" in codes(SpARRegressor().fit(X, y), Z)
    assert "SPAR010" not in calm


def test_units_far_apart_matter_only_to_a_regressor_that_does_not_scale(calm):
    X, y, Z = data()
    X[:, 0] *= 1e8
    Z[:, 0] *= 1e8
    assert "SPAR011" in codes(SpARRegressor().fit(X, y), Z)
    assert "SPAR011" not in codes(BayesSpARRegressor().fit(X, y), Z)
    assert "SPAR011" not in calm


def test_the_price_of_adapting_is_told(calm):
    X, y, Z = data()
    found = codes(BayesSpARRegressor(rule="chi2", alpha=1.0).fit(X, y), Z)  # alpha 1 takes everything away
    assert found["SPAR012"].severity == "info"
    assert "SPAR012" not in calm


@pytest.mark.parametrize(("reach", "severity"), [(1.0, "info"), (6.0, "warning")])
def test_a_column_that_alone_decides_the_label_is_named(reach, severity):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(300, 50)), rng.normal(size=(200, 50))
    Z[:, 7] *= reach
    noise = rng.normal(size=300)
    found = codes(BayesSpARRegressor().fit(X, 2.0 * X[:, 7] + noise), Z)["SPAR013"]
    assert found.severity == severity
    assert "x7 carries" in found.text
    assert "of what 50 columns explain" in found.text
    assert ("times as far" in found.text) == (reach > 3.0)
    assert "SPAR013" not in codes(BayesSpARRegressor().fit(X, X @ rng.normal(size=50) + noise), Z)


def test_one_of_a_few_columns_may_lead_without_a_word():
    X, _, Z = data()
    assert "SPAR013" not in codes(SpARRegressor().fit(X, X[:, 0] + np.random.default_rng(1).normal(size=len(X))), Z)


def test_features_of_one_column_lead_together():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 60))
    y = X[:, :10].sum(axis=1) + rng.normal(size=300)
    names = ["town"] * 10 + [f"x{i}" for i in range(50)]
    for columns, told in ((names, True), (None, False)):
        found = inspect(BayesSpARRegressor().fit(X, y), X, columns=columns).outputs[0].findings
        assert any(each.code == "SPAR013" and "town carries" in each.text for each in found) == told


def test_every_code_is_documented_and_no_other():
    root = Path(pyspar.__file__).parents[2]
    page = root / "docs" / "report.md"
    if not page.is_file():
        pytest.skip("the documentation is not part of an installed package")
    room = Path(pyspar.__file__).parent / "inspection"
    code = "".join((room / name).read_text() for name in ("findings.py", "unseen_categories.py"))
    used = set(re.findall(r"SPAR\d{3}", code))
    assert set(re.findall(r"^\| `(SPAR\d{3})`", page.read_text(), flags=re.M)) == used


def test_all_findings_stand_in_one_list_that_names_their_labels():
    X, y, Z = data(n=25)
    found = inspect(SpARRegressor().fit(X, np.column_stack([y, -y])), Z * [1, 1, 1, 9], outputs=["price", "rent"])
    told = [(each.code, each.output) for each in found.findings]
    assert len(set(told)) == len(told)
    for output in found.outputs:
        assert tuple(each for each in found.findings if each.output == output.name) == output.findings
    assert ("SPAR005", None) in told
    assert [each["code"] for each in found.as_dict()["findings"]] == [code for code, _ in told]

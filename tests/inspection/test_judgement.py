"""Headline, findings and verdict tell one story: what is advised in one is advised in all."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, SpARRegressor, inspect
from pyspar.core.forecast import Forecast
from pyspar.inspection.findings import LabelFacts, findings_in_label
from pyspar.inspection.judgement import judged, verdict_of


def told(home, adapted="Bayes-SpAR", **rmse):
    """Return the verdict and the findings by code, for expected errors that are given."""
    forecasts = [
        Forecast(name.replace("_", "-"), value, *[(0.9 * value, 1.1 * value)] * 2, value, *[(0.0, value)] * 2, 0, 0, 0)
        for name, value in rmse.items()
    ]
    found = judged(forecasts, home, adapted)
    return verdict_of(found), {f.code: f for f in findings_in_label(LabelFacts(found, (), "interior"))}


def test_a_shift_that_hurts_and_that_adapting_reduces():
    verdict, findings = told(1.0, OLS=5.0, ridge=4.0, Bayes_SpAR=2.0)
    assert "Use Bayes-SpAR" in findings["SPAR001"].advice
    assert verdict.startswith("Adapting is worth it: the expected RMSE falls from 5 to 2 with Bayes-SpAR (60 % less")


@pytest.mark.parametrize("adapted", [4.95, 5.0, 7.0])
def test_a_shift_that_hurts_and_that_no_weights_reduce_needs_labels_first(adapted):
    verdict, findings = told(1.0, OLS=5.0, ridge=5.0, Bayes_SpAR=adapted)
    assert findings["SPAR001"].advice.startswith("Label some rows of the target first")
    assert verdict.startswith("Label some rows of the target first: the shift hurts")
    assert "Adapting changes little" not in verdict
    assert ("SPAR012" in findings) == (adapted > 5.2)


def test_where_other_weights_are_better_both_name_them():
    verdict, findings = told(1.0, OLS=5.0, ridge=2.0, Bayes_SpAR=5.0)
    assert re.search(r"ridge: .*\b2\b", findings["SPAR001"].advice)
    assert verdict.startswith("Use ridge rather than least squares: the expected RMSE falls from 5 to 2")
    verdict, findings = told(1.0, OLS=5.0, ridge=2.0, Bayes_SpAR=3.0)
    assert re.search(r"ridge: .*\b2\b", findings["SPAR001"].advice)
    assert verdict.startswith("Adapting is worth it")
    assert "ridge: 2" in verdict


def test_adapted_weights_are_advised_where_others_are_hardly_better():
    _, findings = told(1.0, OLS=5.0, ridge=1.99, Bayes_SpAR=2.0)
    assert "Use Bayes-SpAR" in findings["SPAR001"].advice


def test_without_harm_adapting_changes_little_or_costs():
    verdict, findings = told(1.0, OLS=1.0, ridge=1.0, Bayes_SpAR=1.0)
    assert "SPAR002" in findings
    assert verdict.startswith("Adapting changes little")
    verdict, findings = told(1.0, OLS=1.0, ridge=1.0, Bayes_SpAR=1.5)
    assert "rises from 1 to 1.5 with Bayes-SpAR" in verdict
    assert "SPAR012" in findings


@pytest.mark.parametrize(
    ("adapted", "how"), [(0.94, "is worth it"), (0.96, "helps slightly"), (0.99, "changes little")]
)
def test_a_gain_of_a_few_per_cent_is_not_oversold(adapted, how):
    verdict, findings = told(1.0, OLS=1.0, ridge=1.0, Bayes_SpAR=adapted)
    assert verdict.startswith(f"Adapting {how}: ")
    assert ("Bayes-SpAR" in findings["SPAR002"].advice) == (how == "is worth it")
    verdict, findings = told(1.0, OLS=5.0, ridge=5.0, Bayes_SpAR=4.85)
    assert verdict.startswith("Label some rows of the target first: the shift hurts and adapting helps only slightly")
    assert findings["SPAR001"].advice.startswith("Label some rows of the target first")


def test_the_verdict_speaks_of_the_weights_in_hand_and_names_better_ones():
    verdict, findings = told(1.0, "SpAR", OLS=5.0, SpAR=3.0, Bayes_SpAR=4.0)
    assert verdict.startswith("Adapting is worth it: the expected RMSE falls from 5 to 3 with SpAR (40 % less")
    assert "Bayes-SpAR" not in verdict
    assert re.search(r"SpAR: .*\b3\b", findings["SPAR001"].advice)
    verdict, findings = told(1.0, "SpAR", OLS=5.0, SpAR=4.0, Bayes_SpAR=3.0)
    assert "falls from 5 to 4 with SpAR" in verdict
    assert "Bayes-SpAR: 3" in verdict
    assert re.search(r"Bayes-SpAR: .*\b3\b", findings["SPAR001"].advice)
    verdict, findings = told(1.0, "SpAR", OLS=5.0, SpAR=6.0, Bayes_SpAR=3.0)
    assert verdict.startswith(
        "Use Bayes-SpAR rather than least squares: the expected RMSE falls from 5 to 3 (40 % less"
    )
    assert "6 with SpAR" in verdict
    assert "to 6 (SpAR)" in findings["SPAR012"].text


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (2.9e7, 1.7, "falls from 29,000,000 to 1.7 with Bayes-SpAR (17,000,000 times smaller"),
        (100.0, 6.0, "(94 % less"),
        (100.0, 4.0, "(25 times smaller"),
        (100.0, 0.0, "(100 % less"),
        (1.0, 1.5, "(50 % more"),
        (1.0, 250.0, "(250 times as large"),
    ],
)
def test_how_much_less_or_more_is_told_as_a_person_would(before, after, change):
    assert change in told(before, OLS=before, Bayes_SpAR=after)[0]


def test_each_regressor_is_judged_by_its_own_weights(shifted):
    X, y, Z = shifted
    for est, name in ((BayesSpARRegressor().fit(X, y), "Bayes-SpAR"), (SpARRegressor().fit(X, y), "SpAR")):
        found = inspect(est, Z)
        expected = float(est.adapted(Z).expected_rmse(Z))
        assert found.adapted == name
        assert found.outputs[0].forecast(name).rmse == pytest.approx(expected, rel=1e-9)
        assert f"with {name}" in found.outputs[0].verdict


def test_what_cannot_be_computed_is_unknown():
    verdict, findings = told(1.0, OLS=np.inf, ridge=1.0, Bayes_SpAR=np.inf)
    assert "unknown" in verdict
    assert findings["SPAR001"].severity == "serious"


def test_an_inspection_says_whether_adapting_is_worth_it_as_its_verdict_does(shifted):
    X, y, Z = shifted
    for est in (BayesSpARRegressor(), BayesSpARRegressor(rule="chi2", alpha=1.0)):
        output = inspect(est.fit(X, y), Z).outputs[0]
        assert output.worth == ("Adapting is worth it" in output.verdict)

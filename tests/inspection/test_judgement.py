"""The judgement of forecasts: its outcome, the weights that it advises, and the text of verdicts and findings."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, SpARRegressor, inspect
from pyspar.core.forecast import Forecast
from pyspar.inspection.findings import derive_label_findings
from pyspar.inspection.judgement import Judgement, write_verdict


def judge(source_rmse, adapted="Bayes-SpAR", **rmse):
    """Return the judgement of expected errors by method name."""
    forecasts = [
        Forecast(name.replace("_", "-"), value, *[(0.9 * value, 1.1 * value)] * 2, value, *[(0.0, value)] * 2, 0, 0, 0)
        for name, value in rmse.items()
    ]
    return judge_forecasts(forecasts, source_rmse, adapted)


def judge_forecasts(forecasts, source_rmse, adapted):
    return Judgement({forecast.name: forecast for forecast in forecasts}, source_rmse, adapted)


def findings_by_code(judgement):
    return {finding.code: finding for finding in derive_label_findings(judgement, (), "interior", None)}


CASES = [
    # expected errors, outcome, advised weights, codes of the findings
    (judge(1.0, OLS=5.0, ridge=4.0, Bayes_SpAR=2.0), "adapt", "Bayes-SpAR", {"SPAR001"}),
    (judge(1.0, OLS=5.0, ridge=1.99, Bayes_SpAR=2.0), "adapt", "Bayes-SpAR", {"SPAR001"}),
    (judge(1.0, OLS=5.0, ridge=2.0, Bayes_SpAR=5.0), "use", "ridge", {"SPAR001"}),
    (judge(1.0, OLS=5.0, ridge=2.0, Bayes_SpAR=3.0), "use", "ridge", {"SPAR001"}),
    (judge(1.0, OLS=5.0, ridge=2.0, Bayes_SpAR=7.0), "use", "ridge", {"SPAR001", "SPAR012"}),
    (judge(1.0, OLS=1.0, ridge=0.93, Bayes_SpAR=0.97), "use", "ridge", {"SPAR002"}),
    (judge(1.0, OLS=5.0, ridge=5.0, Bayes_SpAR=4.85), "label", None, {"SPAR001"}),
    (judge(1.0, OLS=5.0, ridge=5.0, Bayes_SpAR=4.95), "label", None, {"SPAR001"}),
    (judge(1.0, OLS=5.0, ridge=5.0, Bayes_SpAR=5.0), "label", None, {"SPAR001"}),
    (judge(1.0, OLS=5.0, ridge=5.0, Bayes_SpAR=7.0), "label", None, {"SPAR001", "SPAR012"}),
    (judge(1.0, OLS=1.0, ridge=1.0, Bayes_SpAR=0.94), "adapt", "Bayes-SpAR", {"SPAR002"}),
    (judge(1.0, OLS=1.0, ridge=1.0, Bayes_SpAR=0.96), "slight", None, {"SPAR002"}),
    (judge(1.0, OLS=1.0, ridge=1.0, Bayes_SpAR=0.99), "same", None, {"SPAR002"}),
    (judge(1.0, OLS=1.0, ridge=1.0, Bayes_SpAR=1.0), "same", None, {"SPAR002"}),
    (judge(1.0, OLS=1.0, ridge=1.0, Bayes_SpAR=1.5), "worse", None, {"SPAR002", "SPAR012"}),
    (judge(1.0, "SpAR", OLS=5.0, SpAR=3.0, Bayes_SpAR=4.0), "adapt", "SpAR", {"SPAR001"}),
    (judge(1.0, "SpAR", OLS=5.0, SpAR=4.0, Bayes_SpAR=3.0), "use", "Bayes-SpAR", {"SPAR001"}),
    (judge(1.0, "SpAR", OLS=5.0, SpAR=6.0, Bayes_SpAR=3.0), "use", "Bayes-SpAR", {"SPAR001", "SPAR012"}),
    (judge(1.0, OLS=np.inf, ridge=1.0, Bayes_SpAR=np.inf), "unknown", "ridge", {"SPAR001"}),
    # large and small changes
    (judge(2.9e7, OLS=2.9e7, Bayes_SpAR=1.7), "adapt", "Bayes-SpAR", {"SPAR002"}),
    (judge(100.0, OLS=100.0, Bayes_SpAR=6.0), "adapt", "Bayes-SpAR", {"SPAR002"}),
    (judge(100.0, OLS=100.0, Bayes_SpAR=4.0), "adapt", "Bayes-SpAR", {"SPAR002"}),
    (judge(100.0, OLS=100.0, Bayes_SpAR=0.0), "adapt", "Bayes-SpAR", {"SPAR002"}),
    (judge(1.0, OLS=1.0, Bayes_SpAR=250.0), "worse", None, {"SPAR002", "SPAR012"}),
]


@pytest.mark.parametrize(("judgement", "outcome", "advised", "codes"), CASES)
def test_the_outcome_follows_from_the_expected_errors(judgement, outcome, advised, codes):
    assert judgement.outcome == outcome
    assert (judgement.advised and judgement.advised.name) == advised
    assert set(findings_by_code(judgement)) == codes


@pytest.mark.parametrize("ratio", [1.05, 1.5, 3.0])
def test_harm_has_two_levels(ratio):
    judgement = judge(1.0, OLS=ratio, Bayes_SpAR=ratio)
    severity = {1.05: "good", 1.5: "warning", 3.0: "serious"}[ratio]
    (finding,) = derive_label_findings(judgement, (), "interior", None)
    assert judgement.is_harmful == (severity != "good")
    assert finding.severity == severity


def test_errors_that_cannot_be_computed_are_serious():
    judgement = judge(1.0, OLS=np.inf, ridge=1.0, Bayes_SpAR=np.inf)
    assert findings_by_code(judgement)["SPAR001"].severity == "serious"


def test_the_text_of_verdicts_and_their_findings(golden):
    lines = []
    for judgement, *_ in CASES:
        errors = ", ".join(f"{name} {forecast.rmse:g}" for name, forecast in judgement.forecasts.items())
        lines.append(f"source {judgement.source_rmse:g}; target {errors}; adapted {judgement.adapted}")
        lines.append(f"    verdict: {write_verdict(judgement)}")
        for code, finding in findings_by_code(judgement).items():
            lines.append(f"    {code} {finding.severity}: {finding.text} {finding.advice}")
    golden("verdicts", "\n".join(lines))


def assert_one_recommendation(judgement, verdict, findings):
    """Assert that the verdict and the advice of every finding name only the advised weights."""
    advised = judgement.advised and judgement.advised.name
    for finding in findings:
        named = {name for name in judgement.forecasts if re.search(rf"(?<![\w-]){re.escape(name)}\b", finding.advice)}
        assert named <= {advised}, finding
    recommended = re.match(r"Use (.+?): the", verdict)
    assert (recommended and recommended[1]) == (advised if judgement.outcome == "use" else None)
    assert verdict.startswith("Adapting is worth it:") == (judgement.outcome == "adapt")


@pytest.mark.parametrize("judgement", [case[0] for case in CASES])
def test_verdict_and_findings_recommend_the_same_weights(judgement):
    assert_one_recommendation(judgement, write_verdict(judgement), findings_by_code(judgement).values())


@pytest.mark.parametrize("estimator", [SpARRegressor(), SpARRegressor(0.5), BayesSpARRegressor()], ids=repr)
def test_verdict_and_findings_of_simulated_shifts_recommend_the_same_weights(estimator):
    outcomes = set()
    true_weights = np.array([2.0, 1.0, 0.5, 0.5, 0.1, 0.1])
    for shift, rows, seed in itertools.product([1.0, 3.0, 30.0], [12, 40, 400], range(4)):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(rows, 6)), rng.normal(size=(80, 6))
        X[:, 5] *= 1e-3 if seed == 2 else 1.0
        Z[:, 1] *= shift
        Z[:, 4] += 5.0 if seed == 3 else 0.0
        y = X @ true_weights + rng.normal(size=rows)
        inspection = inspect(estimator.fit(X, y), Z, weights={"in use": (true_weights, 0.0)} if seed == 1 else None)
        output = inspection.outputs[0]
        judgement = judge_forecasts(output.forecasts, output.in_distribution, inspection.adapted)
        assert_one_recommendation(judgement, output.verdict, inspection.findings)
        assert output.worth == judgement.is_worthwhile
        outcomes.add(judgement.outcome)
    assert len(outcomes) >= 3


def test_each_regressor_is_judged_by_its_own_weights(shifted):
    X, y, Z = shifted
    for est, name in ((BayesSpARRegressor().fit(X, y), "Bayes-SpAR"), (SpARRegressor().fit(X, y), "SpAR")):
        inspection = inspect(est, Z)
        expected = float(est.adapted(Z).expected_rmse(Z))
        assert inspection.adapted == name
        assert inspection.outputs[0].forecast(name).rmse == pytest.approx(expected, rel=1e-9)


def test_an_inspection_is_worth_it_if_its_judgement_is(shifted):
    X, y, Z = shifted
    for est in (BayesSpARRegressor(), BayesSpARRegressor(rule="chi2", alpha=1.0)):
        inspection = inspect(est.fit(X, y), Z)
        output = inspection.outputs[0]
        judgement = judge_forecasts(output.forecasts, output.in_distribution, inspection.adapted)
        assert output.worth == judgement.is_worthwhile == (judgement.outcome == "adapt")

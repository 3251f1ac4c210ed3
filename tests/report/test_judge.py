"""Outcomes, advice and findings on constructed data, and that no advice contradicts what was found or measured."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.metrics import root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from pyspar import BayesSpARRegressor, SpARRegressor, adapt_pipeline, inspect
from pyspar.core.separation import Separation
from pyspar.report.judge import InspectedModel, SourceLabel, Target, choose_model, judge_output, measure_rmse
from pyspar.report.shift_report import HEADLINES, TEXTS, Advice, ColumnDrift, ModelErrors
from pyspar.text import format_number

FOUND, NOT_FOUND = Separation(0.9, 1e-9, True), Separation(0.5, 0.4, False)
CONTEXT = {"responsible": (("a", 1.0),), "responsible_for": "shift", "new_groups": False}
UNSEEN = {"rows": 2, "total": 100, "columns": {"town": ["Ulm"]}}
SOURCE = SourceLabel(1.0, 0.0, 5.0, (-10.0, 10.0))


def forecast(rmse):
    return ModelErrors("", rmse, (0.9 * rmse, 1.1 * rmse), (0.5 * rmse, 2.0 * rmse))


def judge(before, after=None, *, separation=FOUND, outside=0.0, unseen=None, truth=None, n=None, **options):
    """Judge models with expected errors; ``truth`` are labels of 100 target rows, of which the first n are known."""
    labels = None if truth is None else np.where(np.arange(100) < (n or 100), truth, np.nan)
    sign = (-1.0) ** np.arange(100)  # every squared error is the same, so each RMSE is exact
    rows = [None if truth is None else truth + size * sign for size in options.pop("errors", (1, 1))]
    names = ["as fitted"] if after is None else ["as fitted", "adapted"]
    expected = [before] if after is None else [before, after]
    models = [InspectedModel(*of, None) for of in zip(names, map(forecast, expected), expected, rows)]
    target = Target(100, separation, (ColumnDrift("a", 1.0, 1.0, 1.0),), outside, unseen)
    return judge_output("y", models, SOURCE, target, labels=labels, **{**CONTEXT, **options})


@pytest.fixture
def truth():
    return 3.0 * np.random.default_rng(1).normal(size=100)


@pytest.mark.parametrize(
    ("arguments", "outcome", "severity", "advice"),
    [
        ({"before": 1.0, "after": 1.0, "separation": NOT_FOUND}, "no-shift", "info", Advice.ADAPT),
        ({"before": 1.0, "after": 1.01, "separation": NOT_FOUND}, "no-shift", "info", Advice.KEEP),
        ({"before": 1.05, "after": 1.04}, "unverified", "warning", Advice.ADAPT),
        ({"before": 1.5, "after": 1.05}, "hurts", "warning", Advice.ADAPT),
        ({"before": 9.0, "after": 1.05}, "hurts", "serious", Advice.ADAPT),
        ({"before": 9.0, "after": 5.0}, "hurts", "serious", Advice.LABEL),
        ({"before": 1.5, "after": 1.6}, "hurts", "warning", Advice.LABEL),
        ({"before": 1.0, "outside": 0.1}, "unknown", "serious", Advice.LABEL),
        ({"before": 1.0, "outside": 0.3}, "unknown", "serious", Advice.LABEL),
        ({"before": np.inf}, "unknown", "serious", Advice.LABEL),
        ({"before": 1.0, "unseen": {**UNSEEN, "rows": 20}}, "unknown", "serious", Advice.LABEL),
        ({"before": 1.0, "unseen": UNSEEN}, "unverified", "warning", Advice.KEEP),
        ({"before": 1.0, "can_forecast": False}, "unverified", "warning", Advice.LABEL),
        ({"before": 1.0, "can_forecast": False, "separation": NOT_FOUND}, "no-shift", "info", Advice.KEEP),
    ],
)  # fmt: skip
def test_without_labels(arguments, outcome, severity, advice):
    output = judge(**arguments)
    assert (output.outcome, output.severity, output.advice) == (outcome, severity, advice)
    assert output.limits


@pytest.mark.parametrize(
    ("n", "errors", "outcome", "advice", "verdict"),
    [
        (100, (1, 1), "unverified", Advice.KEEP, "confirmed"),
        (100, (1, 0.5), "unverified", Advice.ADAPT, "confirmed"),  # the smaller measured error, against the forecast
        (100, (3, 2.9), "hurts", Advice.CORRECT, "hurts"),
        (100, (0.9, 5), "unverified", Advice.KEEP, "confirmed"),
        (60, (1, 1), "unverified", Advice.KEEP, "confirmed"),
        (12, (1, 1), "unverified", Advice.CORRECT, "inconclusive"),
        (12, (9, 9), "hurts", Advice.CORRECT, "hurts"),
        (5, (1, 1), "unverified", Advice.KEEP, "few"),
        (5, (30, 30), "hurts", Advice.CORRECT, "hurts"),
        (60, (0.45, 0.45), "unverified", Advice.CORRECT, "easy"),
    ],
)
def test_labels_overrule_the_forecast(truth, n, errors, outcome, advice, verdict):
    output = judge(1.0, 1.05, truth=truth, n=n, errors=errors)
    assert (output.outcome, output.advice) == (outcome, advice)
    assert output.headline.numbers["verdict"] == verdict
    assert output.confirmed == (verdict == "confirmed") == (output.severity == "good")
    assert ("pyspar.align" in output.limits) == (verdict != "confirmed")  # which of two changes the labels show
    assert ("TargetCorrection" in output.limits) == (verdict != "confirmed" and n >= 10)


def test_two_models_are_compared_by_paired_errors(truth):
    """Each RMSE has a wide interval, but on every row the second model has 1.1 times the error of the first."""
    noise = np.random.default_rng(2).normal(size=100)
    for n, factor, chosen in ((15, 1.1, 0), (15, 0.9, 1), (2, 1.1, 1)):  # the forecast prefers the second
        models = [
            InspectedModel("a", forecast(1.0), 1.0, truth + noise, None),
            InspectedModel("b", forecast(0.9), 0.9, truth + factor * noise, None),
        ]
        labels = np.where(np.arange(100) < n, truth, np.nan)
        assert choose_model(models, labels) is models[chosen]


def test_the_interval_of_the_measured_rmse_is_that_of_normal_errors(rng):
    errors = rng.normal(size=4000)
    rmse, (low, high) = measure_rmse(errors)
    ends = rmse * np.sqrt(4000 / chi2.ppf([0.975, 0.025], 4000))
    assert (low, high) == pytest.approx(ends, rel=0.01)
    inside = 0
    for _ in range(400):
        low, high = measure_rmse(rng.normal(size=12))[1]
        inside += low <= 1.0 <= high
    assert inside / 400 > 0.93


def test_rounding_errors_confirm_the_model(rng):
    for regressor in (SpARRegressor, BayesSpARRegressor):
        X, Z = rng.normal(size=(30, 1)), 3.0 * rng.normal(size=(30, 1)) + 2.0
        report = inspect(regressor().fit(X, 32.0 + 1.8 * X[:, 0]), Z, y=32.0 + 1.8 * Z[:, 0])
        (output,) = report.outputs
        assert output.confirmed
        assert "which is rounding" in str(output)
        assert (output.outcome, output.advice) != ("hurts", Advice.CORRECT)
        assert all(finding.severity != "serious" for finding in report.findings)


def test_implausible_predictions_are_serious_and_forbid_keeping_the_model():
    """Polynomials of old concrete: most predictions are far outside the labels."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(300, 3)), rng.normal(size=(200, 3)) + 3.0
    y = np.abs(X @ [2.0, 1.0, 1.0] + rng.normal(size=300))
    model = make_pipeline(StandardScaler(), PolynomialFeatures(4), RidgeCV()).fit(X, y)
    report = inspect(model, Z, source=(X, y))
    assert report.outcome == "unknown"
    far = next(finding for finding in report.findings if finding.code == "SPAR018")
    assert far.severity == "serious"
    low, high = -0.5 * np.ptp(y) + y.min(), 0.5 * np.ptp(y) + y.max()  # negative predictions occur on the source
    predicted = model.predict(Z)
    best = np.clip(predicted, low, high)  # the plausible labels with the smallest errors
    assert far.numbers["floor"] == pytest.approx(root_mean_squared_error(best, predicted))
    assert f"the RMSE is at least {format_number(far.numbers['floor'])}" in far.text
    assert far.numbers["n"] == ((predicted < low) | (predicted > high)).sum() > 20
    assert report.outputs[0].advice is Advice.LABEL
    bayes = make_pipeline(PolynomialFeatures(2), StandardScaler(), BayesSpARRegressor()).fit(X, y)
    for one in (report, inspect(adapt_pipeline(bayes, 9.0 * Z), 9.0 * Z)):  # no forecast stands without a doubt
        assert "does not hold" in str(one)
        assert one.outputs[0].advice_text.startswith("do not rely")
    lines = str(report).split("\n")
    assert lines[1].startswith("serious: ")
    assert [finding["code"] for finding in report.to_dict()["findings"]][:2] == ["SPAR016", "SPAR018"]
    wild = np.r_[Z[:1] + 30.0, Z[1:] - 3.0]  # one of 200 rows has an error that no forecast covers
    for known, advice in ((None, Advice.LABEL), (dict(enumerate(model.predict(wild)[:60])), Advice.CORRECT)):
        report = inspect(model, wild, source=(X, y), y=known)
        assert (report.outcome, report.outputs[0].confirmed, report.outputs[0].advice) == ("unknown", False, advice)


@pytest.mark.parametrize("kind", [BayesSpARRegressor, LinearRegression])
def test_predictions_that_also_occur_on_the_source_are_plausible(kind, rng):
    """Labels are not negative, and a linear model predicts negative ones; a label is zero up to rounding."""
    X, Z = rng.normal(size=(2, 300, 3))
    y = np.maximum(X @ [2.0, 1.0, 1.0] + rng.normal(size=300), 0.0)
    model = kind().fit(X, y)
    report = inspect(model, Z, **({"source": (X, y)} if kind is LinearRegression else {}))
    assert report.outcome == "no-shift"
    assert "SPAR018" not in {finding.code for finding in report.findings}
    assert SourceLabel(1.0, 5.0, 2.0, (0.0, 9.0)).check_predictions("m", np.array([-1e-9, 13.5 + 1e-9])) is None


@pytest.mark.parametrize("m", [1, 2])
def test_fewer_labels_than_a_correction_needs_are_not_advised_for_one(m, rng):
    X = rng.normal(size=(60, 3))
    report = inspect(BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=60)), X[:m], y=np.full(m, 9.0))
    assert report.outcome == "hurts"
    assert report.outputs[0].advice is Advice.LABEL
    assert report.title.endswith(["1 target row", "2 target rows"][m - 1])


@pytest.mark.parametrize("kind", [SpARRegressor, BayesSpARRegressor, "any"])
@pytest.mark.parametrize("seed", range(25))
def test_no_advice_contradicts_a_serious_finding_or_the_labels(seed, kind):
    rng = np.random.default_rng(seed)
    n, m, d = int(rng.integers(12, 60)), int(rng.integers(5, 60)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, d)) * rng.lognormal(sigma=1.0, size=d)
    Z = rng.normal(size=(m, d)) * rng.lognormal(sigma=1.5, size=d) + rng.choice([0.0, 3.0]) * rng.normal(size=d)
    w = rng.normal(size=d)
    y = X @ w + rng.normal(size=n)
    truth = Z @ (w + rng.choice([0.0, 0.5]) * rng.normal(size=d)) + rng.normal(size=m)
    known = int(rng.choice([0, 2, 5, 12, m]))
    labels = np.where(np.arange(m) < known, truth, np.nan)
    model = (LinearRegression() if kind == "any" else kind()).fit(X, y)
    source = {"source": (X, y)} if kind == "any" else {}
    report = inspect(model, Z, y=labels if known else None, **source)
    (output,) = report.outputs
    serious = {finding.code for finding in report.findings if finding.severity == "serious"}
    if output.advice is Advice.KEEP:
        assert not serious
    if output.advice is Advice.ADAPT:
        assert serious <= {"SPAR001"}
    assert [f.severity == "serious" for f in report.findings] == sorted(
        (f.severity == "serious" for f in report.findings), reverse=True
    )
    assert sum(finding.code in HEADLINES for finding in output.findings) == 1
    if known >= m:
        errors = [errors.measured for errors in output.models]
        assert output.forecast.measured == min(errors)
        own = root_mean_squared_error(truth, model.predict(Z))
        assert errors[0] == pytest.approx(own)
        is_small = min(errors) <= 1.3 * output.source_rmse
        assert (output.advice in (Advice.KEEP, Advice.ADAPT)) == output.confirmed == is_small
        assert (output.outcome == "hurts") == (not is_small)


def test_every_finding_has_a_sentence_and_is_reported_somewhere():
    reported = {"SPAR021", "SPAR022", *HEADLINES}
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(60, 4)), 5.0 + 9.0 * rng.normal(size=(90, 4))
    X[:, 3], X[:, 2] = 1.0, X[:, 1]
    y = X[:, 0] + rng.normal(size=60)
    labels = np.where(np.arange(90) < 12, Z[:, 0], np.nan)
    labels[3] += 1e4
    for regressor in (SpARRegressor, BayesSpARRegressor):
        reported |= {finding.code for finding in inspect(regressor().fit(X, y), Z, y=labels).findings}
    assert reported | {"SPAR014", "SPAR023", "SPAR024"} == set(TEXTS)

"""The judgement: its outcome, the weights that it recommends, and that every output gives the same advice."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import math
import re
from html import unescape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_linnerud
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyspar import BayesSpARRegressor, Report, SpARRegressor, inspect
from pyspar.core.forecast import Forecast
from pyspar.core.separation import Separation
from pyspar.estimators.calibrated_forecasts import BaseRate
from pyspar.estimators.unseen_categories import NO_UNSEEN_ROWS, UnseenColumn, UnseenRows
from pyspar.inspection.findings import derive_label_findings
from pyspar.inspection.judgement import OUTCOMES, Judgement
from pyspar.inspection.target_rows import LabelEvidence, name_weights
from pyspar.wording import format_number

SHIFT, NO_SHIFT = Separation(0.8, 1e-9, True), Separation(0.5, 0.6, False)
MATCHED = Separation(0.5, 1.0, False, matched=True)
SETTINGS = ("unseen", "evidence", "alternatives", "n_target", "kind", "is_command")
GAP = UnseenRows(40, 100, (UnseenColumn("kind", 40, ("farm",)),))


def make_forecast(name, rmse):
    ends = (0.9 * rmse, 1.1 * rmse)
    return Forecast(name, rmse, ends, ends, rmse, 0, 0, 0, interval95_if_linear=ends)


def judge(home, adapted="Bayes-SpAR", before="OLS", separation=SHIFT, **rmse):
    """Return the judgement of expected errors by name, and of settings."""
    settings = {name: rmse.pop(name) for name in SETTINGS if name in rmse}
    forecasts = tuple(make_forecast(name.replace("_", "-"), value) for name, value in rmse.items())
    return Judgement(forecasts=forecasts, home=home, before=before, adapted=adapted, separation=separation, **settings)


def show(rmse, low, high, *, n=30, confirmed=False):
    return LabelEvidence(n, rmse, (low, high), confirmed)


CASES = [
    # judgement, outcome, severity, recommended weights, codes of the findings
    (judge(1.0, OLS=5.0, Bayes_SpAR=2.0), "hurts", "serious", "Bayes-SpAR", {"SPAR001"}),
    (judge(1.0, OLS=1.5, Bayes_SpAR=1.2), "hurts", "warning", "Bayes-SpAR", {"SPAR001"}),
    (judge(1.0, OLS=5.0, Bayes_SpAR=5.05), "hurts", "serious", "OLS", {"SPAR001"}),
    (judge(1.0, OLS=5.0, Bayes_SpAR=5.0 * (1 + 1e-12)), "hurts", "serious", "Bayes-SpAR", {"SPAR001"}),
    (judge(1.0, OLS=5.0, Bayes_SpAR=7.0), "hurts", "serious", "OLS", {"SPAR001"}),
    (judge(1.0, OLS=1.05, Bayes_SpAR=1.0), "unverified", "warning", "Bayes-SpAR", {"SPAR015"}),
    (judge(1.0, OLS=1.05, Bayes_SpAR=1.5), "unverified", "warning", "OLS", {"SPAR015"}),
    (judge(1.0, OLS=5.0, Bayes_SpAR=1.2, separation=NO_SHIFT), "no-shift", "info", "Bayes-SpAR", {"SPAR002"}),
    (judge(1.0, OLS=1.0, Bayes_SpAR=1.0, separation=MATCHED), "no-shift", "info", "Bayes-SpAR", {"SPAR002"}),
    (judge(1.0, OLS=np.inf, Bayes_SpAR=np.inf), "unknown", "serious", "Bayes-SpAR", {"SPAR016"}),
    (judge(1.0, OLS=1.0, Bayes_SpAR=1.0, unseen=GAP), "unknown", "serious", "Bayes-SpAR", {"SPAR016"}),
    (judge(1.0, "SpAR", OLS=5.0, SpAR=4.0, Bayes_SpAR=3.0, alternatives=("Bayes-SpAR",)),
     "hurts", "serious", "Bayes-SpAR", {"SPAR001"}),
    (judge(1.0, "SpAR", OLS=5.0, SpAR=3.1, Bayes_SpAR=3.0, alternatives=("Bayes-SpAR",)),
     "hurts", "serious", "SpAR", {"SPAR001"}),
    (judge(1.0, OLS=1.05, Bayes_SpAR=1.0, is_command=True), "unverified", "warning", "Bayes-SpAR", {"SPAR015"}),
    (judge(1.0, "forest", "forest", forest=1.0, kind="any"), "unverified", "warning", "forest", {"SPAR015"}),
    # labels of target rows
    (judge(1.0, OLS=5.0, Bayes_SpAR=2.0,
           evidence={"OLS": show(2.0, 1.6, 2.4), "Bayes-SpAR": show(0.9, 0.8, 1.1, confirmed=True)}),
     "unverified", "good", "Bayes-SpAR", {"SPAR017"}),
    (judge(1.0, OLS=1.0, Bayes_SpAR=1.0, unseen=GAP,
           evidence={name: show(1.0, 0.9, 1.1, confirmed=True) for name in ("OLS", "Bayes-SpAR")}),
     "unverified", "good", "Bayes-SpAR", {"SPAR017"}),  # the labels may not include unseen categories
    (judge(5.0, OLS=5.1, Bayes_SpAR=5.1,
           evidence={name: show(2.4, 1.6, 5.0, n=10, confirmed=True) for name in ("OLS", "Bayes-SpAR")}),
     "unverified", "warning", "Bayes-SpAR", {"SPAR017"}),  # rows that may be unusually easy do not confirm
    (judge(1.0, OLS=1.0, Bayes_SpAR=1.0, separation=NO_SHIFT,
           evidence={"OLS": show(3.0, 2.5, 3.6), "Bayes-SpAR": show(3.0, 2.5, 3.6)}),
     "hurts", "serious", "Bayes-SpAR", {"SPAR017"}),
    (judge(1.0, OLS=5.0, Bayes_SpAR=2.0, evidence={"OLS": show(1.0, 0.9, 1.3), "Bayes-SpAR": show(1.8, 1.6, 2.4)}),
     "unverified", "warning", "OLS", {"SPAR017"}),
    (judge(1.0, OLS=2.0, Bayes_SpAR=1.4, evidence={"OLS": show(2.0, 1.2, 3.0), "Bayes-SpAR": show(1.5, 1.1, 2.4)}),
     "hurts", "warning", "Bayes-SpAR", {"SPAR017"}),  # forecast and labels agree
    (judge(1.0, OLS=1.0, Bayes_SpAR=1.0, n_target=40,
           evidence={"OLS": show(1.4, 1.2, 1.7, n=40), "Bayes-SpAR": show(1.4, 1.2, 1.7, n=40)}),
     "hurts", "warning", "Bayes-SpAR", {"SPAR017"}),  # all rows are labelled
    (judge(1.0, OLS=1.0, Bayes_SpAR=1.0, n_target=4,
           evidence={"OLS": show(1.0, 0.4, 3.0, n=4), "Bayes-SpAR": show(1.0, 0.4, 3.0, n=4)}),
     "unverified", "warning", "Bayes-SpAR", {"SPAR017"}),
    (judge(1.0, OLS=1.0, Bayes_SpAR=1.0,
           evidence={"OLS": show(1.2, 1.1, 1.35, n=300), "Bayes-SpAR": show(1.2, 1.1, 1.35, n=300)}),
     "unverified", "warning", "Bayes-SpAR", {"SPAR017"}),  # many labels measure the error
]  # fmt: skip


@pytest.mark.parametrize(("judgement", "outcome", "severity", "recommended", "codes"), CASES)
def test_outcome_severity_and_recommendation_follow_from_the_numbers(judgement, outcome, severity, recommended, codes):
    assert judgement.outcome == outcome
    assert judgement.severity == severity
    assert judgement.recommended == recommended
    assert {finding.code for finding in derive_label_findings(judgement)} == codes


def test_the_text_of_verdicts_and_their_findings(golden, monkeypatch):
    # The rates change with every data set that they are learnt from.
    monkeypatch.setattr("pyspar.inspection.judgement.base_rate", lambda *_: BaseRate(200, 50))
    lines = []
    for judgement, *_ in CASES:
        errors = ", ".join(f"{forecast.name} {forecast.rmse:g}" for forecast in judgement.forecasts)
        lines.append(f"home {judgement.home:g}; target {errors}; adapted {judgement.adapted}")
        lines.append(f"    verdict: {judgement.verdict}")
        lines += [f"    {f.code} {f.severity}: {f.text} {f.advice}" for f in derive_label_findings(judgement)]
    golden("verdicts", "\n".join(lines))


NAMES = (
    "least squares",
    "the model before adapting",
    "the given model",
    "Bayes-SpAR",
    "SpAR",
    "PCR",
    "ridge",
    "in use",
    "HistGradientBoostingRegressor",
    "RandomForestRegressor",
    "TransformedTargetRegressor",
    "Ridge",
)


def named_in_advice(text):
    """Return the weights that a text tells the reader to use or to keep."""
    return set(re.findall(rf"\b(?:[Uu]se|[Kk]eep) ({'|'.join(NAMES)})(?![\w-])", text))


def assert_one_advice(judgement, texts):
    for text in texts:
        assert named_in_advice(text) <= {name_weights(judgement.recommended)}, text


def test_the_weights_in_an_advice_are_recognised():
    assert named_in_advice("Use Bayes-SpAR, or keep least squares. Use more rows.") == {"Bayes-SpAR", "least squares"}


errors = st.floats(0.01, 100.0)
label_evidence = st.builds(
    lambda rmse, low, high, n: show(rmse, rmse * low, rmse * high, n=n, confirmed=n >= 10 and rmse * high <= 1.3),
    errors, st.floats(0.3, 1.0), st.floats(1.0, 3.0), st.integers(1, 200),
)  # fmt: skip


@given(errors, errors, errors, st.booleans(), st.booleans(), st.none() | st.tuples(*[label_evidence] * 3))
def test_every_text_recommends_the_same_weights(ols, spar, bayes, found, is_gap, evidence):
    judgement = judge(
        1.0, "SpAR", OLS=ols, SpAR=spar, Bayes_SpAR=bayes, alternatives=("Bayes-SpAR",),
        separation=SHIFT if found else NO_SHIFT, unseen=GAP if is_gap else NO_UNSEEN_ROWS,
        evidence=dict(zip(("OLS", "SpAR", "Bayes-SpAR"), evidence or ())),
    )  # fmt: skip
    findings = list(derive_label_findings(judgement))
    assert judgement.outcome in OUTCOMES
    if evidence is None:  # labels overrule the forecasts
        assert judgement.expected.rmse <= judgement.forecast(judgement.before).rmse * (1.0 + 1e-9)
    assert (judgement.severity == "good") == judgement.is_confirmed
    if judgement.is_confirmed:
        assert judgement.labels.n >= 10
        assert judgement.labels.interval[1] <= 1.3 * judgement.home
    assert findings[0].text.startswith(judgement.headline)
    assert findings[0].advice == judgement.next_step
    texts = [judgement.headline, judgement.comparison, judgement.experience, judgement.next_step, judgement.verdict]
    assert_one_advice(judgement, texts + [part for f in findings for part in (f.text, f.advice)])
    for text in texts[:4]:
        assert not text or (text.endswith(".") and text in judgement.verdict)


@pytest.mark.parametrize(
    ("before", "after", "verb", "is_small"),
    [(1.18, 1.178, "Use", True), (1.18, 1.182, "Keep", True), (1.18, 1.0, "Use", False), (1.18, 1.3, "Keep", False)],
)
def test_the_advice_states_that_adapting_makes_no_noticeable_difference(before, after, verb, is_small):
    for separation in (SHIFT, NO_SHIFT):
        step = judge(1.0, OLS=before, Bayes_SpAR=after, separation=separation).next_step
        assert step.startswith(verb)
        assert ("adapting is expected to change the error by less than 1 %" in step) == is_small


@given(st.floats(0.5, 50.0), st.floats(0.98, 1.02), st.none() | st.floats(0.9, 1.1))
def test_figures_that_are_equal_as_displayed_are_never_an_unqualified_advice_to_adapt(ols, ratio, measured):
    evidence = {"OLS": show(1.0, 0.9, 1.1), "Bayes-SpAR": show(measured, 0.9, 1.1)} if measured else {}
    judgement = judge(1.0, OLS=ols, Bayes_SpAR=ols * ratio, evidence=evidence)
    expected = [forecast.rmse for forecast in judgement.forecasts]
    is_equal = any(len({format_number(error, digits) for error in expected}) == 1 for digits in (3, 4))
    is_stated = "less than 1 %" in judgement.next_step
    if measured is None:
        assert is_stated or not is_equal
    assert not is_stated or (abs(ratio - 1.0) < 0.0101 and abs((measured or 1.0) - 1.0) < 0.0101)


def test_a_command_names_commands_and_python_names_functions():
    in_python = judge(1.0, OLS=5.0, Bayes_SpAR=2.0)
    by_command = dataclasses.replace(in_python, is_command=True)
    labelled = {name: show(3.0, 2.5, 3.6) for name in ("OLS", "Bayes-SpAR")}
    for evidence in ({}, labelled):
        for judgement, is_command in ((in_python, False), (by_command, True)):
            step = dataclasses.replace(judgement, evidence=evidence).next_step
            assert ("pyspar.TargetCorrection" in step) != is_command
            assert ("spar adapt --method bayes --use-target-labels" in step) == is_command
            assert "pyspar.rows_to_label" not in step or not is_command
            assert "spar label" not in step or is_command


def make_inspections():
    """Yield inspections of simulated shifts: three kinds of regressor, small and large sources, with labels."""
    true_weights = np.array([2.0, 1.0, 0.5, 0.5, 0.1, 0.1])
    estimators = (
        SpARRegressor(), BayesSpARRegressor(), BayesSpARRegressor(alpha=0.999, prior_scale="equal", centre=true_weights)
    )  # fmt: skip
    cases = itertools.product([1.0, 30.0], [12, 400], [1, 2])
    for estimator, (i, (shift, rows, seed)) in itertools.product(estimators, enumerate(cases)):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(rows, 6)), rng.normal(size=(80, 6))
        X[:, 5] *= 1e-3 if seed == 2 else 1.0
        Z[:, 1] *= shift
        y = X @ true_weights + rng.normal(size=rows)
        labels = Z @ true_weights + rng.normal(size=80) if i % 2 else None
        yield inspect(estimator.fit(X, y), Z, y=labels)
    for load, column in ((load_diabetes, 2), (load_linnerud, 0)):  # real rows, split by a column
        X, y = load(return_X_y=True)
        y = y if y.ndim == 1 else y[:, 0]
        far = X[:, column] > np.quantile(X[:, column], 0.7)
        for estimator in (SpARRegressor(), BayesSpARRegressor()):
            for labels in (None, y[far]):
                yield inspect(estimator.fit(X[~far], y[~far]), X[far], y=labels)


def make_inspections_of_other_models():
    """Yield inspections of other regressors, of pipelines and of transformed labels, with and without labels."""
    X, y = load_diabetes(return_X_y=True)
    far = X[:, 2] > np.quantile(X[:, 2], 0.7)
    transformed = {"func": np.log, "inverse_func": np.exp}
    pipe = make_pipeline(StandardScaler(), BayesSpARRegressor())
    search = GridSearchCV(SpARRegressor(), {"fit_intercept": [True]}, cv=2)
    own = (pipe, TransformedTargetRegressor(pipe, **transformed), search)
    other = (
        HistGradientBoostingRegressor(max_iter=5),
        RandomForestRegressor(5, random_state=0),
        TransformedTargetRegressor(make_pipeline(StandardScaler(), Ridge()), **transformed),
    )
    for model, labels in itertools.product((*own, *other), (None, y[far])):
        source = {"source": (X[~far], y[~far])} if model in other else {}
        yield inspect(model.fit(X[~far], y[~far]), X[far], y=labels, **source)


def test_terminal_json_and_page_give_the_advice_of_the_judgement():
    outcomes, recommended = set(), set()
    for i, inspection in enumerate([*make_inspections(), *make_inspections_of_other_models()]):
        (output,) = inspection.outputs
        outcomes.add(output.outcome)
        recommended.add(output.recommended)
        data = json.loads(Report(inspection).json())
        assert data["outcome"] == inspection.outcome == data["outputs"][0]["outcome"] == output.outcome
        assert data["outputs"][0]["recommended"] == output.recommended
        others = [part for f in data["findings"] for part in (f["text"], f["advice"])]
        texts = [output.verdict, repr(inspection), inspection._repr_html_(), *others]
        assert named_in_advice(output.next_step) or output.outcome == "unknown"
        if i == 19:
            html = Report(inspection).html()
            body = re.sub(r"<svg.*?</svg>|<script.*?</script>|<style.*?</style>", "", html, flags=re.S)
            page = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body))).replace("\xa0", " ")
            assert output.headline in page
            assert output.next_step in page
            texts.append(page)
        assert_one_advice(output, texts)
    assert len(outcomes) >= 3
    assert {"Bayes-SpAR", "OLS", "in use"} & recommended > {"Bayes-SpAR"}


def test_an_inspection_has_the_worst_outcome_of_its_outputs(shifted):
    X, y, Z = shifted
    rng = np.random.default_rng(0)
    harmless = X[:, 0] + 50.0 * rng.normal(size=len(X))
    inspection = inspect(BayesSpARRegressor().fit(X, np.column_stack([y, harmless])), Z)
    assert [output.outcome for output in inspection.outputs] == ["hurts", "unverified"]
    assert inspection.outcome == "hurts"


def test_a_head_is_never_told_to_use_anything_but_the_trained_or_the_adapted_head(rng):
    for shift in (1.0, 30.0):
        X, Z = rng.normal(size=(60, 20)), rng.normal(size=(90, 20)) * shift
        head = rng.normal(size=20)
        y = X @ head + rng.normal(size=60)
        inspection = inspect(BayesSpARRegressor(prior_scale="equal", alpha=0.999, centre=head).fit(X, y), Z)
        assert inspection.before == "centre"
        assert inspection.outputs[0].recommended in ("centre", "Bayes-SpAR")
        assert not any("ridge" in finding.advice for finding in inspection.findings)


def test_each_regressor_is_judged_by_its_own_weights(shifted):
    X, y, Z = shifted
    cases = ((BayesSpARRegressor().fit(X, y), "not adapted", "Bayes-SpAR"), (SpARRegressor().fit(X, y), "OLS", "SpAR"))
    for est, before, adapted in cases:
        inspection = inspect(est, Z)
        assert (inspection.before, inspection.adapted) == (before, adapted)
        for name, weights in ((before, est), (adapted, copy.copy(est).adapt(Z))):
            expected = float(weights.expected_rmse(Z))
            assert inspection.outputs[0].forecast(name).rmse == pytest.approx(expected, rel=1e-9)


def test_the_comparison_names_the_forecast_the_truth_and_the_side():
    for rmse, word in ((0.5, "below"), (1.0, "inside"), (2.0, "above")):
        evidence = dict.fromkeys(("OLS", "Bayes-SpAR"), show(rmse, 0.9 * rmse, 1.1 * rmse))
        text = judge(1.0, OLS=1.0, Bayes_SpAR=1.0, evidence=evidence).comparison
        assert word in text
        assert f" {rmse:g} is {rmse:g} times" in text
        assert text.count(". ") == 0


def test_an_exact_fit_at_home_is_no_division_by_zero():
    assert judge(0.0, OLS=0.0, Bayes_SpAR=0.0).outcome == "unverified"
    assert judge(0.0, OLS=1.0, Bayes_SpAR=1.0).outcome == "hurts"
    assert math.isinf(judge(0.0, OLS=1.0, Bayes_SpAR=1.0).shift_ratio)


@pytest.mark.parametrize(("factor", "severity"), [(1.2, "good"), (1.5, "warning")])
def test_labels_of_all_rows_settle_the_verdict(rng, factor, severity):
    """The interval of the RMSE contains 1.3 times the error at home, but the error on all rows is known."""
    X, Z = rng.normal(size=(400, 2)), rng.normal(size=(30, 2)) + 1.0
    est = BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=400))
    noise = np.resize([-0.1, 0.1, -1.0, 1.0], 30)
    (plain,) = inspect(est, Z).outputs
    labels = copy.copy(est).adapt(Z).predict(Z) + noise / np.sqrt(np.mean(noise**2)) * factor * plain.home
    (output,) = inspect(est, Z, y=labels).outputs
    low, high = output.labels.interval
    assert low < 1.3 * output.home < high
    assert output.severity == severity
    assert output.labels.confirmed == (severity == "good")
    assert "inconclusive" not in output.verdict
    assert (output.outcome == "hurts") == (factor > 1.3)


def test_the_labels_of_all_of_fewer_than_ten_rows_are_never_green(rng):
    X, Z = rng.normal(size=(400, 2)), rng.normal(size=(9, 2))
    est = BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=400))
    (output,) = inspect(est, Z, y=est.predict(Z) + 1.0).outputs
    assert output.severity != "good"


def test_no_shift_states_its_test_and_what_the_test_may_miss():
    judgement = judge(1.0, OLS=1.0, Bayes_SpAR=1.0, separation=Separation(0.5, 0.123, False, spread_limit=2.625))
    (finding,) = derive_label_findings(judgement)
    for text in (judgement.verdict, finding.text):
        assert "two-sample test" in text
        assert "0.12" in text
        assert "2.62" in text or "2.63" in text
    assert "factor" not in judge(1.0, OLS=1.0, Bayes_SpAR=1.0, separation=SHIFT).verdict


def test_every_output_of_a_transformed_label_names_its_unit(rng):
    X = rng.normal(size=(80, 2))
    model = TransformedTargetRegressor(BayesSpARRegressor(), func=np.log, inverse_func=np.exp).fit(X, np.exp(X[:, 0]))
    inspection = inspect(model, X + 1.0)
    data = json.loads(Report(inspection).json())["outputs"][0]
    assert data["is_transformed"]
    for text in (repr(inspection), data["headline"], Report(inspection).html(), inspection._repr_html_()):
        assert "transformed label" in text
    assert "transformed" not in repr(inspect(model.regressor_, X + 1.0))


def test_the_next_step_for_a_single_target_row_is_in_the_singular():
    step = judge(1.0, OLS=1.05, Bayes_SpAR=1.0, n_target=1.0).next_step
    assert "label 1 target row to verify the forecast (choose it with" in step


def test_one_row_with_an_unseen_category_is_singular():
    judgement = judge(1.0, OLS=1.0, Bayes_SpAR=1.0, n_target=5.0, unseen=UnseenRows(1, 5, GAP.columns))
    assert "1 of 5 target rows has categories" in judgement.headline

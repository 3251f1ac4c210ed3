"""Inspections with target labels show the expected error before and after a correction with them."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pyspar import BayesSpARRegressor, InputError, TargetCorrection, inspect, report


@pytest.fixture
def data(rng):
    X, Z, w = rng.normal(size=(300, 3)), 1.5 * rng.normal(size=(120, 3)), np.array([1.0, 2.0, 0.5])
    truth = Z @ (w + 0.5) + 2.0 + rng.normal(size=120)
    return X, X @ w + rng.normal(size=300), Z, np.where(np.arange(120) < 15, truth, np.nan)


def codes(inspection):
    return [finding.code for finding in inspection.findings]


def test_it_is_the_forecast_of_the_corrected_model(data):
    X, y, Z, labels = data
    est = BayesSpARRegressor().fit(X, y)
    inspection = inspect(est, Z, y=labels)
    fixed = TargetCorrection(copy.copy(est).adapt(Z), smooth=False).fit(Z, labels)
    corrected, expected = inspection.outputs[0].corrected, fixed.expected_rmse()
    assert (corrected.rmse, *corrected.interval95) == pytest.approx((expected.rmse, *expected.interval95))
    assert corrected.rmse_uncorrected == pytest.approx(expected.rmse_uncorrected)
    assert codes(inspection).count("SPAR020") == 1
    assert inspection.outputs[0].as_dict()["corrected"]["rmse"] == corrected.rmse
    html = report(est, Z, y=labels).html()
    assert "corrected, 15 labels" in html
    assert "SPAR020" in html


def test_any_regressor(data):
    X, y, Z, labels = data
    model = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
    corrected = inspect(model, Z, source=(X, y), y=labels).outputs[0].corrected
    expected = TargetCorrection(model).fit(Z, labels).expected_rmse()
    assert (corrected.rmse, *corrected.interval95) == pytest.approx((expected.rmse, *expected.interval95))


@pytest.mark.parametrize("kind", ["missing numbers", "pipeline with categories"])
def test_any_regressor_with_other_features_than_its_columns(data, kind):
    X, y, Z, labels = data
    if kind == "missing numbers":
        X, Z = (np.where(np.random.default_rng(0).random(rows.shape) < 0.2, np.nan, rows) for rows in (X, Z))
        model = HistGradientBoostingRegressor(max_iter=20)
    else:
        X, Z = (pd.DataFrame(rows, columns=list("abc")).assign(town=list("xyz"[: 3 - i]) * (len(rows) // (3 - i)))
                for i, rows in enumerate((X, Z)))  # fmt: skip
        encode = ColumnTransformer([("town", OneHotEncoder(), ["town"])], remainder=StandardScaler())
        model = make_pipeline(encode, HistGradientBoostingRegressor(max_iter=20))
    model.fit(X, y)
    corrected = inspect(model, Z, source=(X, y), y=labels).outputs[0].corrected
    expected = TargetCorrection(model).fit(Z, labels).expected_rmse()
    assert (corrected.rmse, *corrected.interval95) == pytest.approx((expected.rmse, *expected.interval95))


def test_transformed_labels_have_no_corrected_forecast_and_no_green(data):
    """Errors are in the unit of the transformed label, TargetCorrection corrects in that of y."""
    X, y, Z, _ = data
    model = TransformedTargetRegressor(BayesSpARRegressor(), func=np.log, inverse_func=np.exp).fit(X, np.exp(y))
    truth = np.exp(BayesSpARRegressor().fit(X, y).adapt(Z).predict(Z) + 0.9 * np.random.default_rng(0).normal(size=120))
    output = inspect(model, Z, y=truth).outputs[0]
    assert output.is_confirmed
    assert (output.corrected, output.severity) == (None, "info")
    assert inspect(model, Z, y=np.where(np.arange(120) < 15, truth, np.nan)).outputs[0].corrected is None
    with pytest.raises(InputError, match=r"2 labels.*row 3"):
        inspect(model, Z, y={1: 1.0, 3: -1.0, 5: -2.0})


def test_the_next_step_and_the_finding_agree(data, rng):
    """If a correction would not reduce the error, no output advises it."""
    X, y, Z, labels = data
    noisy = np.where(np.isnan(labels), np.nan, BayesSpARRegressor().fit(X, y).predict(Z) + 8.0 * rng.normal(size=120))
    inspection = inspect(BayesSpARRegressor().fit(X, y), Z, y=noisy)
    (output,) = inspection.outputs
    assert output.labels_show_harm
    assert output.corrected.rmse > 0.98 * output.corrected.rmse_uncorrected
    (finding,) = (f for f in inspection.findings if f.code == "SPAR020")
    assert finding.advice == output.next_step
    assert "TargetCorrection" not in output.next_step


def test_no_finding_advises_to_label_rows_if_all_are_labelled(data):
    X, y, Z, _ = data
    Z = 40.0 * Z  # many predictions are far outside the source labels
    est = BayesSpARRegressor().fit(X, y)
    some, every = (inspect(est, Z, y=np.where(np.arange(120) < n, 0.0 * y[:120], np.nan)) for n in (50, 120))
    for inspection, advises in ((some, True), (every, False)):
        (finding,) = (f for f in inspection.findings if f.code == "SPAR018")
        assert ("label some" in finding.advice) == advises


@pytest.mark.parametrize("n", [0, 2, 120])
def test_there_is_none_with_too_few_labels_or_all_of_them(data, n):
    X, y, Z, labels = data
    known = np.where(np.arange(120) < n, np.nan_to_num(labels), np.nan)
    inspection = inspect(BayesSpARRegressor().fit(X, y), Z, y=known)
    assert inspection.outputs[0].corrected is None
    assert "SPAR020" not in codes(inspection)

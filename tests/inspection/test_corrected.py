"""Inspections with target labels show the expected error before and after a correction with them."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.preprocessing import StandardScaler

from pyspar import BayesSpARRegressor, TargetCorrection, inspect, report


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
    corrected, expected = inspection.outputs[0].corrected, est.adapted(Z, labels).expected_rmse(Z)
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


def test_transformed_labels(data):
    X, y, Z, labels = data
    model = TransformedTargetRegressor(BayesSpARRegressor(), transformer=StandardScaler()).fit(X, 10.0 * y)
    corrected = inspect(model, Z, y=10.0 * labels).outputs[0].corrected
    plain = inspect(BayesSpARRegressor().fit(X, y), Z, y=labels).outputs[0].corrected
    assert corrected.rmse == pytest.approx(plain.rmse / np.std(y), rel=1e-6)


@pytest.mark.parametrize("n", [0, 2, 120])
def test_there_is_none_with_too_few_labels_or_all_of_them(data, n):
    X, y, Z, labels = data
    known = np.where(np.arange(120) < n, np.nan_to_num(labels), np.nan)
    inspection = inspect(BayesSpARRegressor().fit(X, y), Z, y=known)
    assert inspection.outputs[0].corrected is None
    assert "SPAR020" not in codes(inspection)

"""The weights that are compared: those of all methods, and those that the caller adds."""

from __future__ import annotations

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, InputError, SpARRegressor, inspect


def test_weights_of_the_caller_are_forecast_too(shifted):
    X, y, Z = shifted
    est = SpARRegressor().fit(X, y)
    output = inspect(est, Z, weights={"mine": (est.coef_, est.intercept_)}).outputs[0]
    assert output.forecast("mine").rmse == pytest.approx(output.forecast("OLS").rmse)


def test_a_fitted_linear_estimator_is_accepted_as_weights(shifted):
    from sklearn.linear_model import LinearRegression

    X, y, Z = shifted
    for labels in (y, y[:, None], np.column_stack([y, -y])):
        inspection = inspect(SpARRegressor().fit(X, labels), Z, weights={"theirs": LinearRegression().fit(X, labels)})
        for output in inspection.outputs:
            assert output.forecast("theirs").rmse == pytest.approx(output.forecast("OLS").rmse)


BAD_WEIGHTS = {
    "reserved name": {"OLS": ([0.0] * 8, 0.0)},
    "too few coefficients": {"mine": ([0.0] * 7, 0.0)},
    "coefficients not finite": {"mine": ([np.nan] * 8, 0.0)},
    "two intercepts": {"mine": (np.ones(8), [0.0, 1.0])},
    "intercept not finite": {"mine": (np.ones(8), np.nan)},
    "intercept missing": {"mine": (np.ones(8), None)},
    "complex": {"mine": (np.ones(8) * 1j, 0.0)},
    "text": {"mine": ("text", 0.0)},
    "ragged": {"mine": ([[1.0], [1.0, 2.0]], 0.0)},
    "no intercept": {"mine": [np.ones(8)]},
    "an array": {"mine": np.ones(8)},
    "not fitted": {"mine": SpARRegressor()},
    "not a dict": [("mine", np.ones(8), 0.0)],
}


@pytest.mark.parametrize("weights", BAD_WEIGHTS.values(), ids=BAD_WEIGHTS.keys())
def test_invalid_weights_are_rejected_with_their_name(shifted, weights):
    X, y, Z = shifted
    name = next(iter(weights)) if isinstance(weights, dict) else "list"
    with pytest.raises(InputError, match=rf"^weights.*{name}"):
        inspect(SpARRegressor().fit(X, y), Z, weights=weights)


def test_the_messages_for_invalid_weights(shifted, golden):
    X, y, Z = shifted
    estimator = SpARRegressor().fit(X, y)
    lines = []
    for case, weights in BAD_WEIGHTS.items():
        with pytest.raises(InputError) as error:
            inspect(estimator, Z, weights=weights)
        if case != "ragged":  # numpy's part of this message differs between versions
            lines.append(f"{case}: {error.value}")
    golden("inspect_weights", "\n".join(lines))


def test_an_estimator_with_columns_in_another_order_is_rejected(shifted):
    import pandas as pd

    X, y, Z = shifted
    X, Z = (pd.DataFrame(rows, columns=list("abcdefgh")) for rows in (X, Z))
    other = SpARRegressor().fit(X[list("hgfedcba")], y)
    with pytest.raises(InputError, match=r"weights\['other'\].*columns"):
        inspect(SpARRegressor().fit(X, y), Z, weights={"other": other})


def test_the_estimator_is_not_changed(shifted):
    X, y, Z = shifted
    est = SpARRegressor().fit(X, y)
    before = est.coef_.copy()
    inspect(est, Z)
    assert np.array_equal(est.coef_, before)
    assert not hasattr(est, "adaptation_")


def test_the_estimator_is_adapted_once_and_only_to_the_target(shifted, monkeypatch):
    X, y, Z = shifted
    est = BayesSpARRegressor().fit(X, y)
    targets = []
    original = BayesSpARRegressor._adapt_to
    monkeypatch.setattr(BayesSpARRegressor, "_adapt_to", lambda self, z: targets.append(z) or original(self, z))
    inspect(est, Z)
    assert [(z.rows, z.n_outputs) for z in targets] == [(len(Z), 0)]

"""The directions of a target: their costs, the shares that were removed, and the columns in them."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, Moments, SpARRegressor, inspect
from pyspar.estimators.validation import weights_of


@pytest.mark.parametrize("kind", [SpARRegressor, partial(BayesSpARRegressor, alpha=0.999)])
@pytest.mark.parametrize("alpha", [0.5, 0.999])
def test_the_changes_of_removed_directions_sum_to_the_forecast_of_the_adapted_weights(shifted, kind, alpha):
    # Errors add along the target's directions, so their sum must equal the forecast made from the weights.
    X, y, Z = shifted
    none, some = (inspect(kind(alpha=confidence).fit(X, y), Z) for confidence in (0.0, alpha))
    output = some.outputs[0]
    removed = [d for d in output.directions if d.alpha <= alpha]
    assert [d.goes for d in output.directions] == [d in removed for d in output.directions]
    squared = none.outputs[0].forecast(none.adapted).rmse ** 2 + sum(d.change for d in removed)
    assert squared == pytest.approx(output.forecast(some.adapted).rmse ** 2, rel=1e-9)


def test_a_source_as_its_own_target_inflates_every_direction_by_one_over_n(shifted):
    X, y, _ = shifted
    output = inspect(SpARRegressor().fit(X, y), X).outputs[0]
    assert [d.inflation for d in output.directions] == pytest.approx([1 / len(X)] * X.shape[1])
    assert output.home == pytest.approx(output.forecast("OLS").rmse)


@pytest.mark.parametrize("kind", [SpARRegressor, partial(BayesSpARRegressor, prior_scale="source", alpha=0.999)])
def test_the_removed_shares_are_those_of_the_rule(shifted, kind):
    X, y, Z = shifted
    est = kind().fit(X, y)
    removed = copy.copy(est).adapt(Z).adaptation_.removed[:, 0]
    shares = sorted(d.removed for d in inspect(est, Z).outputs[0].directions)
    assert 0 < removed.sum() < len(removed)
    assert shares == pytest.approx(sorted(removed.astype(float)), abs=1e-9)


def test_the_removed_share_is_the_share_that_the_weight_lost(shifted):
    X, y, Z = shifted
    X, y = X[:20], y[:20]
    est = BayesSpARRegressor().fit(X, y)
    spread = X.std(axis=0)
    directions = np.linalg.svd((Z - X.mean(axis=0)) / spread, full_matrices=False)[2]
    before, after = (np.abs(directions @ (fitted.coef_ * spread)) for fitted in (est, copy.copy(est).adapt(Z)))
    lost = np.clip(1.0 - after / before, 0.0, 1.0)
    assert sorted(d.removed for d in inspect(est, Z).outputs[0].directions) == pytest.approx(sorted(lost), abs=1e-8)
    assert lost.max() > 0.1


@pytest.mark.parametrize("kind", [SpARRegressor, BayesSpARRegressor])
def test_directions_use_the_units_that_the_estimator_was_fitted_in(shifted, kind):
    X, y, Z = shifted
    X, Z = X * np.geomspace(1, 50, 8), Z * np.geomspace(1, 50, 8)
    spread = X.std(axis=0) if kind is BayesSpARRegressor else 1.0
    output = inspect(kind().fit(X, y), Z).outputs[0]
    by_hand = SpARRegressor().fit(X / spread, y)
    for name, fitted in (("OLS", SpARRegressor().fit(X, y)), ("SpAR", SpARRegressor().fit(X, y).adapt(Z))):
        own = SpARRegressor().fit(X, y) if kind is SpARRegressor else kind().fit(X, y)
        expected = own._model.forecaster(Moments.of(Z)).forecast(name, *weights_of(fitted)).rmse
        assert output.forecast(name).rmse == pytest.approx(expected, rel=1e-9)  # on the features as given
    removed = copy.copy(by_hand).adapt(Z / spread).adaptation_.removed.sum()
    assert sum(d.goes for d in output.directions) == removed > 0


def test_features_with_the_same_name_are_one_column(shifted):
    X, y, Z = shifted
    inspection = inspect(SpARRegressor().fit(X, y), Z, columns=["a"] * 4 + ["b"] * 4)
    assert inspection.columns == ("a", "b")
    for direction in inspection.outputs[0].directions:
        assert sum(share for _, share in direction.loads) == pytest.approx(1.0)

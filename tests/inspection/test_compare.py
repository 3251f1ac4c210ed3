"""The weights that are compared: those of all methods."""

from __future__ import annotations

import numpy as np

from pyspar import BayesSpARRegressor, SpARRegressor, inspect


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

"""The path over alpha, compared with the rule at every alpha."""

import numpy as np
import pytest

from pyspar import SpARRegressor
from pyspar.core.adapt import alpha_path


@pytest.fixture
def fitted(rng):
    X = rng.normal(size=(300, 6)) * np.geomspace(1.0, 1e-3, 6)
    Y = X @ rng.normal(size=(6, 2)) + rng.normal(size=(300, 2))
    Z = rng.normal(size=(200, 6)) @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    return SpARRegressor(fit_intercept=False).fit(X, Y), Z


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.9, 0.999, 0.9999999, 1.0])
def test_the_path_removes_what_the_rule_removes_at_that_alpha(fitted, alpha):
    est, Z = fitted
    path = alpha_path(est.adapted(Z).adaptation_)
    again = SpARRegressor(alpha, fit_intercept=False).fit_moments(est.moments_).adapt(Z)
    assert (path.removed_at(alpha) == again.adaptation_.removed).all()
    np.testing.assert_allclose(path.weights_at(alpha).T, again.coef_, rtol=1e-12, atol=1e-12)


def test_a_direction_is_kept_just_below_its_alpha_and_removed_just_above(fitted):
    est, Z = fitted
    path = alpha_path(est.adapted(Z).adaptation_)
    for alpha in path.steps():
        if 1e-6 < alpha < 1.0 - 1e-6:
            before, after = path.removed_at(alpha - 1e-7), path.removed_at(alpha + 1e-7)
            assert after[:, 0].sum() == before[:, 0].sum() + 1


def test_directions_with_alpha_rounded_to_one_are_distinguished_by_their_doubt(rng):
    X = rng.normal(size=(500, 2))
    est = SpARRegressor(fit_intercept=False).fit(X, X @ [30.0, 60.0] + rng.normal(size=500)).adapt(X)
    path = alpha_path(est.adaptation_)
    assert (path.alpha == 1.0).all()
    assert not path.removed_at(0.999999).any()


def test_an_alpha_outside_its_range_raises(fitted):
    est, Z = fitted
    with pytest.raises(ValueError, match=r"alpha.*1\.5"):
        alpha_path(est.adapted(Z).adaptation_).removed_at(1.5)

"""Dropping short directions from moments equals dropping them from the rows."""

import numpy as np
import pytest

from pyspar import Moments, SpARRegressor
from pyspar.core.spectrum import MAX_CUTOFF, default_cutoff, directions_above, project_features


def without_faint(moments, cutoff):
    return project_features(moments, directions_above(moments, cutoff))


def rows_with_faint_directions(rng, faint):
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    return rng.normal(size=(80, 5)) * [10.0, 5.0, 1.0, faint, faint / 3] @ turn


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_projected_moments_give_the_truncated_pseudo_inverse(rng, fit_intercept):
    X = rows_with_faint_directions(rng, 1e-4)
    y = rng.normal(size=80)
    X = X - X.mean(axis=0) if fit_intercept else X
    est = SpARRegressor(fit_intercept=fit_intercept).fit_moments(without_faint(Moments.of(X, y), 1e-3))
    expected = np.linalg.pinv(X, rcond=1e-3) @ (y - y.mean() if fit_intercept else y)
    np.testing.assert_allclose(est.coef_, expected, rtol=1e-8, atol=1e-10)


def test_moments_without_directions_below_the_cutoff_are_unchanged(rng):
    moments = Moments.of(rows_with_faint_directions(rng, 0.5), rng.normal(size=80))
    assert without_faint(moments, 1e-3) is moments


@pytest.mark.parametrize(("rows", "expected"), [(100, 100 * 2.0**-23), (100_000, MAX_CUTOFF)])
def test_the_default_cutoff_grows_with_the_rows_up_to_a_limit(rows, expected):
    moments = Moments.of(np.ones((2, 3), dtype=np.float32))
    many = Moments(moments.root, 3, rows, float(rows), float(rows), moments.eps)
    assert default_cutoff(many) == pytest.approx(expected)

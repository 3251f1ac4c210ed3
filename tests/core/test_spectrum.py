"""The slower driver of LAPACK; dropping short directions from moments equals dropping them from the rows."""

import numpy as np
import pytest
import scipy.linalg

from pyspar import BayesSpARRegressor, Moments, SpARRegressor
from pyspar.core import spectrum
from pyspar.core.spectrum import MAX_CUTOFF, default_cutoff, directions_above, project_features


@pytest.fixture
def no_fast_way(monkeypatch):
    scipy_svd = scipy.linalg.svd

    def gives_up(matrix, *, lapack_driver="gesdd", **how):
        if lapack_driver == "gesdd":
            raise spectrum.LinAlgError("SVD did not converge")
        return scipy_svd(matrix, lapack_driver=lapack_driver, **how)

    monkeypatch.setattr(spectrum, "svd", gives_up)


def test_both_drivers_return_the_same_decomposition(rng, no_fast_way):
    matrix = rng.normal(size=(9, 4)) @ rng.normal(size=(4, 6))
    U, lam, Vt = spectrum.thin_svd(matrix)
    assert (U.shape, lam.shape, Vt.shape) == ((9, 6), (6,), (6, 6))
    np.testing.assert_allclose(U * lam @ Vt, matrix, atol=1e-12)
    np.testing.assert_allclose(lam, np.linalg.svd(matrix, compute_uv=False), atol=1e-12)


@pytest.mark.parametrize("kind", [SpARRegressor, BayesSpARRegressor])
def test_an_estimator_has_the_same_predictions_with_the_slower_driver(rng, kind, request):
    """Dependent columns of very different scales, for which the decomposition is always asked."""
    X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 9)) * np.geomspace(1.0, 1e-6, 9)
    y, Z = X[:, 0] + rng.normal(size=60), X[:20] + 1.0
    expected = kind().fit(X, y).adapt(Z).predict(Z)
    request.getfixturevalue("no_fast_way")
    np.testing.assert_allclose(kind().fit(X, y).adapt(Z).predict(Z), expected, rtol=1e-6)


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
    est = SpARRegressor(fit_intercept=fit_intercept).fit(without_faint(Moments.of(X, y), 1e-3))
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

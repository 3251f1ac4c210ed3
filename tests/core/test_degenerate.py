"""Degenerate data: fewer rows than features, constant and empty columns, targets with one row or no variation."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from pyspar import SpARRegressor, SparWarning
from pyspar.theory import Moments, Spectrum, adapt, chi2_rule, fit_ols

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_fewer_rows_than_features_gives_the_weights_of_least_norm_and_no_noise(rng, fit_intercept):
    X, y, Z = rng.normal(size=(8, 20)), rng.normal(size=8), rng.normal(size=(30, 20))
    est = SpARRegressor(fit_intercept=fit_intercept)
    with pytest.warns(SparWarning, match="noise is estimated as zero"):
        est.fit(X, y)
    centre = X.mean(axis=0) if fit_intercept else 0.0
    reference = np.linalg.pinv(X - centre) @ (y - fit_intercept * y.mean())
    # A product of the rows squares a condition number of 1e1; its null directions are cut at half the digits.
    np.testing.assert_allclose(est.coef_, reference, atol=1e-11)
    assert est.rank_ == 8 - fit_intercept
    assert est.sigma2_ == 0.0
    with pytest.warns(SparWarning):
        est.adapt(Z)
    assert not est.adaptation_.removed.any()
    np.testing.assert_array_equal(est.coef_, est.adaptation_.w_hat[:, 0])


def test_fewer_rows_than_features_can_still_be_adapted_with_a_known_noise(rng):
    X, Z = rng.normal(size=(8, 20)), rng.normal(size=(30, 20))
    fit = fit_ols(Moments.of(X, rng.normal(size=8)), fit_intercept=False)
    known = replace(fit, sigma=np.array([50.0]))
    ours = adapt(known, Moments.of(Z), partial(chi2_rule, alpha=0.999))
    assert ours.removed.all()  # noise of 50 drowns every weight
    assert (ours.outside < 1.0).all()
    np.testing.assert_allclose(Z @ ours.w_proj, 0.0, atol=1e-12)


def test_a_perfect_fit_is_not_changed_by_adapting(shift):
    y = shift.X @ shift.w_star + 3.0
    est = SpARRegressor().fit(shift.X, y)
    np.testing.assert_allclose(est.coef_, shift.w_star, rtol=1e-9)  # rounding times the condition number 1e2, squared
    assert est.sigma2_ == 0.0
    est.adapt(shift.Z)
    assert not est.adaptation_.removed.any()
    np.testing.assert_array_equal(est.adaptation_.risk_before, 0.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_target_of_one_row_has_one_direction(shift, fit_intercept):
    z = shift.Z[:1]
    est = SpARRegressor(1.0, fit_intercept=fit_intercept).fit(shift.X, shift.y).adapt(z)
    ours = est.adaptation_
    assert ours.z.rank == 1
    origin = shift.X.mean(axis=0) if fit_intercept else np.zeros(5)
    expected = (z[0] - origin) / np.linalg.norm(z[0] - origin)
    assert abs(ours.z.V[:, 0] @ expected) == pytest.approx(1.0, rel=1e-13)
    assert ours.z.lam[0] == pytest.approx(np.linalg.norm(z[0] - origin), rel=1e-13)
    np.testing.assert_allclose(est.predict(z), fit_intercept * shift.y.mean(), atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1e8])
@pytest.mark.parametrize("n", [50, 4])
def test_a_constant_column_with_an_intercept_adds_no_direction(rng, value, n):
    X = np.column_stack([rng.normal(size=n), np.full(n, value), rng.normal(size=n)])
    y = X[:, 0] + rng.normal(size=n)
    est = SpARRegressor().fit(X, y)
    assert est.rank_ == 2
    assert est.coef_[1] == pytest.approx(0.0, abs=1e-12)
    without = SpARRegressor().fit(X[:, [0, 2]], y)
    tolerance = 1e-6 if abs(value) == 1e8 else 1e-10  # an offset of 1e8 costs QR eight of sixteen digits
    np.testing.assert_allclose(est.coef_[[0, 2]], without.coef_, rtol=tolerance, atol=tolerance)


def test_a_target_that_varies_along_a_constant_column_of_the_source_is_reported_as_outside(rng):
    X = np.column_stack([rng.normal(size=50), np.ones(50)])
    Z = np.column_stack([np.full(20, X[:, 0].mean()), 1.0 + rng.normal(size=20)])
    ours = SpARRegressor().fit(X, rng.normal(size=50)).adapt(Z).adaptation_
    assert ours.outside_energy == pytest.approx(1.0, abs=1e-12)
    assert not ours.removed.any()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_source_of_zeros_has_no_directions_and_predicts_a_constant(rng, fit_intercept):
    y = rng.normal(size=10)
    est = SpARRegressor(fit_intercept=fit_intercept).fit(np.zeros((10, 2)), y).adapt(rng.normal(size=(5, 2)))
    assert est.rank_ == 0
    np.testing.assert_array_equal(est.coef_, 0.0)
    np.testing.assert_allclose(est.predict(rng.normal(size=(3, 2))), fit_intercept * y.mean(), rtol=1e-13)
    assert est.adaptation_.outside_energy == 1.0


@pytest.mark.parametrize("alpha", [0.0, 0.999, 1.0])
def test_a_target_without_any_direction_changes_nothing(shift, alpha):
    for fit_intercept in (True, False):
        est = SpARRegressor(alpha, fit_intercept=fit_intercept).fit(shift.X, shift.y)
        before = est.coef_.copy()
        origin = shift.X.mean(axis=0) if fit_intercept else np.zeros(5)
        est.adapt(np.tile(origin, (7, 1)))
        np.testing.assert_array_equal(est.coef_, before)
        assert est.adaptation_.removed.shape == (0, 1)
        assert est.adaptation_.outside_energy == 0.0
        np.testing.assert_array_equal(est.adaptation_.risk_after, est.adaptation_.risk_before)
        assert "0 of 0 target directions removed" in repr(est.adaptation_)


@pytest.mark.parametrize("m", [1, 2, 3, 10])
def test_a_rank_deficient_target_has_the_directions_that_its_rows_have(rng, m):
    Z = rng.normal(size=(m, 2)) @ rng.normal(size=(2, 6))
    spectrum = Spectrum.of(Z)
    assert spectrum.rank == min(m, 2)
    reference = np.linalg.svd(Z, full_matrices=False)
    np.testing.assert_allclose(spectrum.lam, reference[1][: spectrum.rank], rtol=1e-12)
    projector = reference[2][: spectrum.rank].T @ reference[2][: spectrum.rank]
    np.testing.assert_allclose(spectrum.V @ spectrum.V.T, projector, atol=1e-12)

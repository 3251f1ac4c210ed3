"""The rank of a spectrum: rounding adds no direction, and directions longer than rounding are kept."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspar import SpARRegressor
from pyspar.theory import Moments, Spectrum, adapt, chi2_rule, fit_ols


def collinear(seed, n, d, rank, offset, dtype):
    """Return rows of rank ``rank`` about their mean, each entry rounded to the dtype."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + offset * rng.normal(size=d)
    return rows.astype(dtype)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n=st.sampled_from([30, 200, 3000]),
    shape=st.sampled_from([(2, 1), (5, 3), (20, 7), (40, 39)]),
    offset=st.sampled_from([0.0, 1.0, 30.0, 1000.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_rounding_adds_no_direction(seed, n, shape, offset, dtype):
    d, rank = shape
    X = collinear(seed, n, d, rank, offset, dtype)
    y = np.random.default_rng(seed).normal(size=n)
    about_mean = fit_ols(Moments.of(X, y), fit_intercept=True).x.rank
    assert about_mean == min(rank, n - 1)
    about_zero = fit_ols(Moments.of(X, y), fit_intercept=False).x.rank
    assert about_zero == min(rank + (offset != 0.0), n, d)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [1.0, 10.0])
def test_the_rounding_of_a_mean_over_many_rows_is_not_a_direction(seed, dtype, offset):
    # A sum of 1e5 rows errs by some hundred units in the last place, and every row is shifted by that error.
    X = collinear(seed, 100_000, 3, 1, offset, dtype)
    y = np.random.default_rng(seed).normal(size=100_000)
    assert fit_ols(Moments.of(X, y), fit_intercept=True).x.rank == 1


def test_float32_rounding_in_a_data_frame_or_with_a_given_precision_adds_no_direction(rng):
    X = rng.normal(size=(500, 2)).astype(np.float32)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    y = rng.normal(size=500)
    frame = pd.DataFrame(X, columns=list("abc"))
    assert SpARRegressor().fit(frame, y).rank_ == 2
    assert SpARRegressor().fit(frame.astype({"a": np.float64}), y).rank_ == 2  # the coarsest column decides
    lifted = X.astype(np.float64)
    assert Spectrum.of(Moments.of(lifted)).rank == 3  # in float64 that rounding is data
    assert Spectrum.of(Moments.of(lifted, eps=float(np.finfo(np.float32).eps))).rank == 2


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_small_but_real_float32_directions_are_kept(rng, fit_intercept):
    # A cut-off in proportion to the number of rows would be 2e-3 of the largest here, and take this one away.
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    X = ((rng.normal(size=(20_000, 4)) * [1.0, 1.0, 1.0, 1.4e-3]) @ Q.T).astype(np.float32)
    y = rng.normal(size=20_000)
    spectrum = fit_ols(Moments.of(X, y), fit_intercept=fit_intercept).x
    assert spectrum.rank == 4
    reference = X.astype(np.float64) - fit_intercept * X.astype(np.float64).mean(axis=0)
    # The float64 product of float32 rows is right to 1e-10 at this condition number.
    np.testing.assert_allclose(spectrum.lam, np.linalg.svd(reference, compute_uv=False), rtol=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_papers_own_geometry_is_adapted_in_float32_as_in_float64(rng, fit_intercept):
    X = rng.normal(size=(2000, 2)) * [5.0, 1e-5]
    Z = rng.normal(size=(500, 2)) * [1.0, 6.0]
    Z = np.vstack([Z, Z * [1.0, -1.0]])  # its directions are the axes, as those of the paper's covariance are
    y = X @ [1.0, 0.0] + rng.normal(size=2000)
    fine = SpARRegressor(fit_intercept=fit_intercept).fit(X, y)
    coarse = SpARRegressor(fit_intercept=fit_intercept).fit(X.astype(np.float32), y)
    assert fine.rank_ == coarse.rank_ == 2
    # float32 rows differ by 1e-7; the second weight divides noise by a spread of 1e-5 and is of the order of 1e3.
    np.testing.assert_allclose(coarse.coef_, fine.coef_, rtol=1e-5, atol=1e-6)
    fine.adapt(Z)
    coarse.adapt(Z.astype(np.float32))
    assert fine.adaptation_.removed.sum() == 1
    assert (fine.adaptation_.removed == coarse.adaptation_.removed).all()
    # What is left of the second weight along the first axis differs by the rounding of Z, 1e-7, times 1e3.
    np.testing.assert_allclose(coarse.predict(Z), fine.predict(Z), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_tiny_feature_beside_a_huge_one_is_kept(rng, dtype, order, fit_intercept):
    X = (rng.normal(size=(400, 2)) * [1e9, 0.01])[:, order].astype(dtype)
    y = 1e-9 * X[:, order[0]] + 100.0 * X[:, order[1]] + 0.1 * rng.normal(size=400)
    ours = SpARRegressor(fit_intercept=fit_intercept).fit(X, y)
    assert ours.rank_ == 2
    wide = X.astype(np.float64) * np.array([1e-9, 100.0])[order]  # unit columns: an easy problem for the reference
    wide = wide - fit_intercept * wide.mean(axis=0)
    reference = np.linalg.lstsq(wide, y - fit_intercept * y.mean(), rcond=None)[0]
    # Eleven decades between the features leave five digits of the smaller one's direction.
    np.testing.assert_allclose(ours.coef_, reference * np.array([1e-9, 100.0])[order], rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [1, 3, 5])
def test_rank_deficient_rows_give_the_weights_of_least_norm(rng, dtype, rank):
    X = collinear(1, 200, 6, rank, 0.0, dtype)
    y = X.astype(np.float64) @ rng.normal(size=6) + rng.normal(size=200)
    ours = fit_ols(Moments.of(X, y), fit_intercept=False)
    reference = np.linalg.pinv(X.astype(np.float64), rcond=1e-5) @ y
    # What the rounding of the rows makes of the reference itself: 1e-7 or 1e-16 times the condition number.
    tolerance = 1e-5 if dtype is np.float32 else 1e-10
    np.testing.assert_allclose(ours.w_hat[:, 0], reference, atol=tolerance * np.abs(reference).max(), rtol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [1.0, 1e-2])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_target_direction_that_the_source_does_not_span_is_not_removed(rng, dtype, spread, fit_intercept):
    # The source spans two of three directions up to the rounding of its rows, the target has the third one only.
    V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    X = ((rng.normal(size=(400, 2)) * [1.0, spread]) @ V[:, :2].T).astype(dtype)
    y = rng.normal(size=400)  # pure noise: every direction that the source does span would be removed
    est = SpARRegressor(fit_intercept=fit_intercept).fit(X, y)
    inside = est.coef_.copy()
    origin = est._fit.x_mean
    ours = est.adapt(origin + np.outer(rng.normal(size=50), V[:, 2])).adaptation_
    assert ours.z.rank == 1
    assert not ours.removed.any()
    assert ours.outside_energy == pytest.approx(1.0, abs=1e-9)  # V is known to the square of the rounding here
    np.testing.assert_array_equal(est.coef_, inside)


@pytest.mark.parametrize("seed", range(20))
def test_orthogonal_directions_that_overlap_by_rounding_are_not_removed(seed):
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    X = (rng.normal(size=(200, 6)) * np.geomspace(1.0, 1e-3, 6)) @ V[:, :6].T
    Z = (rng.normal(size=(50, 4)) * [4.0, 3.0, 2.0, 1.0]) @ V[:, 6:].T
    fit = fit_ols(Moments.of(X, rng.normal(size=200)), fit_intercept=False)
    ours = adapt(fit, Moments.of(Z), partial(chi2_rule, alpha=0.999))
    assert ours.z.rank == 4
    assert not ours.removed.any()


def test_the_share_of_the_target_outside_the_source_is_reported():
    X = np.zeros((20, 3))
    X[:, :2] = np.random.default_rng(0).normal(size=(20, 2))
    fit = fit_ols(Moments.of(X, np.arange(20.0)), fit_intercept=False)
    rule = partial(chi2_rule, alpha=0.999)
    ours = adapt(fit, Moments.of(np.diag([3.0, 0.0, 4.0])), rule)  # 9 parts inside, 16 outside
    assert ours.outside_energy == pytest.approx(0.64, rel=1e-13)
    np.testing.assert_allclose(ours.outside, [1.0, 0.0], atol=1e-13)
    tilted = adapt(fit, Moments.of(np.array([[3.0, 0.0, 4.0]])), rule)  # one direction, 9 / 25 of it inside
    np.testing.assert_allclose(tilted.outside, [0.64], rtol=1e-13)
    assert tilted.outside_energy == pytest.approx(0.64, rel=1e-13)
    inside = adapt(fit, Moments.of(np.array([[3.0, 4.0, 0.0]])), rule)
    assert inside.outside_energy == pytest.approx(0.0, abs=1e-13)

"""Invariances: rotation, scale, order of the rows; and the effect of alpha."""

import copy
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspar import SpARRegressor
from pyspar.theory import Moments, adapt, chi2_rule, fit_ols

seeds = st.integers(0, 10_000)
alphas = st.sampled_from([0.1, 0.5, 0.9, 0.99, 0.999])


def fitted(data, alpha=0.999, **kwargs):
    return SpARRegressor(alpha, **kwargs).fit(data.X, data.y)


def deficient(Z, rank):
    """Return rows of the given rank, near Z in scale."""
    rng = np.random.default_rng(rank)
    return Z @ rng.normal(size=(Z.shape[1], rank)) @ rng.normal(size=(rank, Z.shape[1])) / Z.shape[1]


@given(seed=seeds, alpha=alphas, fit_intercept=st.booleans())
def test_rotating_the_features_does_not_change_the_predictions(shifts, seed, alpha, fit_intercept):
    data = shifts(seed)
    Q = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(5, 5)))[0]
    plain = fitted(data, alpha, fit_intercept=fit_intercept).adapt(data.Z)
    turned = SpARRegressor(alpha, fit_intercept=fit_intercept).fit(data.X @ Q, data.y).adapt(data.Z @ Q)
    assert (turned.adaptation_.removed == plain.adaptation_.removed).all()
    # Condition number 1e2 and gaps of the target's singular values near a tenth: 1e-9 leaves five decades of room.
    expected = plain.predict(data.Z)
    np.testing.assert_allclose(turned.predict(data.Z @ Q), expected, atol=1e-9 * np.abs(expected).max(), rtol=0)


@given(seed=seeds, factor=st.floats(1e-6, 1e6), alpha=alphas)
def test_scaling_the_target_does_not_change_the_removed_directions(shifts, seed, factor, alpha):
    data = shifts(seed)
    est = fitted(data, alpha, fit_intercept=False)
    plain, scaled = copy.copy(est).adapt(data.Z), copy.copy(est).adapt(factor * data.Z)
    assert (plain.adaptation_.removed == scaled.adaptation_.removed).all()
    np.testing.assert_allclose(scaled.coef_, plain.coef_, atol=1e-10 * np.linalg.norm(est.coef_), rtol=0)


@given(seed=seeds, factor=st.floats(1e-3, 1e3))
def test_scaling_the_target_about_the_source_mean_does_not_change_the_removed_directions(shifts, seed, factor):
    data = shifts(seed, offset=2.0)
    est = fitted(data)
    mean = data.X.mean(axis=0)
    plain, scaled = copy.copy(est).adapt(data.Z), copy.copy(est).adapt(mean + factor * (data.Z - mean))
    assert (plain.adaptation_.removed == scaled.adaptation_.removed).all()
    # 1e-9: at a factor of 1e-3 the offset costs three of sixteen digits.
    np.testing.assert_allclose(scaled.coef_, plain.coef_, atol=1e-9 * np.linalg.norm(est.coef_), rtol=0)


@given(seed=seeds, fit_intercept=st.booleans(), rank=st.sampled_from([None, 1, 2, 4]))
def test_the_order_of_the_rows_is_irrelevant(shifts, seed, fit_intercept, rank):
    data = shifts(seed)
    Z = data.Z if rank is None else deficient(data.Z, rank)
    rng = np.random.default_rng(seed)
    p, q = rng.permutation(len(data.X)), rng.permutation(len(Z))
    one = fitted(data, fit_intercept=fit_intercept).adapt(Z)
    other = SpARRegressor(fit_intercept=fit_intercept).fit(data.X[p], data.y[p]).adapt(Z[q])
    assert (one.adaptation_.removed == other.adaptation_.removed).all()
    # Rounding of sums taken in another order, times condition number 1e2 and the inverse gaps of the target.
    np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-9 * np.abs(data.w_star).max() * 100, rtol=0)


@given(seed=seeds, outputs=st.sampled_from([None, 1, 3]), fit_intercept=st.booleans())
def test_alpha_zero_keeps_ordinary_least_squares(shifts, seed, outputs, fit_intercept):
    data = shifts(seed, outputs=outputs)
    est = fitted(data, 0.0, fit_intercept=fit_intercept)
    before = est.coef_.copy()
    assert (est.adapt(data.Z).coef_ == before).all()
    assert not est.adaptation_.removed.any()


@given(seed=seeds, outputs=st.sampled_from([None, 1, 3]), rank=st.sampled_from([None, 1, 3]))
def test_alpha_one_removes_every_direction_that_the_target_has(shifts, seed, outputs, rank):
    data = shifts(seed, outputs=outputs)
    Z = data.Z if rank is None else deficient(data.Z, rank)
    est = fitted(data, 1.0, fit_intercept=False).adapt(Z)
    assert est.adaptation_.removed.all()
    assert est.adaptation_.z.rank == (rank or 5)
    # 1e-11 of what least squares would predict: rounding of one projection.
    scale = np.abs(Z @ est.coef_source_.T).max()
    np.testing.assert_allclose(est.predict(Z), 0.0, atol=1e-11 * scale)


@given(seed=seeds)
def test_alpha_one_with_an_intercept_predicts_the_source_mean_everywhere_in_the_target(shifts, seed):
    data = shifts(seed, offset=3.0)
    est = fitted(data, 1.0).adapt(data.Z)
    np.testing.assert_allclose(
        est.predict(data.Z), data.y.mean(), rtol=1e-10, atol=1e-9
    )  # rounding of offset * weights


@given(seed=seeds, pair=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), outputs=st.sampled_from([1, 3]))
def test_a_larger_alpha_never_removes_less(shifts, seed, pair, outputs):
    data = shifts(seed, outputs=outputs, noise=2.0)
    fit, target = fit_ols(Moments.of(data.X, data.y), fit_intercept=True), Moments.of(data.Z)
    smaller, larger = (adapt(fit, target, partial(chi2_rule, alpha=alpha)).removed for alpha in sorted(pair))
    assert not (smaller & ~larger).any()


@given(seed=seeds, alpha=alphas, rank=st.sampled_from([None, 2]))
def test_the_adapted_weights_are_orthogonal_to_every_removed_direction(shifts, seed, alpha, rank):
    data = shifts(seed, noise=3.0)
    Z = data.Z if rank is None else deficient(data.Z, rank)
    est = fitted(data, alpha).adapt(Z)
    ours = est.adaptation_
    gone = ours.z.V[:, ours.removed[:, 0]]
    scale = np.linalg.norm(ours.w_hat)
    np.testing.assert_allclose(gone.T @ est.coef_, 0.0, atol=1e-14 * scale)  # rounding of one projection
    # Nothing else is lost: along every other direction the weights are those of least squares.
    others = np.linalg.svd(gone.T)[2][gone.shape[1] :] if gone.shape[1] else np.eye(5)
    np.testing.assert_allclose(others @ est.coef_, others @ ours.w_hat[:, 0], atol=1e-14 * scale)


@given(seed=seeds, alpha=st.sampled_from([0.5, 0.999, 1.0]), rank=st.sampled_from([1, 2, 4]))
def test_directions_that_the_target_does_not_have_keep_least_squares(shifts, seed, alpha, rank):
    data = shifts(seed, noise=2.0)
    Z = deficient(data.Z, rank)
    est = fitted(data, alpha, fit_intercept=False)
    before = est.coef_.copy()
    est.adapt(Z)
    null = np.linalg.svd(Z)[2][rank:]
    # The null space of Z is known to 1e-14 here, and the weights are as large as their norm.
    np.testing.assert_allclose(null @ est.coef_, null @ before, atol=1e-12 * np.linalg.norm(before))


@given(seed=seeds, factor=st.floats(1e-3, 1e3))
def test_scaling_the_labels_scales_the_weights_and_removes_the_same(shifts, seed, factor):
    data = shifts(seed)
    plain = fitted(data).adapt(data.Z)
    scaled = SpARRegressor().fit(data.X, factor * data.y).adapt(data.Z)
    assert (plain.adaptation_.removed == scaled.adaptation_.removed).all()
    atol = 1e-11 * factor * np.linalg.norm(plain.adaptation_.w_hat)  # rounding, times condition number 1e2
    np.testing.assert_allclose(scaled.coef_, factor * plain.coef_, atol=atol, rtol=0)


@given(seed=seeds)
def test_each_output_is_adapted_independently(shifts, seed):
    data = shifts(seed, outputs=3, noise=1.5)
    together = fitted(data).adapt(data.Z)
    for k in range(3):
        alone = SpARRegressor().fit(data.X, data.y[:, k]).adapt(data.Z)
        assert (together.adaptation_.removed[:, [k]] == alone.adaptation_.removed).all()
        scale = np.linalg.norm(alone.adaptation_.w_hat)
        np.testing.assert_allclose(together.coef_[k], alone.coef_, atol=1e-11 * scale, rtol=0)  # as above


@pytest.mark.parametrize("seed", range(5))
def test_the_invariances_are_checked_on_shifts_that_remove_something_and_keep_something(shifts, seed):
    removed = fitted(shifts(seed)).adapt(shifts(seed).Z).adaptation_.removed
    assert removed.any()
    assert not removed.all()

"""The life cycle of an estimator: fit, adapt, adapted and reset, for every kind of target."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pyspar import BayesSpARRegressor, Moments, SpARRegressor

NAMES = list("abcde")


@pytest.fixture
def frames(shift):
    return pd.DataFrame(shift.X, columns=NAMES), pd.DataFrame(shift.Z, columns=NAMES)


def test_every_form_of_the_target_gives_the_same_adaptation(shift, frames):
    X, Z = frames
    est = SpARRegressor().fit(X, shift.y)
    expected = copy.copy(est).adapt(Z)
    assert expected.adaptation_.removed.any()
    forms = {
        "polars": pl.DataFrame(shift.Z, schema=NAMES, orient="row"),
        "moments": Moments.of(shift.Z),
        "merged moments": Moments.of(shift.Z[:50]) + Moments.of(shift.Z[50:]),
        "moments with outputs": Moments.of(shift.Z, np.ones(120)),
        "moments of a frame": Moments.of(Z),
    }
    for form, target in forms.items():
        ours = copy.copy(est).adapt(target)
        assert (ours.adaptation_.removed == expected.adaptation_.removed).all(), form
        atol = 1e-11 * np.abs(est.coef_).max()  # sums in another order
        np.testing.assert_allclose(ours.coef_, expected.coef_, atol=atol, rtol=0, err_msg=form)
        np.testing.assert_allclose(ours.adaptation_.risk_after, expected.adaptation_.risk_after, rtol=1e-9)
    nameless = SpARRegressor().fit(shift.X, shift.y)
    for target in (shift.Z, shift.Z.tolist(), np.asfortranarray(shift.Z)):
        np.testing.assert_allclose(copy.copy(nameless).adapt(target).coef_, expected.coef_, rtol=1e-9, atol=1e-12)


def test_weights_of_the_target_count_copies(shift):
    copies = np.random.default_rng(0).integers(0, 3, size=120)
    est = SpARRegressor().fit(shift.X, shift.y)
    weighted, copied = (
        copy.copy(est).adapt(shift.Z, sample_weight=copies),
        copy.copy(est).adapt(np.repeat(shift.Z, copies, axis=0)),
    )
    np.testing.assert_allclose(weighted.coef_, copied.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weighted.adaptation_.risk_before, copied.adaptation_.risk_before, rtol=1e-9)
    assert weighted.adaptation_.n_target == pytest.approx(copies.sum())


def test_adaptation_lowers_the_error_on_the_target_of_this_shift(shifts):
    before, after = [], []
    for seed in range(20):
        data = shifts(seed, noise=2.0)
        data.w_star[-1] = 0.0  # what matters in the source's quiet direction nobody could learn
        truth = data.Z @ data.w_star
        est = SpARRegressor(fit_intercept=False).fit(data.X, data.X @ data.w_star + (data.y - data.X @ data.w_star))
        before.append(np.mean((est.predict(data.Z) - truth) ** 2))
        after.append(np.mean((est.adapt(data.Z).predict(data.Z) - truth) ** 2))
    assert np.mean(after) < np.mean(before)


def test_adapting_twice_is_adapting_to_the_second_target_and_keeps_the_weights_before(shift, rng):
    second = shift.Z @ rng.normal(size=(5, 5))
    plain = SpARRegressor().fit(shift.X, shift.y)
    once, twice = copy.copy(plain).adapt(second), copy.copy(plain).adapt(shift.Z).adapt(second)
    np.testing.assert_array_equal(once.coef_, twice.coef_)
    np.testing.assert_array_equal(twice.coef_source_, plain.coef_)
    assert (twice.intercept_, twice.intercept_source_) == (once.intercept_, plain.intercept_)


@pytest.mark.parametrize("outputs", [None, 1, 3])
def test_weights_that_a_caller_overwrites_do_not_reach_the_source(shifts, outputs):
    data = shifts(0, outputs=outputs)
    est = SpARRegressor().fit(data.X, data.y)
    coef, adapted = est.coef_.copy(), copy.copy(est).adapt(data.Z).coef_.copy()
    est.coef_[...] = 0.0
    np.testing.assert_array_equal(copy.copy(est).adapt(data.Z).coef_, adapted)
    np.testing.assert_array_equal(est.coef_source_, coef)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_the_arrays_of_the_caller_are_not_changed(shift, dtype):
    held = {
        "X": shift.X.astype(dtype),
        "y": shift.y.astype(dtype),
        "Z": shift.Z.astype(dtype),
        "weight": np.linspace(0.0, 2.0, 300),
        "target weight": np.linspace(0.0, 2.0, 120),
    }
    before = {name: array.tobytes() for name, array in held.items()}
    for array in held.values():
        array.setflags(write=False)
    est = SpARRegressor().fit(held["X"], held["y"], held["weight"])
    est.adapt(held["Z"], sample_weight=held["target weight"])
    est.predict(held["Z"])
    assert {name: array.tobytes() for name, array in held.items()} == before


def test_the_repr_of_an_adaptation_states_errors_per_row(rng):
    # Twice the same target costs twice as much in all, and as much per row.
    X, Z = rng.normal(size=(60, 3)), 2.0 * rng.normal(size=(40, 3))
    est = SpARRegressor().fit(X, X[:, 0] + rng.normal(size=60))
    once, twice = copy.copy(est).adapt(Z).adaptation_, copy.copy(est).adapt(np.vstack([Z, Z])).adaptation_
    assert repr(once) == repr(twice)
    assert f"RMSE on noiseless labels {np.sqrt(once.risk_before[0] / 40):.4g} before" in repr(once)


def test_the_bias_of_a_posterior_is_how_far_the_predictions_of_the_target_move(shift):
    est = BayesSpARRegressor(alpha=0.999).fit(shift.X, shift.y).adapt(shift.Z)
    found = est.adaptation_
    assert found.removed.any()
    assert not found.removed.all()
    # By hand: about the source mean, in the regressor's units.
    apart = (shift.Z - shift.X.mean(axis=0)) / est.units_ @ (found.w_proj - found.w_hat)
    assert found.bias_taken[0] == pytest.approx(np.sum(apart**2), rel=1e-9)
    assert found.risk_after[0] == pytest.approx(found.risk_before[0] + np.sum(apart**2), rel=1e-9)

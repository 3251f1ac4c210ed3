"""The life cycle of an estimator: fit, adapt, adapted and reset, for every kind of target."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from pyspar import BayesSpARRegressor, Moments, SpARRegressor
from pyspar.core.adapt import Adaptation

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


def test_a_polars_source_gives_the_same_fit_as_a_pandas_source(shift, frames):
    X, Z = frames
    ours = SpARRegressor().fit(pl.from_pandas(X), shift.y)
    assert ours.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(ours.adapt(Z).coef_, SpARRegressor().fit(X, shift.y).adapt(Z).coef_)
    np.testing.assert_array_equal(ours.predict(pl.from_pandas(Z)), ours.predict(Z))


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


def test_adapt_works_in_place_and_returns_the_estimator(shift):
    est = SpARRegressor().fit(shift.X, shift.y)
    before = est.coef_
    assert est.adapt(shift.Z) is est
    assert isinstance(est.adaptation_, Adaptation)
    assert not np.allclose(est.coef_, before)
    np.testing.assert_array_equal(est.coef_, est.adaptation_.w_proj[:, 0])
    np.testing.assert_array_equal(before, est.adaptation_.w_hat[:, 0])


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


def test_adapted_leaves_the_original_unchanged_and_shares_the_source(shift):
    est = SpARRegressor().fit(shift.X, shift.y)
    predictions, state = est.predict(shift.Z), dict(est.__dict__)
    other = copy.copy(est).adapt(shift.Z)
    assert other is not est
    assert type(other) is SpARRegressor
    assert other.moments_ is est.moments_
    assert est.__dict__.keys() == state.keys()
    assert all(est.__dict__[name] is value for name, value in state.items())
    np.testing.assert_array_equal(est.predict(shift.Z), predictions)
    assert not np.allclose(other.predict(shift.Z), predictions)
    assert other.get_params() == est.get_params()


def test_adapting_twice_is_adapting_to_the_second_target(shift, rng):
    second = shift.Z @ rng.normal(size=(5, 5))
    once = SpARRegressor().fit(shift.X, shift.y).adapt(second)
    twice = SpARRegressor().fit(shift.X, shift.y).adapt(shift.Z).adapt(second)
    np.testing.assert_array_equal(once.coef_, twice.coef_)
    assert once.intercept_ == twice.intercept_


def test_the_weights_before_adapting_are_kept(shift):
    est = SpARRegressor().fit(shift.X, shift.y)
    coef, intercept = est.coef_.copy(), est.intercept_
    est.adapt(shift.Z).adapt(2 * shift.Z)
    np.testing.assert_array_equal(est.coef_source_, coef)
    assert est.intercept_source_ == intercept


def test_a_new_fit_discards_the_adaptation(shift):
    est = SpARRegressor().fit(shift.X, shift.y).adapt(shift.Z).fit(shift.X, shift.y)
    assert not hasattr(est, "adaptation_")
    np.testing.assert_array_equal(est.coef_, SpARRegressor().fit(shift.X, shift.y).coef_)


@pytest.mark.parametrize("outputs", [None, 1, 3])
def test_weights_that_a_caller_overwrites_do_not_reach_the_source(shifts, outputs):
    data = shifts(0, outputs=outputs)
    est = SpARRegressor().fit(data.X, data.y)
    coef, adapted = est.coef_.copy(), copy.copy(est).adapt(data.Z).coef_.copy()
    est.coef_[...] = 0.0
    np.testing.assert_array_equal(copy.copy(est).adapt(data.Z).coef_, adapted)
    np.testing.assert_array_equal(est.coef_source_, coef)


def test_alpha_may_be_changed_between_adaptations(shift):
    est = SpARRegressor(0.999).fit(shift.X, shift.y).adapt(shift.Z)
    some = est.adaptation_.removed.sum()
    assert est.set_params(alpha=1.0).adapt(shift.Z).adaptation_.removed.sum() == 5 > some
    assert est.set_params(alpha=0.0).adapt(shift.Z).adaptation_.removed.sum() == 0


def test_a_clone_has_the_parameters_and_nothing_else(shift):
    est = SpARRegressor(0.9, fit_intercept=False, noise="unbiased").fit(shift.X, shift.y).adapt(shift.Z)
    copy = clone(est)
    assert copy.get_params() == {
        "alpha": 0.9,
        "fit_intercept": False,
        "noise": "unbiased",
    }
    assert not hasattr(copy, "moments_")
    np.testing.assert_array_equal(copy.fit(shift.X, shift.y).adapt(shift.Z).coef_, est.coef_)


@pytest.mark.parametrize("method", ["adapt", "predict"])
def test_adapt_and_predict_before_fit_raise(shift, method):
    with pytest.raises(NotFittedError):
        getattr(SpARRegressor(), method)(shift.Z)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
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


def test_the_data_frames_of_the_caller_are_not_changed(shift, frames):
    X, Z = frames
    copies = X.copy(deep=True), Z.copy(deep=True)
    SpARRegressor().fit(X, shift.y).adapt(Z).predict(Z)
    pd.testing.assert_frame_equal(X, copies[0])
    pd.testing.assert_frame_equal(Z, copies[1])


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

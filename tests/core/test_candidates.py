"""The candidates of extrapolation cross-validation, each against an independent way to the same weights."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from pyspar import Moments, SpARRegressor
from pyspar.core.adapt import spectrum_about
from pyspar.core.candidates import (
    CAREFUL,
    PENALTIES,
    PLAIN,
    REFERENCE,
    RIDGE,
    SHRUNK,
    SPAR,
    Asked,
    at_penalty,
    candidate_weights,
    target_units,
)
from pyspar.core.ridge import ridge_belief


def weights(shift, *, fit_intercept=True, asked=None):
    source, target = Moments.of(shift.X, shift.y), Moments.of(shift.Z)
    belief = ridge_belief(source, fit_intercept=fit_intercept)
    z = spectrum_about(target, belief.x_mean)
    return belief, candidate_weights(source, belief, target, z, alpha=0.999, asked=asked)


@pytest.mark.parametrize("multiple", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_multiple_of_the_penalty_is_ridge_with_that_penalty(shift, multiple, fit_intercept):
    belief = ridge_belief(Moments.of(shift.X, shift.y), fit_intercept=fit_intercept)
    penalty = multiple * float(belief.evidence.kappa[0]) * belief.x.lam[0] ** 2
    plain = Ridge(penalty, fit_intercept=fit_intercept).fit(shift.X, shift.y)
    np.testing.assert_allclose(at_penalty(belief, multiple)[:, 0], plain.coef_, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_reference_is_the_ridge_belief_of_features_divided_by_the_larger_spread(shift, fit_intercept):
    _, found = weights(shift, fit_intercept=fit_intercept)
    origin = shift.X.mean(axis=0) if fit_intercept else 0.0
    there, here = (np.sqrt(np.mean((rows - origin) ** 2, axis=0)) for rows in (shift.Z, shift.X))
    unit = np.maximum(there / here, 1.0)
    belief = ridge_belief(Moments.of(shift.X / unit, shift.y), fit_intercept=fit_intercept)
    np.testing.assert_allclose(found[REFERENCE], belief.w_hat / unit[:, None], rtol=1e-8, atol=1e-12)


def test_one_of_them_is_the_regressor_of_the_paper_and_one_the_belief_itself(shift):
    belief, found = weights(shift, asked=Asked(np.array([1.0]), np.array([0.0])))
    paper = SpARRegressor(0.999).fit(shift.X, shift.y).adapt(shift.Z)
    np.testing.assert_allclose(found[SPAR][:, 0], paper.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(found[RIDGE], belief.w_hat)
    np.testing.assert_allclose(found[CAREFUL], belief.w_hat, rtol=1e-10)
    np.testing.assert_allclose(found[PLAIN], at_penalty(belief, 0.0), rtol=1e-10)
    assert set(found) == {*PENALTIES, SPAR, RIDGE, SHRUNK, CAREFUL, PLAIN}


def test_a_feature_that_is_quiet_in_both_keeps_its_units_and_one_without_spread_too():
    X, Z = np.array([[-1.0, 3.0], [1.0, 3.0]]), np.array([[0.5, 9.0], [-0.5, 9.0]])
    np.testing.assert_array_equal(target_units(Moments.of(X), Moments.of(Z), fit_intercept=True), np.ones(2))


def test_without_rows_to_spare_the_rule_of_the_paper_is_no_candidate(shifts):
    shift = shifts(0, n=5, d=5)
    _, found = weights(shift)
    assert SPAR not in found
    assert np.isfinite(list(found.values())).all()


@pytest.mark.parametrize("labels", ["constant", "exact"])
def test_labels_without_noise_or_without_signal_leave_finite_weights(shift, labels):
    shift.y = np.ones(len(shift.X)) if labels == "constant" else shift.X @ shift.w_star
    _, found = weights(shift)
    for name, w in found.items():
        assert np.isfinite(w).all(), name
    if labels == "constant":
        assert not np.any(list(found.values()))
    else:  # no noise: every candidate of the posterior is least squares
        np.testing.assert_allclose(found[REFERENCE][:, 0], shift.w_star, rtol=1e-6)

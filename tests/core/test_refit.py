"""The refit along the kept directions: an explicit solution, and the second test."""

from dataclasses import replace

import numpy as np
import pytest

from pyspar import Moments
from pyspar.core.adapt import chi2_threshold
from pyspar.core.belief import ridge_belief
from pyspar.core.refit import refit
from pyspar.estimators.head_weights import error_roots_of, fit_head


def belief_of(X, y, *, robust):
    """Return the ridge belief about a centre of zero, so that the labels are the errors of the centre."""
    roots = error_roots_of(X, y, np.zeros((y.shape[1], X.shape[1]))) if robust else ()
    return replace(ridge_belief(Moments.of(X, y), fit_intercept=False), error_roots=roots)


def refit_explicitly(X, r, V, belief, output, *, robust):
    """Return the refitted weights along V and their standard deviations, by matrices of all rows."""
    penalty = float(belief.evidence.kappa[output]) * belief.x.lam[0] ** 2
    gains = X @ V @ np.linalg.inv(V.T @ (X.T @ X + penalty * np.eye(X.shape[1])) @ V)
    sigma = belief.sigma[output]
    std = sigma * np.sqrt(np.diag(np.linalg.inv(V.T @ (X.T @ X + penalty * np.eye(X.shape[1])) @ V)))
    noise2 = sigma**2 * r**2 / np.mean(r**2)
    return gains.T @ r, np.maximum(std, np.sqrt(noise2 @ gains**2)) if robust else std


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_refit_is_that_of_explicit_matrices_and_drops_what_is_not_significant(seed, robust):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 6)) @ rng.normal(size=(6, 6))
    y = X @ rng.normal(size=(6, 2)) * [0.2, 0.3] + rng.standard_t(3, size=(150, 2))
    directions, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    belief = belief_of(X, y, robust=robust)
    assert np.isfinite(belief.evidence.kappa).all()
    kept = rng.random((6, 2)) < 0.8
    weights, remaining = refit(belief, directions, kept, 2.0)
    assert not (remaining & ~kept).any()
    for output in range(2):
        left = kept[:, output].copy()
        while left.any():
            V = directions[:, left]
            along, std = refit_explicitly(X, y[:, output], V, belief, output, robust=robust)
            if (np.abs(along) > 2.0 * std).all():
                break
            left[left] = np.abs(along) > 2.0 * std
        np.testing.assert_array_equal(remaining[:, output], left)
        expected = directions[:, left] @ along if left.any() else np.zeros(6)
        np.testing.assert_allclose(weights[:, output], expected, rtol=1e-8, atol=1e-12)


def test_a_threshold_of_zero_drops_nothing_and_an_infinite_one_everything(rng):
    X = rng.normal(size=(50, 3))
    belief = belief_of(X, X @ rng.normal(size=(3, 1)) + rng.normal(size=(50, 1)), robust=True)
    kept = np.array([[True], [False], [True]])
    weights, remaining = refit(belief, np.eye(3), kept, 0.0)
    np.testing.assert_array_equal(remaining, kept)
    assert weights[1] == 0.0
    assert weights[[0, 2]].all()
    weights, remaining = refit(belief, np.eye(3), kept, np.inf)
    assert not weights.any()
    assert not remaining.any()


def test_an_exact_fit_is_kept(rng):
    X = rng.normal(size=(50, 3))
    belief = belief_of(X, X @ np.ones((3, 1)), robust=True)
    assert belief.sigma[0] == 0.0
    weights, remaining = refit(belief, np.eye(3), np.ones((3, 1), dtype=bool), chi2_threshold(0.999))
    assert remaining.all()
    np.testing.assert_allclose(weights, 1.0, rtol=1e-9)


def rows_with_an_outlier():
    """Return rows of which one has most of the squared errors, and a target without it.

    The outlier lies along the third feature. The other rows show a weight of 0.1 of the first feature. The correction
    of the third feature is not significant, because only one row supports it. A refit of the first feature alone
    attributes the error of the outlier to the first feature.
    """
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(400, 3)), rng.normal(size=(200, 3)) * [3.0, 2.0, 1.0]
    y = 0.1 * X[:, :1] + 0.4 * rng.normal(size=(400, 1))
    X[0], y[0] = [10.0, 0.0, 100.0], 20.0
    return X, y, Z


def test_one_row_does_not_determine_a_correction_that_other_rows_support():
    X, y, Z = rows_with_an_outlier()
    belief = belief_of(X, y, robust=True)
    kept = np.array([[True], [False], [False]])
    once, _ = refit(belief, np.eye(3), kept, 0.0)
    assert once[0, 0] > 0.4  # without the second test
    _, remaining = refit(belief, np.eye(3), kept, chi2_threshold(0.999))
    assert not remaining.any()
    trained = np.zeros((1, 3))
    roots = error_roots_of(X, y, trained)
    head = fit_head(Moments.of(X, y), Moments.of(Z), "bayes", coef=trained, error_roots=roots)
    before, after = (np.mean((y[1:] - X[1:] @ coef.T) ** 2) for coef in (trained, head.coef))
    assert after <= before

"""The bias estimate is unbiased for a given set, and its standard error is that of many repetitions."""

from functools import partial

import numpy as np
import pytest

from pyspar.core.adapt import adapt, top_k_rule
from pyspar.core.moments import Moments
from pyspar.core.regression import fit_ols
from pyspar.theory import bias_terms


@pytest.mark.parametrize("size", [0.0, 1.0, 30.0])
def test_the_bias_of_a_given_set_is_estimated_without_bias(size):
    rng = np.random.default_rng(int(size))
    n, d, sigma, repeats = 60, 5, 1.0, 3000
    X = rng.normal(size=(n, d)) * [1, 1, 0.1, 0.05, 0.02]
    Z = rng.normal(size=(40, d))
    w = rng.normal(size=d) * size
    source_free = Moments.of(Z)
    rule = partial(top_k_rule, k=3)  # by variance, which the labels do not change: a given set
    noise = rng.normal(size=(n, repeats)) * sigma
    fit = fit_ols(Moments.of(X, (X @ w)[:, None] + noise), fit_intercept=False)
    exact = type(fit)(**{**fit.__dict__, "sigma": np.full(repeats, sigma)})
    found = adapt(exact, source_free, rule)
    raw = np.where(found.removed, found.terms.bias_hat - found.terms.var, 0.0).sum(axis=0)
    truth = bias_terms(found.z, w)[found.removed[:, 0]].sum()
    assert (found.removed == found.removed[:, :1]).all()
    # Five standard errors of the mean.
    assert abs(raw.mean() - truth) < 5 * raw.std() / np.sqrt(repeats)
    np.testing.assert_allclose(found.bias_taken, np.maximum(raw, 0.0))

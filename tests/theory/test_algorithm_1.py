"""Algorithm 1, compared with a literal implementation: two thin SVDs, a pseudoinverse and a loop."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import chi2

from pyspar import SpARRegressor
from pyspar.theory import Moments, Spectrum, Terms, adapt, chi2_rule, fit_ols, spectral_inflation, top_k_rule

# n, m, d, K
SHAPES = [(50, 30, 3, 1), (200, 100, 20, 1), (200, 100, 20, 4), (45, 500, 40, 2), (1000, 8, 12, 3), (30, 30, 1, 1)]


def algorithm_1(X, y, Z, alpha):
    """Return w_hat, w_proj and the set S for one output, line by line as the paper has it."""
    w_hat = np.linalg.pinv(X) @ y
    _, lam_x, e_x = np.linalg.svd(X, full_matrices=False)
    _, lam_z, e_z = np.linalg.svd(Z, full_matrices=False)
    sigma2 = np.sum((y - X @ w_hat) ** 2) / len(y)
    S = []
    for j in range(len(lam_z)):
        var = 0.0
        for i in range(len(lam_x)):
            var += sigma2 * lam_z[j] ** 2 / lam_x[i] ** 2 * np.dot(e_x[i], e_z[j]) ** 2
        bias = np.dot(w_hat, e_z[j]) ** 2 * lam_z[j] ** 2
        if chi2.ppf(alpha, df=1) * var >= bias:
            S.append(j)
    w_proj = w_hat.copy()
    for j in S:
        w_proj = w_proj - np.dot(w_hat, e_z[j]) * e_z[j]
    return w_hat, w_proj, S


def data(n, m, d, k, offset=0.0):
    rng = np.random.default_rng([n, m, d, k])
    X = rng.normal(size=(n, d)) * np.geomspace(3.0, 0.1, d) + offset
    # Singular values one step apart: the target's directions are unique, so both readings can only see the same ones.
    U, V = (np.linalg.qr(rng.normal(size=(size, min(m, d))))[0] for size in (m, d))
    Z = (U * np.linspace(10.0, 30.0, min(m, d))) @ V.T + offset
    W = rng.normal(size=(d, k)) * 0.3
    return X, X @ W + rng.normal(size=(n, k)), Z


@pytest.mark.parametrize("alpha", [0.5, 0.999])
@pytest.mark.parametrize(("n", "m", "d", "k"), SHAPES)
def test_adapt_is_algorithm_1(n, m, d, k, alpha):
    X, Y, Z = data(n, m, d, k)
    fit = fit_ols(Moments.of(X, Y), fit_intercept=False)
    ours = adapt(fit, Moments.of(Z), partial(chi2_rule, alpha=alpha))
    for output in range(k):
        w_hat, w_proj, S = algorithm_1(X, Y[:, output], Z, alpha)
        assert np.flatnonzero(ours.removed[:, output]).tolist() == S
        # 1e-9 relative to the size of the weights: condition numbers up to 1e3, squared, times 1e-16, with room.
        scale = np.linalg.norm(w_hat)
        np.testing.assert_allclose(ours.w_hat[:, output], w_hat, atol=1e-9 * scale, rtol=0)
        np.testing.assert_allclose(ours.w_proj[:, output], w_proj, atol=1e-9 * scale, rtol=0)


@pytest.mark.parametrize("alpha", [0.5, 0.999])
@pytest.mark.parametrize(("n", "m", "d", "k"), SHAPES)
def test_with_an_intercept_adapt_is_algorithm_1_on_rows_centred_at_the_source_mean(n, m, d, k, alpha):
    X, Y, Z = data(n, m, d, k, offset=4.0)
    est = SpARRegressor(alpha).fit(X, Y).adapt(Z)
    mean_x, mean_y = X.mean(axis=0), Y.mean(axis=0)
    for output in range(k):
        w_hat, w_proj, S = algorithm_1(X - mean_x, Y[:, output] - mean_y[output], Z - mean_x, alpha)
        assert np.flatnonzero(est.adaptation_.removed[:, output]).tolist() == S
        scale = np.linalg.norm(w_hat)  # as above
        np.testing.assert_allclose(est.coef_[output], w_proj, atol=1e-9 * scale, rtol=0)
        expected = mean_y[output] + (Z - mean_x) @ w_proj
        np.testing.assert_allclose(est.predict(Z)[:, output], expected, atol=1e-8 * np.abs(expected).max(), rtol=0)


def test_the_shapes_above_remove_some_directions_and_keep_some():
    shares = []
    for n, m, d, k in SHAPES:
        X, Y, Z = data(n, m, d, k)
        removed = adapt(
            fit_ols(Moments.of(X, Y), fit_intercept=False), Moments.of(Z), partial(chi2_rule, alpha=0.999)
        ).removed
        shares.append(removed.mean())
    assert 0.0 < np.mean(shares) < 1.0


def test_every_reported_number_is_the_one_of_the_definition():
    X, Y, Z = data(60, 40, 5, 2)
    ours = adapt(fit_ols(Moments.of(X, Y), fit_intercept=False), Moments.of(Z), partial(chi2_rule, alpha=0.9))
    w_hat = np.linalg.pinv(X) @ Y
    sigma2 = ((Y - X @ w_hat) ** 2).mean(axis=0)
    _, lam, Vt = np.linalg.svd(Z, full_matrices=False)
    var = ((Vt @ np.linalg.pinv(X)) ** 2).sum(axis=1)[:, None] * lam[:, None] ** 2 * sigma2
    bias_hat = (Vt @ w_hat) ** 2 * lam[:, None] ** 2
    kept = np.where(ours.removed, 0.0, var).sum(axis=0)
    taken = np.maximum(np.where(ours.removed, bias_hat - var, 0.0).sum(axis=0), 0.0)
    # 1e-9: as above, the numbers come by another route through the same two decompositions.
    np.testing.assert_allclose(ours.sigma2, sigma2, rtol=1e-9)
    np.testing.assert_allclose(ours.terms.var, var, rtol=1e-9)
    np.testing.assert_allclose(ours.terms.bias_hat, bias_hat, rtol=1e-9)
    np.testing.assert_allclose(spectral_inflation(ours.x, ours.z, sigma2, 40), var / 40, rtol=1e-9)
    np.testing.assert_allclose(ours.risk_before, var.sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(ours.variance_kept, kept, rtol=1e-9)
    np.testing.assert_allclose(ours.bias_taken, taken, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.risk_after, kept + taken, rtol=1e-9)
    assert (ours.n_source, ours.n_target) == pytest.approx((60, 40))


@pytest.mark.parametrize("k", [0, 1, 3, 5, 9])
def test_the_top_k_rule_removes_the_k_directions_of_largest_variance(rng, k):
    terms = Terms(rng.uniform(1, 5, size=5), rng.normal(size=(5, 2)), rng.uniform(0.1, 1, size=(5, 2)))
    removed = top_k_rule(terms, k=k)
    assert removed.sum(axis=0).tolist() == [min(k, 5)] * 2
    for output in range(2):
        kept, gone = terms.var[~removed[:, output], output], terms.var[removed[:, output], output]
        assert kept.max(initial=-1.0) <= gone.min(initial=np.inf)


def test_the_spectrum_is_that_of_a_thin_svd(rng):
    X = rng.normal(size=(30, 6))
    _, lam, Vt = np.linalg.svd(X, full_matrices=False)
    ours = Spectrum.of(X)
    np.testing.assert_allclose(ours.lam, lam, rtol=1e-12)  # well conditioned: a few units in the last place
    np.testing.assert_allclose(np.abs(np.diag(Vt @ ours.V)), 1.0, rtol=1e-12)
    assert (ours.rank, ours.n_features) == (6, 6)

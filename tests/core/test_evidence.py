"""Maximum evidence, against the brute-force density of the labels, a fine grid, and another implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge

from pyspar import BayesSpARRegressor, Moments
from pyspar.core.regression import Coordinates, fit_ridge, maximum_evidence

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def problem(seed, n=30, d=5, noise=1.0, size=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    return X, size * X @ rng.normal(size=d) + noise * rng.normal(size=n)


def log_density(X, y, sigma2, tau2):
    """The density of the labels with the weights integrated out, the mean too where the rows are centred."""
    return multivariate_normal.logpdf(y, np.zeros(len(y)), sigma2 * np.eye(len(y)) + tau2 * X @ X.T)


def without_the_mean(X, y):
    """Rotate the row that the mean takes up away: n - 1 rows whose likelihood is that of the centred ones."""
    basis = np.linalg.qr(np.column_stack([np.ones(len(y)), np.eye(len(y))[:, 1:]]))[0][:, 1:]
    return basis.T @ X, basis.T @ y


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(30, 5), (6, 12), (12, 1)])
def test_the_evidence_is_the_density_of_the_labels(seed, fit_intercept, shape):
    X, y = problem(seed, *shape, size=2.0)
    y = y + 5.0 * fit_intercept
    found = fit_ridge(Moments.of(X, y), fit_intercept=fit_intercept)
    rows, labels = without_the_mean(X, y) if fit_intercept else (X, y)
    if found.limit != ("no-noise",):
        value = log_density(rows, labels, found.sigma2[0], found.tau2[0])
        np.testing.assert_allclose(found.log_evidence[0], value, rtol=1e-9)  # rounding of thirty logarithms


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [0.02, 0.3, 5.0])
@pytest.mark.parametrize("shape", [(30, 5), (8, 12)])
def test_no_point_of_a_fine_grid_has_more_evidence(seed, size, shape):
    X, y = problem(seed, *shape, size=size)
    found = fit_ridge(Moments.of(X, y), fit_intercept=False)
    if found.limit == ("exact-fit",):
        return
    best = -np.inf
    for sigma2 in np.geomspace(1e-4, 100.0, 50):
        for tau2 in [0.0, *np.geomspace(1e-5, 1e2, 50)]:
            covariance = sigma2 * np.eye(len(y)) + tau2 * X @ X.T
            density = np.linalg.slogdet(2.0 * np.pi * covariance)[1] + y @ np.linalg.solve(covariance, y)
            best = max(best, -0.5 * density)
    assert found.log_evidence[0] >= best - 1e-9 * abs(best)


@pytest.mark.parametrize("seed", range(3))
def test_the_maximum_is_the_one_that_scikit_learn_iterates_to(seed):
    X, y = problem(seed, n=80, size=1.0)
    found = fit_ridge(Moments.of(X, y), fit_intercept=False)
    other = BayesianRidge(fit_intercept=False, tol=1e-10, max_iter=3000).fit(X, y)
    # Its hyper-prior of 1e-6 moves the maximum by about as much.
    np.testing.assert_allclose([found.sigma2[0], found.tau2[0]], [1 / other.alpha_, 1 / other.lambda_], rtol=1e-4)
    np.testing.assert_allclose(fit_ridge(Moments.of(X, y), fit_intercept=False).w_hat[:, 0], other.coef_, rtol=1e-4)


def corners():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(30, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=30)
    return {
        "constant labels": (X, np.full(30, 3.0), "no-signal"),
        "a perfect fit": (X, X @ np.arange(5.0) + 2.0, "no-noise"),
        "pure noise": (X, y - 0.98 * X @ np.linalg.lstsq(X, y, rcond=None)[0], "no-signal"),
        "a column of zeros alone": (np.zeros((30, 1)), y, "no-signal"),
        "one feature": (X[:, :1] * 3.0, 3.0 * X[:, 0] + 0.1 * y, "interior"),
        "collinear features": (np.hstack([X, X, X @ rng.normal(size=(5, 2))]), y, "interior"),
        "fewer rows than features": (rng.normal(size=(12, 40)), rng.normal(size=12), None),
        "a signal in fewer rows than features": (np.hstack([X, X**2, X**3, X**4, X**5, X**6, X**7]), 10.0 * y, None),
        "two rows": (X[:2], y[:2], None),
    }


@pytest.mark.parametrize("units", ["max", "equal"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("size", [1.0, 1e-50, 1e50])
@pytest.mark.parametrize("name", corners())
def test_every_corner_ends_in_a_sensible_limit_at_every_scale(name, size, fit_intercept, units):
    X, y, limit = corners()[name]
    y = y if fit_intercept else y - y.mean()
    plain = BayesSpARRegressor(units, fit_intercept=fit_intercept).fit(X, y)
    if fit_intercept and limit:
        assert plain.evidence_.limit == (limit,)
    for fx, fy in ((size, 1.0), (1.0, size), (size, size)):
        est = BayesSpARRegressor(units, fit_intercept=fit_intercept).fit(fx * X, fy * y)
        assert est.evidence_.limit == plain.evidence_.limit
        atol = 1e-7 * np.abs(plain.coef_).max(initial=1e-9)  # collinear columns: rounding times the condition number
        np.testing.assert_allclose(est.coef_ * (fx / fy), plain.coef_, rtol=1e-6, atol=atol)
        np.testing.assert_allclose(np.sqrt(est.sigma2_) / fy, np.sqrt(plain.sigma2_), rtol=1e-6, atol=1e-12)
        est.adapt(3.0 * fx * X)
        assert np.isfinite(est.coef_).all()
        assert np.isfinite(est.adaptation_.risk_after / fy**2).all()


@given(
    st.integers(0, 10_000), st.integers(1, 25), st.integers(1, 10), st.sampled_from([0.0, 1e-8, 0.1, 1.0, 1e4]),
    st.booleans(),
)  # fmt: skip
def test_for_every_source_the_variances_are_finite_and_the_limit_is_known(seed, n, d, noise, fit_intercept):
    X, y = problem(seed, n, d, noise=noise)
    found = fit_ridge(Moments.of(X, y), fit_intercept=fit_intercept)
    assert np.isfinite([found.sigma, found.tau]).all()
    assert found.limit[0] in ("interior", "no-signal", "no-noise", "exact-fit", "repeated-rows")
    assert (found.tau[0] == 0.0) == (found.limit == ("no-signal",))
    assert found.sigma[0] > 0.0 or found.limit != ("interior",)


def test_a_weight_of_two_counts_as_two_rows(rng):
    X, y = problem(3, 50, 4)
    twice = fit_ridge(Moments.of(np.vstack([X, X]), np.concatenate([y, y])), fit_intercept=True)
    weighted = fit_ridge(Moments.of(X, y, np.full(50, 2.0)), fit_intercept=True)
    np.testing.assert_allclose(weighted.w_hat, twice.w_hat, rtol=1e-9)
    np.testing.assert_allclose(weighted.sigma, twice.sigma, rtol=1e-9)


def few_rows(seed, n=60, d=150, noise=0.5):
    """Fewer rows than features, of a decaying spectrum, with labels of known noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.geomspace(1.0, 1e-3, d)[:, None] * np.linalg.qr(rng.normal(size=(d, d)))[0])
    return X, X @ rng.normal(size=d) + noise * rng.normal(size=n)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1.0, 1e-50, 1e50])
def test_an_exact_fit_of_rows_that_occur_twice_is_not_taken_as_noiseless(seed, size):
    X, y = few_rows(seed)
    once = fit_ridge(Moments.of(X, y), fit_intercept=True)
    assert once.limit == ("interior",)
    copies = np.r_[np.arange(60), np.arange(0, 60, 5)]
    twice = fit_ridge(Moments.of(size * X[copies], size * y[copies]), fit_intercept=True)
    assert twice.limit == ("repeated-rows",)
    # Twelve rows of 72 count twice, which moves the estimates by about that share.
    np.testing.assert_allclose(twice.sigma / size, once.sigma, rtol=0.4)
    apart = X @ (twice.w_hat - once.w_hat)
    assert np.linalg.norm(apart) < 0.3 * np.linalg.norm(X @ once.w_hat)


def test_the_evidence_of_repeated_rows_is_the_density_of_as_many_labels_as_directions():
    X, y = few_rows(0)
    copies = np.r_[np.arange(60), np.arange(0, 60, 5)]
    found = fit_ridge(Moments.of(X[copies], y[copies]), fit_intercept=False)
    U, lam, _ = np.linalg.svd(X[copies], full_matrices=False)
    U, lam = U[:, :60], lam[:60]
    covariance = found.sigma2[0] * np.eye(60) + found.tau2[0] * np.diag(lam**2)
    value = multivariate_normal.logpdf(U.T @ y[copies], np.zeros(60), covariance)
    np.testing.assert_allclose(found.log_evidence[0], value, rtol=1e-9)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n", [40, 12])
def test_labels_without_noise_stay_exact_among_collinear_features(seed, n):
    """Ten directions, three features that repeat them: more rows than directions, even with twelve rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10)) * np.geomspace(1.0, 0.1, 10)
    X = np.hstack([X, X[:, :3] @ rng.normal(size=(3, 3))])
    w = rng.normal(size=13)
    fit = fit_ridge(Moments.of(X, X @ w + 1.0), fit_intercept=True)
    assert fit.limit == ("no-noise",)
    np.testing.assert_allclose(X @ (fit.w_hat[:, 0] - w), 0.0, atol=1e-9)  # rounding


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_estimated_with_very_short_directions_in_the_source(seed):
    """The weights along them are so long that their rounding exceeds the noise; it is no perfect fit for that."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 20)) @ (np.geomspace(1.0, 1e-13, 20)[:, None] * np.linalg.qr(rng.normal(size=(20, 20)))[0])
    y = X @ rng.normal(size=20) + 1e-3 * rng.normal(size=80)
    found = fit_ridge(Moments.of(X, y), fit_intercept=True)
    assert found.limit == ("interior",)
    assert found.sigma[0] == pytest.approx(1e-3, rel=0.4)  # five standard errors of 60 to 79 degrees of freedom


@pytest.mark.parametrize("shape", [(60, 7), (9, 20)])
def test_several_outputs_have_the_same_evidence_as_each_output_alone(shape):
    rng = np.random.default_rng(5)
    X = rng.normal(size=shape)
    signal = X @ rng.normal(size=(shape[1], 4)) * [1.0, 0.1, 10.0, 0.0]
    Y = signal + rng.normal(size=(shape[0], 4)) * [1.0, 1.0, 1e-3, 1.0]
    together = fit_ridge(Moments.of(X, Y), fit_intercept=True)
    for j in range(4):
        alone = fit_ridge(Moments.of(X, Y[:, j]), fit_intercept=True)
        assert together.limit[j] == alone.limit[0]
        for name in ("sigma", "tau", "kappa", "log_evidence"):  # the root of a slope, to its rounding
            found = getattr(together, name)[j], getattr(alone, name)[0]
            np.testing.assert_allclose(*found, rtol=1e-9)
        np.testing.assert_allclose(together.w_hat[:, j], alone.w_hat[:, 0], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("rows", [1e4, 1e7, 1e10])
def test_the_best_penalty_is_found_when_many_rows_make_it_small(rows):
    """One feature of unit spread, a weight of 2 and noise of 1: the prior's variance is the weight's square."""
    lam, along = np.ones(1), np.array([[2.0 * np.sqrt(rows)]])
    length = np.sqrt(5.0 * rows)
    data = Coordinates(lam, along / length, np.array([np.sqrt(rows) / length]), rows)
    (evidence,) = maximum_evidence(data)
    assert evidence.limit == "interior"
    assert evidence.tau / evidence.sigma * np.sqrt(1.0 / rows) == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize(("n", "d"), [(3, 2), (6, 5), (11, 10)])
def test_an_exact_fit_without_a_spare_row_is_no_evidence_of_zero_noise(n, d):
    """With as many weights as rows every label is fitted, so the estimated noise must not be zero."""
    ratios = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(n, d)), rng.normal(size=(400, d))
        w = rng.normal(size=d) / np.sqrt(d)
        est = BayesSpARRegressor().fit(X, X @ w + rng.normal(size=n))
        forecast = est.expected_rmse(Z)
        assert forecast.interval95[1] > forecast.interval95[0] > 0.0
        ratios.append(forecast.rmse / np.sqrt(np.mean((Z @ w - est.predict(Z)) ** 2) + 1.0))
    assert 0.7 < np.median(ratios) < 1.3


def test_an_exact_fit_has_the_posterior_mean_of_the_noise():
    X, y = problem(1, 8, 12, size=0.3)
    fit = fit_ridge(Moments.of(X, y), fit_intercept=False)
    assert fit.limit == ("exact-fit",)
    lam, U = np.linalg.svd(X)[1], np.linalg.svd(X)[0]
    # By brute force, for a uniform prior of the share 1 / (1 + odds) of the labels' variance that is explained.
    kappa = np.geomspace(1e-12, 1e12, 20_001) * lam[0] ** 2
    kept = kappa[:, None] / (kappa[:, None] + lam**2)
    misfit = kept @ np.square(U.T @ y)
    odds = kappa * 8 / np.sum(lam**2)
    weight = np.exp(-4.0 * np.log(misfit) + 0.5 * np.log(kept).sum(axis=1)) * odds / (1.0 + odds) ** 2
    assert fit.sigma2[0] == pytest.approx(weight @ misfit / weight.sum() / 8, rel=0.02)
    assert fit.tau2[0] == pytest.approx(fit.sigma2[0] / (fit.kappa[0] * lam[0] ** 2))

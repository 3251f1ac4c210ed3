"""The accuracy of Moments, compared with constructed spectra, plain products and an SVD of the rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from pyspar.core.moments import column_norms
from pyspar.sources import moments_of
from pyspar.theory import Moments, Spectrum, fit_ols


def rows_with_spectrum(lam, n, seed=0):
    rng = np.random.default_rng(seed)
    d = lam.size
    U, V = np.linalg.qr(rng.normal(size=(n, d)))[0], np.linalg.qr(rng.normal(size=(d, d)))[0]
    return (U * lam) @ V.T


# Forming the rows rounds each entry to 1e-16 of the largest singular value, so a value 10^-k of it is known to about
# 10^(k - 17) of itself; two more decades for the summary, which a plain SVD needs as well.
@pytest.mark.parametrize(("decades", "tolerance"), [(3, 3e-11), (6, 1e-9), (8, 1e-7), (12, 1e-5)])
def test_singular_values_over_many_decades_keep_their_digits(decades, tolerance):
    truth = np.logspace(0, -decades, 64)
    X = rows_with_spectrum(truth, 2000)
    ours = Spectrum.of(Moments.of(X))
    assert ours.rank == 64
    np.testing.assert_allclose(ours.lam, truth, rtol=tolerance)
    np.testing.assert_allclose(ours.lam, np.linalg.svd(X, compute_uv=False), rtol=tolerance)


def test_the_smallest_direction_of_twelve_decades_is_the_constructed_one():
    rng = np.random.default_rng(2)
    V = np.linalg.qr(rng.normal(size=(16, 16)))[0]
    U = np.linalg.qr(rng.normal(size=(500, 16)))[0]
    X = (U * np.logspace(0, -12, 16)) @ V.T
    ours = Spectrum.of(Moments.of(X))
    # Neighbours are 0.8 decades apart and rounding is 1e-4 of the smallest: the angle is at most about 1e-4.
    np.testing.assert_allclose(np.abs((ours.V * V).sum(axis=0)), 1.0, atol=1e-6)


@pytest.mark.parametrize("n", [100, 5000])
def test_a_huge_common_offset_costs_no_digits_of_the_spread(rng, n):
    # A spread of 1 at a mean of 1e8. Subtracting 1e8 from the rounded rows is exact, which is the reference; products
    # of the raw rows would have no digit left, and QR reads them unshifted, which costs eight of its sixteen.
    X = rng.normal(size=(n, 6)) @ rng.normal(size=(6, 6)) + 1e8
    y = (X - 1e8) @ rng.normal(size=6) + 0.1 * rng.normal(size=n) - 1e8
    small = X - 1e8 - (X - 1e8).mean(axis=0)
    target = y + 1e8 - (y + 1e8).mean()
    ours = fit_ols(Moments.of(X, y), fit_intercept=True)
    reference = np.linalg.lstsq(small, target, rcond=None)[0]
    np.testing.assert_allclose(ours.x.lam, np.linalg.svd(small, compute_uv=False), rtol=1e-9)
    np.testing.assert_allclose(ours.w_hat[:, 0], reference, atol=1e-7 * np.abs(reference).max(), rtol=0)
    residual = np.sqrt(((target - small @ reference) ** 2).mean())
    np.testing.assert_allclose(ours.sigma[0], residual, rtol=1e-7)


def test_merging_batches_at_a_huge_offset_keeps_half_the_digits(rng):
    X = rng.normal(size=(1000, 4)) + 1e8
    parts = [Moments.of(part) for part in np.split(X, 20)]
    merged = sum(parts[1:], parts[0]).root_about(None)
    small = X - 1e8 - (X - 1e8).mean(axis=0)
    # Means near 1e8 are known to 1e-8, and a merge compares means.
    lam = np.linalg.svd(merged, compute_uv=False)[:4]
    np.testing.assert_allclose(lam, np.linalg.svd(small, compute_uv=False), rtol=1e-5)


FEW_VALUED = {
    "one feature three times": lambda rng, n: np.tile(rng.integers(0, 2, (n, 1)), (1, 3)),
    "a sign five times": lambda rng, n: np.tile(rng.choice([-1.0, 1.0], (n, 1)), (1, 5)),
    "a feature and its complement": lambda rng, n: (lambda b: np.hstack([b, 1 - b]))(rng.integers(0, 2, (n, 1))),
    "one-hot of three": lambda rng, n: np.eye(3)[rng.integers(0, 3, n)],
    "one-hot with rare levels": lambda rng, n: np.eye(5)[rng.choice(5, n, p=[0.9, 0.05, 0.03, 0.01, 0.01])],
    "two one-hots": lambda rng, n: np.hstack([np.eye(3)[rng.integers(0, 3, n)], np.eye(4)[rng.integers(0, 4, n)]]),
    "one-hot, a copy and normals": lambda rng, n: (lambda h: np.hstack([h, h[:, :1], rng.normal(size=(n, 3))]))(
        np.eye(4)[rng.integers(0, 4, n)]
    ),
    "a normal feature three times": lambda rng, n: np.tile(rng.normal(size=(n, 1)), (1, 3)),
}


@pytest.mark.parametrize("kind", list(FEW_VALUED))
def test_least_squares_on_exactly_collinear_columns_is_that_of_the_pseudoinverse(rng, kind):
    X = FEW_VALUED[kind](rng, 200).astype(float)
    y = X @ rng.normal(size=X.shape[1]) + rng.normal(size=200)
    for fit_intercept in (True, False):
        A, b = (X - X.mean(axis=0), y - y.mean()) if fit_intercept else (X, y)
        ours = fit_ols(Moments.of(X, y), fit_intercept=fit_intercept)
        reference = np.linalg.pinv(A, rcond=1e-10) @ b
        assert ours.x.rank == np.linalg.matrix_rank(A, tol=1e-8 * np.linalg.norm(A))
        # The directions there are have condition numbers below 1e2.
        np.testing.assert_allclose(ours.w_hat[:, 0], reference, atol=1e-10 * np.abs(reference).max(), rtol=0)


@pytest.mark.parametrize("smallest", [0.5, 1e-2, 2e-3, 1e-4, 1e-9])
def test_fewer_rows_than_columns_have_the_spectrum_of_an_svd(rng, smallest):
    U, V = np.linalg.qr(rng.normal(size=(20, 20)))[0], np.linalg.qr(rng.normal(size=(50, 20)))[0]
    truth = np.geomspace(1.0, smallest, 20)
    ours = Spectrum.of(Moments.of((U * truth) @ V.T))
    # Rows round to 1e-16 of the largest value, and squares to that of its square, down to a thousandth of it.
    np.testing.assert_allclose(ours.lam, truth, rtol=max(1e-10, 1e-14 / smallest))
    np.testing.assert_allclose(ours.V.T @ ours.V, np.eye(20), atol=1e-14)
    np.testing.assert_allclose(V @ (V.T @ ours.V), ours.V, atol=max(1e-12, 1e-14 / smallest))


@pytest.mark.parametrize("n", [200, 3000])
@pytest.mark.parametrize("weak", [1e-4, 1e-7, 1e-10, 0.0])
def test_directions_that_the_product_does_not_resolve_are_measured_from_the_rows(rng, n, weak):
    """Some columns are sums of others, up to a share; singular values have the accuracy of an SVD of the rows."""
    X = rng.normal(size=(n, 12)) * np.geomspace(1.0, 1e6, 12) + rng.normal(size=12)
    for j in (3, 7):
        X[:, j] = X[:, 0] * 2.0 - X[:, 1] + weak * rng.normal(size=n)
    for rows, data in ((X, X), (sp.csr_array(X), X), (X[:, ::-1], X[:, ::-1])):
        found = moments_of(rows)
        ours = np.linalg.svd(found.root_about(None) / column_norms(found.root_about(None)), compute_uv=False)
        centred = data - data.mean(axis=0)
        expected = np.linalg.svd(centred / np.linalg.norm(centred, axis=0), compute_uv=False)
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-13)
    assert Spectrum.of(Moments.of(X)).rank == (10 if weak == 0.0 else 12)

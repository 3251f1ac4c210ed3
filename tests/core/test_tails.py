"""Skewness and kurtosis of the features in Moments, compared with scipy, for all sources of rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kurtosis, skew

from pyspar import Moments
from pyspar.sources.sparse import moments_of_sparse


@pytest.fixture
def X(rng):
    columns = [rng.normal(size=400), rng.lognormal(size=400), rng.normal(size=400) + 1e6, rng.random(400) < 0.1]
    return np.column_stack([*columns, rng.normal(size=400) * 1e55])


def expected(X):
    X = X / np.abs(X).max(axis=0)
    return np.array([skew(X), kurtosis(X, fisher=False)])


def test_rows(X):
    assert Moments.of(X[:, :4]).tails == pytest.approx(expected(X[:, :4]), rel=1e-6)


def test_large_numbers(X):
    assert Moments.of(X).tails == pytest.approx(expected(X), rel=1e-6)


def test_parts(X):
    parts = sum(Moments.of(X[k : k + 40]) for k in range(0, 400, 40))
    assert parts.tails == pytest.approx(expected(X), rel=1e-6)


def test_weights_are_copies(X, rng):
    counts = rng.integers(1, 4, size=400)
    weighted = Moments.of(X[:, :4], sample_weight=counts)
    assert weighted.tails == pytest.approx(expected(np.repeat(X[:, :4], counts, axis=0)), rel=1e-6)


@pytest.mark.parametrize(("unit", "largest"), [(1e-49, 1e-140), (1e48, 1e140)])
def test_many_rows_in_extreme_units_with_extreme_weights(rng, unit, largest):
    X, weight = rng.lognormal(size=(20_000, 2)) * [unit, 1.0], rng.random(20_000)
    expected_tails = Moments.of(X / [unit, 1.0], sample_weight=weight).tails
    assert Moments.of(X, sample_weight=largest * weight).tails == pytest.approx(expected_tails, rel=1e-9)


def test_constant_columns(rng):
    X = np.column_stack([np.full(300, 0.1), rng.normal(size=300)])
    for moments in (Moments.of(X), Moments.of(X[:100]) + Moments.of(X[100:])):
        assert np.isfinite(moments.tails).all()
    assert not Moments.of(X).tails[:, 0].any()


def test_sparse_rows(rng):
    X = sp.random_array((300, 6), density=0.2, rng=rng, format="csr")
    counts = rng.integers(1, 4, size=300)
    found = moments_of_sparse(X, sample_weight=counts)
    assert found.tails == pytest.approx(Moments.of(X.toarray(), sample_weight=counts).tails, rel=1e-9)


def test_tensors(X, rng):
    torch = pytest.importorskip("torch")
    from pyspar.sources.torch import moments_of_loader, moments_of_tensors

    counts = rng.integers(1, 4, size=400).astype(float)
    rows, w = torch.as_tensor(X[:, :4]), torch.as_tensor(counts)
    whole = Moments.of(X[:, :4], sample_weight=counts).tails
    assert moments_of_tensors(rows, sample_weight=w).tails == pytest.approx(whole, rel=1e-6)
    batches = [(rows[k : k + 100], torch.zeros(100), w[k : k + 100]) for k in range(0, 400, 100)]
    assert moments_of_loader(batches, labelled=True).tails == pytest.approx(whole, rel=1e-6)


def test_tensors_with_an_outlier_of_weight_zero(rng):
    torch = pytest.importorskip("torch")
    from pyspar.sources.torch import moments_of_tensors

    X, weight = 1.7e9 + 1e3 * rng.lognormal(size=(3000, 2)), np.ones(3000)
    X[0], weight[0] = 1e15, 0.0
    found = moments_of_tensors(torch.as_tensor(X), None, torch.as_tensor(weight)).tails
    assert found == pytest.approx(Moments.of(X, sample_weight=weight).tails, rel=1e-6)

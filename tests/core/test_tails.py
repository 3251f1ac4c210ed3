"""Skewness and kurtosis of the features in Moments, compared with scipy, for all sources of rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kurtosis, skew

from pyspar import Moments
from pyspar.io.moments import read_moments_file, write_moments
from pyspar.sources.sparse import moments_of_sparse


@pytest.fixture
def X(rng):
    columns = [rng.normal(size=400), rng.lognormal(size=400), rng.normal(size=400) + 1e6, rng.random(400) < 0.1]
    return np.column_stack([*columns, rng.normal(size=400) * 1e55])


def expected(X):
    X = X / np.abs(X).max(axis=0)
    return np.array([skew(X), kurtosis(X, fisher=False)])


@pytest.mark.parametrize("solver", ["auto", "gram", "qr"])
def test_rows(X, solver):
    assert Moments.of(X[:, :4], solver=solver).tails == pytest.approx(expected(X[:, :4]), rel=1e-6)


def test_large_numbers(X):
    assert Moments.of(X, solver="qr").tails == pytest.approx(expected(X), rel=1e-6)


def test_parts(X):
    parts = sum(Moments.of(X[k : k + 40], solver="qr") for k in range(0, 400, 40))
    assert parts.tails == pytest.approx(expected(X), rel=1e-6)


def test_weights_are_copies(X, rng):
    counts = rng.integers(1, 4, size=400)
    weighted = Moments.of(X[:, :4], sample_weight=counts)
    assert weighted.tails == pytest.approx(expected(np.repeat(X[:, :4], counts, axis=0)), rel=1e-6)
    assert weighted.counted("importance").tails == pytest.approx(weighted.tails)


@pytest.mark.parametrize("offset", [0.0, 1.0, 2.5, 3.5, 1e3, 1.7e9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_with_an_offset(rng, offset, dtype):
    # Fourth powers lose (mean / spread)**4 without centring. The offset 1.7e9 is a date in seconds.
    spread = 1e5 if offset == 1.7e9 else 1.0
    columns = [rng.normal(size=20_000), rng.lognormal(size=20_000), rng.random(20_000) < 0.01, np.zeros(20_000)]
    X = (np.column_stack(columns) * spread + offset).astype(dtype)
    counts = rng.integers(1, 4, size=20_000)
    for moments, rows in ((Moments.of(X), X), (Moments.of(X, sample_weight=counts), np.repeat(X, counts, axis=0))):
        rows = rows[:, :3].astype(np.float64) - offset
        assert moments.tails[:, :3] == pytest.approx(expected(rows), rel=1e-9, abs=1e-9)
        assert not moments.tails[:, 3].any()


@pytest.mark.parametrize("unit", [1e-55, 1e-30, 1e30, 1e55])
def test_many_rows_in_extreme_units(rng, unit):
    X = rng.lognormal(size=(20_000, 2)) * [unit, 1.0]
    assert Moments.of(X, solver="qr").tails == pytest.approx(expected(X), rel=1e-9)


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


@pytest.mark.parametrize("solver", ["auto", "gram", "qr"])
def test_sparse_rows(rng, solver):
    X = sp.random_array((300, 6), density=0.2, rng=rng, format="csr")
    counts = rng.integers(1, 4, size=300)
    found = moments_of_sparse(X, sample_weight=counts, solver=solver)
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


@pytest.mark.parametrize("offset", [0.0, 1.0, 100.0, 1.7e9])
@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e25])
def test_tensors_of_float32(rng, offset, unit):
    torch = pytest.importorskip("torch")
    from pyspar.sources.torch import describe_columns

    n = 31_007
    columns = [rng.normal(size=n), rng.lognormal(size=n), rng.random(n) < 0.001, np.sort(rng.random(n)), np.zeros(n)]
    X = ((np.column_stack(columns) * (1e5 if offset == 1.7e9 else 1.0) + offset) * unit).astype(np.float32)
    total, mean, spread, *tails = describe_columns(torch.as_tensor(X), None).numpy()
    exact = X[:, :4].astype(np.float64)
    # Powers are rounded to float32, and groups of 32 are summed in float32. Most of these errors cancel, but not those
    # of a column with two values.
    assert (total == n).all()
    assert np.abs(mean[:4] - exact.mean(axis=0)) == pytest.approx(0.0, abs=2e-8 * exact.std(axis=0).max())
    assert spread[:4] == pytest.approx(exact.std(axis=0), rel=5e-7)
    assert np.array(tails)[:, :4] == pytest.approx(expected(exact - exact.mean(axis=0)), rel=1e-6, abs=2e-7)
    assert mean[4] == X[0, 4]
    assert not spread[4]
    assert not np.array(tails)[:, 4].any()


def test_tensors_with_an_outlier_of_weight_zero(rng):
    torch = pytest.importorskip("torch")
    from pyspar.sources.torch import moments_of_tensors

    X, weight = 1.7e9 + 1e3 * rng.lognormal(size=(3000, 2)), np.ones(3000)
    X[0], weight[0] = 1e15, 0.0
    found = moments_of_tensors(torch.as_tensor(X), None, torch.as_tensor(weight)).tails
    assert found == pytest.approx(Moments.of(X, sample_weight=weight).tails, rel=1e-6)


def test_tensors_near_the_largest_number_of_float32():
    torch = pytest.importorskip("torch")
    from pyspar.sources.torch import describe_columns

    X = torch.tensor([[3e38, 3e38], [-3e38, 3e38]]).repeat(20_000, 1)
    _, mean, spread, *tails = describe_columns(X, None).numpy()
    assert mean == pytest.approx([0.0, 3e38], rel=1e-6, abs=1e32)
    assert spread == pytest.approx([3e38, 0.0], rel=1e-6)
    assert np.array(tails) == pytest.approx(np.array([[0.0, 0.0], [1.0, 0.0]]), abs=1e-6)


def test_a_file_keeps_them(X, tmp_path):
    for moments in (Moments.of(X[:, :4]), Moments.of(X[:, :4]).without_outputs()):
        write_moments(moments, tmp_path / "m.npz")
        assert np.array_equal(read_moments_file(tmp_path / "m.npz").moments.tails, moments.tails)

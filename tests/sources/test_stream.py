"""Batches of any size and order give the fit of one pass."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspar import BayesSpARRegressor, SpARRegressor
from pyspar.sources import is_batches
from pyspar.sources.stream import moments_of_batches, rows_per_block


def split_at(problem, edges):
    edges = [0, *sorted(edges), len(problem.X)]
    return [(problem.X[a:b], problem.y[a:b]) for a, b in itertools.pairwise(edges)]


@settings(max_examples=25)
@given(edges=st.lists(st.integers(0, 3000), max_size=12), seed=st.integers(0, 100))
def test_any_split_in_any_order_gives_the_fit_of_one_pass(problem, in_memory, assert_same, edges, seed):
    batches = split_at(problem, edges)
    np.random.default_rng(seed).shuffle(batches)
    targets = (part for part in np.array_split(problem.Z, 1 + seed % 9))
    assert_same(SpARRegressor().fit(iter(batches)).adapt(targets), in_memory)


def test_ten_thousand_float32_batches_keep_their_accuracy(problem):
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(40_000, 6)) + 50).astype(np.float32)
    y = X.sum(axis=1) + rng.normal(size=40_000)
    streamed = SpARRegressor().fit((X[i : i + 4], y[i : i + 4]) for i in range(0, 40_000, 4))
    np.testing.assert_allclose(streamed.coef_, SpARRegressor().fit(X, y).coef_, rtol=1e-10)


def test_batches_of_ill_conditioned_rows_keep_their_accuracy():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 5)) @ np.diag(10.0 ** -np.arange(0, 10, 2)) @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    lam = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    moments = moments_of_batches((X[i : i + 90] for i in range(0, 4000, 90)), labelled=False)
    # The condition number is 1e8, so a single product would have no correct digit of the last value.
    np.testing.assert_allclose(np.linalg.svd(moments.root[1:, 1:], compute_uv=False), lam, rtol=1e-7)


def test_column_names_of_frames_are_kept_and_compared(problem):
    names = [f"c{i}" for i in range(12)]
    frame = pd.DataFrame(problem.X, columns=names)
    est = SpARRegressor().fit([(frame[:1000], problem.y[:1000]), (frame[1000:], problem.y[1000:])])
    assert list(est.feature_names_in_) == names
    with pytest.raises(ValueError, match="order"):
        est.adapt(part for part in [frame[names[::-1]]])


def test_weights_and_outputs_are_supported_in_arrays_that_are_used_for_every_batch(problem):
    whole = problem.X, np.column_stack([problem.y, -problem.y]), problem.w
    parts = [np.empty_like(array[:10]) for array in whole]

    def batches():
        for i in range(0, 3000, 10):
            for part, array in zip(parts, whole, strict=True):
                part[:] = array[i : i + 10]
            yield tuple(parts)

    expected = SpARRegressor().fit(*whole).coef_
    np.testing.assert_allclose(SpARRegressor().fit(batches()).coef_, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        (iter([]), "at least one row"),
        (iter([(np.ones((3, 2)), np.ones(3)), (np.ones((3, 4)), np.ones(3))]), "batch 1: 4 features"),
        (iter([(np.ones((3, 2)), np.ones(3)), (np.full((3, 2), np.nan), np.ones(3))]), "batch 1: X.* nan"),
        (iter([(np.ones((3, 2)), np.ones(2))]), r"batch 0: .*\(3, 2\).*\(2,\)"),
        (iter([np.ones((3, 2))]), r"batch 0 .*\(X, y\).*ndarray"),
        (iter([(np.ones(3), np.ones(3))]), r"batch 0: X .*\(3,\)"),
    ],
)
def test_an_invalid_batch_is_named_and_changes_nothing(problem, batches, words):
    est = SpARRegressor().fit(problem.X, problem.y)
    before = dict(est.__dict__)
    with pytest.raises((ValueError, TypeError), match=words):
        est.fit(batches)
    assert est.__dict__ == before


def test_tables_and_batches_are_distinguished(problem):
    assert not is_batches(problem.X)
    assert not is_batches(pd.DataFrame(problem.X))
    assert not is_batches(problem.X.tolist())
    assert is_batches([problem.X])
    assert is_batches(iter([problem.X]))


def test_a_block_is_bounded_in_memory_and_at_least_twice_as_tall_as_wide():
    for columns in (2, 66, 513, 4097):
        rows = rows_per_block(columns)
        assert rows >= 2 * columns
        assert rows * columns * 8 <= max(64_000_000, 16 * columns**2)


def test_sparse_batches_may_have_weights_and_be_mixed_with_dense_ones(problem):
    parts = [(problem.X[i : i + 300], problem.y[i : i + 300], problem.w[i : i + 300]) for i in range(0, 3000, 300)]
    mixed = [(sp.csr_array(X) if i % 2 else X, y, w) for i, (X, y, w) in enumerate(parts)]
    for model in (SpARRegressor, BayesSpARRegressor):
        coef, expected = (model().fit(batches).adapt(problem.Z).coef_ for batches in (mixed, parts))
        np.testing.assert_allclose(coef, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, pytest.param("torch", id="tensors")])
@pytest.mark.parametrize("empty", [0, 1, 2])
def test_batches_without_weight_are_skipped(problem, make, empty):
    if make == "torch":
        make = pytest.importorskip("torch", reason="needs: pip install 'pyspar[nn]'").as_tensor
    weights = np.where(np.arange(3000) // 1000 == empty, 0.0, problem.w + 1.0)
    parts = [slice(i, i + 1000) for i in (0, 1000, 2000)]
    batches = [(make(problem.X[part]), problem.y[part], weights[part]) for part in parts]
    est = SpARRegressor().fit(batches)
    np.testing.assert_allclose(est.coef_, SpARRegressor().fit(problem.X, problem.y, weights).coef_, rtol=1e-9)
    assert est.moments_.rows == 2000
    with pytest.raises(ValueError, match="positive weight"):
        SpARRegressor().fit([(X, y, 0.0 * weight) for X, y, weight in batches])
    wide = make(np.ones((5, 13)))
    with pytest.raises(ValueError, match="batch 3: 13 features"):
        SpARRegressor().fit([*batches, (wide, np.ones(5), np.zeros(5))])

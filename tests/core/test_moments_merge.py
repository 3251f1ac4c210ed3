"""Moments are a monoid: any partition, order and tree of merges equals one pass over the rows."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspar.theory import Moments, fit_ols

seeds = st.integers(0, 10_000)


def rows(seed, n=80, d=4, k=2, offset=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1.0, 0.1, d) + offset
    return X, X @ rng.normal(size=(d, k)) + 0.3 * rng.normal(size=(n, k))


def gram(moments):
    return moments.root.T @ moments.root


def assert_same(one, other):
    """Same second moments, and the same regression from them."""
    expected = gram(one)
    # A QR or a product of 80 rows errs by some hundred units in the last place.
    np.testing.assert_allclose(gram(other), expected, atol=1e-12 * np.abs(expected).max(), rtol=0)
    for fit_intercept in (True, False):
        a, b = (fit_ols(m, fit_intercept=fit_intercept) for m in (one, other))
        # The same, times the squared condition number of the scatter (1e2 to 1e4).
        np.testing.assert_allclose(b.w_hat, a.w_hat, atol=1e-9 * np.abs(a.w_hat).max(), rtol=0)
        np.testing.assert_allclose(b.sigma, a.sigma, rtol=1e-9)
    assert other.weight == pytest.approx(one.weight, rel=1e-13)
    assert (other.n_features, other.n_outputs) == (one.n_features, one.n_outputs)


def random_tree(parts, rng):
    """Merge neighbours or strangers, in any order, until one is left."""
    parts = list(parts)
    while len(parts) > 1:
        i, j = rng.choice(len(parts), size=2, replace=False)
        merged = parts[i] + parts[j]
        parts = [part for index, part in enumerate(parts) if index not in (i, j)] + [merged]
    return parts[0]


def test_one_pass_is_the_plain_second_moment_of_ones_features_and_outputs():
    X, Y = rows(0)
    A = np.column_stack([np.ones(80), X, Y])
    ours = Moments.of(X, Y)
    np.testing.assert_allclose(gram(ours), A.T @ A, rtol=1e-12)  # rounding of 80 terms
    np.testing.assert_allclose(ours.mean, A[:, 1:].mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(ours.column_lengths(), np.linalg.norm(A[:, 1:], axis=0), rtol=1e-13)
    assert (ours.rows, ours.weight) == (80, pytest.approx(80.0, rel=1e-14))
    assert (np.abs(ours.root[1:, 0]) <= 1e-13).all()  # below the first row nothing of the ones is left


@given(seed=seeds, cuts=st.lists(st.integers(1, 79), unique=True, max_size=12))
def test_merging_in_any_cut_and_any_tree_equals_one_pass(seed, cuts):
    X, Y = rows(seed)
    rng = np.random.default_rng(seed)
    parts = [Moments.of(x, y) for x, y in zip(np.split(X, sorted(cuts)), np.split(Y, sorted(cuts)), strict=True)]
    whole = Moments.of(X, Y)
    assert_same(whole, reduce(add, parts))
    assert_same(whole, random_tree(parts, rng))
    assert reduce(add, parts).rows == 80


@given(seed=seeds)
def test_merging_one_row_at_a_time_equals_one_pass(seed):
    X, Y = rows(seed)
    assert_same(Moments.of(X, Y), reduce(add, (Moments.of(X[i : i + 1], Y[i : i + 1]) for i in range(80))))


def test_merging_keeps_twelve_decades_of_singular_values(rng):
    U, V = np.linalg.qr(rng.normal(size=(600, 12)))[0], np.linalg.qr(rng.normal(size=(12, 12)))[0]
    truth = np.logspace(0, -12, 12)
    X = (U * truth) @ V.T
    merged = reduce(add, (Moments.of(part) for part in np.split(X, 6)))
    lam = np.linalg.svd(merged.root[:, 1:], compute_uv=False)[:12]
    np.testing.assert_allclose(lam, truth, rtol=1e-4)  # the rows themselves hold the last one to 1e-4 only


@given(seed=seeds)
def test_a_weight_counts_copies_of_a_row(seed):
    X, Y = rows(seed)
    copies = np.random.default_rng(seed).integers(0, 4, size=80)
    copied = Moments.of(np.repeat(X, copies, axis=0), np.repeat(Y, copies, axis=0))
    assert_same(copied, Moments.of(X, Y, copies))


@pytest.mark.parametrize("value", [0.0, 1e3, 1e12, 1e30, 1e59, -1e30])
@pytest.mark.parametrize("where", [[0, 17, 79], slice(0, 60)])
def test_a_row_of_weight_zero_is_ignored_even_with_nan(where, value):
    X, Y = rows(3)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, size=80)
    weight[where] = 0.0
    present = weight > 0
    X[~present], Y[~present] = value, -value
    assert_same(Moments.of(X[present], Y[present], weight[present]), Moments.of(X, Y, weight))


def test_a_merged_data_set_has_the_coarser_precision():
    X, _ = rows(5)
    coarse, fine = Moments.of(X.astype(np.float32)), Moments.of(X)
    for mixed in (coarse + fine, fine + coarse):
        assert (mixed.eps == np.finfo(np.float32).eps).all()
    assert ((fine + fine).eps == np.finfo(np.float64).eps).all()


def test_the_moments_of_the_features_alone_are_those_of_the_rows_without_outputs():
    X, Y = rows(7)
    ours = Moments.of(X, Y).without_outputs()
    assert (ours.n_features, ours.n_outputs) == (4, 0)
    np.testing.assert_allclose(gram(ours), gram(Moments.of(X)), rtol=1e-12)


@pytest.mark.parametrize("origin", [0.0, 1.0, -3.0])
def test_a_root_about_an_origin_is_a_root_of_the_shifted_rows(origin):
    X, Y = rows(8)
    moved = np.column_stack([X, Y]) - origin
    root = Moments.of(X, Y).root_about(np.full(6, origin))
    np.testing.assert_allclose(root.T @ root, moved.T @ moved, rtol=1e-11)
    own = np.column_stack([X, Y]) - np.column_stack([X, Y]).mean(axis=0)
    root = Moments.of(X, Y).root_about(None)
    np.testing.assert_allclose(root.T @ root, own.T @ own, rtol=1e-10, atol=1e-12)  # small entries are differences

"""Moments of many groups of rows at once, and what they merge to, against those of each group alone."""

import numpy as np
import pytest

from pyspar import Moments
from pyspar.core.accumulate import BLUR
from pyspar.core.arrays import EPS64
from pyspar.core.cells import both_sides, together
from pyspar.core.partition import moments_of_groups


def gram(moments):
    return moments.root.T @ moments.root


def groups_of(n, sizes, rng):
    return np.split(rng.permutation(n)[: sum(sizes)], np.cumsum(sizes)[:-1])


def assert_same(one, other, rtol=1e-10):
    """The products of two roots agree, entry by entry, relative to the lengths of the two columns."""
    lengths = np.sqrt(np.diag(gram(other)))
    lengths[lengths == 0.0] = 1.0
    np.testing.assert_allclose(
        gram(one) / np.outer(lengths, lengths), gram(other) / np.outer(lengths, lengths), atol=rtol
    )
    assert not one.root[1:, 0].any()
    assert (one.rows, one.n_features) == (other.rows, other.n_features)
    np.testing.assert_allclose(one.weight, other.weight, rtol=1e-14)


@pytest.mark.parametrize("solver", ["gram", "qr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_groups_have_the_moments_that_each_has_alone(rng, solver, weighted, outputs):
    X, Y = rng.normal(size=(400, 6)) + 3.0, rng.normal(size=(400, outputs))
    weight = rng.integers(0, 3, size=400).astype(float) if weighted else None
    groups = groups_of(400, [1, 2, 5, 7, 9, 40, 300], rng)
    for index, found in zip(groups, moments_of_groups(X, Y, weight, groups, EPS64, solver=solver), strict=True):
        part = None if weight is None else weight[index]
        if part is not None and not part.any():
            assert found is None
            continue
        assert_same(found, Moments.of(X[index], Y[index], part, solver="qr"))
        assert found.blur in ((0.0,) if solver == "qr" else (0.0, BLUR))


def test_a_row_of_no_weight_may_hold_anything(rng):
    X, Y, weight = rng.normal(size=(30, 3)), rng.normal(size=(30, 1)), np.ones(30)
    X[4], weight[4] = np.nan, 0.0
    found = moments_of_groups(X, Y, weight, [np.arange(30)], EPS64, solver="gram")[0]
    there = np.arange(30) != 4
    assert np.isfinite(found.root).all()
    assert_same(found, Moments.of(X[there], Y[there]))


@pytest.mark.parametrize("size", [1e-180, 1e-90, 1.0, 1e90, 1e180])
def test_no_scale_of_a_column_is_lost(rng, size):
    X, Y = rng.normal(size=(90, 3)) * [1.0, size, 1.0], rng.normal(size=(90, 1))
    groups = [np.arange(3), np.arange(3, 90)]
    for index, found in zip(groups, moments_of_groups(X, Y, None, groups, EPS64, solver="gram"), strict=True):
        apart = Moments.of(X[index] / [1.0, size, 1.0], Y[index], solver="qr")
        scaled = found.with_root(found.root / [1.0, 1.0, size, 1.0, 1.0])
        assert np.isfinite(found.root).all()
        assert_same(scaled, apart)


def test_constant_and_dependent_columns_keep_the_product(rng):
    base = rng.normal(size=(300, 2))
    X = np.column_stack([base, base.sum(axis=1), np.zeros(300), np.full(300, 7.0), base[:, 0] > 5.0])
    groups = groups_of(300, [5, 95, 200], rng)
    Y = rng.normal(size=(300, 1))
    for index, found in zip(groups, moments_of_groups(X, Y, None, groups, EPS64, solver="gram"), strict=True):
        assert_same(found, Moments.of(X[index], Y[index], solver="qr"))
        assert not found.root[:, 4].any()


@pytest.mark.parametrize("solver", ["gram", "qr"])
@pytest.mark.parametrize("kind", ["tall", "wide", "dependent", "offset", "constant on one side"])
def test_both_sides_of_every_border_are_those_of_the_rows(rng, solver, kind):
    d = 30 if kind == "wide" else 4
    X, Y = rng.normal(size=(120, d)), rng.normal(size=(120, 2))
    if kind == "dependent":
        X[:, 3] = X[:, 0] - X[:, 1]
    elif kind == "offset":
        X += 1e6
    elif kind == "constant on one side":
        X[:60, 2] = 5.0
    places = [np.arange(a, b) for a, b in ((0, 8), (8, 30), (30, 60), (60, 63), (63, 120))]
    cells = moments_of_groups(X, Y, None, places, EPS64, solver=solver)
    borders = (30, 60)
    found = both_sides([cells[:2], cells[2:3], cells[3:]])
    for border, (before, after) in zip(borders, found, strict=True):
        # An offset of a million spreads costs its square in a sum of squares about zero: compared about the mean.
        for side, rows in ((before, slice(0, border)), (after, slice(border, None))):
            whole = Moments.of(X[rows], Y[rows], solver="qr")
            np.testing.assert_allclose(side.mean, whole.mean, rtol=1e-12, atol=1e-12)
            ours, theirs = side.root_about(None), whole.root_about(None)
            np.testing.assert_allclose(ours.T @ ours, theirs.T @ theirs, rtol=1e-8, atol=1e-8)
            assert (side.rows, side.weight) == (whole.rows, whole.weight)


def test_few_rows_are_merged_without_a_product_or_a_decomposition(rng):
    X, Y = rng.normal(size=(12, 40)), rng.normal(size=(12, 1))
    cells = moments_of_groups(X, Y, None, [np.arange(5), np.arange(5, 12)], EPS64, solver="gram")
    whole = together(cells)
    assert len(whole.root) == 12
    assert_same(whole, Moments.of(X, Y, solver="qr"), rtol=1e-14)

"""Columns of very different size, offset or precision in one table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from pyspar import Moments, SpARRegressor, SparWarning


def problem(seed=2, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 1.0, 0.01]
    y = X @ [1.0, 2.0, 0.0] + 0.5 * rng.normal(size=n)
    return rng, X, y


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_a_large_irrelevant_column_changes_neither_the_noise_nor_the_removed_directions(size):
    # Timestamps in seconds and milliseconds.
    rng, X, y = problem()
    stamp = 1.7e9 * size / 1e3 + rng.uniform(0, 1e6, len(X)) * size / 1e3
    Z = rng.normal(size=(200, 3)) * [1.0, 1.0, 5.0]
    known = SpARRegressor().fit(X, y).adapt(Z)
    est = SpARRegressor().fit(np.column_stack([X, stamp]), y)
    assert est.sigma2_ == pytest.approx(known.sigma2_, rel=0.05)  # one more feature to fit the noise with
    est.adapt(np.column_stack([Z, np.full(200, stamp.mean())]))
    error = np.sqrt(np.mean((est.predict(np.column_stack([Z, np.full(200, stamp.mean())])) - Z @ [1, 2, 0]) ** 2))
    assert error < 0.5
    assert est.adaptation_.removed.sum() >= 1


@pytest.mark.parametrize("offset", [1e4, 1e5])
def test_float32_features_far_from_zero_keep_their_noise(offset):
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(5000, 3)) + offset).astype(np.float32)
    y = (X.astype(float) - offset) @ [1.0, 2.0, 3.0] + 0.5 * rng.normal(size=5000)
    est = SpARRegressor().fit(X, y)
    assert est.sigma2_ == pytest.approx(0.25, rel=0.1)
    assert est.rank_ == 3


def test_a_float32_column_does_not_coarsen_its_neighbours():
    rng = np.random.default_rng(0)
    t, k = 1.7e9 + rng.uniform(0, 1000, 500), rng.normal(size=500).astype("f4")
    frame = pd.DataFrame({"t": t, "k": k})
    y = (t - 1.7e9) / 100 + k + 0.1 * rng.normal(size=500)
    est = SpARRegressor().fit(frame, y)
    assert est.rank_ == 2
    plain = LinearRegression().fit(frame.astype(float), y)
    np.testing.assert_allclose(est.predict(frame), plain.predict(frame.astype(float)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("offset", "spread", "dtype"), [(1.7e18, 1e3, "f8"), (1e15, 1.0, "f8"), (1e7, 10.0, "f4")])
@pytest.mark.filterwarnings("ignore:.*count as constant")  # of the float32 column
def test_a_column_lost_in_its_own_rounding_fits_no_worse_than_without_it(offset, spread, dtype):
    rng = np.random.default_rng(3)
    u, k = rng.uniform(size=400), rng.normal(size=400)
    X = np.column_stack([offset + spread * u, k]).astype(dtype)
    y = u + k + 0.1 * rng.normal(size=400)
    ours = np.mean((SpARRegressor().fit(X, y).predict(X) - y) ** 2)
    without = np.mean((LinearRegression().fit(X[:, 1:], y).predict(X[:, 1:]) - y) ** 2)
    assert ours <= without * (1 + 1e-6)


@pytest.mark.parametrize("size", [1e12, 1e15, 1e18, 1e30])
def test_a_huge_column_costs_the_others_no_accuracy(size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.5 * rng.normal(size=300)
    u = rng.uniform(size=300)
    reference = LinearRegression().fit(np.column_stack([X, u]), y)
    wide = np.column_stack([X, u * size])
    est = SpARRegressor().fit(wide, y)
    np.testing.assert_allclose(est.coef_ * [1, 1, 1, size], reference.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("constant", [1.7e9 / 3, 1e10 / 3, -3.3e7, 0.1])
def test_a_constant_column_has_weight_zero_for_every_source_of_moments(constant):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 4))
    X[:, 0] = constant
    y = rng.normal(size=300)
    streamed = SpARRegressor()
    for rows in np.array_split(np.arange(300), 10):
        streamed.partial_fit(X[rows], y[rows])
    batches = [(X[i : i + 7], y[i : i + 7]) for i in range(0, 300, 7)]
    for est in (
        SpARRegressor().fit(X, y),
        streamed,
        SpARRegressor().fit(batches),
        SpARRegressor().fit(Moments.of(X[:100], y[:100]) + Moments.of(X[100:], y[100:])),
    ):
        assert est.rank_ == 3
        assert est.coef_[0] == 0.0


def test_a_constant_column_gets_no_weight_with_fewer_rows_than_features():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 50)), rng.normal(size=40)
    X[:, 0] = 1.7e9 / 3
    with pytest.warns(SparWarning):
        est = SpARRegressor().fit(X, y)
    assert est.coef_[0] == 0.0
    assert est.coef_[1:] == pytest.approx(LinearRegression().fit(X[:, 1:], y).coef_, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e10])
def test_offsets_cost_no_solver_its_digits(offset):
    rng = np.random.default_rng(7)
    X = np.round(rng.normal(size=(500, 4)), 4)
    y = X @ [1.0, -1.0, 2.0, 0.5] + 0.1 * rng.normal(size=500)
    reference = SpARRegressor().fit((X + offset) - offset, y).coef_  # as the sum is rounded
    moved = SpARRegressor().fit(X + offset, y)
    np.testing.assert_allclose(moved.coef_, reference, rtol=1e-9)


def test_masked_labels_weights_and_batches_raise():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0)
    masked = np.ma.masked_array(y, mask=[True] + [False] * 19)
    rows = np.ma.masked_array(X, mask=np.arange(40).reshape(20, 2) == 3)
    est = SpARRegressor().fit(X, y)
    for call in (
        lambda: est.fit(X, masked),
        lambda: est.fit(X, y, masked),
        lambda: est.fit([(rows, y)]),
        lambda: est.fit([(X, masked)]),
        lambda: est.adapt(iter([rows])),
        lambda: est.predict(rows),
    ):
        with pytest.raises(ValueError, match="masked"):
            call()

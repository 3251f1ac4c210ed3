"""Labels: which rows to label. test_correction.py tests how they are read."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from pyspar import rows_to_label


@pytest.fixture
def target():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(120, 4))
    return LinearRegression().fit(Z, Z @ [2.0, 1.0, 0.0, 0.0]), Z


def test_rows_are_distinct_and_reproducible(target):
    model, Z = target
    for n in (1, 7, 120):
        choice = rows_to_label(model, Z, n)
        assert len(set(choice.rows.tolist())) == len(choice) == len(choice.reasons) == n
        np.testing.assert_array_equal(choice.rows, rows_to_label(model, Z, n).rows)


def test_each_interval_between_quantiles_of_the_prediction_has_one_row(target):
    model, Z = target
    rows = rows_to_label(model, Z, 10).rows
    rank = np.argsort(np.argsort(model.predict(Z)))
    assert sorted(rank[rows] // 12) == list(range(10))
    assert np.ptp(rank[rows[:3]] // 12) >= 4  # the first rows are spread as well


def test_excluded_rows_may_be_any_iterable_of_integers(target):
    model, Z = target
    expected = rows_to_label(model, Z, 8, exclude=list(range(50))).rows
    for exclude in (set(range(50)), range(50), (i for i in range(50)), dict.fromkeys(range(50))):
        np.testing.assert_array_equal(rows_to_label(model, Z, 8, exclude=exclude).rows, expected)


@pytest.mark.parametrize("exclude", [[], np.arange(0, 40, 2)])
def test_allowed_rows_are_about_equally_probable(exclude):
    Z, allowed, count = np.arange(40.0)[:, None], np.setdiff1d(np.arange(40), exclude), np.zeros(40)
    for seed in range(1000):
        count[rows_to_label(Z[:, 0], Z, n=len(allowed) // 5, exclude=exclude, random_state=seed).rows] += 1
    assert count.sum() == count[allowed].sum()
    np.testing.assert_allclose(count[allowed] / 1000, 0.2, atol=0.06)  # standard error 0.013; at most 0.02 of bias


def test_predictions_can_replace_the_model(target):
    model, Z = target
    expected = rows_to_label(model, Z, 6).rows
    np.testing.assert_array_equal(rows_to_label(model.predict(Z), Z, 6).rows, expected)
    with pytest.raises(ValueError, match="120"):
        rows_to_label(model.predict(Z)[:5], Z, 6)


def test_several_outputs_are_sorted_by_their_standardised_sum(target):
    model, Z = target
    both = np.column_stack([model.predict(Z), 1e6 * Z[:, 1]])
    choice = rows_to_label(both, Z, 4)
    rank = np.argsort(np.argsort((both / both.std(axis=0)).sum(axis=1)))
    assert sorted(rank[choice.rows] // 30) == [0, 1, 2, 3]
    assert choice.reasons[0].count(", ") == 2  # two predictions, and the quantile

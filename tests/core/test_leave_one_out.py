"""The leave-one-out multiple, against leaving rows out one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from pyspar import Moments
from pyspar.core.leave_one_out import MULTIPLES, caution
from pyspar.core.ridge import ridge_belief


@pytest.fixture
def rows(rng):
    """A few rows of high leverage, where the labels do not follow the line."""
    X = rng.normal(size=(60, 4))
    X[:4] *= 6.0
    return X, X @ rng.normal(size=4) + rng.normal(size=60) + np.where(np.arange(60) < 4, 8.0, 0.0) * rng.normal(size=60)


def byhand(X, y, belief, fit_intercept):
    """Return the multiple with the least error over fits that leave out one row each."""
    errors = []
    for multiple in MULTIPLES:
        penalty = multiple * float(belief.evidence.kappa[0]) * belief.x.lam[0] ** 2
        total = 0.0
        for i in range(len(y)):
            rest = np.arange(len(y)) != i
            left = Ridge(penalty, fit_intercept=fit_intercept).fit(X[rest], y[rest])
            total += (left.predict(X[[i]])[0] - y[i]) ** 2
        errors.append(total)
    return MULTIPLES[np.argmin(errors)]


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_is_what_leaving_out_each_row_in_turn_would_choose(rows, fit_intercept):
    X, y = rows
    belief = ridge_belief(Moments.of(X, y), fit_intercept=fit_intercept)
    found = caution(belief, np.ones(4), X, y[:, None])
    assert found.shape == (1,)
    assert found[0] == byhand(X, y, belief, fit_intercept)
    assert found[0] > 1.0  # the rows of high leverage ask for more than the evidence does


def test_sparse_rows_other_units_and_weights_give_the_same(rows):
    X, y = rows
    belief = ridge_belief(Moments.of(X, y), fit_intercept=True)
    plain = caution(belief, np.ones(4), X, y[:, None])
    np.testing.assert_array_equal(caution(belief, np.ones(4), sp.csr_array(X), y[:, None]), plain)
    np.testing.assert_array_equal(caution(belief, np.full(4, 0.5), 2.0 * X, y[:, None]), plain)
    np.testing.assert_array_equal(caution(belief, np.ones(4), X, y[:, None], np.ones(len(y))), plain)


def test_of_many_rows_some_are_asked_and_those_say_the_same(rows, monkeypatch):
    X, y = np.repeat(rows[0], 4, axis=0), np.repeat(rows[1], 4)
    belief = ridge_belief(Moments.of(*rows), fit_intercept=True)
    plain = caution(belief, np.ones(4), X, y[:, None])
    monkeypatch.setattr("pyspar.core.leave_one_out.MOST_ROWS", 60)
    np.testing.assert_array_equal(caution(belief, np.ones(4), X, y[:, None]), plain)


def test_each_output_has_a_multiple_of_its_own_and_noise_alone_has_one(rows, rng):
    X, y = rows
    Y = np.column_stack([y, X @ np.ones(4) + 0.1 * rng.normal(size=60), np.full(60, 3.0)])
    belief = ridge_belief(Moments.of(X, Y), fit_intercept=True)
    found = caution(belief, np.ones(4), X, Y)
    alone = ridge_belief(Moments.of(X, y), fit_intercept=True)
    assert found[0] == caution(alone, np.ones(4), X, y[:, None])[0]
    assert np.isfinite(found).all()
    assert found[2] == 1.0

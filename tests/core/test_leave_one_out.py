"""The penalties of least leave-one-out error, against leaving rows out one by one."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from pyspar import Moments
from pyspar.core.candidates import NO_NOISE, at_penalty
from pyspar.core.leave_one_out import MULTIPLES, ask
from pyspar.core.ridge import ridge_belief


@pytest.fixture
def rows(rng):
    """A few rows of high leverage, where the labels do not follow the line."""
    X = rng.normal(size=(60, 4))
    X[:4] *= 6.0
    return X, X @ rng.normal(size=4) + rng.normal(size=60) + np.where(np.arange(60) < 4, 8.0, 0.0) * rng.normal(size=60)


def byhand(X, y, unit, fit_intercept):
    """Return the errors over fits that leave out one row each, by multiples of a penalty."""
    errors = []
    for multiple in MULTIPLES:
        total = 0.0
        for i in range(len(y)):
            rest = np.arange(len(y)) != i
            left = Ridge(multiple * unit, fit_intercept=fit_intercept).fit(X[rest], y[rest])
            total += (left.predict(X[[i]])[0] - y[i]) ** 2
        errors.append(total)
    return np.array(errors)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_is_what_leaving_out_each_row_in_turn_would_choose(rows, fit_intercept):
    X, y = rows
    belief = ridge_belief(Moments.of(X, y), fit_intercept=fit_intercept)
    found = ask(belief, np.ones(4), X, y[:, None])
    errors = byhand(X, y, float(belief.evidence.kappa[0]) * belief.x.lam[0] ** 2, fit_intercept)
    assert found.plain == MULTIPLES[np.argmin(errors)]
    assert found.careful == MULTIPLES[MULTIPLES >= 1.0][np.argmin(errors[MULTIPLES >= 1.0])]
    assert found.plain > 1.0  # the rows of high leverage ask for more than the evidence does


def test_a_smaller_penalty_than_that_of_the_evidence_is_for_plain_ridge_alone(rng):
    """One weight of many is large: a prior that takes them for alike shrinks it too much."""
    X = rng.normal(size=(80, 30))
    y = 5.0 * X[:, 0] + 0.5 * rng.normal(size=80)
    belief = ridge_belief(Moments.of(X[:, :1], y), fit_intercept=True)
    slow = replace(belief, evidence=replace(belief.evidence, kappa=np.array([1.0])))
    slow = replace(slow, w_hat=belief.w_hat * (1.0 + belief.evidence.kappa[0]) / 2.0)
    found = ask(slow, np.ones(1), X[:, :1], y[:, None])
    assert found.careful == 1.0
    assert found.plain < 1.0


def test_where_the_evidence_found_no_noise_penalties_have_a_unit_of_their_own(rng):
    """With more features than rows every fit is exact; leave-one-out still asks for a penalty."""
    X = rng.normal(size=(30, 80))
    y = X[:, :5].sum(axis=1) + rng.normal(size=30)
    belief = ridge_belief(Moments.of(X, y), fit_intercept=True)
    exact = replace(belief, evidence=replace(belief.evidence, kappa=np.zeros(1), sigma=np.zeros(1)))
    exact = replace(exact, w_hat=at_penalty(belief, 0.0))
    found = ask(exact, np.ones(80), X, y[:, None])
    errors = byhand(X, y, NO_NOISE * belief.x.lam[0] ** 2, fit_intercept=True)
    assert found.plain == found.careful == MULTIPLES[np.argmin(errors)]


def test_sparse_rows_other_units_and_weights_give_the_same(rows):
    X, y = rows
    belief = ridge_belief(Moments.of(X, y), fit_intercept=True)
    plain = ask(belief, np.ones(4), X, y[:, None])
    np.testing.assert_array_equal(ask(belief, np.ones(4), sp.csr_array(X), y[:, None]), plain)
    np.testing.assert_array_equal(ask(belief, np.full(4, 0.5), 2.0 * X, y[:, None]), plain)
    np.testing.assert_array_equal(ask(belief, np.ones(4), X, y[:, None], np.ones(len(y))), plain)


def test_of_many_rows_some_are_asked_and_those_say_the_same(rows, monkeypatch):
    X, y = np.repeat(rows[0], 4, axis=0), np.repeat(rows[1], 4)
    belief = ridge_belief(Moments.of(*rows), fit_intercept=True)
    plain = ask(belief, np.ones(4), X, y[:, None])
    monkeypatch.setattr("pyspar.core.leave_one_out.MOST_ROWS", 60)
    np.testing.assert_array_equal(ask(belief, np.ones(4), X, y[:, None]), plain)


def test_each_output_has_a_multiple_of_its_own_and_noise_alone_has_one(rows, rng):
    X, y = rows
    Y = np.column_stack([y, X @ np.ones(4) + 0.1 * rng.normal(size=60), np.full(60, 3.0)])
    belief = ridge_belief(Moments.of(X, Y), fit_intercept=True)
    found = ask(belief, np.ones(4), X, Y)
    alone = ridge_belief(Moments.of(X, y), fit_intercept=True)
    np.testing.assert_array_equal([each[0] for each in found], np.ravel(ask(alone, np.ones(4), X, y[:, None])))
    assert np.isfinite(found).all()
    assert found.careful[2] == 1.0  # a constant: at every penalty the same, and the first is taken


def test_penalties_so_small_that_every_row_is_its_own_doing_are_not_asked_about(rng):
    """With more features than rows the errors vanish with what is left of them, and their ratio is rounding."""
    X = rng.normal(size=(40, 90))
    y = X[:, :3].sum(axis=1) + rng.normal(size=40)
    belief = ridge_belief(Moments.of(X, y), fit_intercept=True)
    faint = replace(belief, evidence=replace(belief.evidence, kappa=np.array([1e-9])))
    faint = replace(faint, w_hat=at_penalty(belief, 1e-9 / belief.evidence.kappa[0]))
    found = ask(faint, np.ones(90), X, y[:, None])
    errors = byhand(X, y, 1e-9 * belief.x.lam[0] ** 2, fit_intercept=True)
    assert found.plain >= 1e2  # about 1e-7 of the largest square is the least that can be asked about
    askable = np.greater_equal(MULTIPLES, found.plain)
    assert found.plain == MULTIPLES[askable][np.argmin(errors[askable])]
    none = replace(faint, evidence=replace(faint.evidence, kappa=np.array([1e-14])))
    assert ask(none, np.ones(90), X, y[:, None]).plain == 1.0

"""How far an average may lead away from ridge: the bound on cases where every length is known by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspar import BayesSpARRegressor, Moments
from pyspar.core.candidates import PLAIN, REFERENCE, RIDGE
from pyspar.core.mixture import Mixture
from pyspar.core.ridge import ridge_belief
from pyspar.core.votes import BACK, BEYOND, CONTRADICTED, LONG
from pyspar.core.votes import near_ridge as near_ridge_in_doubt

NAMES = (REFERENCE, PLAIN, RIDGE)
lengths = st.floats(0.01, 100.0)


def on_a_line(reference: float, plain: float) -> Mixture:
    """Return candidates whose predictions are multiples of each other: one feature, one row at one."""
    return Mixture(np.array([[[reference]], [[plain]], [[plain]]]), np.ones((1, 1)), np.ones(1))


def near_ridge(names, votes, there, trials):
    """Where ridge is not sure of itself."""
    return near_ridge_in_doubt(names, votes, there, trials, np.array([np.inf]))


def test_lengths_are_those_of_predictions_in_spreads_of_the_labels(rng):
    X, Z = rng.normal(size=(200, 3)) + 5.0, rng.normal(size=(70, 3)) * 3.0
    y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(200, 2))
    source = Moments.of(X, y)
    weights, shares = rng.normal(size=(4, 3, 2)), rng.dirichlet(np.ones(4), size=2).T
    found = Mixture.on(weights, source, ridge_belief(source, fit_intercept=True), Moments.of(Z))
    predictions = np.einsum("nd,adk->ank", Z - X.mean(axis=0), weights)
    mixed = np.einsum("ank,ak->nk", predictions, shares)
    np.testing.assert_allclose(found.length(shares), np.sqrt((mixed**2).mean(axis=0)) / y.std(axis=0), rtol=1e-10)
    apart = np.sqrt(((predictions - predictions[2]) ** 2).mean(axis=1)) / y.std(axis=0)
    np.testing.assert_allclose(found.apart(2), apart, rtol=1e-10, atol=1e-14)


def test_labels_that_do_not_vary_are_no_reason_to_hold_back():
    source = Moments.of(np.arange(6.0)[:, None], np.ones(6))
    there = Mixture.on(
        np.ones((3, 1, 1)), source, ridge_belief(source, fit_intercept=True), Moments.of(np.ones((2, 1)))
    )
    assert there.length(np.array([[1.0], [0.0], [0.0]])) == 0.0
    votes, kept = near_ridge(NAMES, np.full((3, 1), 1.0 / 3.0), there, [])
    assert kept == 1.0
    np.testing.assert_allclose(votes, 1.0 / 3.0)


def test_what_was_not_tested_stays_with_ridge():
    votes, kept = near_ridge(NAMES, np.array([[0.75], [0.25], [0.0]]), on_a_line(0.9, 0.5), [])
    np.testing.assert_array_equal(votes, [[0.0], [1.0], [0.0]])
    assert kept == 0.0


def test_the_average_departs_half_as_far_as_it_was_tested():
    votes = np.array([[0.8], [0.2], [0.0]])
    # On the target the average is 0.8 x 0.5 = 0.4 away, where tested at most 0.8 x 0.2.
    there, trials = on_a_line(1.0, 0.5), [on_a_line(0.2, 0.1), on_a_line(0.1, 0.3)]
    found, kept = near_ridge(NAMES, votes, there, trials)
    assert kept[0] == pytest.approx(BEYOND * 0.8 * 0.2 / 0.4)
    assert there.length(found - [[0.0], [1.0], [0.0]])[0] == pytest.approx(BEYOND * 0.8 * 0.2)


def test_predictions_longer_than_labels_are_may_be_brought_back():
    votes = np.array([[1.0], [0.0], [0.0]])
    assert near_ridge(NAMES, votes, on_a_line(1.0, 50.0), [])[1] == 1.0  # all the way: 49 shorter
    assert near_ridge(NAMES, votes, on_a_line(0.0, 50.0), [])[1] == 1.0
    assert near_ridge(NAMES, votes, on_a_line(50.0, 1.0), [])[1] == 0.0  # never the other way round
    assert near_ridge(NAMES, votes, on_a_line(-50.0, 50.0), [])[1] == 0.0  # as long as before
    # What is shorter than that counts no further: a tenth of a spread is too long.
    assert near_ridge(NAMES, votes, on_a_line(0.0, LONG + 0.1), [])[1] == pytest.approx(BACK * 0.1 / (LONG + 0.1))


def test_where_leave_one_out_could_not_be_asked_the_votes_stay():
    votes = np.array([[1.0]])
    found, kept = near_ridge((REFERENCE,), votes, on_a_line(1.0, 2.0), [])
    assert found is votes
    assert kept == 1.0


@given(lengths, lengths, lengths, lengths, st.floats(0.0, 1.0))
def test_votes_stay_shares_and_lie_between_ridge_and_the_average(a, b, c, d, share):
    votes = np.array([[share], [1.0 - share], [0.0]])
    found, kept = near_ridge(NAMES, votes, on_a_line(a, b), [on_a_line(c, d)])
    assert 0.0 <= kept[0] <= 1.0
    np.testing.assert_allclose(found.sum(axis=0), 1.0, rtol=1e-12)
    assert 0.0 <= found[0, 0] <= share + 1e-12


def test_the_estimator_says_how_much_of_the_way_it_went(rng):
    """A source that never moves along its second feature can test nothing of what a target does there."""
    X = rng.normal(size=(400, 2)) * [1.0, 0.05]
    y = X @ [1.0, 1.0] + 0.3 * rng.normal(size=400)
    Z = rng.normal(size=(300, 2)) * [1.0, 0.5]
    est = BayesSpARRegressor().fit(X, y).adapt(Z)
    assert 0.0 < est.rule_scores_.kept[0] < 1.0
    assert BayesSpARRegressor().fit(X, y).adapt(X).rule_scores_.kept.shape == (1,)


@given(st.floats(0.1, 0.9), st.floats(-3.0, 3.0), st.floats(0.0, 0.4))
def test_where_ridge_is_sure_of_itself_it_is_contradicted_only_so_far(doubt, reference, off):
    """The belief is centred off plain ridge; of weights w it expects the squared error (w - m)^2 + doubt."""
    there = Mixture(np.array([[[reference]], [[off]], [[0.0]]]), np.ones((1, 1)), np.ones(1))
    votes = np.array([[1.0], [0.0], [0.0]])
    tested = [Mixture(100.0 * there.weights, there.root, there.spread)]
    found, kept = near_ridge_in_doubt(NAMES, votes, there, tested, np.array([doubt]))
    expected = np.sqrt(float(there.length(found)[0]) ** 2 + doubt)
    sure = np.sqrt(off**2 + doubt)
    if sure > 1.0:
        assert kept == 1.0
    else:
        assert expected <= CONTRADICTED * sure * (1.0 + 1e-9)
        assert kept == 1.0 or expected == pytest.approx(CONTRADICTED * sure)


def test_a_line_that_one_well_measured_column_draws_is_followed_where_the_target_goes(rng):
    """Along that column the target reaches six times as far, and ridge's predictions are many labels long."""
    X, Z = rng.normal(size=(300, 100)), rng.normal(size=(300, 100))
    Z[:, 3] *= 6.0
    y = 2.0 * X[:, 3] + rng.normal(size=300)
    est = BayesSpARRegressor().fit(X, y).adapt(Z)
    plain = BayesSpARRegressor(rule="positive-part", c=0.0).fit(X, y)
    errors = [np.sqrt(np.mean((each.predict(Z) - 2.0 * Z[:, 3]) ** 2) + 1.0) for each in (est, plain)]
    assert est.rule_scores_.kept[0] < 0.5
    assert errors[0] < 2.0 * errors[1]

"""Cells and extrapolation cross-validation: what moments say against what the rows say."""

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, Moments
from pyspar.core.adapt import spectrum_about
from pyspar.core.candidates import CAREFUL, PENALTIES, PLAIN, REFERENCE, RIDGE, SHRUNK, SPAR
from pyspar.core.cells import Cells, together
from pyspar.core.extrapolation import NO_ROWS, TOO_FEW, average, held_out, likeness
from pyspar.core.ridge import ridge_belief
from pyspar.core.risk import terms_of
from pyspar.core.votes import votes_of

NAMES = (*PENALTIES, SPAR, RIDGE, SHRUNK)
STRONGEST = "target-ridge*100"


def gram(moments):
    return moments.root.T @ moments.root


def source(rng, n=600, d=4, noise=0.5):
    X = rng.normal(size=(n, d)) + rng.integers(0, 3, size=(n, 1))
    return X, X @ rng.normal(size=d) + noise * rng.normal(size=n)


def voted(cells, target, *, fit_intercept=False):
    """Return the votes by name of the first output."""
    whole = together(cells)
    belief = ridge_belief(whole, fit_intercept=fit_intercept)
    z = spectrum_about(target, belief.x_mean)
    _, found = average(whole, belief, target, z, terms_of(belief, z), cells, scale=False, alpha=0.999)
    return dict(zip(found.names, found.votes[:, 0], strict=True)), found


def test_the_cells_together_are_the_source(rng):
    X, y = source(rng)
    est = BayesSpARRegressor().fit(X, y)
    parts = est._cells.occupied()
    assert 6 <= len(parts) <= 32
    np.testing.assert_allclose(gram(together(parts)), gram(est.moments_), rtol=1e-9)
    assert together(parts).rows == len(X)


@pytest.mark.parametrize("how", ["partial_fit", "fit_batches"])
def test_cells_of_a_stream_hold_every_row_in_the_cells_of_its_first_rows(rng, how):
    X, y = source(rng, n=5000)
    batches = [(X[i : i + 1000], y[i : i + 1000]) for i in range(0, 5000, 1000)]
    est = BayesSpARRegressor()
    if how == "fit_batches":
        est.fit_batches(iter(batches))
    else:
        for batch in batches:
            est.partial_fit(*batch)
    np.testing.assert_allclose(gram(together(est._cells.occupied())), gram(est.moments_), rtol=1e-9)
    est.adapt(X[:100] + 1.0)
    assert est.rule_scores_.why == "by extrapolation cross-validation"
    # After a later batch leave-one-out would need the rows of the first again.
    assert est.rule_scores_.names == (NAMES if how == "partial_fit" else (*NAMES, CAREFUL, PLAIN))


def test_a_row_goes_to_the_nearest_centre(rng):
    X = rng.normal(size=(500, 3)) * [1.0, 100.0, 0.01] + 7.0
    cells = Cells.around(X)
    place = cells.nearest(X)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    # slopes are centres over the spread, so the centres can be had back
    centres = (cells.slopes * X.std(axis=0)[:, None]).T
    distance = ((scaled[:, None, :] - centres[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(place, distance.argmin(axis=1))


def test_what_is_likest_the_target_is_held_out(rng):
    centres = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0], [5.0, 5.0]])
    groups = [centre + rng.normal(size=(50, 2)) for centre in centres]
    cells = [Moments.of(group, group[:, :1]) for group in groups]
    whole = Moments.of(np.vstack(groups), np.vstack(groups)[:, :1])
    for j, centre in enumerate(centres):
        target = Moments.of(centre + rng.normal(size=(30, 2)))
        assert likeness(whole, cells, target).argmax() == j


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_the_held_out_error_is_that_of_an_estimator_on_the_rows(rng, fit_intercept, scale):
    X, y = source(rng)
    far = X[:, 0] > 1.5
    how = {"fit_intercept": fit_intercept, "scale": scale}
    found, trial = held_out(Moments.of(X[~far], y[~far]), Moments.of(X[far], y[far]), NAMES, alpha=0.999, **how)
    apart = trial.apart(NAMES.index(REFERENCE))
    est = BayesSpARRegressor(rule="positive-part", c=0.0, **how).fit(X[~far], y[~far])
    byhand = np.sqrt(np.mean((est.predict(X[far]) - y[far]) ** 2))
    assert found[NAMES.index(RIDGE), 0] == pytest.approx(byhand, rel=1e-9)
    est = BayesSpARRegressor(rule="positive-part", c=1.0, **how).fit(X[~far], y[~far]).adapt(X[far])
    byhand = np.sqrt(np.mean((est.predict(X[far]) - y[far]) ** 2))
    assert found[NAMES.index(SHRUNK), 0] == pytest.approx(byhand, rel=1e-9)
    origin = X[~far].mean(axis=0) if fit_intercept else 0.0
    unit = np.sqrt(np.mean((X[~far] - origin) ** 2, axis=0)) if scale else 1.0
    louder = np.sqrt(np.mean((X[far] - origin) ** 2, axis=0)) / np.sqrt(np.mean((X[~far] - origin) ** 2, axis=0))
    unit = unit * np.maximum(louder, 1.0)
    plain = BayesSpARRegressor(rule="positive-part", c=0.0, **how).fit(X[~far], y[~far]).predict(X[far])
    both = BayesSpARRegressor(rule="positive-part", c=0.0, fit_intercept=fit_intercept, scale=False)
    both = both.fit(X[~far] / unit, y[~far]).predict(X[far] / unit)
    byhand = np.sqrt(np.mean((plain - both) ** 2)) / y[~far].std()
    assert apart[NAMES.index(RIDGE), 0] == pytest.approx(byhand, rel=1e-6)  # a difference of two close predictions
    assert apart[NAMES.index(REFERENCE), 0] == 0.0


def test_the_weights_are_the_average_of_the_candidates_by_their_votes(rng):
    X, y = source(rng)
    est = BayesSpARRegressor().fit(X, y).adapt(X[:100] + 1.0)
    votes = est.rule_scores_.votes
    np.testing.assert_allclose(votes.sum(axis=0), 1.0, rtol=1e-12)
    assert (votes >= 0.0).all()
    taken = est.adaptation_.removed * est.adaptation_.terms.mean
    # along each direction the weight moved by the fraction that the account says
    moved = est.adaptation_.z.V.T @ (est.adaptation_.w_hat - est.adaptation_.w_proj)
    np.testing.assert_allclose(np.abs(taken), np.abs(moved), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("slope_far", "winner"), [(0.6, "kept"), (-0.3, "shrunk")])
def test_a_trend_that_goes_on_is_kept_and_one_that_turns_is_not(rng, slope_far, winner):
    """Nine cells near the origin show a weak trend; a tenth, like the target, follows it or goes the other way."""
    cells = []
    for j in range(10):
        x = rng.normal(size=(60, 1)) + (6.0 if j == 9 else 0.0)
        y = (slope_far if j == 9 else 0.3) * x + 1.0 * rng.normal(size=(60, 1))
        cells.append(Moments.of(x, y))
    votes, found = voted(cells, Moments.of(6.0 + rng.normal(size=(50, 1))))
    kept, shrunk = votes[RIDGE], votes[STRONGEST]
    assert kept > 10.0 * shrunk if winner == "kept" else shrunk > kept
    assert found.held_out[-1] == pytest.approx(0.1)


def test_votes_fall_with_the_held_out_error_and_with_the_distance_of_the_bold():
    ratios, fully = np.ones((2, 3, len(NAMES), 1))
    near = np.zeros((len(NAMES), 1))
    before = votes_of(NAMES, ratios, fully, near)
    ratios[:, NAMES.index(SPAR)] = 2.0
    assert votes_of(NAMES, ratios, fully, near)[NAMES.index(SPAR), 0] < 0.01 * before[NAMES.index(SPAR), 0]
    far = near.copy()
    far[[NAMES.index(RIDGE), NAMES.index(STRONGEST)]] = 30.0
    after = votes_of(NAMES, np.ones_like(ratios), fully, far)
    assert after[NAMES.index(RIDGE), 0] < 1e-6
    assert after[NAMES.index(STRONGEST), 0] > before[NAMES.index(STRONGEST), 0]  # to shrink more is never bold


def test_success_near_by_says_little_of_what_lies_further_and_failure_all():
    ratios, fully = np.ones((2, 3, len(NAMES), 1))
    near, ridge = np.zeros((len(NAMES), 1)), NAMES.index(RIDGE)
    odds = []
    for ratio in (0.8, 1.25):
        ratios[:, ridge] = ratio
        votes = [votes_of(NAMES, ratios, share * fully, near) for share in (1.0, 0.5, 0.0)]
        odds.append([vote[ridge, 0] / vote[NAMES.index(REFERENCE), 0] for vote in votes])
    np.testing.assert_allclose(odds[0], [0.8**-8, 0.8**-4, 1.0], rtol=1e-12)
    np.testing.assert_allclose(odds[1], 1.25**-8.0, rtol=1e-12)


def test_how_far_a_candidate_was_tested_is_a_share(rng):
    X, y = source(rng)
    scores = BayesSpARRegressor().fit(X, y).adapt(X[:100] + 1.0).rule_scores_
    assert scores.tested.shape == scores.ratios.shape
    assert ((scores.tested >= 0.0) & (scores.tested <= 1.0)).all()


def test_a_direction_that_is_quiet_in_the_source_and_loud_in_the_target_goes(rng):
    """Every candidate does as well on what is held out of the source: the units and the distance have to tell."""
    X = rng.normal(size=(400, 3)) * [1.0, 1.0, 0.01]
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=400)
    Z = rng.normal(size=(200, 3)) * [1.0, 1.0, 10.0]
    est = BayesSpARRegressor().fit(X, y)
    before = np.mean((est.predict(Z) - Z @ [1.0, 2.0, 0.0]) ** 2)
    est.adapt(Z)
    assert np.mean((est.predict(Z) - Z @ [1.0, 2.0, 0.0]) ** 2) < 0.01 * before


def test_a_source_without_cells_or_with_one_uses_the_fixed_average_and_says_so(shift):
    alone = BayesSpARRegressor().fit_moments(Moments.of(shift.X, shift.y)).adapt(shift.Z)
    few = BayesSpARRegressor().fit(shift.X[:8], shift.y[:8]).adapt(shift.Z)
    for est, why in ((alone, NO_ROWS), (few, TOO_FEW)):
        assert est.rule_scores_.why == why
        assert SPAR not in est.rule_scores_.names
        assert np.isnan(est.rule_scores_.scores).all()
        assert f"RuleScores({why}; target-ridge/10: " in repr(est.rule_scores_)
        assert est.rule_scores_.best in est.rule_scores_.summary


def test_with_a_fixed_rule_nothing_more_than_the_moments_is_kept(shift):
    est = BayesSpARRegressor(rule="positive-part", c=3.0).fit(shift.X, shift.y)
    assert est._cells is None
    assert est.adapt(shift.Z).strength_ == 3.0
    assert est.rule_scores_ is None


@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_the_votes_do_not_depend_on_the_units(rng, size):
    X, y = source(rng)
    Z = X[:200] * 2.0
    plain = BayesSpARRegressor().fit(X, y).adapt(Z)
    other = BayesSpARRegressor().fit(size * X, size * y).adapt(size * Z)
    np.testing.assert_allclose(other.rule_scores_.ratios, plain.rule_scores_.ratios, rtol=1e-6)
    np.testing.assert_allclose(other.rule_scores_.votes, plain.rule_scores_.votes, rtol=1e-5)


def test_each_output_has_votes_of_its_own(shifts):
    both = shifts(3, outputs=2)
    together_ = BayesSpARRegressor().fit(both.X, both.y).adapt(both.Z)
    for k in range(2):
        alone = BayesSpARRegressor().fit(both.X, both.y[:, k]).adapt(both.Z)
        np.testing.assert_allclose(together_.rule_scores_.votes[:, k], alone.rule_scores_.votes[:, 0], rtol=1e-6)
        np.testing.assert_allclose(together_.coef_[k], alone.coef_, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("labels", ["exact", "constant"])
def test_labels_that_are_fitted_perfectly_leave_nothing_to_choose(rng, labels):
    X, _ = source(rng)
    y = X @ np.ones(4) if labels == "exact" else np.ones(len(X))
    est = BayesSpARRegressor().fit(X, y).adapt(X[:50] + 3.0)
    assert np.isfinite(est.rule_scores_.ratios).all()
    assert np.isfinite(est.rule_scores_.votes).all()
    np.testing.assert_allclose(
        est.predict(X[:50] + 3.0), (X[:50] + 3.0) @ np.ones(4) if labels == "exact" else 1.0, rtol=1e-4
    )


def test_where_too_few_rows_are_left_the_rule_of_the_paper_has_no_vote(rng):
    X = rng.normal(size=(70, 60))
    est = BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=70)).adapt(X + 1.0)
    votes = dict(zip(est.rule_scores_.names, est.rule_scores_.votes[:, 0], strict=True))
    assert votes[SPAR] == 0.0
    assert np.isfinite(est.coef_).all()


def test_weights_of_zero_are_absent_rows_whatever_they_hold(rng):
    X, y = source(rng)
    X[::7], weight = np.nan, np.where(np.arange(600) % 7 == 0, 0.0, 1.0)
    there = weight > 0.0
    est = BayesSpARRegressor().fit(X, y, sample_weight=weight).adapt(X[1:3])
    assert est.rule_scores_.names[-2:] == ("ridge-loo", "ridge-cv")
    assert np.isfinite(est.predict(X[there])).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_loader_of_tensors_is_put_into_cells_as_arrays_are(rng, dtype):
    torch = pytest.importorskip("torch")
    X, y = (part.astype(dtype) for part in source(rng, n=3000))
    batches = [(X[i : i + 500], y[i : i + 500]) for i in range(0, 3000, 500)]
    arrays = BayesSpARRegressor().fit_batches(iter(batches))
    tensors = BayesSpARRegressor().fit_batches([tuple(torch.tensor(part) for part in batch) for batch in batches])
    for one, other in zip(arrays._cells.occupied(), tensors._cells.occupied(), strict=True):
        np.testing.assert_allclose(gram(other), gram(one), rtol=1e-9)
        np.testing.assert_array_equal(other.eps, one.eps)
    votes = [est.adapt(X[:50]).rule_scores_.votes for est in (tensors, arrays)]
    np.testing.assert_allclose(*votes, rtol=1e-6)


def test_the_reference_is_the_measure_of_all_others(rng):
    X, y = source(rng)
    scores = BayesSpARRegressor().fit(X, y).adapt(X[:80] * 3.0).rule_scores_
    np.testing.assert_array_equal(scores.ratios[:, scores.names.index(REFERENCE)], 1.0)
    np.testing.assert_array_equal(scores.distances[scores.names.index(REFERENCE)], 0.0)

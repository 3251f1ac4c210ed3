"""Extrapolation cross-validation: which weights to trust on a target, asked of the source itself, without a label.

Hold out the part of the source that looks most like the target, fit on the rest, adapt to the held-out part as if it
were a target, and see how well each candidate does there. All of it from moments: the squared error of weights on
labelled moments is the length of their root times ``[w, -1]``, so no row is needed.

No single split says much, so nobody wins outright: the candidates are averaged (``votes``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from pyspar.core.adapt import Adaptation, share_moved, share_taken, spectrum_about
from pyspar.core.arrays import Matrix, Vector, root_sum_squares
from pyspar.core.candidates import REFERENCE, SPAR, Asked, candidate_weights
from pyspar.core.cells import both_sides
from pyspar.core.mixture import Mixture, lengths
from pyspar.core.moments import Moments
from pyspar.core.ridge import RidgeBelief, ridge_belief
from pyspar.core.risk import Terms
from pyspar.core.scaling import in_units_of, inverse, spread_of_features
from pyspar.core.spectrum import Spectrum
from pyspar.core.votes import RuleScores, near_ridge, votes_of

SHARES = (0.3, 0.2, 0.1)
"""How much of the source is held out, split by split."""

NO_ROWS = "as fixed, because the source's rows were not there to be held out"
TOO_FEW = "as fixed, because the source has too few groups of rows to hold some out"

_STEADY = 0.05
"""Share of the features' mean variance that is added to the scatter before it is inverted."""


def average(
    source: Moments,
    belief: RidgeBelief,
    target: Moments,
    z: Spectrum,
    terms: Terms,
    cells: Sequence[Moments],
    *,
    scale: bool,
    alpha: float,
    asked: Asked | None = None,
) -> tuple[Matrix, RuleScores]:
    """Return the averaged weights for a target, features x outputs, and the votes.

    ``source``, ``target`` and ``cells``, the parts of a partition of the source (none: it cannot be asked), are in the
    units of ``belief``; ``z`` is the spectrum of the target about its mean, ``terms`` what the belief says along it.
    ``scale`` says whether a fit on part of the source measures features in spreads of that part.
    """
    found = candidate_weights(source, belief, target, z, alpha=alpha, asked=asked)
    splits, shares = _splits(source, cells, target)
    if not splits:
        found.pop(SPAR, None)  # unlike ridge it has no bound of its own, and nothing here that would show it
    names = tuple(found)
    there = Mixture.on(found.values(), source, belief, target)
    distances = there.apart(names.index(REFERENCE))
    ratios, tested = np.zeros((2, len(splits), *distances.shape))
    trials = []
    for split, (rest, held) in enumerate(splits):
        errors, trial = held_out(rest, held, names, fit_intercept=belief.centred, scale=scale, alpha=alpha, asked=asked)
        trials.append(trial)
        apart = trial.apart(names.index(REFERENCE))
        ratios[split] = _ratio(errors, names)
        tested[split] = np.divide(apart, distances, out=np.ones_like(apart), where=apart < distances)
    votes, kept = near_ridge(
        names, votes_of(names, ratios, tested, distances), there, trials, _doubt(belief, terms, target, there)
    )
    why = "by extrapolation cross-validation" if splits else TOO_FEW if cells else NO_ROWS
    return there.of(votes), RuleScores(names, ratios, tested, distances, votes, kept, shares, why)


def moved_to(found: Adaptation, w: Matrix) -> Adaptation:
    """Return the adaptation that changes the weights to ``w``; what it did to each direction is read off them.

    An average may also lengthen a weight. That moves it, which the risks count, but takes nothing away.
    """
    moved = share_moved(found.terms.mean, found.z.V.T @ w)
    return replace(found, w_proj=w, removed=share_taken(moved), moved=moved)


def held_out(
    rest: Moments,
    held: Moments,
    names: Sequence[str],
    *,
    fit_intercept: bool,
    scale: bool,
    alpha: float,
    asked: Asked | None = None,
) -> tuple[Matrix, Mixture]:
    """Fit on the rest and adapt to the features of the held-out part; return RMSEs, candidates x outputs, and mixture.

    A candidate that the rest has too few rows for has an infinite error, and so no vote.
    """
    d = rest.n_features
    spread = spread_of_features(rest, fit_intercept=fit_intercept) if scale else np.ones(d)
    rest, held = in_units_of(rest, spread), in_units_of(held, spread)
    belief = ridge_belief(rest, fit_intercept=fit_intercept)
    there = held.without_outputs()
    z = spectrum_about(there, belief.x_mean)
    found = candidate_weights(rest, belief, there, z, alpha=alpha, asked=asked)
    missing = np.array([name not in found for name in names])[:, None]
    mixture = Mixture.on((found.get(name, found[REFERENCE]) for name in names), rest, belief, there)
    root = held.root_about(np.concatenate([belief.x_mean, belief.y_mean]))
    errors = lengths(root[:, :d], mixture.weights, root[:, d:])
    return np.where(missing, np.inf, errors / np.sqrt(held.weight)), mixture


def likeness(source: Moments, cells: Sequence[Moments], target: Moments) -> Vector:
    """Return how much each cell looks like the target: the mean over its rows of a linear discriminant.

    The discriminant is that of source against target, with their mean scatter, in units of the source's spread.
    """
    spread = spread_of_features(source, fit_intercept=True)
    x, z = in_units_of(source.without_outputs(), spread), in_units_of(target.without_outputs(), spread)
    root = np.vstack([part.root_about(None) / np.sqrt(2.0 * part.weight) for part in (x, z)])
    scatter = root.T @ root
    varying = max(int((spread > 0.0).sum()), 1)
    scatter.flat[:: len(scatter) + 1] += max(_STEADY * float(np.trace(scatter)) / varying, 1e-300)
    slope = np.linalg.solve(scatter, z.mean - x.mean)
    heads = np.array([cell.root[0, : len(spread) + 1] for cell in cells])
    means = heads[:, 1:] / heads[:, :1] * inverse(spread)
    return np.asarray((means - x.mean) @ slope)


def _splits(source: Moments, cells: Sequence[Moments], target: Moments) -> tuple[list[tuple[Moments, Moments]], Vector]:
    """Return pairs of what is left and what is held out, and how much the latter is of the source."""
    if len(cells) < 2:
        return [], np.zeros(0)
    order = np.argsort(-likeness(source, cells, target), kind="stable")
    weights = np.array([cells[j].weight for j in order])
    cuts = _cuts(weights, SHARES)
    bounds = [0, *sorted(cuts), len(cells)]
    sides = both_sides([[cells[j] for j in order[a:b]] for a, b in pairwise(bounds)])
    places = [bounds.index(cut) for cut in cuts]
    splits = [sides[place - 1][::-1] for place in places]
    return splits, np.array([weights[:cut].sum() / weights.sum() for cut in cuts])


def _doubt(belief: RidgeBelief, terms: Terms, target: Moments, there: Mixture) -> Vector:
    """Return the squared error that a belief expects of its mean on a row of the target, in spreads of the labels."""
    with np.errstate(over="ignore"):
        unknown = root_sum_squares(terms.lam[:, None] * terms.std) / np.sqrt(target.weight)
        return np.asarray(
            (unknown / there.spread) ** 2 + (1.0 + belief.mean_share) * (belief.sigma / there.spread) ** 2
        )


def _cuts(weights: Vector, shares: Sequence[float]) -> list[int]:
    """Return after which cell to cut for each share, each side keeping at least one, without repeats."""
    cumulated = np.cumsum(weights) / weights.sum()
    cuts = [int(np.argmin(np.abs(cumulated - share))) + 1 for share in shares]
    return list(dict.fromkeys(cut for cut in cuts if cut < len(weights)))


def _ratio(errors: Matrix, names: Sequence[str]) -> Matrix:
    """Return errors relative to the reference; what is exact up to rounding is as good as anything else that is."""
    errors = np.maximum(errors, 1e-9 * np.where(np.isfinite(errors), errors, 0.0).max(axis=0) + 1e-300)
    return np.asarray(errors / errors[names.index(REFERENCE)])

"""Extrapolation cross-validation: which weights to trust on a target, asked of the source itself, without a label.

Hold out the part of the source that looks most like the target, fit on the rest, adapt to the held-out part as if it
were a target, and see how well each candidate does there. All of it from moments: the squared error of weights on
labelled moments is the length of their root times ``[w, -1]``, so no row is needed.

No single split says much, so nobody wins outright: the candidates are averaged, each with a vote that falls as a power
of its held-out error. Where a candidate departs further from the others on the target than it did where it was tested,
its success there counts for less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from pyspar.core.adapt import Adaptation, spectrum_about
from pyspar.core.arrays import Matrix, Vector, root_sum_squares
from pyspar.core.candidates import CAREFUL, PENALTIES, REFERENCE, RIDGE, SHRUNK, SPAR, candidate_weights
from pyspar.core.cells import together
from pyspar.core.moments import Moments
from pyspar.core.ridge import RidgeBelief, ridge_belief
from pyspar.core.scaling import in_units_of, spread_of_features
from pyspar.core.spectrum import Spectrum

SHARES = (0.3, 0.2, 0.1)
"""How much of the source is held out, split by split."""

PRIOR = dict.fromkeys(PENALTIES, 1.0) | {"target-ridge*100": 0.5, SPAR: 2.0, RIDGE: 1.0, SHRUNK: 1.0, CAREFUL: 4.0}
"""The votes before anything is held out; the most has what one would use without a target."""

POWER = 8.0
"""A candidate that errs twice as much has one vote instead of 2^8; one that errs 5 % more has two thirds."""

FAR = 3.0
"""How many spreads of the labels a candidate may differ from the reference on the target before that counts."""

NO_ROWS = "as fixed, because the source's rows were not there to be held out"
TOO_FEW = "as fixed, because the source has too few groups of rows to hold some out"

_BOLD = ("target-ridge/10", SPAR, RIDGE, SHRUNK, CAREFUL)
"""Candidates that shrink less than the reference where the target is loud."""

_STEADY = 0.05
"""Share of the features' mean variance that is added to the scatter before it is inverted."""


@dataclass(frozen=True, eq=False)
class RuleScores:
    """What each candidate scored on the held-out parts of the source, and how much it counts.

    Attributes
    ----------
    names : tuple of str
    ratios : array of shape (splits, candidates, outputs)
        The held-out RMSE relative to that of "target-ridge", infinite for a candidate that the rest has too few rows
        for; no splits where the source cannot be asked.
    tested : array of shape (splits, candidates, outputs)
        How far from "target-ridge" the candidate's predictions were where it was held out, in distances on the target;
        at most one.
    distances : array of shape (candidates, outputs)
        How far the candidate's predictions for the target are from those of "target-ridge", in spreads of the labels.
    votes : array of shape (candidates, outputs)
        The share of each candidate in the weights; they sum to one.
    held_out : array of shape (splits,)
        How much of the source was held out in each split.
    why : str
        How the votes came about, in words.
    """

    names: tuple[str, ...]
    ratios: Matrix
    tested: Matrix
    distances: Matrix
    votes: Matrix
    held_out: Vector
    why: str

    @property
    def scores(self) -> Matrix:
        """The geometric mean of the ratios over the splits, candidates x outputs; NaN where there are none."""
        if not len(self.ratios):
            return np.full(self.votes.shape, np.nan)
        return np.asarray(np.exp(np.log(self.ratios).mean(axis=0)))

    @property
    def best(self) -> str:
        """The candidate with the most votes, over all outputs."""
        return self.names[int(np.argmax(self.votes.mean(axis=1)))]

    @property
    def summary(self) -> str:
        """What the weights are, in words."""
        share = self.votes.mean(axis=1).max()
        return f"an average {self.why}, {share:.0%} of it {self.best}"

    def __repr__(self) -> str:
        rows = zip(self.names, self.votes.mean(axis=1), self.scores.mean(axis=1), strict=True)
        table = ", ".join(f"{name}: {vote:.0%} ({score:.3g})" for name, vote, score in rows)
        return f"RuleScores({self.why}; {table})"


def average(
    source: Moments,
    belief: RidgeBelief,
    target: Moments,
    z: Spectrum,
    cells: Sequence[Moments],
    *,
    scale: bool,
    alpha: float,
    caution: Vector | None = None,
) -> tuple[Matrix, RuleScores]:
    """Return the averaged weights for a target, features x outputs, and the votes.

    ``source``, ``target`` and ``cells``, the parts of a partition of the source (none: it cannot be asked), are in the
    units of ``belief``; ``z`` is the spectrum of the target about its mean. ``scale`` says whether a fit on part of the
    source measures features in spreads of that part.
    """
    found = candidate_weights(source, belief, target, z, alpha=alpha, caution=caution)
    splits, shares = _splits(source, cells, target)
    if not splits:
        found.pop(SPAR, None)  # unlike ridge it has no bound of its own, and nothing here that would show it
    names = tuple(found)
    weights = np.stack([found[name] for name in names])
    distances = _distances(weights, names, source, belief, target)
    ratios, tested = np.zeros((2, len(splits), *distances.shape))
    for split, (rest, held) in enumerate(splits):
        errors, there = held_out(
            rest, held, names, fit_intercept=belief.centred, scale=scale, alpha=alpha, caution=caution
        )
        ratios[split] = _ratio(errors, names)
        tested[split] = np.divide(there, distances, out=np.ones_like(there), where=there < distances)
    votes = votes_of(names, ratios, tested, distances)
    why = "by extrapolation cross-validation" if splits else TOO_FEW if cells else NO_ROWS
    scores = RuleScores(names, ratios, tested, distances, votes, shares, why)
    return np.asarray(np.einsum("adk,ak->dk", weights, votes)), scores


def moved_to(found: Adaptation, w: Matrix) -> Adaptation:
    """Return the adaptation that changes the weights to ``w``; what it took of each direction is read off them."""
    after = found.z.V.T @ w
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        taken = np.abs(1.0 - after / found.terms.mean)
    # A weight that was zero before has no fraction; one that was nearly zero must not overflow when squared.
    taken = np.where(found.terms.mean == 0.0, 0.0, np.minimum(taken, 1e6))
    return replace(found, w_proj=w, removed=taken)


def votes_of(names: Sequence[str], ratios: Matrix, tested: Matrix, distances: Matrix) -> Matrix:
    """Return the share of each candidate, candidates x outputs.

    ``PRIOR * (ratio * max(1, distance / FAR)) ** -POWER``, the second factor for those that shrink less than the
    reference, divided by its sum. The logarithm of a ratio below one counts by how far the candidate was ``tested``.

    >>> alike, fully, near = np.ones((1, 2, 1)), np.ones((1, 2, 1)), np.zeros((2, 1))
    >>> votes_of(("target-ridge", "ridge"), alike, fully, near).ravel().round(3)
    array([0.5, 0.5])
    >>> votes_of(("target-ridge", "ridge"), alike * [[[1.0], [2.0]]], fully, near).ravel().round(3)
    array([0.996, 0.004])
    >>> votes_of(("target-ridge", "ridge"), alike * [[[1.0], [0.5]]], 0.0 * fully, near).ravel().round(3)
    array([0.5, 0.5])
    """
    log = np.log(ratios)
    log = np.maximum(log, 0.0) + tested * np.minimum(log, 0.0)
    log = log.mean(axis=0) if len(ratios) else np.zeros(distances.shape)
    bold = np.array([name in _BOLD for name in names])[:, None]
    log = log + np.where(bold, np.log(np.maximum(distances / FAR, 1.0)), 0.0)
    vote = np.array([PRIOR[name] for name in names])[:, None] * np.exp(-POWER * (log - log.min(axis=0)))
    return np.asarray(vote / vote.sum(axis=0))


def held_out(
    rest: Moments,
    held: Moments,
    names: Sequence[str],
    *,
    fit_intercept: bool,
    scale: bool,
    alpha: float,
    caution: Vector | None = None,
) -> tuple[Matrix, Matrix]:
    """Fit on the rest and adapt to the features of the held-out part; return errors and distances there.

    Both are candidates x outputs: the RMSE, and how far the predictions are from those of the reference, in spreads of
    the labels. A candidate that the rest has too few rows for has an infinite error, and so no vote.
    """
    d = rest.n_features
    spread = spread_of_features(rest, fit_intercept=fit_intercept) if scale else np.ones(d)
    rest, held = in_units_of(rest, spread), in_units_of(held, spread)
    belief = ridge_belief(rest, fit_intercept=fit_intercept)
    there = held.without_outputs()
    z = spectrum_about(there, belief.x_mean)
    found = candidate_weights(rest, belief, there, z, alpha=alpha, caution=caution)
    missing = np.array([name not in found for name in names])[:, None]
    weights = np.stack([found.get(name, found[REFERENCE]) for name in names])
    root = held.root_about(np.concatenate([belief.x_mean, belief.y_mean]))
    errors = np.array([root_sum_squares(root[:, :d] @ w - root[:, d:]) for w in weights]) / np.sqrt(held.weight)
    return np.where(missing, np.inf, errors), _distances(weights, names, rest, belief, there)


def likeness(source: Moments, cells: Sequence[Moments], target: Moments) -> Vector:
    """Return how much each cell looks like the target: the mean over its rows of a linear discriminant.

    The discriminant is that of source against target, with their mean scatter, in units of the source's spread.
    """
    spread = spread_of_features(source, fit_intercept=True)
    x, z = in_units_of(source.without_outputs(), spread), in_units_of(target.without_outputs(), spread)
    root = np.vstack([part.root_about(None) / np.sqrt(2.0 * part.weight) for part in (x, z)])
    scatter = root.T @ root
    varying = max(int((spread > 0.0).sum()), 1)
    scatter[np.diag_indices_from(scatter)] += max(_STEADY * float(np.trace(scatter)) / varying, 1e-300)
    slope = np.linalg.solve(scatter, z.mean - x.mean)
    means = np.array([in_units_of(cell.without_outputs(), spread).mean for cell in cells])
    return np.asarray((means - x.mean) @ slope)


def _splits(source: Moments, cells: Sequence[Moments], target: Moments) -> tuple[list[tuple[Moments, Moments]], Vector]:
    """Return pairs of what is left and what is held out, and how much the latter is of the source."""
    if len(cells) < 2:
        return [], np.zeros(0)
    order = np.argsort(-likeness(source, cells, target), kind="stable")
    weights = np.array([cells[j].weight for j in order])
    cuts = _cuts(weights, SHARES)
    bounds = [0, *sorted(cuts), len(cells)]
    chunks = [together([cells[j] for j in order[a:b]]) for a, b in pairwise(bounds)]
    places = [bounds.index(cut) for cut in cuts]
    splits = [(together(chunks[place:]), together(chunks[:place])) for place in places]
    return splits, np.array([weights[:cut].sum() / weights.sum() for cut in cuts])


def _cuts(weights: Vector, shares: Sequence[float]) -> list[int]:
    """Return after which cell to cut for each share, each side keeping at least one, without repeats."""
    cumulated = np.cumsum(weights) / weights.sum()
    cuts = [int(np.argmin(np.abs(cumulated - share))) + 1 for share in shares]
    return list(dict.fromkeys(cut for cut in cuts if cut < len(weights)))


def _ratio(errors: Matrix, names: Sequence[str]) -> Matrix:
    """Return errors relative to the reference; what is exact up to rounding is as good as anything else that is."""
    errors = np.maximum(errors, 1e-9 * np.where(np.isfinite(errors), errors, 0.0).max(axis=0) + 1e-300)
    return np.asarray(errors / errors[names.index(REFERENCE)])


def _distances(weights: Matrix, names: Sequence[str], source: Moments, belief: RidgeBelief, target: Moments) -> Matrix:
    """Return how far predictions for a target are from those of the reference, in spreads of the source's labels."""
    d = source.n_features
    spread = root_sum_squares(source.root_about(None)[:, d:]) / np.sqrt(source.weight)  # about their mean in any case
    there = target.without_outputs().root_about(belief.x_mean)
    apart = weights - weights[names.index(REFERENCE)]
    length = np.array([root_sum_squares(there @ w) for w in apart]) / np.sqrt(target.weight)
    return np.asarray(length / np.where(spread > 0.0, spread, np.inf))

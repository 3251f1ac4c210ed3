"""Votes: how much each candidate counts in the weights for a target, and how far they may lead away from ridge.

Nobody wins outright: each candidate has a vote that falls as a power of its held-out error, and what it did well counts
as far as it was tested. Ridge at the penalty of leave-one-out is what one would use without a target. The average may
depart from its predictions half as far as it did where that could be tested, and beyond that only to bring
predictions back that are longer than labels usually are. Where ridge is sure of itself it may not be contradicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.candidates import CAREFUL, PENALTIES, PLAIN, RIDGE, SHRUNK, SPAR
from pyspar.core.mixture import Mixture

PRIOR = dict.fromkeys(PENALTIES, 1.0) | {"target-ridge*100": 0.5, SPAR: 2.0, RIDGE: 1.0, SHRUNK: 1.0}
PRIOR |= {CAREFUL: 4.0, PLAIN: 0.0}
"""The votes before anything is held out. Plain ridge has none, but is where the average starts from."""

POWER = 8.0
"""A candidate that errs twice as much has one vote instead of 2^8; one that errs 5 % more has two thirds."""

FAR = 3.0
"""How many spreads of the labels a candidate may differ from the reference on the target before that counts."""

BEYOND = 0.5
"""How far the average may depart from ridge on the target, in departures where it was tested."""

BACK = 2.0
"""How much further, for each spread of the labels by which it shortens predictions."""

LONG = 1.5
"""How many spreads of the labels predictions must be long, root mean square, before that counts."""

SURE = 1.0
"""Ridge is sure of itself where it expects to err on the target by less than so many spreads of the labels."""

CONTRADICTED = 1.3
"""Then the average goes no further than to where ridge expects it to err so many times as much."""

_BOLD = ("target-ridge/10", SPAR, RIDGE, SHRUNK, CAREFUL, PLAIN)
"""Candidates that shrink less than the reference where the target is loud."""


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
    kept : array of shape (outputs,)
        How much of the way from "ridge-cv" to the average by held-out errors the weights go; one is all of it.
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
    kept: Vector
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


def votes_of(names: Sequence[str], ratios: Matrix, tested: Matrix, distances: Matrix) -> Matrix:
    """Return the share of each candidate by its held-out errors, candidates x outputs.

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
    prior = np.array([PRIOR[name] for name in names])[:, None]
    log = np.where(prior > 0.0, log, np.inf)
    vote = prior * np.exp(-POWER * (log - log.min(axis=0)))
    return np.asarray(vote / vote.sum(axis=0))


def near_ridge(
    names: Sequence[str], votes: Matrix, there: Mixture, trials: Sequence[Mixture], doubt: Vector
) -> tuple[Matrix, Vector]:
    """Return votes that lead no further from ridge than was tested, and how much of the way they go, per output.

    ``there`` is the target, ``trials`` are the held-out parts, ``doubt`` is the squared error that the ridge belief
    expects of its own mean on a row of the target, in squared spreads of the labels. Where leave-one-out could not be
    asked the votes stay.
    """
    if PLAIN not in names:
        return votes, np.ones(votes.shape[1])
    ridge = np.zeros_like(votes)
    ridge[names.index(PLAIN)] = 1.0
    way = votes - ridge
    tested = np.max([np.zeros(votes.shape[1]), *(trial.length(way) for trial in trials)], axis=0)
    back = np.maximum(there.length(ridge) - np.maximum(there.length(votes), LONG), 0.0)
    allowed, apart = BEYOND * tested + BACK * back, there.length(way)
    off = ridge.copy()
    off[names.index(RIDGE)] -= 1.0
    allowed = np.minimum(allowed, _not_contradicted(off, way, there, doubt))
    kept = np.divide(allowed, apart, out=np.ones_like(apart), where=apart > allowed)
    return ridge + kept * way, kept


def _not_contradicted(off: Matrix, way: Matrix, there: Mixture, doubt: Vector) -> Vector:
    """Return how far one may go where the belief is sure of itself; infinite where it is not.

    A belief with mean m expects of weights w the squared error ``|w - m|**2 + doubt``. At a distance t from ridge along
    the way that is ``C + 2 B t + t**2``, and shall be at most ``CONTRADICTED**2 * C``.
    """
    apart, start = there.length(way), there.length(off)
    with np.errstate(over="ignore", invalid="ignore"):
        sure = (apart > 0.0) & (start**2 + doubt <= SURE**2)
    if not sure.any():
        return np.full(len(apart), np.inf)
    start, doubt = np.where(sure, start, 0.0), np.where(sure, doubt, 0.0)
    step = way / np.where(sure, apart, 1.0)
    B = 0.5 * (there.length(off + step) ** 2 - start**2 - 1.0)
    furthest = np.sqrt(B**2 + (CONTRADICTED**2 - 1.0) * (start**2 + doubt)) - B
    return np.where(sure, furthest, np.inf)

"""Mixture: candidate weights and the rows they are for, and how long the predictions of any mixture of them are there.

Lengths are root mean squares about the source's mean prediction, in spreads of the source's labels: one is as far as
labels of the source usually lie from their mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pyspar.core.arrays import Matrix, Vector, root_sum_squares
from pyspar.core.moments import Moments
from pyspar.core.ridge import RidgeBelief


@dataclass(frozen=True, eq=False)
class Mixture:
    """Candidates by weights, candidates x features x outputs; rows by a root of their moments; the labels' spread."""

    weights: Matrix
    root: Matrix
    spread: Vector

    @classmethod
    def on(cls, weights: Iterable[Matrix], source: Moments, belief: RidgeBelief, rows: Moments) -> Mixture:
        """Return the mixture of weights for rows; ``belief`` is that of the labelled source."""
        d = source.n_features
        spread = root_sum_squares(source.root_about(None)[:, d:]) / np.sqrt(source.weight)  # about their mean, always
        root = rows.without_outputs().root_about(belief.x_mean) / np.sqrt(rows.weight)
        return cls(np.stack(list(weights)), root, np.where(spread > 0.0, spread, np.inf))

    def of(self, shares: Matrix) -> Matrix:
        """Return the weights of a mixture, features x outputs; ``shares`` is candidates x outputs."""
        return np.asarray(np.einsum("adk,ak->dk", self.weights, shares))

    def length(self, shares: Matrix) -> Vector:
        """Return how long a mixture's predictions are, per output; shares that sum to zero give a distance."""
        return self._length(self.of(shares))

    def apart(self, place: int) -> Matrix:
        """Return how far each candidate's predictions are from those of the one at ``place``, candidates x outputs."""
        return np.asarray(lengths(self.root, self.weights - self.weights[place]) / self.spread)

    def _length(self, w: Matrix) -> Vector:
        return np.asarray(root_sum_squares(self.root @ w) / self.spread)


def lengths(root: Matrix, weights: Matrix, outputs: Matrix | None = None) -> Matrix:
    """Return how long the predictions of each candidate are, less the outputs, in one product: candidates x outputs."""
    count, d, k = weights.shape
    found = root @ weights.swapaxes(0, 1).reshape(d, count * k)
    if outputs is not None:
        found -= np.tile(outputs, count)
    return root_sum_squares(found).reshape(count, k)

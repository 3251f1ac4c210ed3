r"""Leave-one-out: which ridge penalty does best on rows it has not seen, asked of every row.

The evidence weighs all rows alike. A row of high leverage is an extrapolation within the source, and the error that
a ridge regression makes there when it has not seen the row is known without another fit:

.. math:: e_i^{(-i)} = \frac{e_i}{1 - h_i}, \qquad h_i = \frac1N + \sum_j \frac{\lambda_j^2}{\lambda_j^2 + k} u_{ij}^2 .

Unlike all else it needs rows, after all of them were summarised; where they are gone its candidates are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.blocks import row_slices
from pyspar.core.candidates import Asked, at_penalty, unit_of_penalties
from pyspar.core.ridge import RidgeBelief

MULTIPLES = np.logspace(-4.0, 4.0, 17)
"""The penalties that are tried, in units of the belief's own."""

MOST_ROWS = 8192
"""Of more rows than this every second, third, … is asked: the error is a mean, and a mean needs no more."""

_BLOCK_BYTES = 250_000
"""What comes of a block is looked at several times, and should stay in the cache."""

_LEAST_LEFT = 1e-6
"""A row of which less than this share is not its own doing says nothing of the others."""

_MOST_SILENT = 0.01
"""Where more of the rows than this say nothing, a penalty is so small that it cannot be asked about."""


def ask(belief: RidgeBelief, unit: Vector, X: Any, Y: Matrix, weight: Vector | None = None) -> Asked:
    """Return the penalties with the least leave-one-out error, per output.

    Once any, and once none below the belief's own: what a smaller one gains within the source it may lose beyond it.
    ``unit`` is what one multiplies a feature by to have it as the belief has it; X may be sparse.
    """
    kappa = belief.evidence.kappa
    if belief.x.rank == 0 or not np.isfinite(kappa).any():
        return Asked(np.ones(len(kappa)), np.ones(len(kappa)))
    step = -(-X.shape[0] // MOST_ROWS)
    X, Y, weight = X[::step], Y[::step], None if weight is None else weight[::step]
    lam2 = ((belief.x.lam / belief.x.lam[0]) ** 2)[:, None]
    penalties = unit_of_penalties(belief)[:, None] * MULTIPLES  # outputs x multiples
    leverage = 1.0 / (lam2 + penalties.ravel())
    largest = np.asarray(np.abs(Y - belief.y_mean).max(axis=0, initial=0.0))
    size = np.where(belief.sigma > 0.0, belief.sigma, largest)  # of an error, so that no square overflows
    size = np.where(size > 0.0, size, 1.0)
    slope = belief.x.V.T @ at_penalty(belief, 0.0) * (belief.x.lam[0] / size)  # least squares
    # An error is minus the label plus the prediction, of one row of [scores | labels] times one column of this.
    to_errors = np.vstack([np.repeat(slope, len(MULTIPLES), axis=1) * (lam2 * leverage), -_by_output(penalties)])
    # Rows times this are their coordinates along the source's directions, in units of the largest singular value.
    to_scores = (unit[:, None] * belief.x.V) / belief.x.lam[0]
    origin = (belief.x_mean @ belief.x.V) / belief.x.lam[0]
    total, silent = np.zeros((2, penalties.size))
    for some in row_slices(X.shape[0], X.shape[1] + 2 * penalties.size, _BLOCK_BYTES):
        rows = X[some].toarray() if issparse(X) else np.asarray(X[some])
        both = np.empty((len(rows), len(to_errors)))
        scores, labels = both[:, : len(lam2)], both[:, len(lam2) :]
        np.matmul(rows, to_scores, out=scores)
        scores -= origin
        np.divide(np.asarray(Y[some]) - belief.y_mean, size, out=labels)
        error = both @ to_errors
        left = np.square(scores, out=scores) @ leverage
        np.subtract(1.0 - belief.mean_share, left, out=left)
        silent += (left < _LEAST_LEFT).sum(axis=0)
        error /= np.maximum(left, _LEAST_LEFT, out=left)
        np.square(error, out=error)
        total += error.sum(axis=0) if weight is None else weight[some] @ error
    errors = np.where(silent > _MOST_SILENT * X.shape[0], np.inf, total).reshape(penalties.shape)
    larger = (MULTIPLES >= 1.0) | (kappa == 0.0)[:, None]
    return Asked(_least(np.where(larger, errors, np.inf)), _least(errors))


def _least(errors: Matrix) -> Vector:
    """Return the multiple with the least error, per output; one where none could be asked about."""
    return np.where(np.isfinite(errors).any(axis=1), MULTIPLES[np.argmin(errors, axis=1)], 1.0)


def _by_output(penalties: Matrix) -> Matrix:
    """Return outputs x penalties, one where a penalty is the output's own and zero elsewhere."""
    return np.repeat(np.eye(len(penalties)), penalties.shape[1], axis=1)

r"""Leave-one-out: how much larger the ridge penalty should be than the one of greatest evidence, asked of every row.

The evidence weighs all rows alike. A row of high leverage is an extrapolation within the source, and the error that
a ridge regression makes there when it has not seen the row is known without another fit:

.. math:: e_i^{(-i)} = \frac{e_i}{1 - h_i}, \qquad h_i = \frac1N + \sum_j \frac{\lambda_j^2}{\lambda_j^2 + k} u_{ij}^2 .

Unlike all else it needs rows, after all of them were summarised; where they are gone this candidate is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.blocks import row_slices
from pyspar.core.candidates import at_penalty
from pyspar.core.ridge import RidgeBelief

MULTIPLES = np.logspace(0.0, 4.0, 17)
"""Only larger penalties: what a smaller one gains within the source it loses beyond it."""

MOST_ROWS = 8192
"""Of more rows than this every second, third, … is asked: the error is a mean, and a mean needs no more."""

_BLOCK_BYTES = 250_000
"""What comes of a block is looked at several times, and should stay in the cache."""

_LEAST_LEFT = 1e-6
"""A row of which less than this share is not its own doing says nothing of the others."""


def caution(belief: RidgeBelief, unit: Vector, X: Any, Y: Matrix, weight: Vector | None = None) -> Vector:
    """Return the multiple of the belief's penalty with the least leave-one-out error, per output.

    ``unit`` is what one multiplies a feature by to have it as the belief has it; X may be sparse.
    """
    kappa = belief.evidence.kappa
    if belief.x.rank == 0 or not np.isfinite(kappa).any() or not kappa.any():
        return np.ones(len(kappa))
    step = -(-X.shape[0] // MOST_ROWS)
    X, Y, weight = X[::step], Y[::step], None if weight is None else weight[::step]
    lam2 = ((belief.x.lam / belief.x.lam[0]) ** 2)[:, None]
    penalties = np.where(np.isinf(kappa), 0.0, kappa)[:, None] * MULTIPLES  # outputs x multiples
    leverage = 1.0 / (lam2 + penalties.ravel())
    size = np.where(belief.sigma > 0.0, belief.sigma, 1.0)  # of an error, so that no square overflows
    slope = belief.x.V.T @ at_penalty(belief, 0.0) * (belief.x.lam[0] / size)  # least squares
    # An error is minus the label plus the prediction, of one row of [scores | labels] times one column of this.
    to_errors = np.vstack([np.repeat(slope, len(MULTIPLES), axis=1) * (lam2 * leverage), -_by_output(penalties)])
    # Rows times this are their coordinates along the source's directions, in units of the largest singular value.
    to_scores = (unit[:, None] * belief.x.V) / belief.x.lam[0]
    origin = (belief.x_mean @ belief.x.V) / belief.x.lam[0]
    total = np.zeros(penalties.size)
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
        error /= np.maximum(left, _LEAST_LEFT, out=left)
        np.square(error, out=error)
        total += error.sum(axis=0) if weight is None else weight[some] @ error
    return np.asarray(MULTIPLES[np.argmin(total.reshape(penalties.shape), axis=1)])


def _by_output(penalties: Matrix) -> Matrix:
    """Return outputs x penalties, one where a penalty is the output's own and zero elsewhere."""
    return np.repeat(np.eye(len(penalties)), penalties.shape[1], axis=1)

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
    lam = belief.x.lam / belief.x.lam[0]
    penalties = np.where(np.isinf(kappa), 0.0, kappa)[:, None] * MULTIPLES  # outputs x multiples
    kept = lam[:, None] ** 2 / (lam[:, None] ** 2 + penalties.ravel())
    slope = at_penalty(belief, 0.0)  # least squares
    along = np.repeat(belief.x.V.T @ slope, len(MULTIPLES), axis=1) * kept
    to_scores = unit[:, None] * belief.x.V  # rows times this are their coordinates along the source's directions
    origin = belief.x_mean @ belief.x.V
    leverage = kept / lam[:, None] ** 2
    size = np.repeat(np.where(belief.sigma > 0.0, belief.sigma, 1.0), len(MULTIPLES))  # so that no square overflows
    total = np.zeros(penalties.size)
    for some in row_slices(*X.shape):
        rows = X[some]
        along_rows = (rows.toarray() if issparse(rows) else np.asarray(rows)) @ to_scores - origin
        error = np.repeat(np.asarray(Y[some]) - belief.y_mean, len(MULTIPLES), axis=1) - along_rows @ along
        left = 1.0 - belief.mean_share - (along_rows / belief.x.lam[0]) ** 2 @ leverage
        part = (error / (size * np.maximum(left, _LEAST_LEFT))) ** 2
        total += part.sum(axis=0) if weight is None else weight[some] @ part
    return np.asarray(MULTIPLES[np.argmin(total.reshape(penalties.shape), axis=1)])

"""Principal component regression: least squares on the first principal components of the source.

All functions take the least-squares fit of the source about its mean, whose spectrum has the principal components.
"""

from __future__ import annotations

import numpy as np

from pyspar.core.arrays import Matrix
from pyspar.core.belief import LeastSquares
from pyspar.core.linalg import root_sum_squares


def principal_weights(fit: LeastSquares, k: int) -> Matrix:
    """Return the weights (features x outputs) of the regression on the first k components."""
    V = fit.x.V[:, :k]
    return fit.w_hat if k == fit.x.n_features else V @ (V.T @ fit.w_hat)


def count_for_share(fit: LeastSquares, share: float) -> int:
    """Return the smallest number of components that hold at least this share of the features' variance."""
    if fit.x.rank == 0:
        return 0
    energy = (fit.x.lam / fit.x.lam[0]) ** 2
    return int(np.searchsorted(np.cumsum(energy) / energy.sum(), share - 1e-12)) + 1


def count_by_gcv(fit: LeastSquares, weight: float) -> int:
    r"""Return the k with the smallest generalised cross-validation error for N rows; all outputs have the same weight.

    .. math:: \mathrm{GCV}(k) = \frac{\mathrm{RSS}_k}{(1 - (k + 1) / N)^2}

    Golub, Heath and Wahba (1979). The error is a function of the source's moments, so no row is read again.
    """
    k = np.arange(1, fit.x.rank + 1)
    k = k[k + 1 < weight]
    if k.size == 0:
        return 1
    length = root_sum_squares(fit.outputs)
    share = fit.x.lam[:, None] * (fit.x.V.T @ fit.w_hat) / np.where(length > 0, length, 1.0)
    rss = np.maximum(1.0 - np.cumsum(share**2, axis=0)[: k.size], 0.0).sum(axis=1)
    return int(k[np.argmin(rss / (1.0 - (k + 1) / weight) ** 2)])

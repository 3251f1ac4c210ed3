"""Principal component regression from moments: least squares on the first principal components of the source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.linalg import root_sum_squares
from pyspar.core.moments import Moments
from pyspar.core.spectrum import Spectrum, decompose


@dataclass(frozen=True, eq=False)
class PrincipalFit:
    """The principal components of a source, about its mean, and the regression on all of them."""

    x: Spectrum
    w_full: Matrix
    y_length: Vector
    x_mean: Vector
    y_mean: Vector
    weight: float

    def weights(self, k: int) -> Matrix:
        """Return the weights (features x outputs) of the regression on the first k components."""
        V = self.x.V[:, :k]
        return self.w_full if k == self.x.n_features else V @ (V.T @ self.w_full)

    def components_for(self, share: float) -> int:
        """Return the fewest components that hold at least this share of the features' variance."""
        if self.x.rank == 0:
            return 0
        energy = (self.x.lam / self.x.lam[0]) ** 2
        return int(np.searchsorted(np.cumsum(energy) / energy.sum(), share - 1e-12)) + 1

    def best_by_gcv(self) -> int:
        r"""Return the k with the least generalised cross-validation error, all outputs weighted alike.

        .. math:: \mathrm{GCV}(k) = \frac{\mathrm{RSS}_k}{(1 - (k + 1) / N)^2}

        Golub, Heath and Wahba (1979). The error is a function of the source's moments, so no row is read again.
        """
        k = np.arange(1, self.x.rank + 1)
        k = k[k + 1 < self.weight]
        if k.size == 0:
            return 1
        explained = self.x.lam[:, None] * (self.x.V.T @ self.w_full)
        share = explained / np.where(self.y_length > 0, self.y_length, 1.0)
        rss = np.maximum(1.0 - np.cumsum(share**2, axis=0)[: k.size], 0.0).sum(axis=1)
        return int(k[np.argmin(rss / (1.0 - (k + 1) / self.weight) ** 2)])


def principal_fit(source: Moments) -> PrincipalFit:
    """Compute the principal components of a labelled source, and regress its outputs on each component."""
    d = source.n_features
    root = source.root_about(None)
    x, solve = decompose(root[:, :d], source.column_lengths()[:d], source.eps, source.blur)
    return PrincipalFit(
        x=x,
        w_full=solve(root[:, d:]),
        y_length=root_sum_squares(root[:, d:]),
        x_mean=source.mean[:d],
        y_mean=source.mean[d:],
        weight=source.weight,
    )

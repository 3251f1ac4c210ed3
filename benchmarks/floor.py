"""fit + adapt against the floor (two products, two eigendecompositions) and the textbook reading of Algorithm 1."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from benchmarks.measure import SHAPES, interleaved, keep, shifted_pair, show
from pyspar import SpARRegressor


def floor(X, Z):
    """The least that any implementation must do: two products and two eigendecompositions, called bare."""
    np.linalg.eigh(X.T @ X)
    np.linalg.eigh(Z.T @ Z)


def textbook(X, y, Z, alpha=0.999):
    """Algorithm 1 as one would write it down: SVD of X, SVD of Z, rank, pseudoinverse."""
    _, lx, Vx = np.linalg.svd(X, full_matrices=False)
    _, lz, Vz = np.linalg.svd(Z, full_matrices=False)
    rank = np.linalg.matrix_rank(X)
    w = np.linalg.pinv(X) @ y
    sigma2 = np.mean((y - X @ w) ** 2)
    var = sigma2 * ((lz[None, :] / lx[:rank, None]) ** 2 * (Vx[:rank] @ Vz.T) ** 2).sum(axis=0)
    bias = (Vz @ w) ** 2 * lz**2
    S = bias <= chi2.ppf(alpha, 1) * var
    return w - Vz[S].T @ (Vz[S] @ w)


def main(turns: int = 7) -> None:
    rows = []
    for n, d in SHAPES:
        X, y, Z = shifted_pair(n, d)

        def ours(X=X, y=y, Z=Z):
            return SpARRegressor().fit(X, y).adapt(Z)

        seconds = interleaved({"floor": lambda X=X, Z=Z: floor(X, Z), "ours": ours}, turns)
        slow = interleaved({"textbook": lambda X=X, y=y, Z=Z: textbook(X, y, Z), "ours": ours}, 5)
        plain = SpARRegressor(fit_intercept=False).fit(X, y).adapt(Z).coef_
        differ = float(np.abs(plain - textbook(X, y, Z)).max() / np.abs(plain).max())
        rows.append(
            [
                f"{n:,} x {d}",
                seconds["ours"],
                seconds["ours"] / seconds["floor"],
                slow["textbook"] / slow["ours"],
                differ,
            ]
        )
    header = ["rows x features", "ours, s", "ours / floor", "textbook / ours", "largest difference"]
    show("fit + adapt, float64 (intercept, checks and noise estimate included)", header, rows)
    keep("floor", [dict(zip(header, row, strict=True)) for row in rows], turns=turns)


if __name__ == "__main__":
    main()

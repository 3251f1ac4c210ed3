"""Compare the time of fit + adapt with a lower bound and with a textbook implementation of Algorithm 1."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from benchmarks.measure import SHAPES, median_seconds, print_table, save_record, shifted_pair
from pyspar import SpARRegressor


def floor(X, Z):
    """Compute two products and two eigendecompositions, which every implementation needs."""
    np.linalg.eigh(X.T @ X)
    np.linalg.eigh(Z.T @ Z)


def textbook(X, y, Z, alpha=0.999):
    """Return the weights of Algorithm 1, computed with an SVD of X, an SVD of Z, a rank and a pseudoinverse."""
    _, lx, Vx = np.linalg.svd(X, full_matrices=False)
    _, lz, Vz = np.linalg.svd(Z, full_matrices=False)
    rank = np.linalg.matrix_rank(X)
    w = np.linalg.pinv(X) @ y
    sigma2 = np.mean((y - X @ w) ** 2)
    var = sigma2 * ((lz[None, :] / lx[:rank, None]) ** 2 * (Vx[:rank] @ Vz.T) ** 2).sum(axis=0)
    bias = (Vz @ w) ** 2 * lz**2
    removed = bias <= chi2.ppf(alpha, 1) * var
    return w - Vz[removed].T @ (Vz[removed] @ w)


def main(turns: int = 7) -> None:
    rows = []
    for n, d in SHAPES:
        X, y, Z = shifted_pair(n, d)

        def fit_and_adapt(X=X, y=y, Z=Z):
            return SpARRegressor().fit(X, y).adapt(Z)

        seconds = median_seconds({"floor": lambda X=X, Z=Z: floor(X, Z), "ours": fit_and_adapt}, turns)
        with_textbook = median_seconds({"textbook": lambda X=X, y=y, Z=Z: textbook(X, y, Z), "ours": fit_and_adapt}, 5)
        coef = SpARRegressor(fit_intercept=False).fit(X, y).adapt(Z).coef_
        difference = float(np.abs(coef - textbook(X, y, Z)).max() / np.abs(coef).max())
        rows.append(
            [
                f"{n:,} x {d}",
                seconds["ours"],
                seconds["ours"] / seconds["floor"],
                with_textbook["textbook"] / with_textbook["ours"],
                difference,
            ]
        )
    header = ["rows x features", "ours, s", "ours / floor", "textbook / ours", "largest difference"]
    print_table("fit + adapt, float64 (intercept, checks and noise estimate included)", header, rows)
    save_record("floor", [dict(zip(header, row, strict=True)) for row in rows], turns=turns)


if __name__ == "__main__":
    main()

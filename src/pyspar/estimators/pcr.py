"""PCRRegressor: principal component regression."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from pyspar.core.belief import LeastSquares, least_squares
from pyspar.core.moments import Moments, Solver
from pyspar.core.roots import root_sum_squares
from pyspar.estimators.base import MomentsRegressor
from pyspar.estimators.groups import sums_without_each
from pyspar.estimators.validation import Attributes, Source, is_number, linear_weights


class PCRRegressor(MomentsRegressor):
    """Principal component regression: least squares on the first principal components of the source.

    Parameters
    ----------
    n_components : "gcv", int or float, default "gcv"
        The number of components. "gcv" chooses it by generalised cross-validation on the source, or, with ``groups``
        in ``fit``, by cross-validation that leaves groups out. An int sets it, and a float is the share of the
        features' variance to retain.
    fit_intercept : bool, default True
        Whether y is centred. The components are always those of the centred features, as in scikit-learn's PCA, so
        ``PCRRegressor(k, fit_intercept=b)`` makes the same predictions as ``PCA(k)`` followed by
        ``LinearRegression(fit_intercept=b)``.
    solver : {"auto", "gram", "qr"}, default "auto"
        How the rows are summarised; see :class:`pyspar.Moments`.

    Attributes
    ----------
    coef_, intercept_
        The weights, shaped as those of scikit-learn's ``LinearRegression``.
    n_components_ : int
        The number of components in use.
    rank_, moments_, n_features_in_, feature_names_in_
        As for :class:`SpARRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import PCRRegressor
    >>> X = np.array([[0.0, 0.0], [2.0, 0.1], [4.0, -0.1], [6.0, 0.0]])
    >>> PCRRegressor(1).fit(X, [1.0, 2.0, 3.0, 4.0]).n_components_
    1
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": "no_validation",  # its range depends on the number of features
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto", "gram", "qr"})],
    }

    def __init__(self, n_components: Any = "gcv", *, fit_intercept: bool = True, solver: Solver = "auto") -> None:
        self.n_components = n_components
        self.fit_intercept = fit_intercept
        self.solver = solver

    def _solve(self, source: Source) -> Attributes:
        check_components(self.n_components, source.moments.n_features)
        fit = least_squares(source.moments, fit_intercept=True)
        if isinstance(self.n_components, str):
            folds = source.folds
            k = count_by_gcv(fit) if len(folds) < 2 else count_by_folds(fit, folds, self.fit_intercept)
        elif isinstance(self.n_components, Integral):
            k = int(self.n_components)
        else:
            k = count_for_share(fit, float(self.n_components))
        k = min(k, fit.x.rank)
        V = fit.x.V[:, :k]
        w = fit.w_hat if k == fit.x.n_features else V @ (V.T @ fit.w_hat)
        y_mean = fit.y_mean if self.fit_intercept else np.zeros_like(fit.y_mean)
        weights = linear_weights(w, y_mean - fit.x_mean @ w, source.y_ndim)
        return {"n_components_": k, "rank_": fit.x.rank, **weights}


def check_components(n_components: Any, n_features: int) -> None:
    """Raise ValueError for an invalid number of principal components."""
    if isinstance(n_components, str) and n_components == "gcv":
        return
    largest = n_features if isinstance(n_components, Integral) else 1.0
    if not (is_number(n_components) and 0 < n_components <= largest):
        raise ValueError(
            f"n_components must be 'gcv', an integer from 1 to the number of features ({n_features}), or a share of "
            f"the variance in (0, 1], got {n_components!r}"
        )


def count_for_share(fit: LeastSquares, share: float) -> int:
    """Return the smallest number of components that hold at least this share of the features' variance."""
    if fit.x.rank == 0:
        return 0
    energy = (fit.x.lam / fit.x.lam[0]) ** 2
    return int(np.searchsorted(np.cumsum(energy) / energy.sum(), share - 1e-12)) + 1


def count_by_gcv(fit: LeastSquares) -> int:
    r"""Return the k with the smallest generalised cross-validation error for N rows; all outputs have the same weight.

    .. math:: \mathrm{GCV}(k) = \frac{\mathrm{RSS}_k}{(1 - (k + 1) / N)^2}

    Golub, Heath and Wahba (1979). The error is a function of the source's moments, so no row is read again.
    """
    k = np.arange(1, fit.x.rank + 1)
    k = k[k + 1 < fit.weight]
    if k.size == 0:
        return 1
    length = root_sum_squares(fit.outputs)
    share = fit.x.lam[:, None] * (fit.x.V.T @ fit.w_hat) / np.where(length > 0, length, 1.0)
    rss = np.maximum(1.0 - np.cumsum(share**2, axis=0)[: k.size], 0.0).sum(axis=1)
    return int(k[np.argmin(rss / (1.0 - (k + 1) / fit.weight) ** 2)])


def count_by_folds(fit: LeastSquares, folds: Sequence[Moments], fit_intercept: bool) -> int:
    """Return the k with the smallest squared error on folds left out of the fit; all outputs have the same weight."""
    d, n_outputs = fit.x.n_features, fit.outputs.shape[1]
    length, squares = root_sum_squares(fit.outputs), np.zeros(d)
    for fold, others in zip(folds, sums_without_each(folds), strict=True):
        rest = least_squares(others, fit_intercept=True)
        y_mean = rest.y_mean if fit_intercept else np.zeros_like(rest.y_mean)
        root, slopes = fold.root_about(np.concatenate([rest.x_mean, y_mean])), rest.x.V.T @ rest.w_hat
        steps = np.zeros((len(root), d))  # by how much each component changes the prediction
        for output in range(n_outputs):
            steps[:, : rest.x.rank] = root[:, :d] @ rest.x.V * slopes[:, output]
            errors = root_sum_squares(root[:, d + output, None] - np.cumsum(steps, axis=1))
            squares += (errors / (length[output] if length[output] > 0.0 else 1.0)) ** 2
    return 1 + int(np.argmin(squares))

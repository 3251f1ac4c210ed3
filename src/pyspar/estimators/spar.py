"""The estimators SpARRegressor (the paper's method) and PCRRegressor (principal component regression).

Call ``fit(X, y)`` on the source, then ``adapt(Z)`` on the target, then ``predict(X)``. The estimators are thin wrappers
around the pure functions of ``pyspar.core``.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from pyspar.core.adapt import Adaptation, adapt
from pyspar.core.arrays import Matrix, squared
from pyspar.core.belief import FlatBelief, Noise, flat_belief
from pyspar.core.moments import Moments, Solver, Weights
from pyspar.core.pcr import principal_fit
from pyspar.core.prior import Prior, plain_prior
from pyspar.core.rules import chi2_rule
from pyspar.core.scaling import units_of_features
from pyspar.estimators.adaptable import AdaptableRegressor
from pyspar.estimators.base import MomentsRegressor
from pyspar.estimators.validation import (
    check_alpha,
    check_choice,
    check_components,
    warn_if_nothing_left_for_noise,
    warn_if_scales_are_too_far_apart,
    warn_if_weights_do_not_count,
)

_SOLVERS = ("auto", "gram", "qr")


class SpARRegressor(AdaptableRegressor):
    """Least squares that can be adapted to an unlabelled target: the Spectral Adapted Regressor.

    Parameters
    ----------
    alpha : float in [0, 1], default 0.999
        A target direction is removed if noise alone explains its weight at this confidence. 0 keeps least squares,
        1 removes every target direction.
    fit_intercept : bool, default True
        Centre source and target at the source mean. The paper's experiments use False.
    noise : {"mle", "unbiased", "exact"}, default "mle"
        The estimate of the noise variance. "mle" is RSS / N, as in the paper. "unbiased" is RSS / (N - rank). "exact"
        is the same with the quantile of F(1, N - rank) instead of chi-squared. With "exact", ``alpha`` is for every N
        the probability of removing a direction whose true weight is zero. With "mle" that probability is smaller, for
        example 0.996 for N = 100 and 20 directions, and 0.869 for N = 40 and 30 directions. See
        ``pyspar.theory.level_with_mle``.
    solver : {"auto", "gram", "qr"}, default "auto"
        How the rows are summarised; see :class:`pyspar.Moments`.
    weights : {"counts", "importance"}, default "counts"
        The meaning of ``sample_weight``. With "counts" a weight of 2 equals two copies of the row. With "importance"
        only the ratios of the weights matter, and the number of rows is ``sum(w)**2 / sum(w**2)``.

    Attributes
    ----------
    coef_, intercept_
        The current weights, shaped as those of scikit-learn's ``LinearRegression``.
    sigma2_ : float or array of shape (K,)
        The estimated variance of the label noise.
    rank_ : int
        The rank of the source.
    moments_ : Moments
        The summary of the source. The rows are not stored.
    adaptation_ : Adaptation
        Every number of the last adaptation. Only set by ``adapt``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import SpARRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) * [2.0, 0.003]     # the second feature barely varies in the source
    >>> Z = rng.normal(size=(500, 2)) * [1.0, 6.0]       # it varies in the target
    >>> y = X @ [1.0, 0.0] + rng.normal(size=500)
    >>> est = SpARRegressor(fit_intercept=False).fit(X, y)
    >>> before = np.mean((est.predict(Z) - Z @ [1.0, 0.0]) ** 2)
    >>> after = np.mean((est.adapt(Z).predict(Z) - Z @ [1.0, 0.0]) ** 2)
    >>> bool(before > 1000 * after)
    True
    """

    def __init__(
        self,
        alpha: float = 0.999,
        *,
        fit_intercept: bool = True,
        noise: Noise = "mle",
        solver: Solver = "auto",
        weights: Weights = "counts",
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.noise = noise
        self.solver = solver
        self.weights = weights

    _belief: FlatBelief

    def _check_params(self) -> None:
        check_alpha(self.alpha)
        check_choice("noise", self.noise, ("mle", "unbiased", "exact"))
        check_choice("solver", self.solver, _SOLVERS)
        check_choice("weights", self.weights, ("counts", "importance"))

    def _warn_of_limits(self) -> None:
        warn_if_weights_do_not_count(self.moments_.weight, self.moments_.rows, self._weights)
        warn_if_nothing_left_for_noise(self._belief)
        warn_if_scales_are_too_far_apart(self._belief)

    def _solve(self) -> None:
        self._weights = self.weights
        self._belief = flat_belief(self._source, fit_intercept=bool(self.fit_intercept), noise=self.noise)
        sigma2 = squared(self._belief.sigma)
        self.sigma2_ = float(sigma2[0]) if self._y_ndim == 1 else sigma2
        self.rank_ = self._belief.x.rank
        self.reset()

    def _prior_for(self, target: Moments | None) -> Prior:
        """Return the prior of the forecasts; the paper's method has no prior."""
        source = self._source
        units = units_of_features(source, target, "target", fit_intercept=self._belief.centred, unknown=True)
        return plain_prior(units, source.n_outputs)

    def _adapt_to(self, target: Moments) -> Adaptation:
        found = adapt(self._belief, target, partial(chi2_rule, alpha=float(self.alpha)))
        self._prior = self._prior_for(target)
        self._publish(found.w_proj)
        return found

    def _unadapt(self) -> None:
        self._prior = self._prior_for(None)
        self._publish(self._belief.w_hat)

    def _publish(self, w: Matrix) -> None:
        self._set_weights(w, self._belief.y_mean - self._belief.x_mean @ w)


class PCRRegressor(MomentsRegressor):
    """Principal component regression: least squares on the first principal components of the source.

    Parameters
    ----------
    n_components : "gcv", int or float, default "gcv"
        The number of components. "gcv" chooses it by generalised cross-validation on the source, an int sets it, and a
        float is the share of the features' variance to retain.
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

    def __init__(self, n_components: Any = "gcv", *, fit_intercept: bool = True, solver: Solver = "auto") -> None:
        self.n_components = n_components
        self.fit_intercept = fit_intercept
        self.solver = solver

    def _check_params(self) -> None:
        check_choice("solver", self.solver, _SOLVERS)

    def _solve(self) -> None:
        check_components(self.n_components, self.n_features_in_)
        fit = principal_fit(self.moments_)
        if isinstance(self.n_components, str):
            k = fit.best_by_gcv()
        elif isinstance(self.n_components, Integral):
            k = int(self.n_components)
        else:
            k = fit.components_for(float(self.n_components))
        self.n_components_ = min(k, fit.x.rank)
        self.rank_ = fit.x.rank
        y_mean = fit.y_mean if self.fit_intercept else np.zeros_like(fit.y_mean)
        w = fit.weights(self.n_components_)
        self._set_weights(w, y_mean - fit.x_mean @ w)

"""SpARRegressor: the paper's method as a scikit-learn estimator."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from pyspar.core.adapt import adapt, chi2_rule
from pyspar.core.arrays import Matrix, Vector
from pyspar.core.belief import FlatBelief, Noise, Prior, flat_belief, units_of_features
from pyspar.core.moments import Moments, Solver, WeightMeaning
from pyspar.core.roots import squared
from pyspar.estimators.base import AdaptableRegressor, Attributes, linear_weights, per_output
from pyspar.estimators.validation import Confidence, Source


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
        The estimated variance of the label noise. It is zero if the residual does not exceed the rounding error of the
        features at their precision, which for float16 and float32 can be larger than the noise.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Confidence()],
        "fit_intercept": ["boolean"],
        "noise": [StrOptions({"mle", "unbiased", "exact"})],
        "solver": [StrOptions({"auto", "gram", "qr"})],
        "weights": [StrOptions({"counts", "importance"})],
    }
    _belief: FlatBelief
    _target_spread: Vector | None

    def __init__(
        self,
        alpha: float = 0.999,
        *,
        fit_intercept: bool = True,
        noise: Noise = "mle",
        solver: Solver = "auto",
        weights: WeightMeaning = "counts",
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.noise = noise
        self.solver = solver
        self.weights = weights

    def _solve(self, source: Source) -> Attributes:
        moments = source.moments.counted(self.weights)
        belief = flat_belief(moments, fit_intercept=bool(self.fit_intercept), noise=self.noise)
        return {
            "_belief": belief,
            "_weight_meaning": self.weights,
            "rank_": belief.x.rank,
            "sigma2_": per_output(squared(belief.sigma), source.y_ndim),
            **_weights_for(belief, belief.w_hat, None, source.y_ndim),
        }

    def _adapt_to(self, target: Moments) -> Attributes:
        belief = self._belief
        adaptation = adapt(belief, target, partial(chi2_rule, alpha=float(self.alpha)))
        spread = target.spread_about(belief.x_mean)
        return {"adaptation_": adaptation, **_weights_for(belief, adaptation.w_proj, spread, self._y_ndim)}

    def _unadapted(self) -> Attributes:
        return _weights_for(self._belief, self._belief.w_hat, None, self._y_ndim)

    def _prior_in(self, units: Vector) -> Prior:
        """Return a prior centred at zero. Only forecasts use it; the paper's method has no prior."""
        n_outputs = self.moments_.n_outputs
        return Prior(units, np.zeros((len(units), n_outputs)), np.zeros(n_outputs))

    def _prior_for_rows(self) -> Prior:
        source, centred = self._source, self._belief.centred
        units = units_of_features(source, self._target_spread, self._units, fit_intercept=centred, include_unseen=True)
        return self._prior_in(units)


def _weights_for(belief: FlatBelief, w: Matrix, target_spread: Vector | None, y_ndim: int) -> Attributes:
    """Return the attributes that an adaptation changes, for weights of shape (features, outputs)."""
    return {"_target_spread": target_spread, **linear_weights(w, belief.y_mean - belief.x_mean @ w, y_ndim)}

"""SpARRegressor, the paper's method, and BayesSpARRegressor, its generalisation to a ridge posterior.

``docs/derivations/method.md`` derives both, and the correction of a network's head, from one prior.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, get_args

import numpy as np
from sklearn.utils._param_validation import StrOptions

from pyspar.core.adapt import RuleName, adapt, chi2_threshold, select_rule
from pyspar.core.arrays import Matrix, Vector
from pyspar.core.belief import (
    FlatBelief,
    Noise,
    Prior,
    RidgeBelief,
    Units,
    flat_belief,
    inverse,
    ridge_belief,
    spread_about_source,
    units_of_features,
)
from pyspar.core.moments import Moments, Solver, WeightMeaning
from pyspar.core.refit import refit, scale_factor
from pyspar.estimators.base import AdaptableRegressor
from pyspar.estimators.validation import Attributes, Confidence, Source, clone_without, linear_weights, per_output

_SHARED_CONSTRAINTS = {
    "alpha": [Confidence()],
    "fit_intercept": ["boolean"],
    "solver": [StrOptions({"auto", "gram", "qr"})],
    "weights": [StrOptions({"counts", "importance"})],
}


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
        example 0.996 for N = 100 and 20 directions, and 0.869 for N = 40 and 30 directions, of which the intercept is
        one. See ``pyspar.theory.level_with_mle``.
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "noise": [StrOptions({"mle", "unbiased", "exact"})],
        **_SHARED_CONSTRAINTS,
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
            "sigma2_": per_output(np.square(belief.sigma), source.y_ndim),
            **_least_squares_weights(belief, belief.w_hat, None, source.y_ndim),
        }

    def _adapt_to(self, target: Moments) -> Attributes:
        belief = self._belief
        adaptation = adapt(belief, target, select_rule("chi2", self.alpha))
        spread = target.spread_about(belief.x_mean)
        return {"adaptation_": adaptation, **_least_squares_weights(belief, adaptation.w_proj, spread, self._y_ndim)}

    def _unadapted(self) -> Attributes:
        return _least_squares_weights(self._belief, self._belief.w_hat, None, self._y_ndim)

    def _prior(self) -> Prior:
        """Return a prior centred at zero. Only forecasts use it; the paper's method has no prior."""
        source, centred, k = self._source, self._belief.centred, self.moments_.n_outputs
        units = units_of_features(source, self._target_spread, self._units, fit_intercept=centred, include_unseen=True)
        return Prior(units, np.zeros((len(units), k)), np.zeros(k))


def _least_squares_weights(belief: FlatBelief, w: Matrix, target_spread: Vector | None, y_ndim: int) -> Attributes:
    """Return the attributes that an adaptation changes, for weights of shape (features, outputs)."""
    return {"_target_spread": target_spread, **linear_weights(w, belief.y_mean - belief.x_mean @ w, y_ndim)}


class BayesSpARRegressor(AdaptableRegressor):
    r"""Ridge regression with a prior scaled by each feature's spread over source and target.

    The model is ``y = <w, x> + noise`` with the prior :math:`w \sim N(c, \tau^2 U^{-2})`, where c is the centre and U
    the diagonal matrix of units. The noise variance and :math:`\tau^2` maximise the evidence. ``fit`` uses source
    units, or equal units with ``units="common"``. ``adapt`` uses the units chosen by ``units`` and applies the rule. A
    change of ``units``, ``centre`` or ``weights`` takes effect at the next fit, a change of ``rule`` or ``alpha`` at
    the next ``adapt``.

    Parameters
    ----------
    units : {"target", "source", "common"}, default "target"
        The unit of each feature, in which the prior treats all features alike. "target" is the larger of its spreads
        over source and target, and "source" is its spread over the source. "common" is the same unit for all features;
        use it if they share a unit, such as the features of a network's layer. Use "source" if the linear relation is
        known to continue beyond the source.
    centre : None, array of shape (D,) or (K, D), or fitted linear model, default None
        The centre of the prior; None is zero. A model is any object with ``predict``, ``coef_`` and ``intercept_``.
        Its intercept is used with ``fit_intercept=False``; otherwise the intercept is refitted.
    rule : {"keep", "chi2", "refit"}, default "keep"
        "keep" uses the posterior mean. "chi2" keeps the correction to the centre only along target directions where it
        differs from zero at confidence ``alpha``, as in the paper. "refit" then uses the posterior mean given that the
        correction is zero along the other directions, so that the error on the source is at most that of the centre. It
        also drops directions whose refitted correction is not significant, and scales the correction down if it changes
        the predictions more on the target than on the source (``adaptation_.scale``). ``pyspar.nn.adapt_head`` uses
        "refit". If singular values of the target are equal, as in a balanced design, "chi2" and "refit" may depend on
        the order of rows and columns.
    alpha : float in [0, 1], default 0.999
        The confidence of "chi2" and "refit".
    fit_intercept, solver, weights
        As for :class:`SpARRegressor`.

    Attributes
    ----------
    coef_, intercept_, rank_, moments_, n_features_in_, feature_names_in_
        As for :class:`SpARRegressor`.
    units_ : array of shape (D,)
        The unit of each feature for the current weights; zero for a feature that does not vary.
    sigma2_, tau2_ : float or arrays of shape (K,)
        The variances of the label noise and of a weight (in ``units_``) by maximum evidence. The noise can be zero as
        for :class:`SpARRegressor`.
    evidence_ : Evidence
        Both variances, the log evidence, and whether the maximum lies at a limit (``evidence_.limit``).
    adaptation_ : Adaptation
        Every number of the last adaptation, for the correction to the centre and in units of ``units_``. Only set by
        ``adapt``.

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import BayesSpARRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 40)) * np.geomspace(1, 0.01, 40)
    >>> Z = rng.normal(size=(500, 40)) * np.geomspace(0.01, 1, 40)
    >>> w = rng.normal(size=40)
    >>> y = X @ w + rng.normal(size=60)
    >>> est = BayesSpARRegressor().fit(X, y)
    >>> before = np.mean((est.predict(Z) - Z @ w) ** 2)
    >>> after = np.mean((est.adapt(Z).predict(Z) - Z @ w) ** 2)
    >>> bool(before > 10 * after)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "units": [StrOptions({"target", "source", "common"})],
        "centre": "no_validation",
        "rule": [StrOptions(set(get_args(RuleName)))],
        **_SHARED_CONSTRAINTS,
    }
    units_: Vector
    _belief: RidgeBelief
    _fitted_prior: Prior
    _target_spread: Vector | None

    def __init__(
        self,
        units: Units = "target",
        centre: Any = None,
        rule: RuleName = "keep",
        alpha: float = 0.999,
        *,
        fit_intercept: bool = True,
        solver: Solver = "auto",
        weights: WeightMeaning = "counts",
    ) -> None:
        self.units = units
        self.centre = centre
        self.rule = rule
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.weights = weights

    def __sklearn_clone__(self) -> Any:
        return clone_without(self, "centre")

    def _solve(self, source: Source) -> Attributes:
        coef, intercept = read_centre(self.centre, source)
        moments, centred = source.moments.counted(self.weights), bool(self.fit_intercept)
        prior = Prior(units_of_features(moments, None, self.units, fit_intercept=centred), coef, intercept)
        belief = ridge_belief(prior.transform_source(moments), fit_intercept=centred)
        return {
            "_belief": belief,
            "_fitted_prior": prior,
            "_units": self.units,
            "_weight_meaning": self.weights,
            "rank_": belief.x.rank,
            **_posterior_weights(prior, belief, belief.w_hat, None, source.y_ndim),
        }

    def _adapt_to(self, target: Moments) -> Attributes:
        source, belief = self._source, self._belief
        spread = spread_about_source(source, target, belief.centred)
        units = units_of_features(source, spread, self._units, fit_intercept=belief.centred)
        prior = replace(self._fitted_prior, units=units)
        if not np.array_equal(units, self._fitted_prior.units):
            belief = ridge_belief(prior.transform_source(source), fit_intercept=belief.centred)
        rule = select_rule(self.rule, self.alpha)
        # "keep" removes nothing, so directions that only the source has need no decision.
        adaptation = adapt(belief, prior.transform_target(target), rule, include_source_directions=self.rule != "keep")
        if self.rule == "refit":
            w_proj, kept = refit(belief, adaptation.z.V, ~adaptation.removed, chi2_threshold(float(self.alpha)))
            scale = scale_factor(w_proj * inverse(units)[:, None], source, target, belief.x_mean * units)
            adaptation = replace(adaptation, w_proj=scale * w_proj, removed=~kept, scale=scale)
        return {"adaptation_": adaptation, **_posterior_weights(prior, belief, adaptation.w_proj, spread, self._y_ndim)}

    def _unadapted(self) -> Attributes:
        return _posterior_weights(self._fitted_prior, self._belief, self._belief.w_hat, None, self._y_ndim)

    def _prior(self) -> Prior:
        """Return the prior for forecasts, in which features that are constant in the source have a unit too."""
        source, centred = self._source, self._belief.centred
        units = units_of_features(source, self._target_spread, self._units, fit_intercept=centred, include_unseen=True)
        return replace(self._fitted_prior, units=units)


def _posterior_weights(
    prior: Prior, belief: RidgeBelief, correction: Matrix, target_spread: Vector | None, y_ndim: int
) -> Attributes:
    """Return the attributes that an adaptation changes, for a correction to the prior's centre."""
    return {
        "_target_spread": target_spread,
        "units_": prior.units,
        "evidence_": belief.evidence,
        "sigma2_": per_output(belief.evidence.sigma2, y_ndim),
        "tau2_": per_output(belief.evidence.tau2, y_ndim),
        **linear_weights(*prior.weights(belief, correction), y_ndim),
    }


def read_centre(centre: Any, source: Source) -> tuple[Matrix, Vector]:
    """Validate the parameter ``centre``, and return its weights (D, K) and intercepts (K,); zeros for None."""
    d, k, names = source.moments.n_features, source.moments.n_outputs, source.names
    if centre is None:
        return np.zeros((d, k)), np.zeros(k)
    weights, offset, own_names = centre, 0.0, centre.index if hasattr(centre, "reindex") else None
    if hasattr(centre, "predict"):
        if not hasattr(centre, "coef_"):
            raise ValueError(
                f"centre must be a fitted linear model, got {type(centre).__name__} without coef_; fit it first, or "
                "pass an array of weights; in a parameter grid, wrap it in sklearn.frozen.FrozenEstimator, because "
                "scikit-learn clones the grid's values"
            )
        weights, offset = centre.coef_, getattr(centre, "intercept_", 0.0)
        own_names = getattr(centre, "feature_names_in_", None)
    if own_names is not None and names is not None and list(own_names) != list(names):
        raise ValueError(
            f"centre must have the source's columns in the same order, got {list(own_names)[:8]} for "
            f"{list(names)[:8]}; refit the model, or reorder the weights"
        )
    try:
        coef, intercept = np.asarray(weights, dtype=np.float64), np.asarray(offset, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"centre must contain numbers, got {type(centre).__name__}: {error}") from None
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("centre must be finite, got NaN or infinity in its weights or intercept")
    columns = coef[:, None] if coef.ndim == 1 else coef.T
    if columns.shape != (d, k):
        raise ValueError(
            f"centre must have one weight for each of {d} features and one row for each of {k} outputs, got shape "
            f"{coef.shape}"
        )
    if intercept.size not in (1, k):
        raise ValueError(f"centre must have one intercept, or one per output ({k}), got {intercept.size}")
    return np.array(columns), np.array(np.broadcast_to(intercept.reshape(-1), (k,)))

"""BayesSpARRegressor: a ridge posterior with a centre and units, and a rule along the target's directions.

``docs/derivations/method.md`` derives the method. The paper's method and the correction of a network's head are members
of the same family.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import StrOptions

from pyspar.core.adapt import RULES, adapt, select_rule
from pyspar.core.arrays import Matrix, Vector
from pyspar.core.belief import Prior, RidgeBelief, Units, ridge_belief, units_of_features
from pyspar.core.moments import Moments, Solver, WeightMeaning
from pyspar.estimators.base import AdaptableRegressor, Attributes, linear_weights, per_output
from pyspar.estimators.validation import Confidence, Source


class BayesSpARRegressor(AdaptableRegressor):
    r"""Ridge regression with a prior scaled by each feature's spread over source and target.

    The model is ``y = <w, x> + noise`` with the prior :math:`w \sim N(c, \tau^2 U^{-2})`, where c is the centre and U
    the diagonal matrix of units. The noise variance and :math:`\tau^2` maximise the evidence. ``fit`` uses source
    units. ``adapt`` uses the units chosen by ``units`` and applies the rule. A change of ``units``, ``centre`` or
    ``weights`` takes effect at the next fit, a change of ``rule`` or ``alpha`` at the next ``adapt``.

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
    rule : {"keep", "chi2"}, default "keep"
        "keep" uses the posterior mean. "chi2" keeps the correction to the centre only along target directions where it
        differs from zero at confidence ``alpha``, as in the paper.
    alpha : float in [0, 1], default 0.999
        The confidence of "chi2".
    fit_intercept : bool, default True
        Centre source and target at the source mean.
    solver : {"auto", "gram", "qr"}, default "auto"
        How the rows are summarised; see :class:`pyspar.Moments`.
    weights : {"counts", "importance"}, default "counts"
        The meaning of ``sample_weight``. With "counts" a weight of 2 equals two copies of the row. With "importance"
        only the ratios of the weights matter, and the number of rows is ``sum(w)**2 / sum(w**2)``.

    Attributes
    ----------
    coef_, intercept_
        The current weights, shaped as those of scikit-learn's ``LinearRegression``.
    units_ : array of shape (D,)
        The unit of each feature for the current weights; zero for a feature that does not vary.
    sigma2_, tau2_ : float or arrays of shape (K,)
        The variances of the label noise and of a weight (in ``units_``) by maximum evidence. The noise is zero if
        the residual does not exceed the rounding error of the features at their precision, which for float16 and
        float32 can be larger than the noise.
    evidence_ : Evidence
        Both variances, the log evidence, and whether the maximum lies at a limit (``evidence_.limit``).
    rank_ : int
        The rank of the source.
    moments_ : Moments
        The summary of the source.
    adaptation_ : Adaptation
        Every number of the last adaptation, for the correction to the centre and in units of ``units_``. Only set by
        ``adapt``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

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
        "rule": [StrOptions(set(RULES))],
        "alpha": [Confidence()],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto", "gram", "qr"})],
        "weights": [StrOptions({"counts", "importance"})],
    }
    units_: Vector
    _belief: RidgeBelief
    _fitted_prior: Prior

    def __init__(
        self,
        units: Units = "target",
        centre: Any = None,
        rule: Literal["keep", "chi2"] = "keep",
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

    def __sklearn_clone__(self) -> Self:
        """Copy the parameters. The centre is not cloned because a fitted model must stay fitted."""
        params = {name: clone(value, safe=False) for name, value in self.get_params(deep=False).items()}
        new = type(self)(**{**params, "centre": self.centre})
        for name in ("_metadata_request", "_sklearn_output_config"):
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name])
        return new

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
            **_weights_for(prior, belief, belief.w_hat, source.y_ndim),
        }

    def _adapt_to(self, target: Moments) -> Attributes:
        source, belief = self._source, self._belief
        units = units_of_features(source, self._spread_of(target), self._units, fit_intercept=belief.centred)
        prior = self._prior_in(units)
        if not np.array_equal(units, self._fitted_prior.units):
            belief = ridge_belief(prior.transform_source(source), fit_intercept=belief.centred)
        rule = select_rule(self.rule, self.alpha)
        # "keep" removes nothing, so directions that only the source has need no decision.
        adaptation = adapt(belief, prior.transform_target(target), rule, include_source_directions=self.rule != "keep")
        return {"adaptation_": adaptation, **_weights_for(prior, belief, adaptation.w_proj, self._y_ndim)}

    def _unadapted(self) -> Attributes:
        return _weights_for(self._fitted_prior, self._belief, self._belief.w_hat, self._y_ndim)

    def _prior_in(self, units: Vector) -> Prior:
        return replace(self._fitted_prior, units=units)

    def _prior_for_rows(self) -> Prior:
        return self._prior_in(self.units_)


def _weights_for(prior: Prior, belief: RidgeBelief, correction: Matrix, y_ndim: int) -> Attributes:
    """Return the attributes that an adaptation changes, for a correction to the prior's centre."""
    return {
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
    weights, offset = centre, 0.0
    if hasattr(centre, "predict"):
        if not hasattr(centre, "coef_"):
            raise ValueError(
                f"centre must be a fitted linear model, got {type(centre).__name__} without coef_; fit it first, or "
                "pass an array of weights; in a parameter grid, wrap it in sklearn.frozen.FrozenEstimator, because "
                "scikit-learn clones the grid's values"
            )
        own_names = getattr(centre, "feature_names_in_", None)
        weights, offset = centre.coef_, getattr(centre, "intercept_", 0.0)
    else:
        own_names = centre.index if hasattr(centre, "reindex") else None
    if own_names is not None and names is not None and list(own_names) != list(names):
        raise ValueError(
            f"centre must have the source's columns in the same order, got {list(own_names)[:8]} for "
            f"{list(names)[:8]}; refit the model, or reorder the weights"
        )
    coef, intercept = _as_numbers("centre", weights), _as_numbers("centre.intercept_", offset)
    columns = coef[:, None] if coef.ndim == 1 else coef.T
    if columns.shape != (d, k):
        raise ValueError(
            f"centre must have one weight for each of {d} features and one row for each of {k} outputs, got shape "
            f"{coef.shape}"
        )
    if intercept.size not in (1, k):
        raise ValueError(f"centre must have one intercept, or one per output ({k}), got {intercept.size}")
    return np.array(columns), np.array(np.broadcast_to(intercept.reshape(-1), (k,)))


def _as_numbers(what: str, values: Any) -> Matrix:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must contain numbers, got {type(values).__name__}: {error}") from None
    if numbers.ndim > 2 or not np.isfinite(numbers).all():
        raise ValueError(f"{what} must be finite and have at most two dimensions, got shape {numbers.shape}")
    return numbers

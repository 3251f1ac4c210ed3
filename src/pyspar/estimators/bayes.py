"""BayesSpARRegressor: a ridge posterior with a centre and units, and a rule along the target's directions.

``docs/derivations/method.md`` derives the method. The paper's method and the repair of a network's head are members of
the same family.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone

from pyspar.core.adapt import Adaptation, Rule, adapt
from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments, Solver, Weights
from pyspar.core.prior import Prior
from pyspar.core.ridge import RidgeBelief, ridge_belief
from pyspar.core.rules import chi2_rule, keep_rule
from pyspar.core.scaling import Units, units_of_features
from pyspar.estimators.adaptable import AdaptableRegressor
from pyspar.estimators.centre import centre_of
from pyspar.estimators.validation import (
    check_alpha,
    check_choice,
    warn_if_scales_are_too_far_apart,
    warn_if_weights_do_not_count,
)

RuleName = Literal["keep", "chi2"]


class BayesSpARRegressor(AdaptableRegressor):
    r"""Ridge regression with a prior in units of both source and target, and variances by maximum evidence.

    The model is ``y = <w, x> + noise`` with the prior :math:`w \sim N(c, \tau^2 U^{-2})`, where c is the centre and U
    the diagonal matrix of units. The noise variance and :math:`\tau^2` maximise the evidence. ``fit`` uses source
    units. ``adapt`` uses the units chosen by ``units`` and applies the rule.

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
        The variances of the label noise and of a weight (in ``units_``) by maximum evidence.
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

    _belief: RidgeBelief

    def __init__(
        self,
        units: Units = "target",
        centre: Any = None,
        rule: RuleName = "keep",
        alpha: float = 0.999,
        *,
        fit_intercept: bool = True,
        solver: Solver = "auto",
        weights: Weights = "counts",
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

    def _check_params(self) -> None:
        check_choice("units", self.units, ("target", "source", "common"))
        check_choice("rule", self.rule, ("keep", "chi2"))
        check_choice("solver", self.solver, ("auto", "gram", "qr"))
        check_choice("weights", self.weights, ("counts", "importance"))
        check_alpha(self.alpha)

    def _warn_of_limits(self) -> None:
        warn_if_weights_do_not_count(self.moments_.weight, self.moments_.rows, self._weights)
        warn_if_scales_are_too_far_apart(self._belief)

    @property
    def _common(self) -> bool:
        return self._units == "common"

    def _solve(self) -> None:
        centre = centre_of(self.centre, self.moments_, getattr(self, "feature_names_in_", None))
        self._weights, self._units, self._centre = self.weights, self.units, centre
        centred, source = bool(self.fit_intercept), self.moments_.counted(self.weights)
        prior = Prior(units_of_features(source, None, self.units, fit_intercept=centred), *centre)
        self._belief = ridge_belief(prior.of_source(source), fit_intercept=centred)
        self._fitted_prior = prior
        self.rank_ = self._belief.x.rank
        self.reset()

    def _prior_for(self, target: Moments | None, *, unknown: bool = True) -> Prior:
        centred = self._belief.centred
        units = units_of_features(self._source, target, self._units, fit_intercept=centred, unknown=unknown)
        return Prior(units, *self._centre)

    def _adapt_to(self, target: Moments) -> Adaptation:
        prior, belief = self._prior_for(target, unknown=False), self._belief
        if not np.array_equal(prior.units, self._fitted_prior.units):
            belief = ridge_belief(prior.of_source(self._source), fit_intercept=belief.centred)
        rules: dict[str, Rule] = {"keep": keep_rule, "chi2": partial(chi2_rule, alpha=float(self.alpha))}
        found = adapt(belief, prior.of_target(target), rules[self.rule], complete=self.rule != "keep")
        self._publish(prior, belief, found.w_proj)
        return found

    def _unadapt(self) -> None:
        self._publish(self._fitted_prior, self._belief, self._belief.w_hat)

    def _publish(self, prior: Prior, belief: RidgeBelief, correction: Matrix) -> None:
        self._prior = prior
        self.units_, self.evidence_ = prior.units, belief.evidence
        self.sigma2_ = self._per_output(belief.evidence.sigma2)
        self.tau2_ = self._per_output(belief.evidence.tau2)
        self._set_weights(*prior.weights(belief, correction))

    def _per_output(self, values: Vector) -> Any:
        return float(values[0]) if self._y_ndim == 1 else values

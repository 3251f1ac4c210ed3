"""SpARRegressor, the paper's method, and BayesSpARRegressor, its generalisation to a ridge posterior."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from pyspar.core.adapt import Adaptation, adapt, rule_at
from pyspar.core.moments import Matrix, Moments, Vector
from pyspar.core.regression import Fit, Noise, OLSFit, PriorScale, RidgePosterior, fit_ols, fit_ridge, make_prior
from pyspar.core.spectrum import Eigen
from pyspar.estimators.base import AdaptableRegressor, per_output
from pyspar.estimators.validation import CONFIDENCE, Attributes


class SpARRegressor(AdaptableRegressor):
    """Least squares that can be adapted to an unlabelled target: the Spectral Adapted Regressor.

    Parameters
    ----------
    alpha : float in [0, 1], default 0.999
        A target direction is removed if noise alone explains its weight at this confidence: with 0 none, with 1 all.
    fit_intercept : bool, default True
        Centre source and target at the source mean. The paper's experiments use False.
    noise : {"mle", "unbiased", "exact"}, default "mle"
        The estimate of the noise variance. "mle" is RSS / N, as in the paper. "unbiased" is RSS / (N - rank). "exact"
        is the same with quantiles of F: ``alpha`` is then the probability of removing a true weight of zero.

    Attributes
    ----------
    coef_, intercept_, coef_source_, intercept_source_
        The current weights and those before adapting, shaped as in scikit-learn's ``LinearRegression``.
    sigma2_ : float or array of shape (K,)
        The estimated variance of the label noise; zero if the residual is below the rounding error of the features.
    rank_, moments_ : the rank and the summary of the source; the rows are not stored
    adaptation_ : Adaptation, every number of the last ``adapt``

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
        "alpha": [CONFIDENCE],
        "fit_intercept": ["boolean"],
        "noise": [StrOptions({"mle", "unbiased", "exact"})],
    }
    _fit: OLSFit

    def __init__(self, alpha: float = 0.999, *, fit_intercept: bool = True, noise: Noise = "mle") -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.noise = noise

    def _solve(self, source: Moments, eigen: Eigen | None = None) -> OLSFit:
        return fit_ols(source, fit_intercept=bool(self.fit_intercept), noise=self.noise, eigen=eigen)

    def _adapt_fit(self, target: Moments, eigen: Eigen | None = None) -> tuple[OLSFit, Adaptation]:
        return self._fit, adapt(self._fit, target, rule_at(self.alpha), eigen=eigen)

    def _weights(self, fit: Fit, w: Matrix) -> tuple[Matrix, Vector]:
        return w, fit.y_mean - fit.x_mean @ w


class BayesSpARRegressor(AdaptableRegressor):
    r"""Ridge regression with a prior scaled by each feature's spread over source and target.

    The model is ``y = <w, x> + noise`` with the prior :math:`w \sim N(0, \tau^2 U^{-2})`, where U is the diagonal
    matrix of the features' scales. The noise variance and :math:`\tau^2` maximise the evidence. ``adapt`` fits again
    with the scales of source and target. A change of ``prior_scale`` takes effect at the next ``fit``.

    Parameters
    ----------
    prior_scale : {"max", "source", "equal"}, default "max"
        The scale of each feature; the prior treats all features alike after division by it. "max" is the larger of its
        spreads over source and target. "source" is its spread over the source, for a relation that is known to be
        linear beyond the source. "equal" is one scale for features that share a unit, such as those of a network.
    alpha : float in [0, 1] or None, default None
        None uses the posterior mean. A number keeps the weights only along target directions where they differ from
        zero at this confidence, as in the paper. Directions with equal singular values in the target are not unique.
    fit_intercept : as for :class:`SpARRegressor`

    Attributes
    ----------
    coef_, intercept_, coef_source_, intercept_source_, rank_, moments_ : as for :class:`SpARRegressor`
    units_ : the scale of each feature for the current weights; zero for a feature that does not vary
    sigma2_, tau2_ : the variances of the label noise and of a weight (in ``units_``) by maximum evidence, per output
    evidence_ : RidgePosterior with both variances, the log evidence, and whether it lies at a limit (``.limit``)
    adaptation_ : Adaptation for features divided by ``units_``, set by ``adapt``

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
        "prior_scale": [StrOptions({"max", "source", "equal"})],
        "alpha": [CONFIDENCE, None],
        "fit_intercept": ["boolean"],
    }
    units_: Vector
    _fit: RidgePosterior

    def __init__(
        self, prior_scale: PriorScale = "max", alpha: float | None = None, *, fit_intercept: bool = True
    ) -> None:
        self.prior_scale = prior_scale
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def _solve(self, source: Moments, eigen: Eigen | None = None) -> RidgePosterior:
        centred = bool(self.fit_intercept)
        prior = make_prior(source, None, self.prior_scale, fit_intercept=centred)
        return fit_ridge(source, prior, fit_intercept=centred, eigen=eigen)

    def _adapt_fit(self, target: Moments, eigen: Eigen | None = None) -> tuple[RidgePosterior, Adaptation]:
        fit = self._posterior(target, unseen=False, eigen=eigen)
        scaled = fit.prior.transform(target.without_outputs())
        # A rule also decides along directions that only the source has, where the correction may be noise too.
        tests = self.alpha is not None
        return fit, adapt(fit, scaled, rule_at(self.alpha), include_source_directions=tests, eigen=eigen)

    def _weights(self, fit: Any, w: Matrix) -> Any:
        return fit.prior.weights(fit, w)

    def _describe(self, fit: Any, w: Matrix, y_ndim: int) -> Attributes:
        scales = {"units_": fit.prior.units, "evidence_": fit, "tau2_": per_output(fit.tau2, y_ndim)}
        return {**super()._describe(fit, w, y_ndim), **scales}

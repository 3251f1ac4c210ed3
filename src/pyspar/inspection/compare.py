r"""The weights that an inspection compares, and the target's directions along which they differ.

The weights are those of the model in use, least squares, SpAR and Bayes-SpAR. If the method in use has a rule, weights
and costs of the directions are its own, otherwise those of least squares. Errors add along the target's directions.
Let :math:`m_j` be the weight along direction j before the rule and :math:`\mu_j` the posterior mean. Removing the
direction changes the expected squared error by :math:`\lambda_{z,j}^2 (2 m_j \mu_j - m_j^2) / M`. This is a gain if
:math:`m_j` is more than twice :math:`\mu_j`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspar.core.adapt import Adaptation, removal_alpha, removed_shares
from pyspar.core.arrays import Mask, Matrix, Vector
from pyspar.core.belief import Prior, in_units_of, spread_of_features
from pyspar.core.moments import Moments
from pyspar.estimators.spar import BayesSpARRegressor, SpARRegressor
from pyspar.estimators.validation import read_moments, weights_of

Pair = tuple[Matrix, Vector]
"""Weights (D, K) and intercepts (K,), in the units of the features."""
MAX_LOADS = 5
"""The number of columns that are listed for each direction."""
MAX_COLUMNS = 12
"""The number of columns that are listed for all removed directions together."""
MIN_COLUMN_SHARE = 0.005


@dataclass(frozen=True)
class Comparison:
    """The weights to compare for a fitted SpARRegressor or BayesSpARRegressor and a target.

    The directions are those of ``adaptation``, for features divided by the units of ``prior``: the adaptation of the
    estimator if it has a rule, otherwise that of SpAR, in the units that the estimator was fitted in if it is a model
    in use.
    """

    estimator: Any
    target: Moments
    columns: tuple[str, ...]  # the name of each feature; features that share a name are one column
    candidates: Mapping[str, Pair]
    before: str  # the candidate in use: the caller's model, or least squares by default
    adapted: str  # the candidate that adapting the estimator gives
    adaptation: Adaptation
    prior: Prior
    removed: Matrix  # the share of the weight along each direction that adapting removed, directions x outputs
    outside: float
    """The share of the target's variation outside the span of the source, in the units of Bayes-SpAR. It does not
    depend on the units of the features. Features that are constant in the source are not counted, unless all are."""
    ridge: BayesSpARRegressor  # ridge regression on the source, by maximum evidence, not adapted
    alternatives: tuple[str, ...] = ()  # candidates that may be recommended as well

    @property
    def has_rule(self) -> bool:
        """Whether the estimator removes directions by the paper's rule."""
        return isinstance(self.estimator, SpARRegressor) or self.estimator.alpha is not None


def compare_weights(estimator: Any, target: Moments, columns: Sequence[str], *, has_model: bool = True) -> Comparison:
    """Compute the weights to compare for a fitted regressor and a target.

    Least squares and SpAR use the features as they are given, as ``LinearRegression`` and ``SpARRegressor`` do. With
    ``has_model`` the estimator is a model in use; otherwise least squares is the reference. No warnings are raised,
    because the findings report the same problems.
    """
    alpha = 0.999 if estimator.alpha is None else float(estimator.alpha)
    settings = {
        "fit_intercept": estimator._belief.centred,  # the parameter may have changed since the fit
    }
    unadapted, adapted = estimator._before_adapting(), _adapt(estimator, target)
    units, centre = np.ones(estimator.n_features_in_), None
    own: dict[str, Pair] = {}
    if isinstance(estimator, SpARRegressor):
        least_squares, spar = unadapted, adapted
        ridge = _fit(BayesSpARRegressor(**settings), estimator, estimator._source)
        bayes, adaptation = _adapt(ridge, target), adapted.adaptation_
    else:
        least_squares = _fit(SpARRegressor(alpha, **settings), estimator, estimator._source)
        spar, ridge, bayes = _adapt(least_squares, target), unadapted, adapted
        adaptation = spar.adaptation_
        if estimator.alpha is not None:
            units, adaptation = adapted.units_, adapted.adaptation_
        elif has_model:
            units = unadapted.units_
            scaled = _fit(SpARRegressor(alpha, **settings), estimator, in_units_of(estimator._source, units))
            adaptation = _adapt(scaled, in_units_of(target, units)).adaptation_
        centre = estimator._fit.prior if estimator.centre is not None else None
        own = {"not adapted": weights_of(unadapted)} if centre is None else {"centre": (centre.coef, centre.intercept)}
    candidates = {"OLS": weights_of(least_squares), "SpAR": weights_of(spar), "Bayes-SpAR": weights_of(bayes)}
    if has_model:
        candidates = {**own, **candidates}
    before, after = weights_of(unadapted)[0], weights_of(adapted)[0]
    prior = Prior(units, np.zeros_like(before) if centre is None else centre.coef, np.zeros(before.shape[1]))
    return Comparison(
        estimator=estimator,
        target=target,
        columns=tuple(columns),
        candidates=candidates,
        before=next(iter(own), "OLS") if has_model else "OLS",
        adapted="SpAR" if adapted is spar else "Bayes-SpAR",
        adaptation=adaptation,
        prior=prior,
        removed=removed_shares(adaptation.z.V, prior.correction(before), prior.correction(after)),
        outside=1.0 if lies_outside(estimator._source, target) else bayes.adaptation_.outside_energy,
        ridge=ridge,
        alternatives=("Bayes-SpAR",) if adapted is spar else (),
    )


def find_constant_features(source: Moments, target: Moments) -> Mask:
    """Return which features are constant in the source and have other values in the target."""
    rounding = target.rounding() / np.sqrt(target.weight)
    is_constant = spread_of_features(source, fit_intercept=True) == 0.0
    return np.asarray(is_constant & (target.spread_about(source.mean[: target.n_features]) > rounding))


def lies_outside(source: Moments, target: Moments) -> bool:
    """Return whether all features are constant in the source, and the target has other values."""
    no_spread = not spread_of_features(source, fit_intercept=True).any()
    return no_spread and bool(find_constant_features(source, target).any())


@dataclass(frozen=True)
class Direction:
    """One direction of the target, for one output. Errors are expected squared errors per row."""

    energy: float  # its share of the target's squared length about the source mean
    keeping: float  # the error of keeping the weight (variance)
    removing: float  # the error of setting it to zero (estimated bias)
    change: float  # the change of the error if it is removed; negative for a gain
    inflation: float  # spectral inflation in units of the noise, Var / (M sigma^2); without a shift it is 1 / N
    goes: bool  # whether the rule removes it at the estimator's confidence; the paper's rule if it has none
    alpha: float  # the smallest confidence at which the paper's rule removes it
    doubt: float  # 1 - alpha without cancellation
    outside: float  # the share of its squared length outside the span of the source
    removed: float  # the share of its weight that adapting the estimator removed, 0 to 1
    loads: tuple[tuple[str, float], ...]  # the columns with the largest shares of it


def describe_directions(comparison: Comparison, posterior_mean: Matrix, output: int) -> tuple[Direction, ...]:
    """Describe the target's directions for one output, in order of falling variance cost.

    ``posterior_mean`` are weights in the comparison's units, as corrections to the prior's centre.
    """
    paper = comparison.adaptation
    M = paper.n_target
    mean = paper.terms.mean[:, output]
    var, bias = paper.var[:, output] / M, paper.bias_hat[:, output] / M
    change = paper.z.lam**2 / M * mean * (2.0 * (paper.z.V.T @ posterior_mean[:, output]) - mean)
    sigma2 = float(paper.sigma2[output])
    inflation = var / sigma2 if sigma2 > 0.0 else np.zeros_like(var)
    # The rule removes a direction without uncertainty only at confidence 1.
    exact, (alpha, doubt) = paper.terms.std == 0.0, removal_alpha(paper.terms)
    alpha, doubt = np.where(exact, 1.0, alpha)[:, output], np.where(exact, 0.0, doubt)[:, output]
    names, shares = sum_by_column(paper.z.V, comparison.columns)
    values = {
        "energy": paper.energy_shares, "keeping": var, "removing": bias, "change": change,
        "inflation": inflation, "alpha": alpha, "doubt": doubt, "outside": paper.outside,
        "removed": comparison.removed[:, output],
    }  # fmt: skip
    directions = []
    for j in np.argsort(-var, kind="stable"):
        largest = np.argsort(-shares[:, j], kind="stable")[:MAX_LOADS]
        loads = tuple((names[i], float(shares[i, j])) for i in largest if shares[i, j] > 0.0)
        numbers = {name: float(array[j]) for name, array in values.items()}
        directions.append(Direction(goes=bool(paper.removed[j, output]), loads=loads, **numbers))
    return tuple(directions)


def list_removed_columns(comparison: Comparison, output: int) -> tuple[tuple[str, float], ...]:
    """Return the columns in the removed directions with their shares, the largest first.

    Directions are weighted by their variance cost, or by their energy if all variance costs are zero.
    """
    paper, removed = comparison.adaptation, comparison.removed[:, output]
    weight = removed * paper.var[:, output]
    largest = float(weight.max(initial=0.0))
    if not 0.0 < largest < np.inf:
        weight = removed * paper.energy_shares
        largest = float(weight.max(initial=0.0))
    if largest == 0.0:
        return ()
    names, shares = sum_by_column(paper.z.V, comparison.columns)
    total = shares @ (weight / largest)
    total = total / total.sum()
    order = np.argsort(-total, kind="stable")[:MAX_COLUMNS]
    return tuple((names[i], float(total[i])) for i in order if total[i] >= MIN_COLUMN_SHARE)


def sum_by_column(V: Matrix, columns: Sequence[str]) -> tuple[tuple[str, ...], Matrix]:
    """Return the distinct columns, and the sum of the squares of each direction in each column."""
    names = tuple(dict.fromkeys(columns))
    if len(names) == len(columns):
        return names, V**2
    place = {name: i for i, name in enumerate(names)}
    shares = np.zeros((len(names), V.shape[1]))
    np.add.at(shares, [place[name] for name in columns], V**2)
    return names, shares


def _adapt(estimator: Any, target: Moments) -> Any:
    """Return a copy of an estimator, adapted to the moments of a target, without warnings."""
    adapted = copy.copy(estimator)
    adapted._adapt_moments(target)
    return adapted


def _fit(new: Any, estimator: Any, moments: Moments) -> Any:
    """Return an estimator fitted to moments, with outputs in the shape of another estimator's, without warnings."""
    new._learn(read_moments(moments, y_ndim=estimator._y_ndim))
    return new

"""Compute new weights for a network's linear head from the moments of its features, which ``pyspar.nn`` reads.

The three methods are those of :func:`pyspar.nn.adapt_head` and of the tables of ``spar reproduce``.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression

from pyspar.core.adapt import Adaptation
from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.belief import Noise, Prior, units_of_features
from pyspar.core.moments import Moments
from pyspar.core.refit import scale_factor
from pyspar.core.spectrum import default_cutoff, directions_above, project_features, restore_spectrum, rotate_features
from pyspar.estimators.linear_correction import fit_linear_correction
from pyspar.estimators.spar import BayesSpARRegressor, SpARRegressor
from pyspar.estimators.target_labels import LabelForecast, TargetDrift
from pyspar.estimators.validation import check_alpha, check_choice, is_number

HeadMethod = Literal["bayes", "spar", "ols"]


class Changed(NamedTuple):
    """The number of feature directions whose weight changed, and their total, summed over the head's outputs."""

    directions: int
    total: int

    def __str__(self) -> str:
        return f"{self.directions} of {self.total} directions changed"


@dataclass(frozen=True, eq=False)
class NewHead:
    """The new weights of a head (K, D), and the regressor on the features whose weights these are."""

    coef: Matrix
    intercept: Vector
    changed: Changed
    estimator: BayesSpARRegressor | SpARRegressor
    directions: Matrix  # orthonormal directions of the features above the cutoff, one per row
    drifts: tuple[TargetDrift, ...] = ()  # one per output, after correct_head
    forecasts: tuple[LabelForecast, ...] = ()


def check_head_options(method: Any, *, alpha: Any, noise: Any, cutoff: Any) -> None:
    """Raise ValueError for an invalid option of :func:`fit_head`, before the features are read."""
    check_choice("method", method, get_args(HeadMethod))
    check_alpha(alpha)
    check_choice("noise", noise, get_args(Noise))
    if cutoff is not None and not (is_number(cutoff) and 0.0 <= cutoff < 1.0):
        raise ValueError(f"cutoff must be in [0, 1), as a share of the largest singular value, got {cutoff!r}")


def fit_head(
    source: Moments,
    target: Moments | None,
    method: HeadMethod,
    *,
    coef: Matrix,
    intercept: Vector | None = None,
    alpha: float = 0.999,
    noise: Noise = "mle",
    cutoff: float | None = None,
    error_roots: tuple[Matrix, ...] = (),
) -> NewHead:
    """Return new weights for a trained head, ``coef`` (K, D) and ``intercept`` (None for a head without bias).

    "bayes" corrects the trained head along directions where the labels show that it is wrong. "spar"
    replaces it with SpAR and "ols" with least squares, with an intercept if the head has a bias. ``source`` and
    ``target`` are the moments of the features that enter the head; "ols" needs no target. ``error_roots`` has for each
    output a root of ``sum_i r_i^2 h_i h_i' / mean(r^2)`` over rows h with errors r of the trained head. Without them,
    the test of "bayes" assumes that all rows have the same noise. The other parameters are those of
    :func:`pyspar.nn.adapt_head`.
    """
    coef = np.asarray(coef, dtype=np.float64)
    bias = np.zeros(len(coef)) if intercept is None else np.asarray(intercept, dtype=np.float64)
    kept = directions_above(source, default_cutoff(source) if cutoff is None else cutoff)
    # The head is computed in the coordinates of the kept directions, so no rounding along the others can get a weight.
    rotate = len(kept) < source.n_features
    fitted = rotate_features(source, kept) if rotate else source
    estimator: BayesSpARRegressor | SpARRegressor
    if method == "bayes":
        centre = _linear_model(coef @ kept.T if rotate else coef, bias)
        estimator = BayesSpARRegressor(units="common", centre=centre, rule="refit", alpha=alpha, fit_intercept=False)
        estimator.fit_moments(fitted)
        roots = tuple(root @ kept.T if rotate else root for root in error_roots)
        estimator._belief = replace(estimator._belief, error_roots=roots)
        if target is not None:
            estimator.adapt(rotate_features(target, kept) if rotate else target)
    else:
        estimator = SpARRegressor(alpha, fit_intercept=intercept is not None, noise=noise).fit_moments(fitted)
    if rotate:
        _restore_features(estimator, kept, source, target, coef)
    if method == "spar" and target is not None:
        # The target keeps its other directions: the paper's SpAR decides along the target's full directions.
        estimator.adapt(target)
    new, offset = np.asarray(estimator.coef_).reshape(coef.shape), np.asarray(estimator.intercept_).reshape(len(coef))
    adaptation: Adaptation | None = getattr(estimator, "adaptation_", None)
    if adaptation is not None and adaptation.posterior:
        changed = Changed(int(adaptation.n_kept.sum()), adaptation.removed.size)
        if rotate and target is not None:
            new = _remove_faint(estimator, kept, source, target, coef)
    else:
        # Directions of the target, or of the source without a target.
        directions = estimator._belief.x.V if adaptation is None else adaptation.z.V
        differs = np.abs((new - coef) @ directions) > EPS64 * np.abs(coef).max()
        changed = Changed(int(differs.sum()), differs.size)
    return NewHead(new, offset, changed, estimator, kept)


def error_roots_of(
    features: NDArray[np.floating[Any]], labels: Matrix, coef: Matrix, intercept: Vector | float = 0.0
) -> tuple[Matrix, ...]:
    """Return ``error_roots`` of rows for the trained head ``coef`` (K, D) and ``intercept``; labels are (N, K).

    >>> (root,) = error_roots_of(np.eye(2), np.array([[3.0], [1.0]]), np.ones((1, 2)))
    >>> (root.T @ root).round(9)
    array([[2., 0.],
           [0., 0.]])
    """
    errors = labels - features.astype(np.float64) @ coef.T - intercept
    n, d = features.shape
    return tuple(
        Moments.of(features, sample_weight=n * share).root[:, 1:] if share.any() else np.zeros((1, d))
        for share in (np.square(column) / max(float(column @ column), 1e-300) for column in errors.T)
    )


def correct_head(head: NewHead, features: Matrix, labels: Matrix, counts: Vector) -> NewHead:
    """Return a head that is corrected with target labels, as by :class:`pyspar.TargetCorrection` with ``smooth=False``.

    Unknown labels (m, K) are NaN, and ``counts`` are the numbers of target rows that each row stands for.
    """
    weights = head.coef.T, head.intercept
    correction, drifts = fit_linear_correction(head.estimator, weights, features, labels, counts)
    coef, intercept = correction.corrected_weights()
    estimator = copy.copy(head.estimator)
    estimator._set_correction(correction, drifts)
    forecasts = correction.forecasts(features, counts, type(estimator).__name__)
    return replace(
        head, coef=coef.T, intercept=intercept, estimator=estimator, drifts=tuple(drifts), forecasts=tuple(forecasts)
    )


def _linear_model(coef: Matrix, intercept: Vector) -> LinearRegression:
    model = LinearRegression()
    model.coef_, model.intercept_, model.n_features_in_ = coef, intercept, coef.shape[1]
    return model


def _remove_faint(
    estimator: BayesSpARRegressor, directions: Matrix, source: Moments, target: Moments, trained: Matrix
) -> Matrix:
    """Remove the trained weights along faint directions from each output that changes, and return the new weights.

    The removal is part of the change, so both are scaled by one factor. An output that does not change keeps all of its
    weights.
    """
    adaptation = estimator.adaptation_
    faint = trained.T - directions.T @ (directions @ trained.T)
    change = np.where(adaptation.n_kept > 0, adaptation.w_proj / adaptation.scale - faint, 0.0)
    scale = scale_factor(change, source, target)
    estimator.adaptation_ = replace(adaptation, w_proj=scale * change, scale=scale)
    new = trained + (scale * change).T
    estimator.coef_ = new.reshape(np.shape(estimator.coef_))
    return new


def _restore_features(
    estimator: BayesSpARRegressor | SpARRegressor,
    directions: Matrix,
    source: Moments,
    target: Moments | None,
    centre: Matrix,
) -> None:
    """Express a regressor on coordinates along directions as a regressor on the features, in place.

    Along other directions, BayesSpARRegressor gets the weights of the centre, and SpARRegressor gets no weight.
    """
    moments = project_features(source, directions)
    belief = estimator._belief
    x = restore_spectrum(belief.x, directions, moments)
    estimator.moments_, estimator.n_features_in_ = moments, moments.n_features
    estimator._belief = replace(belief, w_hat=directions.T @ belief.w_hat, x=x, x_mean=belief.x_mean @ directions)
    if isinstance(estimator, SpARRegressor):
        estimator.coef_ = np.asarray(estimator.coef_) @ directions
        return
    correction = np.asarray(estimator.coef_) - np.reshape(estimator.centre.coef_, np.shape(estimator.coef_))
    estimator.coef_ = np.reshape(centre, (*np.shape(correction)[:-1], -1)) + correction @ directions
    roots = tuple(root @ directions for root in estimator._belief.error_roots)
    estimator._belief = replace(estimator._belief, error_roots=roots)
    prior = estimator._fitted_prior
    units = units_of_features(moments, None, "common", fit_intercept=False)
    estimator._fitted_prior = Prior(units, centre.T.copy(), prior.intercept)
    estimator.units_ = units
    estimator.centre = _linear_model(centre, estimator.centre.intercept_)
    adaptation: Adaptation | None = getattr(estimator, "adaptation_", None)
    if adaptation is not None and target is not None:
        estimator._adapted_to = target  # forecasts include the weights and the rows along all directions
        estimator.adaptation_ = replace(
            adaptation,
            w_hat=directions.T @ adaptation.w_hat,
            w_proj=directions.T @ adaptation.w_proj,
            x=x,
            z=restore_spectrum(adaptation.z, directions, moments),
        )

"""Compute new weights for a network's linear head from the moments of its features, which ``pyspar.nn`` reads.

The three methods are those of :func:`pyspar.nn.adapt_head` and of the tables of ``spar reproduce``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from sklearn.linear_model import LinearRegression

from pyspar.core.moments import EPS64, Matrix, Moments, Vector, column_norms
from pyspar.core.refit import refit_head
from pyspar.core.regression import Noise
from pyspar.core.spectrum import Eigen, default_cutoff, directions_above
from pyspar.estimators.correction import LabelForecast, TargetDrift, fit_outputs, forecast_error
from pyspar.estimators.spar import BayesSpARRegressor, SpARRegressor
from pyspar.estimators.validation import check_alpha, check_choice, is_number, read_moments

HeadMethod = Literal["bayes", "spar", "ols"]
_PROJECTION_SLACK = 4.0
"""The bound on the rounding error of a projected column, in machine epsilons of the length of all columns together."""


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
    drifts: tuple[TargetDrift | None, ...] = ()  # one per output, after correct_head; None without labels
    forecasts: tuple[LabelForecast | None, ...] = ()


def check_head_options(method: Any, *, alpha: Any, noise: Any, cutoff: Any) -> None:
    """Raise ValueError for an invalid option of :func:`new_head_weights`, before the features are read."""
    check_choice("method", method, get_args(HeadMethod))
    check_alpha(alpha)
    check_choice("noise", noise, get_args(Noise))
    if cutoff is not None and not (is_number(cutoff) and 0.0 <= cutoff < 1.0):
        raise ValueError(f"cutoff must be in [0, 1), as a share of the largest singular value, got {cutoff!r}")


def new_head_weights(
    source: Moments,
    target: Moments | None,
    w0: Matrix,
    b0: Vector | None = None,
    method: HeadMethod = "bayes",
    *,
    alpha: float = 0.999,
    noise: Noise = "mle",
    cutoff: float | None = None,
    error_roots: tuple[Matrix, ...] = (),
    eigen: Eigen | None = None,
) -> NewHead:
    """Return new weights for a trained head ``w0`` (K, D) with biases ``b0`` (None for a head without bias).

    "bayes" is :func:`pyspar.core.refit.refit_head`. "spar" replaces the head with SpAR and "ols" with least squares,
    with an intercept if the head has a bias. ``source`` and ``target`` are the moments of the features that enter the
    head; "ols" needs no target. The other parameters are those of :func:`pyspar.nn.adapt_head`.
    """
    w0 = np.asarray(w0, dtype=np.float64)
    kept = directions_above(source, default_cutoff(source) if cutoff is None else cutoff)
    fitted = _project_features(source, kept)
    if method == "bayes" and target is not None:
        new = refit_head(source, target, w0, b0, alpha=alpha, cutoff=cutoff, error_roots=error_roots, eigen=eigen)
        changed = Changed(int(new.adaptation.n_kept.sum()), new.kept.size)
        centre = _linear_model(w0, new.bias)
        estimator = BayesSpARRegressor("equal", centre, fit_intercept=False)
        estimator._learn(read_moments(fitted), eigen=eigen)
        estimator._set_head(new.weights, new.adaptation, target)
        return NewHead(new.weights, new.bias, changed, estimator, kept)
    ols = SpARRegressor(alpha, fit_intercept=b0 is not None, noise=noise)
    ols._learn(read_moments(fitted), eigen=eigen)
    directions = ols._fit.x.V
    if method == "spar" and target is not None:
        # The target keeps its other directions: the paper's SpAR decides along the target's full directions.
        ols._adapt_moments(target, eigen)
        directions = ols.adaptation_.z.V
    weights, bias = np.reshape(ols.coef_, w0.shape), np.reshape(ols.intercept_, len(w0))
    differs = np.abs((weights - w0) @ directions) > EPS64 * np.abs(w0).max()
    return NewHead(weights, bias, Changed(int(differs.sum()), differs.size), ols, kept)


def correct_head(head: NewHead, features: Matrix, labels: Matrix, counts: Vector) -> NewHead:
    """Return a head that is corrected with target labels, as by :class:`pyspar.TargetCorrection` with ``smooth=False``.

    Unknown labels (m, K) are NaN, and ``counts`` are the numbers of target rows that each row stands for.
    """
    if labels.shape[1] != len(head.coef):
        raise ValueError(f"labels must have one column for each of {len(head.coef)} output(s), got {labels.shape[1]}")
    drifts, reports = fit_outputs(features, features @ head.coef.T + head.intercept, labels, counts)
    coef, intercept = np.array(head.coef), np.array(head.intercept)
    for k, drift in enumerate(drifts):
        if drift is not None:
            coef[k], intercept[k] = drift.linear_weights(coef[k], float(intercept[k]))
    name = type(head.estimator).__name__
    forecasts = [None if drift is None else forecast_error(drift, name) for drift in drifts]
    return replace(head, coef=coef, intercept=intercept, drifts=tuple(reports), forecasts=tuple(forecasts))


def _linear_model(coef: Matrix, intercept: Vector) -> LinearRegression:
    model = LinearRegression()
    model.coef_, model.intercept_, model.n_features_in_ = coef, intercept, coef.shape[1]
    return model


def _project_features(features: Moments, directions: Matrix) -> Moments:
    """Return the moments with the features projected onto orthonormal directions (one per row).

    Outputs are unchanged. The precision of a column that the projection reduces to rounding is lowered, so that the
    column counts as constant.
    """
    d = features.n_features
    if len(directions) == d:
        return features
    root = features.root.copy()
    root[:, 1 : d + 1] = (root[:, 1 : d + 1] @ directions.T) @ directions
    rounding = _PROJECTION_SLACK * EPS64 * np.linalg.norm(features.column_lengths()[:d])
    lengths = column_norms(root[:, 1 : d + 1])
    share = np.divide(rounding, lengths, out=np.full(d, 0.5), where=lengths > 0.0)
    return replace(features, root=root, eps=np.maximum(features.eps, np.minimum(share, 0.5)), tails=None)

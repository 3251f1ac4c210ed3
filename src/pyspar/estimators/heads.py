"""New weights for a network's linear head, by each of the three methods, from the moments of its features."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from pyspar.core.adapt import Adaptation, adapt, rule_at
from pyspar.core.moments import EPS64, Matrix, Moments, Vector
from pyspar.core.refit import refit_head
from pyspar.core.regression import fit_ols
from pyspar.core.spectrum import Eigen, default_cutoff, directions_above, project_features
from pyspar.estimators.validation import CONFIDENCE, check_choice

HeadMethod = Literal["bayes", "spar", "ols"]


class Changed(NamedTuple):
    """The number of feature directions whose weight changed, and their total, summed over the head's outputs."""

    directions: int
    total: int

    def __bool__(self) -> bool:
        return self.directions > 0

    def __str__(self) -> str:
        return f"{self.directions} of {self.total} directions changed"


@dataclass(frozen=True, eq=False)
class NewHead:
    """The new weights (K, D) and biases (K,) of a head; ``adaptation`` is None for least squares."""

    coef: Matrix
    intercept: Vector
    changed: Changed
    adaptation: Adaptation | None


def check_head_options(method: Any, *, alpha: Any, cutoff: Any) -> None:
    """Raise ValueError for an invalid option of :func:`new_head_weights`, before the features are read."""
    check_choice("method", method, get_args(HeadMethod))
    if not CONFIDENCE.is_satisfied_by(alpha):
        raise ValueError(f"alpha must be {CONFIDENCE}, got {alpha!r}")
    if cutoff is not None and not (isinstance(cutoff, Real) and 0.0 <= float(cutoff) < 1.0):
        raise ValueError(f"cutoff must be in [0, 1), as a share of the largest singular value, got {cutoff!r}")


def new_head_weights(
    source: Moments, target: Moments | None, w0: Matrix, b0: Vector | None = None, method: HeadMethod = "bayes", *,
    alpha: float = 0.999, cutoff: float | None = None, error_roots: tuple[Matrix, ...] = (), eigen: Eigen | None = None,
) -> NewHead:  # fmt: skip
    """Return new weights for a trained head ``w0`` (K, D) with biases ``b0`` (None for a head without bias).

    "bayes" is :func:`pyspar.core.refit.refit_head`, with its ``error_roots``. "spar" replaces the head with SpAR and
    "ols" with least squares, with an intercept if the head has a bias; "ols" needs no target. ``source`` and ``target``
    are moments of the inputs of the head. Other options are those of :func:`pyspar.nn.adapt_head`.
    """
    w0 = np.asarray(w0, dtype=np.float64)
    if target is None and method != "ols":
        raise ValueError(f"method={method!r} needs a target, got None; pass its moments, or use method='ols'")
    if target is not None and method == "bayes":
        bias = np.zeros(len(w0)) if b0 is None else np.asarray(b0, dtype=np.float64)
        new = refit_head(source, target, w0, bias, alpha=alpha, cutoff=cutoff, error_roots=error_roots, eigen=eigen)
        return NewHead(w0 + new.w_proj.T, bias, Changed(int(new.n_kept.sum()), new.removed.size), new)
    kept = directions_above(source, default_cutoff(source) if cutoff is None else cutoff)
    fit = fit_ols(project_features(source, kept), fit_intercept=b0 is not None, eigen=eigen)
    weights, directions, adaptation = fit.w_hat, fit.x.V, None
    if target is not None and method == "spar":
        # The target keeps its other directions: the paper's SpAR decides along the target's full directions.
        adaptation = adapt(fit, target.without_outputs(), rule_at(alpha), eigen=eigen)
        weights, directions = adaptation.w_proj, adaptation.z.V
    differs = np.abs((weights.T - w0) @ directions) > EPS64 * np.abs(w0).max()
    bias = fit.y_mean - fit.x_mean @ weights
    return NewHead(weights.T.copy(), bias, Changed(int(differs.sum()), differs.size), adaptation)

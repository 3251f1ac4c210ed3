r"""Refit a correction along the directions that a test kept, and test the result again.

Let the columns of V be the kept directions. The refit is the posterior mean given that the correction is zero along all
other directions,

.. math:: \beta = (V^\top (X^\top X + kI) V)^{-1} V^\top X^\top r

where r are the errors of the centre. Directions are not orthogonal in the source, so a refitted correction differs from
the one that was tested. One row with a large error can determine it, although other rows made the direction
significant. Therefore every refitted correction must pass the same test. The directions that fail are dropped, and the
others are refitted, until all of them pass. Finally, a correction that changes the predictions more on the target than
on the source is scaled down. ``docs/derivations/method.md`` has the formulas.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lstsq, solve_triangular

from pyspar.core.arrays import Mask, Matrix, Vector
from pyspar.core.belief import RidgeBelief
from pyspar.core.moments import Moments
from pyspar.core.roots import root_sum_squares


def refit(belief: RidgeBelief, directions: Matrix, kept: Mask, threshold: float) -> tuple[Matrix, Mask]:
    """Return the refitted weights (D, K), and a mask of the kept directions that remain (J, K).

    A direction remains if its refitted weight exceeds ``threshold`` standard deviations. All directions remain without
    a test if the fit is exact (zero noise), or if the centre explains the labels (zero prior variance).
    """
    weights, remaining = np.zeros_like(belief.w_hat), kept.copy()
    for k, kappa in enumerate(belief.evidence.kappa):
        if not np.isfinite(kappa):  # the weights are those of the centre
            continue
        while (at := remaining[:, k]).any():
            V = directions[:, at]
            root, mean = _posterior_root(belief, V, k)
            along = lstsq(root, mean, lapack_driver="gelsy")[0]
            passes = np.abs(along) > threshold * _std_within(belief, V, root, k)
            if passes.all() or belief.sigma[k] == 0.0:
                weights[:, k] = V @ along
                break
            remaining[at, k] = passes
    return weights, remaining


def scale_factor(change: Matrix, source: Moments, target: Moments, origin: Vector | None = None) -> Vector:
    r"""Return the factor by which a change of the weights is scaled down, for each output.

    .. math:: s = \min(1, a^2 / b^2), \qquad a^2 = |X\beta|^2 / N, \qquad b^2 = |Z\beta|^2 / M

    The factor is below one if the change has a larger effect on the predictions for the target than on those for the
    source, both about an origin. A scaled correction does not increase the squared error on the target if its mean
    product with the errors of the centre is at least half of that on the source.

    >>> scale_factor(np.ones((1, 1)), Moments.of(np.ones((5, 1))), Moments.of(np.full((9, 1), 2.0)))
    array([0.25])
    """
    return factor_of_sizes(*(_change_size(change, moments, origin) for moments in (source, target)))


def factor_of_sizes(on_source: Vector, on_target: Vector) -> Vector:
    """Return the factor for a change with these root mean squares on source and target."""
    return np.square(np.divide(on_source, on_target, out=np.ones_like(on_target), where=on_target > on_source))


def _change_size(change: Matrix, moments: Moments, origin: Vector | None) -> Vector:
    d = moments.n_features
    root = moments.without_outputs().root_about(np.zeros(d) if origin is None else origin)
    return np.asarray(root_sum_squares(root @ change) / np.sqrt(moments.weight))


def _posterior_root(belief: RidgeBelief, V: Matrix, output: int) -> tuple[Matrix, Vector]:
    """Return R and m such that the refit minimises ``|R b - m|``: the precision of b is R'R, in units of the noise."""
    lam, root_kappa = belief.x.lam / belief.x.largest, np.sqrt(belief.evidence.kappa[output])
    w_hat = belief.w_hat[:, output]
    root = np.vstack([lam[:, None] * (belief.x.V.T @ V), root_kappa * np.eye(V.shape[1])])
    return root, np.concatenate([lam * (belief.x.V.T @ w_hat), root_kappa * (V.T @ w_hat)])


def _std_within(belief: RidgeBelief, V: Matrix, root: Matrix, output: int) -> Vector:
    """Return the standard deviation of each refitted weight: the larger of posterior and sandwich."""
    if belief.sigma[output] == 0.0:
        return np.zeros(V.shape[1])
    inverse = solve_triangular(np.linalg.qr(root, mode="r"), np.eye(V.shape[1]))
    std = np.sqrt(np.square(inverse).sum(axis=1))
    if belief.error_roots:
        gains = V @ (inverse @ inverse.T) / belief.x.largest
        std = np.maximum(std, root_sum_squares(belief.error_roots[output] @ gains))
    return np.asarray(std * (belief.sigma[output] / belief.x.largest))

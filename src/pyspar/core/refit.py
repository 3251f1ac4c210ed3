r"""Refit a network's linear head: correct it along the directions where the source labels show that it is wrong.

The prior is centred at the trained head ``w0``, with one scale for all features. Along the directions of the target,
and of the source outside them, a correction is kept if it differs from zero at confidence ``alpha``. The columns of V
are the kept directions. The refit is the posterior mean given that the correction is zero along all others,

.. math:: \beta = (V^\top (X^\top X + kI) V)^{-1} V^\top X^\top r

where r are the errors of the trained head. Four steps limit the correction; ``docs/method.md`` derives them.

1. *Faint directions.* Nothing is fitted along directions whose singular value is below a cutoff. The trained weights
   along them are removed from an output that changes, unless the error on the source would rise.
2. *Noise that differs between rows.* In all tests, a standard deviation is the larger of that of the posterior and of
   the sandwich estimate, where the noise of a row is proportional to the trained head's error (``error_roots``).
3. *Refit.* Directions are not orthogonal in the source, so a refitted correction differs from the tested one. It must
   pass the same test. Those that fail are dropped and the others are refitted, until all of them pass.
4. *Scale.* A change that has a larger effect on the target than on the source is scaled down.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, solve_triangular

from pyspar.core.adapt import Adaptation, adapt, chi2_rule, chi2_threshold, keep_rule
from pyspar.core.moments import Mask, Matrix, Moments, Vector, column_norms
from pyspar.core.regression import Prior, RidgePosterior, fit_ridge
from pyspar.core.spectrum import Eigen, Spectrum, default_cutoff, directions_above, rotate_features


def refit_head(
    source: Moments, target: Moments, w0: Matrix, b0: Vector, *, alpha: float = 0.999, alpha_again: float | None = None,
    cutoff: float | None = None, error_roots: tuple[Matrix, ...] = (), eigen: Eigen | None = None,
) -> Adaptation:  # fmt: skip
    """Return the change of a trained head with weights ``w0`` (K, D) and biases ``b0`` (K,), which stay as they are.

    The change of the weights is ``w_proj``, scaled by ``scale``; it is zero for outputs without a kept direction.
    ``source`` are the moments of the head's inputs and their labels, ``target`` those of its inputs on the target.
    ``alpha_again`` is the confidence of the second test, by default that of the first. ``cutoff`` is relative to the
    largest singular value; with zero, no direction is faint. ``error_roots`` has for each output a root of
    ``sum_i r_i^2 h_i h_i' / mean(r^2)`` over rows h with errors r (:func:`error_roots_of`). Without them, the tests
    assume that all rows have the same noise.
    """
    E = directions_above(source, default_cutoff(source) if cutoff is None else cutoff)
    # The head is computed in the coordinates of these directions, so no rounding along the others can get a weight.
    z, centre = rotate_features(target.without_outputs(), E), E @ w0.T
    left = (source.subtract_prediction(coef, b0).column_lengths() for coef in (w0.T, E.T @ centre))
    error, error_without = (lengths[source.n_features :] for lengths in left)
    faint = np.where(error_without > error * (1.0 + 1e-9), w0.T - E.T @ centre, 0.0)  # equal up to rounding: removed
    x = rotate_features(source.subtract_prediction(faint, np.zeros_like(b0)), E)
    roots = tuple(root @ E.T for root in error_roots)
    prior = Prior(np.ones(len(E)), centre, b0)
    fit = fit_ridge(x, prior, fit_intercept=False, eigen=eigen)
    tested = adapt(fit, prior.transform(z), keep_rule, include_source_directions=True, eigen=eigen)
    terms, V = tested.terms, tested.z.V
    std = np.where(terms.std > 0.0, np.maximum(terms.std, sandwich_std(fit, V, roots)), 0.0)
    kept = ~chi2_rule(replace(terms, std=std), alpha=alpha)
    change, kept = refit(fit, V, kept, chi2_threshold(alpha if alpha_again is None else alpha_again), roots)
    is_changed = (kept & (terms.mean != 0.0)).any(axis=0)
    change = np.where(is_changed, E.T @ (centre + change) + faint - w0.T, 0.0)
    scale = scale_factor(change, source, target)
    x_all, z_all = (Spectrum(part.lam, E.T @ part.V) for part in (fit.x, tested.z))
    w_hat, w_proj = E.T @ fit.w_hat, scale * change
    return replace(tested, w_hat=w_hat, w_proj=w_proj, removed=~kept, x=x_all, z=z_all, scale=scale)


def refit(
    fit: RidgePosterior, directions: Matrix, kept: Mask, threshold: float, roots: tuple[Matrix, ...] = ()
) -> tuple[Matrix, Mask]:
    """Return the refitted weights (D, K), and a mask of the kept directions that remain (J, K).

    A direction remains if its refitted weight exceeds ``threshold`` standard deviations. All directions remain without
    a test if the fit is exact (zero noise), or if the centre explains the labels (zero prior variance).
    """
    weights, remaining = np.zeros_like(fit.w_hat), kept.copy()
    for k, kappa in enumerate(fit.kappa):
        if not np.isfinite(kappa):  # the weights are those of the centre
            continue
        lam, w_hat = fit.x.lam / fit.x.largest, fit.w_hat[:, k]
        while (at := remaining[:, k]).any():
            V = directions[:, at]
            # The refit minimises |R b - m|: in units of the noise, R'R is the precision of the weights b along V.
            root = np.vstack([lam[:, None] * (fit.x.V.T @ V), np.sqrt(kappa) * np.eye(V.shape[1])])
            mean = np.concatenate([lam * (fit.x.V.T @ w_hat), np.sqrt(kappa) * (V.T @ w_hat)])
            along = lstsq(root, mean, lapack_driver="gelsy")[0]
            passes = fit.sigma[k] == 0.0 or np.abs(along) > threshold * _std_within(fit, V, root, k, roots)
            if np.all(passes):
                weights[:, k] = V @ along
                break
            remaining[at, k] = passes
    return weights, remaining


def scale_factor(change: Matrix, source: Moments, target: Moments) -> Vector:
    r"""Return the factor by which a change of the weights is scaled down, for each output.

    .. math:: s = \min(1, a^2 / b^2), \qquad a^2 = |X\beta|^2 / N, \qquad b^2 = |Z\beta|^2 / M

    The factor is below one if the change has a larger effect on the predictions for the target than on those for the
    source. A scaled correction does not increase the squared error on the target if its mean product with the errors
    of the trained head is at least half of that on the source.

    >>> scale_factor(np.ones((1, 1)), Moments.of(np.ones((5, 1))), Moments.of(np.full((9, 1), 2.0)))
    array([0.25])
    """
    a, b = (column_norms(m.root[:, 1 : m.n_features + 1] @ change) / np.sqrt(m.weight) for m in (source, target))
    return np.asarray(np.square(np.divide(a, b, out=np.ones_like(b), where=b > a)))


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


def sandwich_std(fit: RidgePosterior, directions: Matrix, roots: tuple[Matrix, ...]) -> Matrix | float:
    """Return the sandwich estimate of the standard deviation of ``<w_hat, e>``; zero without error roots."""
    if not roots:
        return 0.0
    lam2, overlap = (fit.x.lam / fit.x.largest) ** 2, fit.x.V.T @ directions
    gains = (fit.x.V @ (overlap / (lam2 + kappa)[:, None]) / fit.x.largest for kappa in fit.kappa)
    lengths = [column_norms(root @ gain) for root, gain in zip(roots, gains, strict=True)]
    return np.column_stack(lengths) * (fit.sigma / fit.x.largest)


def _std_within(fit: RidgePosterior, V: Matrix, root: Matrix, output: int, roots: tuple[Matrix, ...]) -> Vector:
    """Return the standard deviation of each refitted weight: the larger of posterior and sandwich."""
    inverse = solve_triangular(np.linalg.qr(root, mode="r"), np.eye(V.shape[1]))
    std = np.sqrt(np.square(inverse).sum(axis=1))
    if roots:
        gains = V @ (inverse @ inverse.T) / fit.x.largest
        std = np.maximum(std, column_norms(roots[output] @ gains))
    return np.asarray(std * (fit.sigma[output] / fit.x.largest))

r"""Candidates: the weights that extrapolation cross-validation weighs against each other, all from moments.

A prior says that no feature contributes much more than another. Measured in the source's units, a feature that hardly
varies there may still contribute without bound in a target where it varies a thousand times as much. So the main belief
measures each feature in units of the larger of its two spreads,

.. math:: u_j = \max\Big(1, \frac{t_j}{s_j}\Big), \qquad
    s_j^2 = \tfrac1N \sum_i (x_{ij} - \bar x_j)^2, \quad t_j^2 = \tfrac1M \sum_i (z_{ij} - \bar x_j)^2

in units of the source's: ridge regression that knows where it will be used. It stands at several penalties around that
of greatest evidence, beside ridge in the source's own units, with and without a rule, and the paper's method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pyspar.core.arrays import Matrix, Vector, root_sum_squares
from pyspar.core.belief import FlatBelief, flat_belief, noise_gain
from pyspar.core.moments import Moments
from pyspar.core.ridge import RidgeBelief, ridge_belief
from pyspar.core.risk import Terms
from pyspar.core.rules import chi2_rule, positive_part_rule
from pyspar.core.scaling import in_units_of, spread_of_features
from pyspar.core.spectrum import Spectrum

UNKNOWN = 1e10
"""Of what a feature does so many source spreads away its source can say nothing."""

REFERENCE = "target-ridge"
PENALTIES = {"target-ridge/10": 0.1, REFERENCE: 1.0, "target-ridge*10": 10.0, "target-ridge*100": 100.0}
"""Ridge in units of both source and target, by multiples of the penalty of greatest evidence."""

SPAR = "spar"
"""The paper's rule on least squares."""

RIDGE, SHRUNK, CAREFUL, PLAIN = "ridge", "ridge, positive part", "ridge-loo", "ridge-cv"
"""Ridge in the source's units: as the evidence has it; each target direction shrunk by its doubt; at the penalty of
leave-one-out, but none below that of the evidence; and at that penalty whatever it is, as everybody has it."""

NO_NOISE = 1e-2
"""The unit of penalties, as a share of the largest squared singular value, where the evidence found no noise at all."""


class Asked(NamedTuple):
    """The penalties of least leave-one-out error, in units of the belief's own: at least one, and any; per output."""

    careful: Vector
    plain: Vector


def target_units(source: Moments, target: Moments, *, fit_intercept: bool) -> Vector:
    """Return how many times its source spread each feature has to be measured in, at least once.

    One that is ``UNKNOWN`` times as loud in the target gets an infinite unit, and so no weight.

    >>> source, target = np.array([[-1.0, -1.0], [1.0, 1.0]]), np.array([[-5.0, 0.1], [5.0, 0.1]])
    >>> target_units(Moments.of(source), Moments.of(target), fit_intercept=True)
    array([5., 1.])
    """
    d = source.n_features
    mean = source.mean[:d] if fit_intercept else np.zeros(d)
    own = spread_of_features(source, fit_intercept=fit_intercept)
    there = root_sum_squares(target.without_outputs().root_about(mean)) / np.sqrt(target.weight)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        louder = np.where(own > 0.0, there / own, 1.0)
    return np.where(louder > UNKNOWN, np.inf, np.maximum(louder, 1.0))


def at_penalty(belief: RidgeBelief, multiple: float | Vector) -> Matrix:
    """Return the posterior mean, had the penalty been a multiple of what it is; zero is least squares.

    >>> source = Moments.of(np.array([[1.0], [1.0], [2.0]]), np.array([1.0, 0.9, 2.2]))
    >>> belief = ridge_belief(source, fit_intercept=False)
    >>> at_penalty(belief, 0.0).round(6).ravel()    # 6.3 / 6
    array([1.05])
    """
    return at_penalties(belief, [multiple * penalty(belief)])[0]


def penalty(belief: RidgeBelief) -> Vector:
    """Return the belief's penalty as a share of the largest squared singular value, per output.

    Where only noise was found it is zero: the weights are so at every penalty.
    """
    kappa = belief.evidence.kappa
    return np.where(np.isinf(kappa), 0.0, kappa)


def unit_of_penalties(belief: RidgeBelief) -> Vector:
    """Return what leave-one-out measures penalties in: the belief's own, and a fixed one where it has none."""
    kappa = belief.evidence.kappa
    return np.where(kappa == 0.0, NO_NOISE, penalty(belief))


def at_penalties(belief: RidgeBelief, penalties: Sequence[Vector]) -> list[Matrix]:
    """Return the posterior mean at each of several penalties, from one product."""
    if belief.x.rank == 0 or np.isinf(belief.evidence.kappa).all():
        return [belief.w_hat] * len(penalties)
    lam2 = ((belief.x.lam / belief.x.lam[0]) ** 2)[:, None]
    along = belief.x.V.T @ belief.w_hat
    shrunk = along[:, None] * ((lam2 + penalty(belief))[:, None] / (lam2[:, None] + np.array(penalties)))
    w = belief.x.V @ shrunk.reshape(len(along), -1)
    return list(w.reshape(len(w), len(penalties), -1).swapaxes(0, 1))


def candidate_weights(
    source: Moments, belief: RidgeBelief, target: Moments, z: Spectrum, *, alpha: float, asked: Asked | None
) -> dict[str, Matrix]:
    """Return the weights of every candidate, features x outputs, in the units of ``source``.

    ``belief`` is the ridge belief of ``source``, ``z`` the spectrum of the target about its mean. ``asked`` are
    the penalties that leave-one-out asks for, where they are known.
    """
    units = target_units(source, target, fit_intercept=belief.centred)
    there = ridge_belief(in_units_of(source, units), fit_intercept=belief.centred)
    at = at_penalties(there, [multiple * penalty(there) for multiple in PENALTIES.values()])
    found = {name: w / units[:, None] for name, w in zip(PENALTIES, at, strict=True)}
    unit = unit_of_penalties(belief)
    least_squares, *by_rows = at_penalties(belief, [0.0 * unit, *(multiple * unit for multiple in asked or ())])
    flat = _flat(belief, source, least_squares)
    std, gain = belief.std_and_gain_along(z.V)
    if flat.degrees_of_freedom > 0:  # else there is no noise to compare with, and the paper's rule removes nothing
        gain = gain if flat.x is belief.x else noise_gain(flat.x, z.V)
        terms = Terms(z.lam, z.V.T @ flat.w_hat, np.outer(gain, flat.sigma))
        found[SPAR] = flat.w_hat - z.V @ (chi2_rule(terms, alpha=alpha) * terms.mean)
    found[RIDGE] = belief.w_hat
    terms = Terms(z.lam, z.V.T @ belief.w_hat, std)
    found[SHRUNK] = belief.w_hat - z.V @ (positive_part_rule(terms, c=1.0) * terms.mean)
    return found | dict(zip((CAREFUL, PLAIN), by_rows, strict=bool(by_rows)))


def _flat(belief: RidgeBelief, source: Moments, w_hat: Matrix) -> FlatBelief:
    """Return the flat belief of the same source, given its weights; its spectrum is there already."""
    if belief.weight != source.weight or np.isinf(belief.evidence.kappa).any():
        return flat_belief(source, fit_intercept=belief.centred)
    flat = FlatBelief(
        w_hat,
        np.zeros(source.n_outputs),
        belief.x,
        belief.x_mean,
        belief.y_mean,
        source.weight,
        belief.centred,
        source.rows,
    )
    if flat.degrees_of_freedom <= 0:
        return flat
    root = source.root_about(np.concatenate([belief.x_mean, belief.y_mean]))
    d = source.n_features
    sigma = root_sum_squares(root[:, d:] - root[:, :d] @ w_hat) / np.sqrt(source.weight)
    return replace(flat, sigma=sigma)

r"""Directions: what each direction of a target would cost to keep and to remove, and where alpha takes it away.

Along the target's own directions errors add. With :math:`m_j` what least squares has along direction j and
:math:`\mu_j` the best guess, removing it changes the expected squared error by
:math:`\lambda_{z,j}^2 (2 m_j \mu_j - m_j^2) / M`: a gain wherever least squares says more than twice what is likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyspar.core.adapt import Adaptation
from pyspar.core.arrays import Matrix, Vector
from pyspar.estimators.path import alpha_path

LOADS = 5
COLUMNS = 12


@dataclass(frozen=True)
class Direction:
    """One direction of the target, for one output.

    Attributes
    ----------
    energy : float
        Share of the target's squared length about the source mean.
    keeping, removing : float
        Expected squared error per row of keeping its weight as least squares has it, and of setting it to zero.
    change : float
        What removing it adds to the expected squared error per row of least squares, given all that the source says; a
        gain where negative.
    inflation : float
        Spectral inflation in units of the noise: ``Var / (M sigma^2)``. Without a shift it would be ``1 / N``.
    goes : bool
        Whether the paper's rule removes it at the estimator's confidence.
    alpha, doubt : float
        The paper's rule removes it from this confidence on; ``doubt`` is one minus it, unrounded.
    outside : float
        The share of it that the source does not span.
    removed : float
        What this estimator took away of its weight, 0 to 1.
    loads : pairs of (column, share)
        The columns it consists of most.
    """

    energy: float
    keeping: float
    removing: float
    change: float
    inflation: float
    goes: bool
    alpha: float
    doubt: float
    outside: float
    removed: float
    loads: tuple[tuple[str, float], ...]


def directions_of(
    paper: Adaptation, removed: Matrix, guess: Matrix, columns: Sequence[str], output: int
) -> tuple[Direction, ...]:
    """Describe the target's directions for one output, the costliest to keep first.

    ``removed`` is what an estimator took away of each, ``guess`` the best weights in the adaptation's units. Features
    that share a name are one column.
    """
    path, M = alpha_path(paper), paper.n_target
    mean, lam2 = paper.terms.mean[:, output], _squared(paper.z.lam) / M
    var, bias = paper.var[:, output] / M, paper.bias_hat[:, output] / M
    likely = paper.z.V.T @ guess[:, output]
    change = lam2 * mean * (2.0 * likely - mean)
    sigma2 = float(paper.sigma2[output])
    inflation = var / sigma2 if sigma2 > 0.0 else np.zeros_like(var)
    # A direction that is known exactly is removed at no confidence below one.
    sure = paper.terms.std[:, output] == 0.0
    alpha, doubt = np.where(sure, 1.0, path.alpha[:, output]), np.where(sure, 0.0, path.doubt[:, output])
    energy, outside = energies(paper), paper.outside
    names, shares = by_column(paper.z.V, columns)
    found = []
    for j in np.argsort(-var, kind="stable"):
        top = np.argsort(-shares[:, j], kind="stable")[:LOADS]
        found.append(
            Direction(
                energy=float(energy[j]),
                keeping=float(var[j]),
                removing=float(bias[j]),
                change=float(change[j]),
                inflation=float(inflation[j]),
                goes=bool(paper.removed[j, output]),
                alpha=float(alpha[j]),
                doubt=float(doubt[j]),
                outside=float(outside[j]),
                removed=float(removed[j, output]),
                loads=tuple((names[i], float(shares[i, j])) for i in top if shares[i, j] > 0.0),
            )
        )
    return tuple(found)


def removed_columns(
    paper: Adaptation, removed: Matrix, columns: Sequence[str], output: int
) -> tuple[tuple[str, float], ...]:
    """Return the columns that what was removed consists of, each with its share, the largest first.

    A direction counts by what keeping it would have cost, or by its energy where that is zero throughout.
    """
    weight = removed[:, output] * paper.var[:, output]
    largest = float(weight.max(initial=0.0))
    if not 0.0 < largest < np.inf:
        weight = removed[:, output] * energies(paper)
        largest = float(weight.max(initial=0.0))
    if largest == 0.0:
        return ()
    names, shares = by_column(paper.z.V, columns)
    total = shares @ (weight / largest)
    total = total / total.sum()
    top = np.argsort(-total, kind="stable")[:COLUMNS]
    return tuple((names[i], float(total[i])) for i in top if total[i] >= 0.005)


def energies(paper: Adaptation) -> Vector:
    """Return each direction's share of the target's squared length."""
    energy = (paper.z.lam / paper.z.lam.max(initial=1e-300)) ** 2
    return np.asarray(energy / max(float(energy.sum()), 1e-300))


def by_column(V: Matrix, columns: Sequence[str]) -> tuple[tuple[str, ...], Matrix]:
    """Return the distinct columns, and the share of each direction that lies on each, columns x directions."""
    names = tuple(dict.fromkeys(columns))
    if len(names) == len(columns):
        return names, V**2
    place = {name: i for i, name in enumerate(names)}
    shares = np.zeros((len(names), V.shape[1]))
    np.add.at(shares, [place[name] for name in columns], V**2)
    return names, shares


def _squared(values: Vector) -> Vector:
    with np.errstate(over="ignore"):
        return np.asarray(values**2)

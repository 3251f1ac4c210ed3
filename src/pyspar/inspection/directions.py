r"""The directions of a target: the cost of keeping and of removing each one, and the alpha from which it is removed.

If the method in use has a rule, weights and costs are its own, otherwise those of least squares. Errors add along the
target's directions. Let :math:`m_j` be the weight along direction j before the rule and
:math:`\mu_j` the posterior mean. Removing the direction changes the expected squared error by
:math:`\lambda_{z,j}^2 (2 m_j \mu_j - m_j^2) / M`. This is a gain if :math:`m_j` is more than twice :math:`\mu_j`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyspar.core.adapt import Adaptation
from pyspar.core.arrays import Matrix, Vector
from pyspar.estimators.alpha_path import alpha_path
from pyspar.inspection.compare import Comparison

MAX_LOADS = 5
"""The number of columns that are listed for each direction."""
MAX_COLUMNS = 12
"""The number of columns that are listed for all removed directions together."""
MIN_COLUMN_SHARE = 0.005


@dataclass(frozen=True)
class Direction:
    """One direction of the target, for one output.

    Attributes
    ----------
    energy : float
        Its share of the target's squared length about the source mean.
    keeping, removing : float
        The expected squared error per row of keeping the weight (variance), and of setting it to zero (estimated
        bias).
    change : float
        The change of the expected squared error per row if the direction is removed; negative for a gain.
    inflation : float
        Spectral inflation in units of the noise: ``Var / (M sigma^2)``. Without a shift it is ``1 / N``.
    goes : bool
        Whether the rule removes it at the estimator's confidence; the paper's rule if the estimator has none.
    alpha, doubt : float
        The smallest confidence at which the paper's rule removes it; ``doubt`` is ``1 - alpha`` without cancellation.
    outside : float
        The share of its squared length outside the span of the source.
    removed : float
        The share of its weight that adapting the estimator removed, 0 to 1.
    loads : pairs of (column, share)
        The columns with the largest shares of it.
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


def describe_directions(
    comparison: Comparison, posterior_mean: Matrix, columns: Sequence[str], output: int
) -> tuple[Direction, ...]:
    """Describe the target's directions for one output, in order of falling variance cost.

    ``posterior_mean`` are weights in the comparison's units, as corrections to the prior's centre. Features that share
    a name are one column.
    """
    paper = comparison.adaptation
    path, M = alpha_path(paper), paper.n_target
    mean = paper.terms.mean[:, output]
    var, bias = paper.var[:, output] / M, paper.bias_hat[:, output] / M
    change = paper.z.lam**2 / M * mean * (2.0 * (paper.z.V.T @ posterior_mean[:, output]) - mean)
    sigma2 = float(paper.sigma2[output])
    inflation = var / sigma2 if sigma2 > 0.0 else np.zeros_like(var)
    # The rule removes a direction without uncertainty only at confidence 1.
    exact = paper.terms.std[:, output] == 0.0
    alpha, doubt = np.where(exact, 1.0, path.alpha[:, output]), np.where(exact, 0.0, path.doubt[:, output])
    names, shares = sum_by_column(paper.z.V, columns)
    values = {
        "energy": compute_energy_shares(paper), "keeping": var, "removing": bias, "change": change,
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


def list_removed_columns(comparison: Comparison, columns: Sequence[str], output: int) -> tuple[tuple[str, float], ...]:
    """Return the columns in the removed directions with their shares, the largest first.

    Directions are weighted by their variance cost, or by their energy if all variance costs are zero.
    """
    paper, removed = comparison.adaptation, comparison.removed[:, output]
    weight = removed * paper.var[:, output]
    largest = float(weight.max(initial=0.0))
    if not 0.0 < largest < np.inf:
        weight = removed * compute_energy_shares(paper)
        largest = float(weight.max(initial=0.0))
    if largest == 0.0:
        return ()
    names, shares = sum_by_column(paper.z.V, columns)
    total = shares @ (weight / largest)
    total = total / total.sum()
    order = np.argsort(-total, kind="stable")[:MAX_COLUMNS]
    return tuple((names[i], float(total[i])) for i in order if total[i] >= MIN_COLUMN_SHARE)


def compute_energy_shares(paper: Adaptation) -> Vector:
    """Return each direction's share of the target's squared length."""
    energy = (paper.z.lam / paper.z.lam.max(initial=1e-300)) ** 2
    return np.asarray(energy / max(float(energy.sum()), 1e-300))


def sum_by_column(V: Matrix, columns: Sequence[str]) -> tuple[tuple[str, ...], Matrix]:
    """Return the distinct columns, and the sum of the squares of each direction in each column."""
    names = tuple(dict.fromkeys(columns))
    if len(names) == len(columns):
        return names, V**2
    place = {name: i for i, name in enumerate(names)}
    shares = np.zeros((len(names), V.shape[1]))
    np.add.at(shares, [place[name] for name in columns], V**2)
    return names, shares

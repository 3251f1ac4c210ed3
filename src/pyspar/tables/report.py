"""From an adaptation to its account: the numbers that are printed, taken from those that were computed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from pyspar.bayes import BayesSpARRegressor
from pyspar.core.adapt import Adaptation
from pyspar.errors import SparWarning
from pyspar.tables.account import Direction, Expected, InspectAccount, Tables
from pyspar.tables.request import Request


def unbiased(found: Adaptation) -> Adaptation:
    """Return the adaptation with its expectations told for RSS / (N - rank); the rule used the paper's RSS / N."""
    spare = found.n_source - found.x.rank - 1
    return found.at_noise(found.sigma2 * found.n_source / spare) if spare > 0 else found


def expected_of(found: Adaptation) -> Expected:
    """Return what theory expects of the error, before and after."""
    # A source with no more rows than directions (and the intercept) is fitted exactly, but for rounding.
    known = found.n_source > found.x.rank + 1 and bool(found.sigma2[0] > 0.0)

    def per_row(risk: float) -> float | None:
        return float(np.sqrt(risk / found.n_target)) if known else None

    return Expected(
        directions=found.z.rank,
        removed=int((found.taken == 1.0).sum()),
        rmse_before=per_row(found.risk_before[0]),
        rmse_kept=per_row(found.variance_kept[0]),
        rmse_removed=per_row(found.bias_taken[0] + 2.0 * found.bias_std[0]),
        noise=float(np.sqrt(found.sigma2[0])) if known else None,
        outside=found.outside_energy,
    )


def expected_of_posterior(least_squares: Expected, found: Adaptation) -> Expected:
    """Return what theory expects of least squares, and what the posterior expects of the adapted weights."""
    return replace(
        least_squares,
        directions=found.z.rank,
        removed=int((found.taken == 1.0).sum()),
        shrunk=int(((found.taken > 0.0) & (found.taken < 1.0)).sum()),
        rmse_kept=float(np.sqrt(found.risk_after[0] / found.n_target)),
        rmse_removed=None,
        noise=float(np.sqrt(found.sigma2[0])) if found.sigma2[0] > 0.0 else None,
    )


def bayes_for(request: Request) -> BayesSpARRegressor:
    """Return the regressor that weighs its candidates, or uses the paper's rule where a confidence was given."""
    return BayesSpARRegressor() if request.alpha is None else BayesSpARRegressor(rule="chi2", alpha=request.alpha)


def strength_text(est: BayesSpARRegressor) -> str:
    """Return in words how much the regressor took away."""
    return f"the paper's rule at alpha {est.alpha:g}" if est.rule_scores_ is None else est.rule_scores_.summary


def inspection_of(
    found: Adaptation, tables: Tables, origins: Sequence[str], *, top: int, alpha: float, notes: tuple[str, ...]
) -> InspectAccount:
    """Return the spectral account: the directions that cost most, in falling order."""
    found = unbiased(found)
    total = float(found.risk_before[0])
    order = np.argsort(-found.var[:, 0], kind="stable")[:top]
    return InspectAccount(
        tables=tables,
        alpha=alpha,
        rank=found.x.rank,
        expected=expected_of(found),
        directions=tuple(_direction(found, int(j), total, origins) for j in order),
        mean_share=float(found.mean_risk[0]) / total if total > 0.0 else 0.0,
        notes=notes,
    )


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect our own warnings as notes, each once; those of others are shown as always."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SparWarning)
        yield notes
    for warning in caught:
        if issubclass(warning.category, SparWarning):
            notes.extend([str(warning.message)] if str(warning.message) not in notes else [])
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _direction(found: Adaptation, j: int, total: float, origins: Sequence[str]) -> Direction:
    loads: dict[str, float] = {}
    for name, square in zip(origins, found.z.V[:, j] ** 2):
        loads[name] = loads.get(name, 0.0) + float(square)
    var = float(found.var[j, 0])
    return Direction(
        var=var,
        inflation=float(found.inflation[j, 0]),
        share=var / total if total > 0.0 else 0.0,
        outside=float(found.outside[j]),
        removed=bool(found.taken[j, 0] == 1.0),
        loads=tuple(sorted(loads.items(), key=lambda item: -item[1])[:3]),
    )

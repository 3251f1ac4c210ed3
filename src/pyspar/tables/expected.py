"""From fitted weights to an account: what is expected of them on the target, by the forecast that the report shows."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pyspar.core.adapt import Adaptation
from pyspar.core.moments import Moments
from pyspar.errors import SparWarning
from pyspar.estimators.base import weights_of
from pyspar.estimators.bayes import BayesSpARRegressor
from pyspar.estimators.spar import SpARRegressor
from pyspar.inspection.compare import compute_removed_shares
from pyspar.tables.account import Expected
from pyspar.tables.request import Request

WHOLE = 0.995
"""A direction of which this share went is written 100 %, and called removed."""


def expected_of(target: Moments, plain: SpARRegressor, found: Adaptation, model: Any) -> Expected:
    """Forecast the error of least squares and of the weights that predict, both by one belief.

    ``plain`` is least squares and ``found`` its adaptation by the paper's rule; all is in the units of the
    encoded features.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what exceeds float64 is unknown, and shown as such
        forecaster = plain._forecaster(target)
        before, after = (
            forecaster.of(name, *weights_of(fitted)) for name, fitted in (("OLS", plain), ("model", model))
        )
    directions, removed, shrunk = _taken(found, model)
    return Expected(
        directions=directions,
        removed=removed,
        shrunk=shrunk,
        before=before,
        after=after,
        outside=found.outside_energy,
    )


def _taken(found: Adaptation, model: Any) -> tuple[int, int, int]:
    """Return how many directions there are, how many of them the model removed, and how many it shrank.

    The paper's rule counts its own directions. Otherwise the directions are those of least squares, and the model is
    compared with itself before it was adapted.
    """
    own: Adaptation | None = getattr(model, "adaptation_", None)
    if own is None:
        return found.z.rank, 0, 0
    if getattr(model, "rule", "chi2") == "chi2":
        return own.z.rank, int(own.removed.sum()), 0
    taken = compute_removed_shares(found.z.V, copy.copy(model).reset(), model, np.ones(len(found.z.V)))
    return found.z.rank, int((taken >= WHOLE).sum()), int(((taken > 1.0 - WHOLE) & (taken < WHOLE)).sum())


def bayes_for(request: Request) -> BayesSpARRegressor:
    """Return the recommended regressor, with the paper's rule where a confidence was given."""
    return BayesSpARRegressor() if request.alpha is None else BayesSpARRegressor(rule="chi2", alpha=request.alpha)


def choice_text(est: BayesSpARRegressor) -> str:
    """Return in words what the regressor found, and by which rule it removes directions."""
    rule = "" if est.rule == "keep" else f"the paper's rule at alpha {est.alpha:g}, "
    return f"{rule}features in units of their larger spread, noise {np.sqrt(est.sigma2_):.3g} by maximum evidence"


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

"""From fitted weights to an account: what is expected of them on the target, by the forecast that the report shows."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pyspar._forecasting import weights_of
from pyspar.bayes import BayesSpARRegressor
from pyspar.compared import taken_away
from pyspar.core.adapt import Adaptation
from pyspar.core.moments import Moments
from pyspar.errors import SparWarning
from pyspar.estimators import SpARRegressor
from pyspar.tables.account import Expected
from pyspar.tables.request import Request

WHOLE = 0.995
"""A direction of which this share went is written 100 %, and called removed."""


def expected_of(target: Moments, plain: SpARRegressor, found: Adaptation, model: Any) -> Expected:
    """Forecast the error of least squares and of the weights that predict, both under one posterior.

    ``plain`` is least squares and ``found`` its adaptation, whose directions are counted; all is in the units of the
    encoded features.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what exceeds float64 is unknown, and shown as such
        forecaster = plain._forecaster(target)
        before, after = (
            forecaster.of(name, *weights_of(fitted)) for name, fitted in (("OLS", plain), ("model", model))
        )
    unadapted = copy.copy(model).reset() if hasattr(model, "adaptation_") else model
    taken = taken_away(found.z.V, unadapted, model, np.ones(len(found.z.V)))
    return Expected(
        directions=found.z.rank,
        removed=int((taken >= WHOLE).sum()),
        shrunk=int(((taken > 1.0 - WHOLE) & (taken < WHOLE)).sum()),
        before=before,
        after=after,
        outside=found.outside_energy,
    )


def bayes_for(request: Request) -> BayesSpARRegressor:
    """Return the recommended regressor, with the paper's rule where a confidence was given."""
    return BayesSpARRegressor() if request.alpha is None else BayesSpARRegressor(rule="chi2", alpha=request.alpha)


def choice_text(est: BayesSpARRegressor) -> str:
    """Return in words how the regressor treats the target's directions."""
    where = f"noise {np.sqrt(est.sigma2_):.3g} by maximum evidence, in units of the larger spread"
    return where if est.rule == "keep" else f"{where}; the paper's rule at alpha {est.alpha:g}"


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

"""The result of an inspection as data. The terminal, the JSON file and the HTML report all show this object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pyspar.core.forecast import Forecast
from pyspar.inspection.directions import Direction
from pyspar.inspection.findings import Finding
from pyspar.inspection.judgement import ASSUMPTION
from pyspar.inspection.target_rows import Predictions


@dataclass(frozen=True)
class OutputInspection:
    """The inspection of one output.

    Attributes
    ----------
    name : str
    forecasts : tuple of Forecast
        For each set of weights, on the whole target.
    groups : dict of group to tuple of Forecast
    directions : tuple of Direction
        The target's directions in order of falling variance cost.
    columns : pairs of (column, share)
        The columns in the removed directions.
    in_distribution : float
        The expected RMSE of least squares on rows like those of the source.
    label_mean, label_std : float
        Of the source labels.
    worth : bool
        Whether adapting reduces the expected error by more than 5 %.
    verdict : str
    findings : tuple of Finding
        The findings about this output; ``Inspection.findings`` has all findings.
    predictions : Predictions or None
        For a sample of rows; None if the target has no rows in memory.
    """

    name: str
    forecasts: tuple[Forecast, ...]
    groups: Mapping[str, tuple[Forecast, ...]]
    directions: tuple[Direction, ...]
    columns: tuple[tuple[str, float], ...]
    in_distribution: float
    label_mean: float
    label_std: float
    worth: bool
    verdict: str
    findings: tuple[Finding, ...]
    predictions: Predictions | None

    def forecast(self, name: str) -> Forecast:
        """Return the forecast of one set of weights."""
        for forecast in self.forecasts:
            if forecast.name == name:
                return forecast
        raise KeyError(f"no weights named {name!r}; the names are {[forecast.name for forecast in self.forecasts]}")


@dataclass(frozen=True)
class Inspection:
    """The result of :func:`pyspar.inspect`; ``as_dict`` returns it as plain Python for JSON.

    ``adapted`` is the name of the weights that adapting the estimator gives. ``findings`` lists first the findings
    about each output, whose ``output`` is its name, and then the findings about the features, whose ``output`` is None.
    """

    n_source: float
    n_target: float
    columns: tuple[str, ...]
    estimator: str
    adapted: str
    alpha: float
    rank: int
    outside_energy: float
    findings: tuple[Finding, ...]
    outputs: tuple[OutputInspection, ...]
    assumption: str = ASSUMPTION

    def as_dict(self) -> dict[str, Any]:
        """Return numbers, text, lists and dicts; numbers that are not finite become None."""
        return dict(to_plain(asdict(self)))

    def __repr__(self) -> str:
        return "\n".join(output.verdict for output in self.outputs)


def to_plain(value: Any) -> Any:
    """Return a value as plain Python for JSON: lists, dicts, and None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""What labels of target rows show: the RMSE with its interval, and whether it confirms the forecast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspar.core.mean_square import SquaredErrors
from pyspar.errors import InputError
from pyspar.estimators.forecasts import EXCESS
from pyspar.sources import kind_of

MIN_LABELS = 10
"""Fewer labels never confirm a forecast."""
ROWS_TO_LABEL = 40
"""With this many labels the upper end of the interval is about 1.3 times the RMSE, if the errors are normal."""


@dataclass(frozen=True)
class LabelEvidence:
    """What labels of target rows show about one set of weights.

    Attributes
    ----------
    n : int
        The number of labelled rows.
    rmse : float
        The RMSE on these rows.
    interval : pair of float
        A 95 % interval of the RMSE on all target rows, if the labelled rows were drawn at random.
    confirmed : bool
        Whether at least 10 labels show that the error is at most 1.3 times the error at home: the upper end of the
        interval is at most that large.
    """

    n: int
    rmse: float
    interval: tuple[float, float]
    confirmed: bool


def weigh_evidence(errors: SquaredErrors, home: float) -> LabelEvidence:
    """Return what the errors of labelled rows show, given the error at home."""
    low, high = errors.interval()
    return LabelEvidence(errors.n, errors.rmse, (low, high), errors.n >= MIN_LABELS and high <= EXCESS * home)


def read_target_labels(y: Any, Z: Any, n_outputs: int) -> Any:
    """Return the labels of the target rows as (rows, outputs), with NaN where a label is unknown."""
    if kind_of(Z) not in ("rows", "sparse"):
        raise InputError(f"y needs target rows in memory, got {type(Z).__name__} as Z; pass the rows")
    try:
        y = np.ma.filled(y.astype(np.float64), np.nan) if isinstance(y, np.ma.MaskedArray) else y
        labels = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"y must contain numbers, with NaN for unknown labels ({error})") from error
    n_rows = Z.shape[0] if hasattr(Z, "shape") else len(Z)
    columns = labels[:, None] if labels.ndim == 1 else labels
    if columns.shape != (n_rows, n_outputs):
        raise InputError(
            f"y must have one label for each of {n_rows} target rows and {n_outputs} outputs, got the shape "
            f"{labels.shape}; use NaN for unknown labels"
        )
    if np.isinf(columns).any():
        raise InputError("y must be finite, with NaN for unknown labels, got infinity")
    return columns

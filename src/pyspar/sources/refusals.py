"""Admitted: what every way of giving rows refuses alike, since numpy would read it as numbers that mean nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

LIGHTEST, HEAVIEST = 1e-150, 1e150
"""Between these lies the largest weight: the square of one beyond, or of its inverse, is no float64."""
_TIMES = ("date", "time", "period", "duration")
"""How the types of dates and durations begin in numpy, pandas, polars and arrow."""


def refuse_dates(name: str, values: Any) -> None:
    """Refuse dates and durations, which numpy reads as a count of nanoseconds or of whatever their unit is.

    >>> refuse_dates("y", np.array(["2026-01-31"], dtype="datetime64[D]"))
    Traceback (most recent call last):
    TypeError: y must hold numbers. Got dates or durations; turn them into numbers first, ...
    """
    columns = getattr(values, "columns", None)
    if columns is not None and len(values.shape) == 2:  # Dask's series have columns too
        found = [str(column) for column, dtype in zip(columns, values.dtypes) if _of_time(dtype)]
        there, where = bool(found), f" in {', '.join(map(repr, found[:8]))}{' and more' if len(found) > 8 else ''}"
    else:
        there, where = _of_time(getattr(values, "dtype", None)) or _starts_with_time(values), ""
    if there:
        raise TypeError(
            f"{name} must hold numbers. Got dates or durations{where}; turn them into numbers first, for example into "
            "days: (dates - dates.min()) / numpy.timedelta64(1, 'D')."
        )


def refuse_extreme_weights(name: str, weight: Any) -> None:
    """Refuse weights too large or too small to be squared; those of one data set are judged by their largest.

    >>> refuse_extreme_weights("sample_weight", [1e-310, 0.0])
    Traceback (most recent call last):
    ValueError: sample_weight must have its largest between 1e-150 and 1e+150. Got 1e-310; divide all weights ...
    """
    if weight is None:
        return
    if hasattr(weight, "detach"):
        largest = float(weight.max()) if weight.numel() else 0.0
    else:
        try:
            largest = float(np.max(np.asarray(weight, dtype=np.float64), initial=0.0))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name} must hold one number for each row. Got what cannot be one: {error}.") from None
    # What is zero everywhere, or not finite, is refused elsewhere, and for a better reason.
    if 0.0 < largest < LIGHTEST or HEAVIEST < largest < np.inf:
        raise ValueError(
            f"{name} must have its largest between {LIGHTEST:g} and {HEAVIEST:g}. Got {largest:g}; divide all "
            "weights by the largest of them first."
        )


def _of_time(dtype: Any) -> bool:
    name = (dtype.name if isinstance(dtype, np.dtype) else str(dtype)).lower()
    return name.startswith(_TIMES)


def _starts_with_time(values: Any) -> bool:
    """Say whether the first row of a list, which has no type of its own, holds numpy's dates."""
    if not isinstance(values, (list, tuple)) or not values:
        return False
    first = values[0]
    entries = first if isinstance(first, (list, tuple)) else [first]
    return any(isinstance(getattr(entry, "dtype", None), np.dtype) and _of_time(entry.dtype) for entry in entries)

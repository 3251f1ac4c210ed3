"""Grouped: the rows of a target by a label that each of them carries, such as a region or a month."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyspar.core.moments import Moments
from pyspar.errors import InputError


def rows_by_group(groups: Any, Z: Any) -> dict[str, Any]:
    """Return the places of the rows of each group, by its name, in the order of the labels.

    >>> rows_by_group(["b", "a", "b"], np.zeros((3, 1)))
    {'a': array([1]), 'b': array([0, 2])}
    """
    label = np.asarray(groups, dtype=object)
    rows = np.shape(Z)[0] if isinstance(Z, (list, tuple)) else getattr(Z, "shape", (None,))[0]
    if isinstance(Z, Moments) or label.ndim != 1 or len(label) != rows:
        raise InputError(
            f"groups must have one entry for each row of Z. Got shape {label.shape} for "
            f"{'Moments, which have no rows' if isinstance(Z, Moments) else f'{rows} rows'}."
        )
    without = [place for place, value in enumerate(label) if _missing(value)]
    if without:
        raise InputError(
            f"groups must name a group for every row. Got none for {len(without)} of {len(label)} rows, the first of "
            f"them row {without[0]}; give them a name of their own, for example with groups.fillna('unknown')."
        )
    places: dict[Any, list[int]] = {}
    for place, value in enumerate(label):
        try:
            places.setdefault(value, []).append(place)
        except TypeError as error:
            raise InputError(f"groups must be plain labels, numbers or text. Got {value!r} in row {place}.") from error
    named: dict[str, Any] = {}
    for value in _ordered(list(places)):
        if str(value) in named:
            raise InputError(
                f"groups must be of one type. Got numbers and text that are both written {str(value)!r}; pass "
                "[str(group) for group in groups] if they are the same group."
            )
        named[str(value)] = np.array(places[value])
    return named


def _ordered(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # labels of several types have no order of their own
        return sorted(values, key=str)


def _missing(value: Any) -> bool:
    """Say whether a label stands for none: None, or what is not equal to itself (NaN, NaT, pandas' NA)."""
    same = value is not None and value == value
    return not isinstance(same, (bool, np.bool_)) or not same

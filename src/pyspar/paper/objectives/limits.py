"""Limits: what an objective or an augmentation may be set to, checked where it is set."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real

from pyspar.errors import InputError


def number(name: str, value: object, *, low: float = 0.0, high: float = math.inf, cure: str) -> float:
    """Return a finite number of [low, high], or say what was expected.

    >>> number("weight", 2, cure="the paper's base is 1.0")
    2.0
    >>> number("weight", -1, cure="the paper's base is 1.0")
    Traceback (most recent call last):
    pyspar.errors.InputError: weight must be a finite number of at least 0. Got -1 instead; the paper's base is 1.0.
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        found = float(value)
        if math.isfinite(found) and low <= found <= high:
            return found
    limits = f"of at least {low:g}" if high == math.inf else f"in [{low:g}, {high:g}]"
    raise InputError(f"{name} must be a finite number {limits}. Got {value!r} instead; {cure}.")


def whole(name: str, value: object, *, low: int, cure: str) -> int:
    """Return an integer of at least ``low``, or say what was expected."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low:
        return int(value)
    raise InputError(f"{name} must be a whole number of at least {low}. Got {value!r} instead; {cure}.")


def one_of(name: str, value: object, choices: Collection[object]) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        shown = ", ".join(repr(choice) for choice in choices)
        raise InputError(f"{name} must be one of {shown}. Got {value!r} instead; pass one of them.")

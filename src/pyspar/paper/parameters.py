"""Checks of parameters of objectives, networks, training settings and data sets: ranges, choices and names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real

from pyspar.errors import InputError
from pyspar.text import suggest_name


def check_number(
    name: str, value: object, *, low: float = 0.0, high: float = math.inf, positive: bool = False, hint: str = ""
) -> float:
    """Return ``value`` as a float, or raise if it is not a finite number in [low, high]. ``positive`` excludes 0."""
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number) and low <= number <= high and not (positive and number <= 0):
            return number
    interval = f"{'(' if positive else '['}{low:g}, {high:g}{')' if high == math.inf else ']'}"
    raise _wrong_value(name, f"a number in {interval}", value, hint)


def check_integer(name: str, value: object, *, low: int, hint: str = "") -> int:
    """Return ``value`` as an int, or raise if it is not an integer of at least ``low``."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low:
        return int(value)
    raise _wrong_value(name, f"an integer of at least {low}", value, hint)


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise if ``value`` is not one of ``choices``."""
    choices = list(choices)
    if value not in choices:
        *first, last = map(repr, choices)
        raise _wrong_value(name, f"{', '.join(first)} or {last}" if first else last, value, "")


def check_name(kind: str, name: str, names: Iterable[str]) -> str:
    """Return a name that exists, or raise ``InputError`` with the closest ones and with all of them."""
    known = sorted(names)
    if name in known:
        return name
    suggestion = suggest_name(name, known)
    end = f"; {suggestion}" if suggestion else "."
    raise InputError(f"unknown {kind}: {name!r}{end} Choose from: {', '.join(known)}.")


def _wrong_value(name: str, expected: str, value: object, hint: str) -> InputError:
    return InputError(f"{name} must be {expected}, got {value!r}{f'; {hint}' if hint else ''}")

"""Column names: unique, and when one is not there, what was probably meant."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from pyspar.errors import InputError

_CLOSE = 0.78
"""One slip of the pen in five letters ('prize' for 'price'), but not one in four ('rate' for 'date')."""

_NAMED = 20
"""So many columns can still be copied from a message to the command line."""


def check_names(names: Iterable[str], where: str) -> None:
    """Refuse names that occur twice: which of the two was meant cannot be known."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{where}: expected every column name once. Got {few(twice)} more than once; rename them.")


def few(names: Iterable[object], limit: int = 6) -> str:
    """Return names as a short list.

    >>> few(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def left_out(names: Sequence[str]) -> str:
    """Return the cure for columns that one can do without, as it is written on the command line.

    >>> left_out(["tax", "living area"])
    "leave the columns out with --drop tax --drop 'living area'"
    >>> left_out(["tax"])
    'leave the column out with --drop tax'
    """
    words = " ".join(f"--drop {shlex.quote(name)}" for name in names[:_NAMED])
    more = f" and so on, {len(names)} in all" if len(names) > _NAMED else ""
    return f"leave the column{'' if len(names) == 1 else 's'} out with {words}{more}"


def meant(name: str, names: Iterable[str]) -> str:
    """Return the cure for a name that is not there.

    >>> meant("Pirce", ["rooms", "price"])
    "did you mean 'price'?"
    >>> meant("rate", ["date", "price"])
    "its columns are 'date', 'price'."
    """
    names = list(names)
    lowered = {other.lower(): other for other in reversed(names)}
    key = name.lower()
    close = [key] if key in lowered else get_close_matches(key, list(lowered), n=3, cutoff=_CLOSE)
    if close:
        return f"did you mean {' or '.join(repr(lowered[c]) for c in close)}?"
    return f"its columns are {few(names, 12)}."

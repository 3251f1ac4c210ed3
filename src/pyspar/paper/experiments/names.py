"""Names that a person types: found, or refused with the nearest ones that exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pyspar.errors import InputError


def known(kind: str, name: str, names: Iterable[str]) -> str:
    """Return the name if it exists, else say which come nearest.

    >>> known("suite", "tabular", ["tabular", "alpha"])
    'tabular'
    >>> known("suite", "tabluar", ["tabular", "alpha"])
    Traceback (most recent call last):
    pyspar.errors.InputError: expected a suite. Got 'tabluar'; did you mean 'tabular'? There are: alpha, tabular.
    """
    every = sorted(names)
    if name in every:
        return name
    spelt = {each.lower(): each for each in every}
    close = [spelt[each] for each in difflib.get_close_matches(name.lower(), spelt, n=2)]
    guess = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    raise InputError(f"expected a {kind}. Got {name!r}; {guess}There are: {', '.join(every)}.")

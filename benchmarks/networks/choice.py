"""Select the real shifts by a rule that uses no result.

The candidates are the data sets of the parts ``last``, ``final``, ``reserve``, ``check``, ``blind`` and ``unseen`` of
``benchmarks.shifts``. A candidate qualifies if it has at least 1,000 source rows, at least 300 target rows and at least
5 columns. All candidates that qualify are used: 23 sets of ``last``, 40 of ``final``, 41 of ``reserve``, 35 of
``check``, 35 of ``blind`` and 25 of ``unseen``. They are ordered by the SHA-256 hash of their name. The page describes
which sets influenced the method.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from benchmarks.shifts.sets import BLIND, CHECK, REGISTER, RESERVE, UNSEEN, Task

DESIGN_PARTS = ("last", "final")
"""The parts whose results led to the rule "refit". Later tests of the corrections were also chosen on other parts."""
PARTS = (*DESIGN_PARTS, RESERVE, CHECK, BLIND, UNSEEN)
FEWEST_SOURCE_ROWS = 1000
FEWEST_TARGET_ROWS = 300
FEWEST_COLUMNS = 5


def chosen(parts: Sequence[str] = PARTS) -> dict[str, list[str]]:
    """Return the names of all sets that qualify, by part."""
    return by_part(name for name, shift in REGISTER.items() if shift.part in parts and _qualifies(name))


def by_part(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names by part: first the parts of the rule, and within each part in the order of the hash."""
    parts: dict[str, list[str]] = {part: [] for part in PARTS}
    for name in sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        parts.setdefault(REGISTER[name].part, []).append(name)
    return {part: in_part for part, in_part in parts.items() if in_part}


def _qualifies(name: str) -> bool:
    X, _, Z, _ = Task(REGISTER[name], "raw").arrays()
    return len(X) >= FEWEST_SOURCE_ROWS and len(Z) >= FEWEST_TARGET_ROWS and X.shape[1] >= FEWEST_COLUMNS

"""Accounts: every number that a command prints, as data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspar.core.forecast import Forecast
from pyspar.inspection import Inspection
from pyspar.inspection.unseen_categories import UnseenRows
from pyspar.tables.columns import Ignored


@dataclass(frozen=True)
class Filled:
    """Missing values of one column, and what stands in their place."""

    column: str
    source: int
    target: int
    by: str


@dataclass(frozen=True)
class Tables:
    """The two tables as they were understood."""

    label: str
    n_source: int
    n_target: int
    n_numeric: int
    n_categorical: int
    n_date: int
    n_encoded: int
    filled: tuple[Filled, ...]
    ignored: tuple[Ignored, ...]
    unseen: UnseenRows


@dataclass(frozen=True)
class Expected:
    """What is expected of the error on the target, by one belief for all weights.

    Attributes
    ----------
    directions, removed, shrunk : int
        How many directions the target has, how many were removed, and along how many the weight became smaller.
    before, after : Forecast
        Of least squares and of the weights that predict, on labels with their noise.
    outside : float
        The share of the target's energy that the source does not span.
    """

    directions: int
    removed: int
    shrunk: int
    before: Forecast
    after: Forecast
    outside: float


@dataclass(frozen=True)
class Scored:
    """The error on the target's own labels, which were used for nothing else."""

    rows: int
    rmse_least_squares: float
    rmse: float


@dataclass(frozen=True)
class AdaptAccount:
    """What ``spar adapt`` did; ``has_rows`` is false for a target of Moments, which cannot be predicted."""

    tables: Tables
    method: str
    alpha: float
    rank: int
    expected: Expected
    chosen: str | None
    scored: Scored | None
    notes: tuple[str, ...]
    output: Path | None
    save: Path | None
    has_rows: bool = True


@dataclass(frozen=True)
class SummaryAccount:
    """What ``spar summarize`` wrote."""

    rows: int
    features: int
    label: str | None
    n_bytes_in: int
    n_bytes_out: int
    ignored: tuple[Ignored, ...]
    output: Path


@dataclass(frozen=True)
class InspectAccount:
    """What ``spar inspect`` found: ``inspection`` has all of it, ``top`` says how many directions to show.

    ``written`` are the reports.
    """

    tables: Tables
    inspection: Inspection
    top: int
    notes: tuple[str, ...]
    written: tuple[Path, ...] = ()

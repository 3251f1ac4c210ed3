"""Accounts: every number that a command prints, as data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspar.inspection import Inspection
from pyspar.tables.columns import Ignored


@dataclass(frozen=True)
class Filled:
    """Missing values of one column, and what stands in their place."""

    column: str
    source: int
    target: int
    by: str


@dataclass(frozen=True)
class Unseen:
    """Categories of one column that the source never had."""

    column: str
    rows: int
    categories: tuple[str, ...]


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
    unseen: tuple[Unseen, ...]


@dataclass(frozen=True)
class Expected:
    """What theory says of the error on the noiseless target, if the labels are linear in the features.

    Attributes
    ----------
    directions, removed, shrunk : int
        How many directions the target has, how many went, and how many went in part.
    rmse_before : float or None
        What the label noise makes of least squares; None where the source leaves no rows to estimate its noise from.
    rmse_kept : float or None
        What it makes of the directions that stay; with the method bayes, of all that is not known of the weights.
    rmse_removed : float or None
        What the removed directions carried costs at most this much, two standard errors above its estimate.
    noise : float or None
        The standard deviation of the noise in one label.
    outside : float
        The share of the target's energy that the source does not span.
    """

    directions: int
    removed: int
    rmse_before: float | None
    rmse_kept: float | None
    rmse_removed: float | None
    noise: float | None
    outside: float
    shrunk: int = 0


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
class Direction:
    """One target direction, and the raw columns it loads on with their shares."""

    var: float
    inflation: float
    share: float
    outside: float
    removed: bool
    loads: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class InspectAccount:
    """What ``spar inspect`` found; the directions are the worst ones, in falling order of expected error.

    ``inspection`` has the forecasts and findings, ``written`` the reports.
    """

    tables: Tables
    alpha: float
    rank: int
    expected: Expected
    directions: tuple[Direction, ...]
    mean_share: float
    notes: tuple[str, ...]
    inspection: Inspection | None = None
    written: tuple[Path, ...] = ()

"""The facts that findings are derived from: facts about the features, and facts about each label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyspar.core.prior import inverse, spread_of_features
from pyspar.core.spectrum import ROUNDING_SLACK
from pyspar.inspection.compare import Comparison, get_fitted_units
from pyspar.inspection.directions import Direction, sum_by_column
from pyspar.inspection.judgement import Judgement

MAX_MEAN_SHIFT = 3.0
"""A column is reported if its mean moves by more than this many source standard deviations."""


@dataclass(frozen=True)
class FeatureFacts:
    """Facts about the features.

    Attributes
    ----------
    rows, rank : float, int
        Of the source.
    outside : float
        The share of the target's variation outside the span of the source.
    constant : tuple of str
        Columns with one value in the source and other values in the target.
    moved : pairs of (column, distance)
        Columns whose mean moved, in source standard deviations, the farthest first.
    scale_ratio : float
        The largest spread of a column divided by the smallest, in the units that the regressor uses.
    """

    rows: float
    rank: int
    outside: float
    constant: tuple[str, ...]
    moved: tuple[tuple[str, float], ...]
    scale_ratio: float


@dataclass(frozen=True)
class LeadingColumn:
    """The column that explains most of a label on the source.

    Attributes
    ----------
    name : str
    share : float
        Its share of the squared contributions of all columns.
    n_columns : int
    reach : float
        The distance of the column from the source mean in the target, divided by that in the source.
    """

    name: str
    share: float
    n_columns: int
    reach: float


@dataclass(frozen=True)
class LabelFacts:
    """Facts about one label: its judgement, its directions, the limit of its evidence and its leading column."""

    judgement: Judgement
    directions: tuple[Direction, ...]
    limit: str
    leader: LeadingColumn | None = None


def gather_feature_facts(comparison: Comparison, columns: Sequence[str]) -> FeatureFacts:
    """Return the facts about the features; ``columns`` holds the name of each feature."""
    estimator, target = comparison.estimator, comparison.target.without_outputs()
    source, d = estimator._source, target.n_features
    mean, spread = source.mean[:d], spread_of_features(source, fit_intercept=True)
    rounding = ROUNDING_SLACK * target.eps * target.column_lengths() / np.sqrt(target.weight)
    constant = (spread == 0.0) & (target.spread_about(mean) > rounding)
    shift = np.abs(target.mean[:d] - mean) * inverse(spread)
    moved: dict[str, float] = {}
    for j in np.argsort(-shift, kind="stable"):
        if shift[j] > MAX_MEAN_SHIFT:
            moved.setdefault(columns[j], float(shift[j]))  # of features with one name, the farthest
    units = get_fitted_units(estimator)
    scales = (spread * inverse(units))[(spread > 0.0) & (units > 0.0)]
    return FeatureFacts(
        rows=source.weight,
        rank=int(estimator.rank_),
        outside=comparison.adaptation.outside_energy,
        constant=tuple(dict.fromkeys(columns[int(j)] for j in np.flatnonzero(constant))),
        moved=tuple(moved.items()),
        scale_ratio=float(scales.max() / scales.min()) if scales.size else 1.0,
    )


def find_leading_columns(comparison: Comparison, columns: Sequence[str]) -> tuple[LeadingColumn | None, ...]:
    """Return for each output the column with the largest contribution on the source, by the weights of ridge."""
    source, target = comparison.estimator._source, comparison.target
    spread = spread_of_features(source, fit_intercept=True)
    reach = target.spread_about(source.mean[: target.n_features]) * inverse(spread)
    contribution = comparison.candidates["ridge"][0] * spread[:, None]
    names, squares = sum_by_column(contribution / np.abs(contribution).max(axis=0, initial=1e-300), columns)
    leaders: list[LeadingColumn | None] = []
    for squared in squares.T:
        total, place = float(squared.sum()), int(np.argmax(squared))
        name = names[place]
        farthest = max(float(reach[j]) for j, column in enumerate(columns) if column == name)
        is_known = 0.0 < total < np.inf
        leaders.append(LeadingColumn(name, float(squared[place]) / total, len(names), farthest) if is_known else None)
    return tuple(leaders)

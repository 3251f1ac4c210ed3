"""Target rows in categories that do not occur in the source.

An encoder that accepts such a row encodes it as zeros or as a rare category, so the row looks like any other. The
forecasts do not cover these rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder

from pyspar.errors import warn
from pyspar.estimators.validation import is_missing
from pyspar.text import list_some

MAX_COLUMNS = 3


@dataclass(frozen=True)
class UnseenColumn:
    """The unseen categories of one column, the most frequent first, and the number of rows that have them."""

    column: str
    rows: int
    categories: tuple[str, ...]


@dataclass(frozen=True)
class UnseenRows:
    """The number of target rows with an unseen category in any column, and the columns."""

    rows: int
    n_target: int
    columns: tuple[UnseenColumn, ...]

    @property
    def verb(self) -> str:
        return "has" if self.rows == 1 else "have"


NO_UNSEEN_ROWS = UnseenRows(0, 0, ())


def find_unseen(preprocessing: Any, Z: Any, sample_weight: Any = None) -> UnseenRows:
    """Return the rows whose categories the one-hot encoders in fitted preprocessing did not see and yet accept.

    Rows with weight zero are ignored.
    """
    has_weight = np.ones(1, dtype=bool) if sample_weight is None else np.asarray(sample_weight) != 0.0
    return summarise_unseen(_find_new_values(preprocessing, Z, None), has_weight)


def summarise_unseen(found: Iterable[tuple[str, Any, Any]], has_weight: Any = True) -> UnseenRows:
    """Return the rows with unseen categories, given for each column its name, its values and which are unseen."""
    columns: dict[str, UnseenColumn] = {}
    is_unseen = np.zeros(1, dtype=bool)
    for name, values, is_new in found:
        counted = is_new & has_weight
        if counted.any():
            is_unseen = is_unseen | counted
            counts = Counter(map(str, values[counted]))
            categories = sorted(counts, key=lambda category: (-counts[category], category))
            columns[name] = UnseenColumn(name, int(counted.sum()), tuple(categories))
    if not columns:
        return NO_UNSEEN_ROWS
    n_target = int(np.broadcast_to(has_weight, is_unseen.shape).sum())
    return UnseenRows(int(is_unseen.sum()), n_target, tuple(columns.values()))


def describe_unseen_rows(preprocessing: Any, Z: Any) -> str:
    """Return a sentence about target rows with categories that fitted preprocessing did not see; empty if none."""
    unseen = find_unseen(preprocessing, Z)
    if not unseen.rows:
        return ""
    return (
        f"{unseen.rows:,} of {unseen.n_target:,} rows {unseen.verb} categories that do not occur in the source "
        f"({describe_columns(unseen.columns)}); forecasts and intervals do not cover these rows"
    )


def warn_of_unseen(preprocessing: Any, Z: Any) -> None:
    """Warn about target rows with categories that the preprocessing, if there is any, did not see."""
    if preprocessing is not None and (text := describe_unseen_rows(preprocessing, Z)):
        warn(text)


def count_unseen(unseen: UnseenRows) -> str:
    """Return the number of rows with unseen categories as text."""
    return f"{unseen.rows:,} of {unseen.n_target:,} target rows"


def describe_columns(columns: Sequence[UnseenColumn]) -> str:
    """Return the columns with their unseen categories.

    >>> describe_columns([UnseenColumn("kind", 5, ("farm",)), UnseenColumn("town", 2, ("Ulm", "Bonn"))])
    "kind 'farm'; town 'Ulm', 'Bonn'"
    """
    parts = [f"{column.column} {list_some(column.categories, 3, max_length=40)}" for column in columns[:MAX_COLUMNS]]
    more = len(columns) - MAX_COLUMNS
    if more > 0:
        parts.append(f"{more} more column{'s' if more > 1 else ''}")
    return "; ".join(parts)


def _find_new_values(step: Any, Z: Any, names: Sequence[str] | None) -> Iterator[tuple[str, Any, Any]]:
    """Yield for each column with unseen categories its name, its values, and which of the values are unseen."""
    if isinstance(step, Pipeline):
        steps = [inner for _, inner in step.steps if inner is not None and not isinstance(inner, str)]
        while any(map(_has_encoder, steps)):  # steps after the last encoder are not computed
            first, *steps = steps
            yield from _find_new_values(first, Z, names)
            if any(map(_has_encoder, steps)):
                Z = first.transform(Z)
    elif isinstance(step, FeatureUnion):
        for _, inner in step.transformer_list:
            yield from _find_new_values(inner, Z, names)
    elif isinstance(step, ColumnTransformer):
        for _, inner, columns in step.transformers_:
            if _has_encoder(inner):
                yield from _find_new_values(inner, *_select_columns(step, Z, columns))
    elif _has_encoder(step):
        rows = np.asarray(Z, dtype=object)
        names = getattr(step, "feature_names_in_", None) if names is None else names
        if names is None or len(names) != len(step.categories_):
            names = [f"x{j}" for j in range(len(step.categories_))]
        for j, categories in enumerate(step.categories_):
            is_new = _compare_with_known(rows[:, j], categories)
            if is_new.any():
                yield str(names[j]), rows[:, j], is_new


def _has_encoder(step: Any) -> bool:
    """Return whether a step contains a fitted one-hot encoder that accepts unknown categories."""
    if isinstance(step, Pipeline):
        return any(_has_encoder(inner) for _, inner in step.steps)
    if isinstance(step, FeatureUnion):
        return any(_has_encoder(inner) for _, inner in step.transformer_list)
    if isinstance(step, ColumnTransformer):
        return any(_has_encoder(inner) for _, inner, _ in getattr(step, "transformers_", ()))
    # A column transformer does not fit an encoder that gets no columns.
    return isinstance(step, OneHotEncoder) and step.handle_unknown != "error" and hasattr(step, "categories_")


def _select_columns(step: ColumnTransformer, Z: Any, columns: Any) -> tuple[Any, Sequence[str] | None]:
    """Return the columns that one part of a column transformer receives, and their names if they have any."""
    if isinstance(columns, str) or np.isscalar(columns):
        columns = [columns]
    if isinstance(columns, (list, np.ndarray)) and len(columns) and isinstance(columns[0], str):
        return Z[list(columns)], list(columns)
    names = getattr(step, "feature_names_in_", None)
    selected = Z.iloc[:, columns] if hasattr(Z, "iloc") else np.asarray(Z, dtype=object)[:, columns]
    return selected, None if names is None else [str(name) for name in np.asarray(names, dtype=object)[columns]]


def _compare_with_known(values: Any, categories: Any) -> Any:
    known = set(categories.tolist())
    knows_missing = any(map(is_missing, known))  # all kinds of missing values are one category
    return np.array([value not in known and not (knows_missing and is_missing(value)) for value in values], dtype=bool)

"""Which columns are features, of which kind, and the scikit-learn preprocessing that they get.

Everything here looks at the source only; the target is encoded as the source taught.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pyspar.errors import InputError
from pyspar.tables.encode import DateParts, Numbers, TableEncoder, Words
from pyspar.tables.values import ISO, Kind, as_days, as_numbers, as_words, kind_of, looks_like_dates

Features = Literal["all", "num"]

MAX_CATEGORIES = 50
"""Per column; the rarest categories beyond it share one, and so do those that only the target has."""

_FREE_TEXT_LEVELS, _FREE_TEXT_SHARE = 100, 0.5

_FEWEST_IDS = 10
"""Fewer whole numbers in a row than this are as often a count or a year."""

_DATES = f"looks like dates; write them as {ISO}"


DROPPED = "was dropped, as asked"


@dataclass(frozen=True)
class Ignored:
    """A column that is not used, and why."""

    column: str
    why: str


@dataclass(frozen=True)
class Selection:
    """The features of a source: names by kind, in the file's order, what was left out, and what looks odd."""

    numeric: tuple[str, ...]
    categorical: tuple[str, ...]
    date: tuple[str, ...]
    ignored: tuple[Ignored, ...]
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.numeric + self.categorical + self.date


def select(
    source: pd.DataFrame, *, label: str, identity: str | None, features: Features, drop: Collection[str] = ()
) -> Selection:
    """Decide which columns of a source are features, and of which kind."""
    found: dict[str, list[str]] = {kind: [] for kind in get_args(Kind)}
    ignored = []
    for name in source.columns:
        if name in (label, identity):
            continue
        kind, why = _judge(source[name], features) if name not in drop else ("", DROPPED)
        if why is None:
            found[kind].append(name)
        else:
            ignored.append(Ignored(name, why))
    if not any(found.values()):
        reasons = "; ".join(f"{i.column!r} {i.why}" for i in ignored[:6]) or "there is only the label"
        raise InputError(
            f"source: expected at least one column to use as a feature. Got none: {reasons}; add or mend columns."
        )
    numeric, categorical, date = (tuple(found[kind]) for kind in get_args(Kind))
    dates = [f"{name}: {_DATES}; now each is a category" for name in categorical if looks_like_dates(source[name])]
    ids = [note for name in numeric if (note := _id_note(source[name])) is not None]
    return Selection(numeric, categorical, date, tuple(ignored), (*dates, *ids))


def preprocessing(source: pd.DataFrame, selection: Selection) -> ColumnTransformer:
    """Return the unfitted preprocessing: fill and scale numbers, one-hot encode categories, take dates apart.

    Categories and dates have one transformer per column, so what each encoded feature came from can be read off.
    """
    # float32 only where every number was measured so: a fine column must not be made coarse by its neighbour.
    coarse = [str(source[name].dtype).lower() in ("float32", "float16") for name in selection.numeric]
    single = bool(coarse) and all(coarse)
    dtype = "float32" if single else "float64"
    steps: list[tuple[str, Any, list[str]]] = []
    if selection.numeric:
        steps.append(("numeric", _scaled(Numbers(dtype)), list(selection.numeric)))
    for j, name in enumerate(selection.categorical):
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False,
            dtype=np.float32 if single else np.float64,
        )  # fmt: skip
        steps.append((f"category{j}", Pipeline([("read", Words()), ("encode", encoder)]), [name]))
    for j, name in enumerate(selection.date):
        steps.append((f"date{j}", _scaled(DateParts(dtype)), [name]))
    return TableEncoder(steps, sparse_threshold=0.0, verbose_feature_names_out=False)


def origins(fitted: ColumnTransformer) -> list[str]:
    """Return for each encoded feature the raw column that it came from."""
    names: list[str] = []
    for step, _, columns in fitted.transformers_:
        if step == "remainder":
            continue
        width = fitted.output_indices_[step].stop - fitted.output_indices_[step].start
        names += list(columns) if width == len(columns) else [columns[0]] * width
    return names


def _scaled(first: Any) -> Pipeline:
    return Pipeline([("read", first), ("fill", SimpleImputer(strategy="mean")), ("scale", StandardScaler())])


def _judge(column: pd.Series[Any], features: Features) -> tuple[str, str | None]:
    """Return the kind of a column, and the reason not to use it if there is one."""
    if str(column.name).startswith("Unnamed: "):  # what pandas calls a column with an empty header
        return "", "has no name; it is taken for a row index"
    if column.isna().all():
        return "", "has no value in the source"
    kind = kind_of(column)
    if kind not in get_args(Kind):
        return "", kind
    if features == "num" and kind != "numeric":
        return kind, "is not numeric, and --features num was asked for"
    if kind == "numeric":
        numbers = as_numbers(column)
        constant = np.isfinite(np.nanmin(numbers)) and np.nanmin(numbers) == np.nanmax(numbers)
        return kind, f"has one value in the source ({np.nanmin(numbers):g})" if constant else None
    if kind == "date":
        days = as_days(column)
        return kind, "has one date in the source" if np.nanmin(days) == np.nanmax(days) else None
    why = _why_not_categories(column)
    return kind, why if why is None or not looks_like_dates(column) else f"{why}; {_DATES}"


def named_id(name: str) -> bool:
    """Say whether a column is called what columns that name rows are called."""
    return re.fullmatch(r"(?i:id|.*_id)|.*ID", name) is not None


def _id_note(column: pd.Series[Any]) -> str | None:
    """Return a question where whole numbers seem to name the rows: all distinct, and in order or called an id."""
    numbers, name = as_numbers(column), str(column.name)
    n = len(numbers)
    if n < _FEWEST_IDS or not (np.isfinite(numbers) & (numbers == np.floor(numbers))).all():
        return None
    steps = np.diff(numbers)
    in_order = bool((steps > 0).all() or (steps < 0).all())
    if not (in_order or named_id(name)) or len(np.unique(numbers)) < n:
        return None
    return f"{name}: {n:,} distinct whole numbers in {n:,} rows; if it names the rows, pass --id {name}"


def _why_not_categories(column: pd.Series[Any]) -> str | None:
    words = [word for word in as_words(column) if word is not None]
    levels = len(set(words))
    if levels == 1 and len(words) == len(column):
        return f"has one value in the source ({words[0]!r})"
    free = levels == len(words) or (levels > _FREE_TEXT_LEVELS and levels > _FREE_TEXT_SHARE * len(words))
    if not free or levels == 1:
        return None
    numbers = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce")
    if numbers.notna().mean() > 0.5:
        text = words[int(np.flatnonzero(numbers.isna())[0])] if numbers.isna().any() else words[0]
        return f"holds text among its numbers ({text!r}); mend the file to use it"
    return f"is free text ({levels} different values in {len(words)} rows)"

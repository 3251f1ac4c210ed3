"""Two files become two encoded matrices: read, checked, and encoded as the source taught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer

from pyspar.errors import InputError
from pyspar.tables.account import Filled, Tables, Unseen
from pyspar.tables.checks import (
    aligned_target,
    check_finite,
    check_target,
    extra_columns,
    label_name,
    label_values,
    target_labels,
)
from pyspar.tables.columns import Features, Selection, origins, preprocessing, select
from pyspar.tables.encode import MISSING
from pyspar.tables.read import check_input, read_table

Step = Callable[[str], None]
"""Told what is being done, for a status line."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """The encoded source X, y and target Z, and how they came about."""

    X: Any
    y: Any
    Z: Any
    y_target: Any
    identity: pd.Series[Any] | None
    transformer: ColumnTransformer
    origins: list[str]
    tables: Tables
    notes: tuple[str, ...]


def prepare(
    source_path: Path, target_path: Path, *, label: str, features: Features, identity: str | None, step: Step
) -> Prepared:
    """Read and check both files, and encode them; the target's labels only pass through, to score predictions."""
    for path, role in ((source_path, "source"), (target_path, "target")):
        check_input(path, role)
    step("reading the source")
    source = read_table(source_path, "source", verbatim=identity)
    label = label_name(source, source_path, label)
    if label == identity:
        raise InputError(f"expected --id and --label to name different columns. Got {label!r} for both.")
    y = label_values(source, source_path, label)
    selection = select(source, label=label, identity=identity, features=features)
    check_finite(source, selection.numeric, f"source {str(source_path)!r}")

    step("reading the target")
    target = read_table(target_path, "target", as_text=selection.categorical, verbatim=identity)
    target = aligned_target(target, target_path, source, source_path, label)
    check_target(target, target_path, selection, identity=identity)
    y_target, notes = target_labels(target, target_path, label)

    step("encoding the columns")
    used = list(selection.names)
    transformer = preprocessing(source, selection).fit(source[used])
    came_from = origins(transformer)
    X = _encoded(transformer, source[used], came_from, "source")
    Z = _encoded(transformer, target[used], came_from, "target")
    tables = Tables(
        label=label,
        n_source=len(source),
        n_target=len(target),
        n_numeric=len(selection.numeric),
        n_categorical=len(selection.categorical),
        n_date=len(selection.date),
        n_encoded=X.shape[1],
        filled=_filled(transformer, selection, source, target),
        ignored=selection.ignored + extra_columns(target, source, label=label, identity=identity),
        unseen=_unseen(transformer, selection, target),
    )
    kept = None if identity is None else target[identity]
    return Prepared(X, y, Z, y_target, kept, transformer, came_from, tables, notes)


def _encoded(transformer: ColumnTransformer, table: pd.DataFrame, came_from: list[str], role: str) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        encoded = transformer.transform(table)
    bad = np.flatnonzero(~np.isfinite(encoded).all(axis=0))
    if bad.size:
        raise InputError(
            f"{role}, column {came_from[int(bad[0])]!r}: expected numbers of a reasonable size. Got values "
            "near the limit of floating point; rescale the column."
        )
    return encoded


def _filled(
    transformer: ColumnTransformer, selection: Selection, source: pd.DataFrame, target: pd.DataFrame
) -> tuple[Filled, ...]:
    means = dict(zip(selection.numeric, _numeric_means(transformer)))
    fills = {
        name: transformer.named_transformers_[f"category{j}"]["read"].fill_[0]
        for j, name in enumerate(selection.categorical)
    }
    filled = []
    for name in selection.names:
        counts = int(source[name].isna().sum()), int(target[name].isna().sum())
        if not any(counts):
            continue
        if name in means:
            by = f"the source's mean {means[name]:.4g}"
        elif name in fills:
            by = "a category of its own" if fills[name] == MISSING else f"the source's most frequent {fills[name]!r}"
        else:
            by = "the source's mean of each date part"
        filled.append(Filled(name, *counts, by))
    return tuple(filled)


def _numeric_means(transformer: ColumnTransformer) -> list[float]:
    if "numeric" not in transformer.named_transformers_:
        return []
    return [float(mean) for mean in transformer.named_transformers_["numeric"]["fill"].statistics_]


def _unseen(transformer: ColumnTransformer, selection: Selection, target: pd.DataFrame) -> tuple[Unseen, ...]:
    unseen = []
    for j, name in enumerate(selection.categorical):
        steps = transformer.named_transformers_[f"category{j}"]
        words = pd.Series(steps["read"].transform(target[[name]])[:, 0], dtype=object)
        new = words[~words.isin(set(steps["encode"].categories_[0]))]
        if len(new):
            unseen.append(Unseen(name, len(new), tuple(map(str, new.value_counts().index))))
    return tuple(unseen)

"""Two files become two encoded matrices: read, checked, and encoded as the source taught."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer

from pyspar.errors import InputError
from pyspar.inspection.unseen_categories import find_unseen
from pyspar.tables.account import Filled, Tables
from pyspar.tables.checks import (
    aligned_target,
    check_drop,
    check_finite,
    check_target,
    extra_columns,
    label_name,
    label_values,
    target_labels,
)
from pyspar.tables.columns import Selection, origins, preprocessing, select
from pyspar.tables.delimited import separator_note
from pyspar.tables.encode import MISSING
from pyspar.tables.read import check_input, read_table
from pyspar.tables.request import Request
from pyspar.tables.watch import Watch


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


def prepare(request: Request, watch: Watch) -> Prepared:
    """Read and check both files, and encode them; the target's labels only pass through, to score predictions."""
    source_path, target_path, identity = request.source, request.target, request.identity
    for path, role in ((source_path, "source"), (target_path, "target")):
        check_input(path, role)
    watch("reading the source")
    source = read_table(source_path, "source", verbatim=identity)
    label = label_name(list(source.columns), source_path, request.label)
    if label == identity:
        raise InputError(f"expected --id and --label to name different columns. Got {label!r} for both.")
    y = label_values(source, source_path, label)
    selection = select(source, label=label, identity=identity, features=request.features, drop=request.drop)
    check_finite(source, selection.numeric, f"source {str(source_path)!r}")

    watch("reading the target")
    target = read_table(target_path, "target", as_text=selection.categorical, verbatim=identity)
    target = aligned_target(target, target_path, source, source_path, label)
    check_drop(request.drop, (*source.columns, *target.columns), label=label, identity=identity)
    check_target(target, target_path, selection, source, identity=identity)
    y_target, unscored = target_labels(target, target_path, label)

    watch("encoding the columns")
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
        ignored=selection.ignored
        + extra_columns(target.columns, {*source.columns, label, identity or label, *request.drop}),
        unseen=find_unseen(transformer, target[used]),
    )
    kept = None if identity is None else target[identity]
    separators = (*separator_note(source_path, "source"), *separator_note(target_path, "target"))
    notes = (*_empty(selection, target), *separators, *selection.notes, *unscored)
    return Prepared(X, y, Z, y_target, kept, transformer, came_from, tables, notes)


def _empty(selection: Selection, target: pd.DataFrame) -> tuple[str, ...]:
    return tuple(
        f"{name}: HAS NO VALUE IN THE TARGET; every row got the same filling, so the predictions say nothing of it"
        for name in selection.names
        if target[name].isna().all()
    )


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

"""Unseen: rows of a target in categories that its source never had, of which no label and no forecast says anything.

An encoder that takes such a row writes zeros, or the features of rare categories, so that it looks like any other. What
is found here is told as a finding, and as a reservation in every verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder

from pyspar.inspection.findings import Finding
from pyspar.wording import percent, quoted

if TYPE_CHECKING:
    from pyspar.inspection import Inspection

MANY = 0.1
"""The share of a target's rows from which a forecast that is silent about them is a serious matter."""
_COLUMNS = 3


@dataclass(frozen=True)
class Unseen:
    """Categories of one column that the source never had, the most frequent first, and how many rows have them."""

    column: str
    rows: int
    categories: tuple[str, ...]


@dataclass(frozen=True)
class UnseenRows:
    """How many of a target's rows have such a category in any column, and in which columns they are."""

    rows: int
    n_target: int
    columns: tuple[Unseen, ...]

    @property
    def serious(self) -> bool:
        """Whether they are a large part of the target."""
        return self.rows >= MANY * self.n_target


NONE = UnseenRows(0, 0, ())
"""Where all categories are known, or there are none."""


def unseen_by(step: Any, Z: Any, sample_weight: Any = None) -> UnseenRows:
    """Return what the one-hot encoders within fitted preprocessing never saw and take all the same.

    Rows of weight zero are absent.
    """
    present = np.ones(1, dtype=bool) if sample_weight is None else np.asarray(sample_weight) != 0.0
    columns: dict[str, Unseen] = {}
    anywhere = np.zeros(1, dtype=bool)
    for name, values, found in _new_words(step, Z, None):
        new = found & present
        if not new.any():
            continue
        anywhere = anywhere | new
        words, counts = np.unique(np.array([str(value) for value in values[new]], dtype=object), return_counts=True)
        order = np.argsort(-counts, kind="stable")
        columns[name] = Unseen(name, int(new.sum()), tuple(str(words[j]) for j in order))
    if not columns:
        return NONE
    counted = int(np.broadcast_to(present, anywhere.shape).sum())
    return UnseenRows(int(anywhere.sum()), counted, tuple(columns.values()))


def with_unseen(inspection: Inspection, found: UnseenRows) -> Inspection:
    """Return an inspection that tells of rows in unseen categories: a finding, and a reservation in every verdict."""
    if not found.rows:
        return inspection
    outputs = tuple(
        replace(
            output,
            verdict=_reserved(output.verdict, found),
            findings=tuple(_less_sure(each) if found.serious else each for each in output.findings),
        )
        for output in inspection.outputs
    )
    of_features = [each for each in inspection.findings if each.output is None]
    of_labels = [each for output in outputs for each in output.findings]
    return replace(inspection, outputs=outputs, findings=(*of_labels, _finding(found), *of_features))


def named(columns: Sequence[Unseen]) -> str:
    """Return the columns with their new categories.

    >>> named([Unseen("kind", 5, ("farm",)), Unseen("town", 2, ("Ulm", "Bonn"))])
    "kind 'farm', town 'Ulm' and 'Bonn'"
    """
    shown = ", ".join(f"{each.column} {quoted(each.categories)}" for each in columns[:_COLUMNS])
    more = len(columns) - _COLUMNS
    return shown if more <= 0 else f"{shown} and those of {more} more column{'s' if more > 1 else ''}"


def _finding(found: UnseenRows) -> Finding:
    rows = f"{found.rows:,} of {found.n_target:,} target rows ({percent(found.rows / found.n_target)})"
    return Finding(
        "SPAR014",
        "serious" if found.serious else "warning",
        f"{rows} {'is' if found.rows == 1 else 'are'} in {_kinds(found)}: {named(found.columns)}. No label speaks of "
        f"what that means, and the forecasts say nothing about {'it' if found.rows == 1 else 'them'}.",
        "Label some of these rows first, or predict them apart; expect errors there that no number here tells of.",
    )


def _reserved(verdict: str, found: UnseenRows) -> str:
    return (
        f"{verdict.removesuffix('.')}; the forecast says nothing about {found.rows:,} of {found.n_target:,} target "
        f"rows, in {_kinds(found)} ({named(found.columns)})."
    )


def _kinds(found: UnseenRows) -> str:
    several = sum(len(each.categories) for each in found.columns) > 1
    return f"{'categories' if several else 'a category'} that the source never had"


def _less_sure(finding: Finding) -> Finding:
    """A target of which much is unknown is not called good."""
    if finding.severity != "good":
        return finding
    text = finding.text[:1].lower() + finding.text[1:]
    return replace(finding, severity="info", text=f"As far as the source can tell, {text}")


def _new_words(step: Any, Z: Any, names: Sequence[str] | None) -> Iterator[tuple[str, Any, Any]]:
    """Yield for each column in question its name, its values, and which of them are new."""
    if isinstance(step, Pipeline):
        steps = [each for _, each in step.steps if each is not None and not isinstance(each, str)]
        while any(map(_encodes, steps)):  # what comes after the last encoder is not computed
            first, *steps = steps
            yield from _new_words(first, Z, names)
            if any(map(_encodes, steps)):
                Z = first.transform(Z)
    elif isinstance(step, FeatureUnion):
        for _, inner in step.transformer_list:
            yield from _new_words(inner, Z, names)
    elif isinstance(step, ColumnTransformer):
        for _, inner, columns in step.transformers_:
            if _encodes(inner):
                yield from _new_words(inner, *_chosen(step, Z, columns))
    elif _encodes(step):
        rows = np.asarray(Z, dtype=object)
        own = getattr(step, "feature_names_in_", None) if names is None else names
        for j, known in enumerate(step.categories_):
            new = _new(rows[:, j], known)
            if new.any():
                name = str(own[j]) if own is not None and len(own) == len(step.categories_) else f"x{j}"
                yield name, rows[:, j], new


def _encodes(step: Any) -> bool:
    if isinstance(step, Pipeline):
        return any(_encodes(each) for _, each in step.steps)
    if isinstance(step, FeatureUnion):
        return any(_encodes(each) for _, each in step.transformer_list)
    if isinstance(step, ColumnTransformer):
        return any(_encodes(each) for _, each, _ in getattr(step, "transformers_", ()))
    return isinstance(step, OneHotEncoder) and step.handle_unknown != "error"


def _chosen(step: ColumnTransformer, Z: Any, columns: Any) -> tuple[Any, Sequence[str] | None]:
    """Return the columns that one part of a transformer is given, and their names where there are any."""
    if isinstance(columns, str) or np.isscalar(columns):
        columns = [columns]
    if isinstance(columns, (list, np.ndarray)) and len(columns) and isinstance(columns[0], str):
        return Z[list(columns)], list(columns)
    names = getattr(step, "feature_names_in_", None)
    chosen = Z.iloc[:, columns] if hasattr(Z, "iloc") else np.asarray(Z, dtype=object)[:, columns]
    return chosen, None if names is None else [str(name) for name in np.asarray(names, dtype=object)[columns]]


def _new(values: Any, known: Any) -> Any:
    seen = set(known.tolist())
    gaps = any(map(_gap, seen))  # a missing value may be a category, however it is written
    return np.array([value not in seen and not (gaps and _gap(value)) for value in values], dtype=bool)


def _gap(value: Any) -> bool:
    """Say whether a value stands for none: None, or what is not equal to itself (NaN, NaT, pandas' NA)."""
    same = value is not None and value == value
    return not isinstance(same, (bool, np.bool_)) or not same

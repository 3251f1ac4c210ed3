"""The two sides of a job that goes through Moments: each is rows to be read in a stream, or Moments from a file."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.io.moments import read_moments, read_outputs
from pyspar.sources.files import moments_of_file, open_rows
from pyspar.sources.files.npy import ArrayRows
from pyspar.sources.files.rows import Rows
from pyspar.tables.checks import label_name, lacking
from pyspar.tables.columns import DROPPED, Ignored
from pyspar.tables.request import holds_moments
from pyspar.tables.standardise import feature_names, features_of
from pyspar.tables.watch import Watch


@dataclass(frozen=True, eq=False)
class Given:
    """One side, and the names of the outputs where its Moments come with them."""

    path: Path
    role: str
    data: Rows | Moments
    outputs: tuple[str, ...] = ()

    @property
    def rows(self) -> Rows | None:
        return self.data if isinstance(self.data, Rows) else None

    @property
    def moments(self) -> Moments | None:
        return self.data if isinstance(self.data, Moments) else None

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, or the features behind the Moments."""
        return self.data.names if isinstance(self.data, Rows) else feature_names(self.data)

    @property
    def where(self) -> str:
        return f"{self.role} {str(self.path)!r}"

    def summary(self, features: Sequence[str], label: str | None, watch: Watch) -> Moments:
        """Return the Moments of some features, with the label as output where one is asked for."""
        if isinstance(self.data, Moments):
            chosen = features_of(self.data, features)
            return chosen if label is not None else chosen.without_outputs()
        progress = watch.reading(f"reading the {self.role}", self.data.n_bytes)
        return moments_of_file(self.data, features=features, label=label, progress=progress)


def open_given(path: Path, role: str) -> Given:
    """Open a file: of Moments, or of rows."""
    if holds_moments(path):
        return Given(path, role, read_moments(path), read_outputs(path))
    return Given(path, role, open_rows(path, role=role))


def label_of(source: Given, asked: str | None) -> str:
    """Return the label's name; a file of Moments has one output, and may name it."""
    if source.moments is None:
        return label_name(source.names, source.path, asked)
    if source.moments.n_outputs != 1:
        raise InputError(
            f"{source.where}: expected Moments of a source with one label. Got {source.moments.n_outputs} outputs; "
            "write it with spar summarize --label."
        )
    if asked is not None and source.outputs and asked != source.outputs[0]:
        raise InputError(f"{source.where}: expected the label {asked!r}. Got Moments with {source.outputs[0]!r}.")
    return asked or (source.outputs[0] if source.outputs else "y")


def usable(given: Given, *, label: str, identity: str | None, drop: Collection[str]) -> tuple[list[str], list[Ignored]]:
    """Return the features of a source, and why other columns are none."""
    features, ignored = [], []
    for name in given.names:
        why = _why_not(given, name, drop)
        if name in (label, identity):
            continue
        if why is None:
            features.append(name)
        else:
            ignored.append(Ignored(name, why))
    if not features:
        reasons = "; ".join(f"{i.column!r} {i.why}" for i in ignored[:6]) or "there is only the label"
        raise InputError(
            f"{given.where}: expected at least one numeric column to use as a feature. Got none: {reasons}."
        )
    return features, ignored


def aligned(target: Given, source: Given, label: str) -> Given:
    """Return a target array under the source's names, where it is the source's without the label."""
    if not isinstance(target.data, ArrayRows) or not isinstance(source.data, ArrayRows):
        return target
    expected = [name for name in source.names if name != label]
    return replace(target, data=target.data.renamed(expected)) if len(expected) == len(target.names) else target


def check_features(target: Given, features: Sequence[str]) -> None:
    """Refuse a target that lacks features of the source."""
    missing = [name for name in features if name not in target.names]
    if missing:
        raise lacking(target.where, missing, len(features), target.names)


def _why_not(given: Given, name: str, drop: Collection[str]) -> str | None:
    if name in drop:
        return DROPPED
    if name == "" or re.fullmatch(r"__index_level_\d+__", name):
        return "has no name; it is taken for a row index"
    if given.rows is None:
        return None
    kind = next(column.kind for column in given.rows.columns if column.name == name)
    if name not in given.rows.numeric:
        return f"holds {kind} values, and a stream takes numbers only"
    return "has no value in the first rows" if kind == "null" else None

"""Reduce an open file of rows or of Moments to Moments, with missing values imputed on request; standardise Moments."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.io.moments import is_moments_file, read_moments_file
from pyspar.sources.files import open_rows
from pyspar.sources.files.formats import INPUT_SUFFIXES, check_file, describe_file, format_of
from pyspar.sources.files.rows import RowBatch, RowFile
from pyspar.sources.stream import moments_of_batches
from pyspar.tables.columns import describe_unlabelled, differ_from, explain_extremes, signs_of
from pyspar.tables.encode import TableEncoder, build_encoder
from pyspar.tables.inputs import Ignored
from pyspar.tables.read import open_whole_file
from pyspar.terminal import Progress
from pyspar.wording import count_noun


@dataclass(frozen=True, eq=False)
class Reduced:
    """The Moments of some rows, the number of imputed values of each feature, notes, and features without values.

    ``n_other`` counts the rows with other values in each constant column of the source.
    """

    moments: Moments
    n_missing: Mapping[str, int]
    notes: tuple[str, ...] = ()
    empty: tuple[Ignored, ...] = ()
    n_other: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class InputFile:
    """An open file of rows or of Moments. Moments have the names of their outputs."""

    path: Path
    role: str
    content: RowFile | Moments
    outputs: tuple[str, ...] = ()

    @property
    def rows(self) -> RowFile | None:
        return self.content if isinstance(self.content, RowFile) else None

    @property
    def moments(self) -> Moments | None:
        return self.content if isinstance(self.content, Moments) else None

    @property
    def names(self) -> tuple[str, ...]:
        """All columns of rows, or the features of Moments."""
        return self.content.names if isinstance(self.content, RowFile) else feature_names(self.content)

    @property
    def signs(self) -> dict[str, str]:
        """The signs of the columns of numbers; those of Moments are not known."""
        return {} if self.rows is None else signs_of(self.rows.columns)

    @property
    def where(self) -> str:
        return describe_file(self.role, self.path)

    def reduce_source(
        self, features: Sequence[str], label: str | None, progress: Progress, *, impute: bool, drop_unlabelled: bool
    ) -> Reduced:
        """Return the Moments of a source. With ``impute`` its rows are read once more before, for their means."""
        if not impute or not isinstance(self.content, RowFile):
            return self.reduce(features, label, progress, drop_unlabelled=drop_unlabelled)
        total, count = np.zeros(len(features)), np.zeros(len(features))
        options: dict[str, Any] = {"label": label, "missing_labels": True} if drop_unlabelled else {}
        for batch in read_batches(self.content, progress, features, missing_features=True, **options):
            X = _drop_unlabelled(batch).X
            known = ~np.isnan(X)
            total += np.where(known, X, 0.0).sum(axis=0, dtype=np.float64)
            count += known.sum(axis=0)
        empty = tuple(Ignored(name, f"no values in the {self.role}") for name, n in zip(features, count) if n == 0)
        used, means = [name for name, n in zip(features, count) if n > 0], total[count > 0] / count[count > 0]
        reduced = self.reduce(used, label, progress, means=means, drop_unlabelled=drop_unlabelled)
        return replace(reduced, empty=empty)

    def reduce(
        self,
        features: Sequence[str],
        label: str | None,
        progress: Progress,
        *,
        means: Vector | None = None,
        drop_unlabelled: bool = False,
        constants: Mapping[str, float] | None = None,
    ) -> Reduced:
        """Return the Moments of some features, with the label as output unless it is None.

        Missing values and bad cells are replaced by ``means``; without it they are an error. Rows without a label are
        left out with ``drop_unlabelled``, otherwise they are an error too. ``constants`` are other columns with the
        value that each has in the source; rows with other values are counted.
        """
        n_missing, n_bad, n_read, d = np.zeros(len(features), dtype=np.int64), 0, 0, len(features)
        constants = constants or {}
        expected, n_other = np.array(list(constants.values())), np.zeros(len(constants), dtype=np.int64)
        if isinstance(self.content, Moments):
            moments = select_moments(self.content, features)
            return Reduced(moments if label is not None else moments.without_outputs(), dict.fromkeys(features, 0))

        def clean(batch: RowBatch) -> Any:
            nonlocal n_missing, n_bad, n_read, n_other
            n_bad, n_read = n_bad + sum(cell.column not in constants for cell in batch.bad), batch.rows
            batch = _drop_unlabelled(batch)
            X, others = batch.X[:, :d], batch.X[:, d:]
            n_other += (differ_from(others, expected) & ~np.isnan(others)).sum(axis=0)
            X, missing = (X, 0) if means is None else fill_missing(X, means)
            n_missing += missing
            return X if label is None else (X, batch.y)

        options: Any = {"missing_features": means is not None, "missing_labels": drop_unlabelled}
        options |= {"label": label, "unchecked": tuple(constants)}
        batches = read_batches(self.content, progress, [*features, *constants], **options)
        with closing(batches), explain_extremes(self.path, self.role, features, label):
            moments = moments_of_batches(map(clean, batches), labelled=label is not None)
        eps = np.array([self.content.column(name).eps for name in features])
        notes = []
        if n_bad:
            notes.append(f"{self.role}: {count_noun(n_bad, 'bad cell is', 'bad cells are')} treated as missing")
        notes += describe_unlabelled(n_read - moments.rows, self.role)
        counts, others = dict(zip(features, n_missing.tolist())), dict(zip(constants, n_other.tolist()))
        return Reduced(replace(moments, names=tuple(features), eps=eps), counts, tuple(notes), n_other=others)


def open_input(path: Path, role: str, identity: str | None = None) -> InputFile:
    """Open a file of rows or of Moments. The column ``identity`` has the ids of the rows."""
    if is_moments_file(path):
        return InputFile(path, role, *read_moments_file(path))
    if not path.is_dir():
        check_file(path, role, INPUT_SUFFIXES)
    if format_of(path).opener:
        return InputFile(path, role, open_rows(path, role=role))
    return InputFile(path, role, open_whole_file(path, role, identity))


def _drop_unlabelled(batch: RowBatch) -> RowBatch:
    """Return a batch without the rows whose label is missing."""
    if batch.y is None or not (missing := np.isnan(batch.y)).any():
        return batch
    return replace(batch, X=batch.X[~missing], y=batch.y[~missing])


def fill_missing(X: Matrix, means: Vector) -> tuple[Matrix, NDArray[np.int64]]:
    """Return rows with means instead of NaN, and the number of NaN in each column."""
    missing = np.isnan(X)
    return np.where(missing, means.astype(X.dtype), X), missing.sum(axis=0)


def read_batches(
    rows: RowFile, progress: Progress, features: Sequence[str], title: str = "", **options: Any
) -> Generator[RowBatch]:
    """Yield the batches of a file, and report the progress."""
    progress.start("rows", title or f"reading the {rows.role}", total=rows.n_bytes, unit="bytes")
    yield from rows.read(
        features, progress=lambda n, n_bytes: progress.advance("rows", n_bytes, rows=f"{n:,}"), **options
    )
    progress.finish("rows")


def standardise_moments(moments: Moments, mean: Vector, spread: Vector) -> Moments:
    r"""Return the Moments of ``(X - mean) / spread``. The outputs are unchanged.

    If ``R`` is a root of ``[1 | X | Y]``, then ``R T`` is a root of ``[1 | X | Y] T`` for every matrix T. Only the
    first row of ``R`` has an entry in the first column, so only this row is shifted.
    """
    root, features = moments.root.copy(), slice(1, 1 + moments.n_features)
    root[:, features] -= np.outer(root[:, 0], mean)
    root[:, features] /= spread
    return replace(moments, root=root, names=())


def select_moments(moments: Moments, names: Sequence[str]) -> Moments:
    """Return the Moments of some features in the order of ``names``, with all outputs."""
    known = feature_names(moments)
    position = np.array([known.index(name) for name in names])
    columns = np.concatenate([[0], 1 + position, np.arange(1 + moments.n_features, moments.root.shape[1])])
    tails = None if moments.tails is None else moments.tails[:, position]
    root, eps = moments.root[:, columns], moments.eps[position]
    return replace(moments, root=root, n_features=len(position), eps=eps, names=tuple(names), tails=tails)


def feature_names(moments: Moments) -> tuple[str, ...]:
    """Return the names of the features; features without names are x0, x1, ..."""
    return moments.names or tuple(f"x{j}" for j in range(moments.n_features))


def build_fitted_encoder(source: Moments) -> TableEncoder:
    """Return the preprocessing that a fit to the rows of the source would give. No feature may be constant.

    It is fitted to two rows, mean - spread and mean + spread, and then gets the exact numbers.
    """
    names, d = feature_names(source), source.n_features
    mean, spread = source.mean[:d], source.spread[:d]
    dtype = np.float32 if (source.eps > EPS64).all() else np.float64
    frame = pd.DataFrame(np.vstack([mean - spread, mean + spread]).astype(dtype), columns=list(names))
    encoder = build_encoder(frame, names)
    encoder.fit(frame)
    steps = encoder.named_transformers_["numeric"]
    steps["fill"].statistics_ = mean.astype(dtype)
    scaler = steps["scale"]
    scaler.mean_, scaler.scale_, scaler.var_ = mean.copy(), spread.copy(), spread**2
    scaler.n_samples_seen_ = source.rows
    return encoder

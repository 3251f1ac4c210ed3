"""Parquet: one file, or a folder of files with the same columns. Only the chosen columns are read.

All footers are read before any row. A column that is whole in one file and floating in another, or float32 in one and
float64 in another, is read as float64 with the coarser precision. A column that is not numeric in some file raises an
InputError that names the file. Record batches of Arrow, which delimited text is read into too, are converted here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError, need
from pyspar.sources.files.header import (
    bad_cells_error,
    check_unique,
    describe_file,
    describe_rows,
    suggest_drop,
    unreadable_file_error,
)
from pyspar.sources.files.number_text import MIN_NUMBER_SHARE, NumberFormat, infer_format, parse_cells, parse_number
from pyspar.sources.files.rows import Column, ReadPlan, RowBatch, RowFile
from pyspar.wording import list_some

arrow: Any = need("pyarrow", "cli")

_BUFFER_BYTES = 16_000_000
"""The size of the encoded pages in memory, over all columns. Without this bound whole row groups are loaded."""
_SAMPLE_ROWS = 10_000
"""The rows that decide whether a text column contains numbers."""


@dataclass(frozen=True)
class _Footer:
    path: Path
    n_rows: int
    n_bytes: int
    columns: dict[str, Column]


@dataclass(frozen=True, eq=False)
class ParquetFile(RowFile):
    """The rows of Parquet files, in the order of the file names."""

    files: tuple[_Footer, ...]

    def _check_files(self, plan: ReadPlan) -> None:
        first = self.files[0].path.name
        for file in self.files:
            for name in plan.names:
                column = file.columns.get(name)
                if column is None:
                    raise InputError(
                        f"{describe_file(self.role, file.path)}: no column {name!r}, which {first!r} has; add it, or "
                        "choose other columns"
                    )
                if column.dtype is None and name != plan.identity:
                    raise InputError(
                        f"{describe_file(self.role, file.path, name)}: the column must be numeric as in {first!r}, got "
                        f"{column.type_name}; write the file again"
                    )

    def _read_batches(self, plan: ReadPlan) -> Iterator[RowBatch]:
        buffer = max(4096, min(1 << 17, _BUFFER_BYTES // len(plan.names)))
        options = {"pre_buffer": False, "buffer_size": buffer, "page_checksum_verification": True}
        before = 0
        for file in self.files:
            first = 0
            with _open(file.path, self.role, **options) as opened:
                for batch in opened.iter_batches(plan.rows_within(self.batch_bytes), columns=plan.names):
                    rows = first + batch.num_rows
                    done = before + file.n_bytes * rows // file.n_rows
                    yield convert_batch(batch, plan, self.role, file.path, first, done)
                    first = rows
            before += file.n_bytes


def open_file(path: Path, role: str, batch_bytes: int) -> ParquetFile:
    """Read the footers of a Parquet file, or of all Parquet files of a folder."""
    files = tuple(_read_footer(file, role) for file in _list_files(path, role))
    n_rows = sum(file.n_rows for file in files)
    if n_rows == 0:
        raise InputError(f"{describe_file(role, path)}: the file has {len(files[0].columns)} columns and no rows")
    text = [name for name, column in files[0].columns.items() if column.type_name.endswith("string")]
    if text:
        with _open(files[0].path, role, pre_buffer=False) as opened:
            formats = find_number_text(next(opened.iter_batches(_SAMPLE_ROWS, columns=text)), typed=True)
        for file in files:
            file.columns.update({name: file.columns[name].with_format(style) for name, style in formats.items()
                                 if name in file.columns})  # fmt: skip
    columns = tuple(_join_column(name, files) for name in files[0].columns)
    return ParquetFile(path, role, columns, n_rows, sum(file.n_bytes for file in files), batch_bytes, files)


@contextmanager
def _open(path: Path, role: str, **options: Any) -> Iterator[Any]:
    try:
        with need("pyarrow.parquet", "cli").ParquetFile(path, **options) as file:
            yield file
    except (arrow.ArrowException, OSError) as error:
        raise unreadable_file_error(path, role, error, "Parquet") from error


def _list_files(path: Path, role: str) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(p for p in path.iterdir() if p.suffix.lower() == ".parquet" and not p.name.startswith((".", "_")))
    if not files:
        deeper = next(path.glob("*/*.parquet"), None)
        hint = "" if deeper is None else f"; its subfolder {deeper.parent.name!r} has some"
        raise InputError(
            f"{describe_file(role, path)}: the folder has no .parquet files{hint}; pass a file or another folder"
        )
    return files


def _read_footer(path: Path, role: str) -> _Footer:
    n_bytes = path.stat().st_size
    if n_bytes == 0:
        raise InputError(f"{describe_file(role, path)}: the file is empty (0 bytes)")
    with _open(path, role) as file:
        schema, n_rows = file.schema_arrow, int(file.metadata.num_rows)
    check_unique(schema.names, describe_file(role, path))
    return _Footer(path, n_rows, n_bytes, {field.name: convert_field(field) for field in schema})


def _join_column(name: str, files: tuple[_Footer, ...]) -> Column:
    """Return a column with the dtype and the precision that fit all files."""
    first, *others = (file.columns[name] for file in files if name in file.columns)
    if first.dtype is None or all(other.dtype in (first.dtype, None) for other in others):
        return first
    type_names = " or ".join(sorted({column.type_name for column in (first, *others)}))
    eps = max(column.eps for column in (first, *others))
    return Column(name, np.dtype(np.float64), type_names, eps, first.style)


def convert_field(field: Any) -> Column:
    """Return the column of an Arrow field. Floating, whole and boolean types are numeric."""
    types, kind = arrow.types, field.type
    numeric = types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)
    return Column.of(field.name, np.dtype(kind.to_pandas_dtype()) if numeric else None, str(kind))


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text."""
    return bool(arrow.types.is_string(kind) or arrow.types.is_large_string(kind))


def find_number_text(batch: Any, *, prefer_comma: bool = False, typed: bool = False) -> dict[str, NumberFormat]:
    """Return the formats of the text columns of a record batch that contain mostly numbers.

    In a format with types (``typed``), text that consists of whole numbers only is a code and stays text.
    """
    formats: dict[str, NumberFormat] = {}
    for name, column in zip(batch.schema.names, batch.columns):
        if not is_text(column.type):
            continue
        counts = Counter(text for text in column.to_pylist() if text is not None)
        if typed and all(text.isdigit() for text in counts):
            continue
        style = infer_format(counts, prefer_comma=prefer_comma)
        if parse_cells(counts, style)[2] > MIN_NUMBER_SHARE:
            formats[name] = style
    return formats


def convert_batch(batch: Any, plan: ReadPlan, role: str, path: Path, first: int, n_bytes: int) -> RowBatch:
    """Convert a record batch of Arrow to arrays, and raise InputError for bad cells and missing values."""
    columns = dict(zip(batch.schema.names, batch.columns))
    n_bad = 0
    for name in plan.numbers:
        if is_text(columns[name].type):
            style = plan.formats.get(name, NumberFormat())
            columns[name], bad = _parse_text(columns[name], style)
            if style.is_unproven:
                _check_decimal_mark(bad, style, describe_file(role, path, name), path, first)
            if bad and not plan.missing_features:
                cells = [(name, first + row, text) for row, text in bad]
                raise bad_cells_error(cells, path, role, label=plan.label)
            n_bad += len(bad)
    incomplete = [] if plan.missing_features else [name for name in plan.features if columns[name].null_count]
    if incomplete:
        others = f"; values are also missing in {list_some(incomplete[1:], 20)}" if len(incomplete) > 1 else ""
        fix = f"{others}; impute missing values with --bad-cells impute, drop such rows, or {suggest_drop(incomplete)}"
    elif plan.label is not None and not plan.missing_labels and columns[plan.label].null_count:
        incomplete, fix = [plan.label], "; ignore such rows with --drop-unlabelled"
    if incomplete:
        missing = columns[incomplete[0]].is_null().to_numpy(zero_copy_only=False)
        row = first + int(np.flatnonzero(missing)[0])
        where = describe_file(role, path, incomplete[0])
        raise InputError(f"{where}: missing value in {describe_rows([row], path)}{fix}")
    X = np.empty((batch.num_rows, len(plan.features)), plan.dtype, order="F")
    for j, name in enumerate(plan.features):
        X[:, j] = _as_floats(columns[name]) if plan.missing_features else columns[name].to_numpy(zero_copy_only=False)
    y = None if plan.label is None else _as_floats(columns[plan.label])
    ids = None if plan.identity is None else without_views(columns[plan.identity])
    return RowBatch(X, y, ids, path, first, n_bytes, n_bad=n_bad)


def without_views(column: Any) -> Any:
    """Return an Arrow column of text or bytes without views into other buffers, which pandas cannot read."""
    plain = {"string_view": arrow.string(), "binary_view": arrow.binary()}.get(str(column.type))
    return column if plain is None else column.cast(plain)


def _as_floats(column: Any) -> Any:
    """Return an Arrow column as float64, with NaN for missing values."""
    return column.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False)


def _parse_text(column: Any, style: NumberFormat) -> tuple[Any, list[tuple[int, str]]]:
    """Return a text column as numbers, with null for missing values and bad cells; and the bad cells."""
    cells = column.to_pylist()
    numbers = [math.nan if text is None else parse_number(text, style) for text in cells]
    bad = [(row, text) for row, (text, number) in enumerate(zip(cells, numbers)) if number is None]
    return arrow.array(numbers, arrow.float64(), from_pandas=True), bad  # from_pandas: NaN is missing


def _check_decimal_mark(bad: list[tuple[int, str]], style: NumberFormat, where: str, path: Path, first: int) -> None:
    """Raise InputError for a cell that proves the other decimal mark than that of earlier, ambiguous cells."""
    other = replace(style, decimal_comma=not style.decimal_comma)
    for row, text in bad:
        if parse_number(text, other) is not None:
            mark, others = ("comma", "point") if style.decimal_comma else ("point", "comma")
            raise InputError(
                f"{where}: {text!r} in {describe_rows([first + row], path)} has a decimal {others}, but "
                f"{style.ambiguous!r} in the first rows was read with a decimal {mark}; write all cells in one format, "
                "or do not stream"
            )

"""Parquet: one file, or a folder of files with the same columns. Only the chosen columns are read.

All footers are read before any row. A column that is whole in one file and floating in another, or float32 in one and
float64 in another, is read as float64 with the coarser precision. A column that is not numeric in some file raises an
InputError that names the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError, need
from pyspar.sources.files.formats import check_unique, describe_file
from pyspar.sources.files.messages import unreadable_file_error
from pyspar.sources.files.rows import Column, ReadPlan, RowBatch, RowFile, build_batch
from pyspar.sources.files.text import describe_text_column, parse_columns

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
        styles = {name: self.column(name).style for name in plan.numbers}
        before = 0
        for file in self.files:
            first = 0
            with _open(file.path, self.role, **options) as opened:
                for batch in opened.iter_batches(plan.rows_within(self.batch_bytes), columns=plan.names):
                    batch.validate(full=True)  # Arrow does not check the encoding of text before
                    rows = first + batch.num_rows
                    done = before + file.n_bytes * rows // max(1, rows, file.n_rows)
                    columns, bad = parse_columns(dict(zip(batch.schema.names, batch.columns)), styles, first)
                    if plan.identity is not None:
                        columns[plan.identity] = without_views(columns[plan.identity])
                    yield build_batch(columns, plan, file.path, first, done, bad)
                    first = rows
                if first != file.n_rows:
                    raise ValueError(f"{first} rows, but the footer states {file.n_rows}")
            before += file.n_bytes


def open_file(path: Path, role: str, batch_bytes: int) -> ParquetFile:
    """Read the footers of a Parquet file, or of all Parquet files of a folder."""
    files = tuple(_read_footer(file, role) for file in _list_files(path, role))
    n_rows = sum(file.n_rows for file in files)
    if n_rows == 0:
        raise InputError(f"{describe_file(role, path)}: the file has {len(files[0].columns)} columns and no rows")
    sampled = next(file for file in files if file.n_rows != 0)
    text = [name for name, column in sampled.columns.items() if column.type_name.endswith("string")]
    if text:
        with _open(sampled.path, role, pre_buffer=False) as opened:
            sample = next(opened.iter_batches(_SAMPLE_ROWS, columns=text), None)
            if sample is None:
                raise ValueError(f"no rows, but the footer states {sampled.n_rows}")
            sample.validate(full=True)
            found = {name: _find_numbers(sampled.columns[name], sample.column(name)) for name in text}
        for file in files:
            for name, column in file.columns.items():
                if column.type_name.endswith("string"):  # the column may have a numeric type in another file
                    file.columns[name] = found.get(name, column)
    columns = tuple(_join_column(name, files) for name in files[0].columns)
    return ParquetFile(path, role, columns, n_rows, sum(file.n_bytes for file in files), batch_bytes, files)


@contextmanager
def _open(path: Path, role: str, **options: Any) -> Iterator[Any]:
    try:
        with need("pyarrow.parquet", "cli").ParquetFile(path, **options) as file:
            yield file
    except InputError:
        raise
    except (arrow.ArrowException, OSError, ValueError) as error:  # names that are not UTF-8 raise a ValueError
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
        return _Footer(path, n_rows, n_bytes, {field.name: _convert_field(field) for field in schema})


def _join_column(name: str, files: tuple[_Footer, ...]) -> Column:
    """Return a column with the dtype and the precision that fit all files."""
    first, *others = (file.columns[name] for file in files if name in file.columns)
    if first.dtype is None or all(other.dtype in (first.dtype, None) for other in others):
        return first
    type_names = " or ".join(sorted({column.type_name for column in (first, *others)}))
    eps = max(column.eps for column in (first, *others))
    return Column(name, np.dtype(np.float64), type_names, eps, first.style, first.example)


def _convert_field(field: Any) -> Column:
    """Return the column of an Arrow field. Floating, whole and boolean types are numeric."""
    types, kind = arrow.types, field.type
    numeric = types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)
    return Column.of(field.name, np.dtype(kind.to_pandas_dtype()) if numeric else None, str(kind))


def _find_numbers(column: Column, cells: Any) -> Column:
    """Return a text column as numbers if its first cells are; text that consists of whole numbers only is a code."""
    is_code = all(text is None or text.isdigit() for text in cells.to_pylist())
    found = column if is_code else describe_text_column(column.name, cells)
    return column if found.dtype is None else found


def without_views(column: Any) -> Any:
    """Return an Arrow column of text or bytes without views into other buffers, which pandas cannot read."""
    plain = {"string_view": arrow.string(), "binary_view": arrow.binary()}.get(str(column.type))
    return column if plain is None else column.cast(plain)

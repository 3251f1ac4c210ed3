"""Write the files of a command: predictions at once or in batches, in the format of the suffix.

Paths are checked before anything is read. Files are written whole or not at all.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pyspar.core.mean_square import SquaredErrors
from pyspar.errors import InputError, need
from pyspar.io.atomic import whole_files
from pyspar.sources.files.number_text import is_plain

WriteBatch = Callable[..., None]
"""Writes the ids of some rows (None numbers the rows), their predictions, and the two ends of intervals, if any."""
OUTPUT_SUFFIXES = (".csv", ".tsv", ".parquet", ".npy")


@dataclass(frozen=True)
class Output:
    """The file of predictions or None, the level of their intervals or None, and whether text must not be a formula."""

    path: Path | None = None
    level: float | None = None
    safe_csv: bool = False


NO_OUTPUT = Output()


def check_outputs(output: Output, save: Path | None, *, inputs: tuple[Path | None, ...], identity: str | None) -> None:
    """Raise InputError for predictions and models that cannot be written."""
    suffix = "" if output.path is None else output.path.suffix.lower()
    if output.level is not None and not 0.0 < output.level < 1.0:
        raise InputError(f"--level must be in (0, 1), got {output.level:g}; try 0.9")
    if output.safe_csv and suffix not in (".csv", ".tsv"):
        raise InputError("--safe-csv needs an output that ends in .csv or .tsv; add -o predictions.csv")
    if output.path is not None:
        check_path(output.path, "--output", OUTPUT_SUFFIXES, inputs)
        if suffix == ".npy" and identity is not None:
            raise InputError("--output must be .csv, .tsv or .parquet with --id; a .npy file has no id column")
        if suffix == ".parquet":
            need("pyarrow", "cli")
    if save is not None:
        check_path(save, "--save", (".skops",), inputs)
        need("skops.io", "cli")


def check_reports(paths: Sequence[Path], *, inputs: tuple[Path | None, ...]) -> None:
    """Raise InputError for reports of ``spar inspect`` that cannot be written."""
    for number, path in enumerate(paths):
        check_path(path, "--report", (".html", ".json"), inputs)
        if any(_is_same_file(path, other) for other in paths[:number]):
            raise InputError(f"--report {str(path)!r} is given twice; choose another name")
        if path.suffix.lower() == ".html":
            need("jinja2", "report")
            need("matplotlib", "report")


def check_path(path: Path, option: str, suffixes: tuple[str, ...], inputs: tuple[Path | None, ...]) -> None:
    """Raise InputError for a path that cannot be written, or that is an input file."""
    where = f"{option} {str(path)!r}"
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{where}: unsupported suffix {path.suffix or 'none'!r}; use {', '.join(suffixes)}")
    if path.is_dir():
        raise InputError(f"{where} is a folder; pass a file")
    if not path.parent.is_dir():
        raise InputError(f"{where}: folder not found: {str(path.parent)!r}; create it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{where}: the folder {str(path.parent)!r} is read-only; choose another")
    if any(other is not None and _is_same_file(path, other) for other in inputs):
        raise InputError(f"{where} is an input file, which would be overwritten; choose another name")


def _is_same_file(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


@contextmanager
def write_files(*paths: Path | None) -> Iterator[list[Any]]:
    """Yield a temporary file for each path and None for None; in the end rename the files, or none if one fails."""
    requested = [path for path in paths if path is not None]
    try:
        with whole_files(requested) as temporaries:
            names = iter(temporaries)
            yield [None if path is None else next(names) for path in paths]
    except OSError as error:
        if error.filename not in map(str, requested):
            raise
        raise _write_error(error.filename, error) from error


@contextmanager
def report_write_errors(path: Path | None) -> Iterator[None]:
    """Raise InputError for an error of the operating system while ``path`` is written."""
    try:
        yield
    except OSError as error:
        if path is None:
            raise
        raise _write_error(path, error) from error


def _write_error(path: Path, error: OSError) -> InputError:
    reason = os.strerror(error.errno) if error.errno else str(error)  # the text of pyarrow is longer
    return InputError(f"cannot write {path}: {reason.lower()}; nothing was written")


class RowChunk(NamedTuple):
    """Some encoded rows, their labels, and their ids; None without labels or ids."""

    features: Any
    labels: Any
    ids: Any


def predict_chunks(
    chunks: Iterable[RowChunk], models: Sequence[Any], output: Output, identity: str | None, *, is_whole: bool = False
) -> tuple[SquaredErrors, ...] | None:
    """Predict rows with linear models, write the predictions of the last one, and return the errors of each.

    ``identity`` and ``is_whole`` are those of ``prediction_file``. Without labels the result is None.
    """
    errors = [SquaredErrors() for _ in models]
    has_ends = output.path is not None and output.path.suffix.lower() != ".npy" and output.level is not None
    has_ends = has_ends and hasattr(models[-1], "predict_interval")
    with prediction_file(output.path, identity, safe_csv=output.safe_csv, is_whole=is_whole) as write:
        for rows, labels, ids in chunks:
            predictions = [model.predict(rows) for model in (models[-1:] if labels is None else models)]
            if output.path is not None:
                write(ids, predictions[-1], *(models[-1].predict_interval(rows, output.level) if has_ends else ()))
            if labels is not None:
                errors = [sums + SquaredErrors.of(values - labels) for sums, values in zip(errors, predictions)]
    return tuple(errors) if errors[0].n else None


def write_table(table: pd.DataFrame, path: Path, *, safe_csv: bool) -> None:
    """Write a table as Parquet or as text; with ``safe_csv`` a spreadsheet reads no text or name as a formula."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        # Without the metadata of pandas, which cannot read some of its own descriptions of Arrow types.
        content = need("pyarrow", "cli").Table.from_pandas(table, preserve_index=False).replace_schema_metadata()
        need("pyarrow.parquet", "cli").write_table(content, path, write_page_checksum=True)
        return
    for name in table.columns:
        if isinstance(table[name].dtype, pd.ArrowDtype):
            cells = format_ids(need("pyarrow", "cli").array(table[name]), name)
            table = table.assign(**{name: np.array(cells.to_pylist(), dtype=object)})
    if safe_csv:
        # Only columns with text, because pandas would infer floats from whole numbers with missing cells.
        text = [name for name, column in table.items() if any(isinstance(cell, str) for cell in column)]
        cells = {name: [make_safe(cell) if isinstance(cell, str) else cell for cell in table[name]] for name in text}
        table = table.assign(**pd.DataFrame(cells, table.index, dtype=object)).rename(columns=make_safe)
    table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")


def format_ids(ids: Any, name: str) -> Any:
    """Return an Arrow array of ids as cells of a text file; text and whole numbers stay as they are.

    Floats have the shortest digits of their own precision. Times are ISO 8601 with a space, and durations and booleans
    are written as pandas writes them. Bytes are read as UTF-8.
    """
    arrow: Any = need("pyarrow", "cli")
    types, kind = arrow.types, ids.type
    if types.is_dictionary(kind):
        ids, kind = ids.cast(kind.value_type), kind.value_type
    if types.is_nested(kind):
        raise InputError(f"column {name!r}: a text file cannot hold {kind}; choose another id column")
    if types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind):
        return ids
    if types.is_floating(kind):
        convert: Callable[[Any], str] = np.dtype(kind.to_pandas_dtype()).type
    elif types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        convert = methodcaller("decode", errors="backslashreplace")
    elif types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind):
        return _format_times(ids)
    else:
        convert = pd.Timedelta if types.is_duration(kind) else str
    return arrow.array([None if cell is None else str(convert(cell)) for cell in ids.to_pylist()], arrow.string())


_FRACTIONS = ((r"\.0+(Z?)$", r"\1"), (r"(\.\d{3})(Z?)$", r"\g<1>000\2"), (r"(\.\d{6})000(Z?)$", r"\1\2"))
"""Arrow writes all digits of the unit. Python writes no digits, or six; nine are needed for nanoseconds only."""


def _format_times(ids: Any) -> Any:
    """Return dates and times as Python writes them. Arrow writes the years that Python does not have, in UTC."""
    arrow: Any = need("pyarrow", "cli")
    has_zone = arrow.types.is_timestamp(ids.type) and ids.type.tz is not None
    texts = (ids.cast(arrow.timestamp(ids.type.unit, "UTC")) if has_zone else ids).cast(arrow.string()).to_pylist()
    for pattern, replacement in _FRACTIONS:
        texts = [None if text is None else re.sub(pattern, replacement, text) for text in texts]
    if has_zone:
        texts = [None if text is None else _format_local_time(cell) or text for cell, text in zip(ids, texts)]
    return arrow.array(texts, arrow.string())


def _format_local_time(cell: Any) -> str | None:
    """Return a time in its zone with the offset, or None if Python does not have its year."""
    try:
        return str(cell.as_py())
    except (OverflowError, ValueError):
        return None


def make_safe(text: str) -> str:
    """Return a text with ' before it if a spreadsheet would read it as a formula. Numbers stay as they are.

    >>> make_safe("=1+1"), make_safe("-5.5"), make_safe("a-b")
    ("'=1+1", '-5.5', 'a-b')
    """
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) and not is_plain(text) else text


def name_columns(key: str) -> list[str]:
    """Return the names of predictions and intervals in a file whose first column is ``key``.

    >>> name_columns("row"), name_columns("low")
    (['prediction', 'low', 'high'], ['prediction', 'interval_low', 'high'])
    """
    other = {"prediction": "predicted", "low": "interval_low", "high": "interval_high"}
    return [other[name] if name == key else name for name in other]


@contextmanager
def prediction_file(
    path: Path | None, identity: str | None, *, safe_csv: bool = False, is_whole: bool = False
) -> Iterator[WriteBatch]:
    """Open a file of predictions in the format of its suffix. Its first column is the id, or the number of the row.

    ``safe_csv`` protects text ids (``make_safe``). With ``is_whole`` all rows are written at once, and their ids are a
    column of a data frame or None. Nothing is written without a path.
    """
    suffix = "" if path is None else path.suffix.lower()
    if path is None:
        yield lambda *_: None
    elif is_whole and suffix in (".csv", ".tsv"):

        def write_text(ids: Any, *columns: Any) -> None:
            key = "row" if identity is None else identity
            values = np.arange(len(columns[0])) if ids is None else ids.array
            write_table(pd.DataFrame({key: values, **dict(zip(name_columns(key), columns))}), path, safe_csv=safe_csv)

        yield write_text
    else:
        with open(path, "wb") as file:
            writer = _ArrayWriter(file) if suffix == ".npy" else _TableWriter(file, suffix, identity, safe_csv)
            yield writer.write
            writer.finish()


class _ArrayWriter:
    """Write an array whose length is known at the end. The header of numpy has space for it."""

    def __init__(self, file: Any) -> None:
        self._file, self._rows = file, 0
        self.finish()

    def write(self, ids: Any, predictions: Any, *ends: Any) -> None:
        self._file.write(np.ascontiguousarray(predictions, dtype="<f8").tobytes())
        self._rows += len(predictions)

    def finish(self) -> None:
        self._file.seek(0)
        head = {"descr": "<f8", "fortran_order": False, "shape": (self._rows,)}
        np.lib.format.write_array_header_1_0(self._file, head)


class _TableWriter:
    """Write ids and predictions with Arrow. The first batch determines the type of the ids."""

    def __init__(self, file: Any, suffix: str, identity: str | None, safe_csv: bool) -> None:
        self._file, self._suffix, self._identity, self._safe = file, suffix, identity, safe_csv
        self._rows = 0
        self._writer: Any = None
        self._schema: Any = None

    def write(self, ids: Any, predictions: Any, *ends: Any) -> None:
        arrow: Any = need("pyarrow", "cli")
        n = len(predictions)
        key = arrow.array(np.arange(self._rows, self._rows + n) if ids is None else ids)
        key = key.combine_chunks() if isinstance(key, arrow.ChunkedArray) else key
        if self._suffix != ".parquet":
            key = format_ids(key, str(self._identity))
        if self._safe and (arrow.types.is_string(key.type) or arrow.types.is_large_string(key.type)):
            key = arrow.array([None if text is None else make_safe(text) for text in key.to_pylist()], key.type)
        if self._writer is None:
            self._open(arrow, key.type, len(ends) + 1)
        try:
            key = key.cast(self._schema.field(0).type)
        except arrow.ArrowException as error:
            raise InputError(
                f"column {self._identity!r} must have one type in all files, got {self._schema.field(0).type} and "
                f"{key.type}; write the files again"
            ) from error
        values = [arrow.array(np.asarray(column, dtype=np.float64)) for column in (predictions, *ends)]
        self._writer.write_batch(arrow.record_batch([key, *values], schema=self._schema))
        self._rows += n

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self, arrow: Any, kind: Any, n_values: int) -> None:
        kind = kind.value_type if arrow.types.is_dictionary(kind) else kind
        key = "row" if self._identity is None else self._identity
        names = [key, *name_columns(key)[:n_values]]
        self._schema = arrow.schema([(key, kind), *((name, arrow.float64()) for name in names[1:])])
        if self._suffix == ".parquet":
            self._writer = need("pyarrow.parquet", "cli").ParquetWriter(
                self._file, self._schema, write_page_checksum=True
            )
            return
        mark = "\t" if self._suffix == ".tsv" else ","
        header = io.StringIO()
        shown = [make_safe(name) for name in names] if self._safe else names
        csv.writer(header, delimiter=mark, lineterminator="\n").writerow(shown)
        self._file.write(header.getvalue().encode())
        text: Any = need("pyarrow.csv", "cli")
        options = text.WriteOptions(include_header=False, delimiter=mark)
        self._writer = text.CSVWriter(self._file, self._schema, write_options=options)

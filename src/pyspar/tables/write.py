"""Write the files of a command: predictions at once or in batches, in the format of the suffix.

Paths are checked before anything is read. Files are written whole or not at all.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyspar.core.mean_square import SquaredErrors
from pyspar.errors import InputError, need
from pyspar.io.atomic import whole_files
from pyspar.sources.files.formats import expected_separator
from pyspar.sources.files.messages import shorten_error
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
    chunks: Iterable[RowChunk], models: Sequence[Any], output: Output, identity: str | None
) -> tuple[SquaredErrors, ...] | None:
    """Predict rows with linear models, write the predictions of the last one, and return the errors of each.

    Without labels the result is None.
    """
    errors = [SquaredErrors() for _ in models]
    has_ends = output.path is not None and output.path.suffix.lower() != ".npy" and output.level is not None
    has_ends = has_ends and hasattr(models[-1], "predict_interval")
    with prediction_file(output.path, identity, safe_csv=output.safe_csv) as write:
        for rows, labels, ids in chunks:
            predictions = [model.predict(rows) for model in (models[-1:] if labels is None else models)]
            if output.path is not None:
                write(ids, predictions[-1], *(models[-1].predict_interval(rows, output.level) if has_ends else ()))
            if labels is not None:
                errors = [sums + SquaredErrors.of(values - labels) for sums, values in zip(errors, predictions)]
    return tuple(errors) if errors[0].n else None


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
def prediction_file(path: Path | None, identity: str | None, *, safe_csv: bool = False) -> Iterator[WriteBatch]:
    """Open a file of predictions in the format of its suffix. Its first column is the id, or the number of the row.

    With ``safe_csv``, no spreadsheet reads an id as a formula. Without a path, nothing is written.
    """
    if path is None:
        yield lambda *_: None
    elif path.suffix.lower() == ".npy":
        with open(path, "wb") as file:
            yield (writer := _ArrayWriter(file)).write
            writer.finish()
    else:
        key = "row" if identity is None else identity
        n_written = 0
        with table_file(path, safe_csv=safe_csv) as write:

            def write_predictions(ids: Any, *values: Any) -> None:
                nonlocal n_written
                rows = np.arange(n_written, n_written + len(values[0])) if ids is None else ids
                write({key: rows, **dict(zip(name_columns(key), values))})
                n_written += len(values[0])

            yield write_predictions


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


@contextmanager
def table_file(
    path: Path, *, safe_csv: bool, separator: str | None = None
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Yield a function that writes columns by name as Parquet or text. The first call determines names and types.

    With ``safe_csv``, no spreadsheet reads a text or a column name as a formula. The separator of text is by default
    that of the suffix.
    """
    arrow: Any = need("pyarrow", "cli")
    is_text = path.suffix.lower() != ".parquet"
    with ExitStack() as stack:
        file = stack.enter_context(open(path, "wb"))
        writer: Any = None
        schema: Any = None

        def write(columns: Mapping[str, Any]) -> None:
            nonlocal writer, schema
            arrays = [_to_arrow(values, name, is_text, safe_csv) for name, values in columns.items()]
            if writer is None:
                schema = arrow.schema([(name, array.type) for name, array in zip(columns, arrays)])
                writer = stack.enter_context(
                    _open_writer(file, path, schema, safe_csv, separator or expected_separator(path))
                )
            for place, (array, column) in enumerate(zip(arrays, schema)):
                try:
                    arrays[place] = array.cast(column.type)
                except arrow.ArrowException as error:
                    raise InputError(
                        f"column {column.name!r} must have one type in all files, got {column.type} and {array.type}; "
                        "write the files again"
                    ) from error
            writer.write_batch(arrow.record_batch(arrays, schema=schema))

        yield write


def _open_writer(file: Any, path: Path, schema: Any, safe_csv: bool, separator: str) -> Any:
    """Return the writer of Arrow for the format of a suffix; in text, write the header."""
    if path.suffix.lower() == ".parquet":
        return need("pyarrow.parquet", "cli").ParquetWriter(file, schema, write_page_checksum=True)
    header = io.StringIO()
    names = [make_safe(name) for name in schema.names] if safe_csv else schema.names
    csv.writer(header, delimiter=separator, lineterminator="\n").writerow(names)
    file.write(header.getvalue().encode())
    text: Any = need("pyarrow.csv", "cli")
    return text.CSVWriter(file, schema, write_options=text.WriteOptions(include_header=False, delimiter=separator))


def _to_arrow(values: Any, name: str, is_text: bool, safe_csv: bool) -> Any:
    """Return a column as an Arrow array. In text files, dates and other types are text."""
    arrow: Any = need("pyarrow", "cli")
    types = arrow.types
    try:
        array = arrow.array(values)
    except arrow.ArrowException:  # cells of several types, in a workbook
        array = arrow.array([None if cell is None or cell != cell else str(cell) for cell in values], arrow.string())
    try:
        array = array.combine_chunks() if isinstance(array, arrow.ChunkedArray) else array
        array = array.dictionary_decode() if types.is_dictionary(array.type) else array
        is_number = types.is_integer(array.type) or types.is_floating(array.type)
        if is_text and not is_number:
            array = array.cast(arrow.string())
    except arrow.ArrowException as error:
        raise InputError(
            f"column {name!r}: cannot be written ({shorten_error(error)}); choose another column"
        ) from error
    if safe_csv and types.is_string(array.type):
        array = arrow.array([None if text is None else make_safe(text) for text in array.to_pylist()], array.type)
    return array

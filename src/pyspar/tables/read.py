"""Read a file of rows into a data frame: delimited text, Parquet, and arrays of numpy.

The columns of a 2-D array are named x0, x1, ...; in an .npz file those of the array ``X`` too, those of another array
``A`` are A0, A1, ..., and a 1-D array is one column with the name of its key.
"""

from __future__ import annotations

import csv
import gzip
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from pyspar.errors import InputError, need
from pyspar.sources.files.header import (
    MISSING_MARKS,
    check_file,
    check_names,
    expected_separator,
    locate,
    open_text,
    separator_of,
    shorten_error,
    suffix_of,
)
from pyspar.sources.files.npy import array_file_error
from pyspar.sources.files.parquet import parquet_file_error
from pyspar.tables.encode import has_decimal_commas

INPUT_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".npy", ".npz")

_MAX_FIELD = 2**27
"""The longest field in characters. A quote that is never closed exceeds it in large files."""

_ARRAY_ERRORS = (ValueError, EOFError, OSError, KeyError, SyntaxError, zipfile.BadZipFile, zlib.error)
"""What numpy raises for damaged files and for files of another format."""


def check_input(path: Path, role: str) -> None:
    """Raise InputError if a file does not exist, is empty, or has an unknown format. Nothing is read."""
    check_file(path, role, INPUT_SUFFIXES)
    if suffix_of(path) == ".parquet":
        need("pyarrow", "cli")


def read_table(
    path: Path, role: str, *, as_text: Collection[str] = (), verbatim: str | None = None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read a file into a data frame with unique column names and at least one row; return it with notes.

    Parameters
    ----------
    path : Path
        A path that ``check_input`` accepts.
    role : str
        The name of the file in messages: "source" or "target".
    as_text : names
        Columns of delimited text that stay text even if they look like numbers, so that ``007`` stays ``007``.
    verbatim : name
        A column of delimited text that is kept unchanged, including the marks of missing values.
    """
    where, suffix = locate(role, path), suffix_of(path)
    notes: tuple[str, ...] = ()
    try:
        if suffix == ".parquet":
            frame = _read_parquet(path, role)
        elif suffix == ".npy":
            frame = _read_npy(path, role)
        elif suffix == ".npz":
            frame = _read_npz(path, role)
        else:
            frame, notes = _read_delimited(path, role, as_text=as_text, verbatim=verbatim)
    except PermissionError as error:
        raise InputError(f"cannot read {where}: {(error.strerror or 'permission denied').lower()}") from error
    frame.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
    check_names(frame.columns, where)
    if len(frame) == 0:
        raise InputError(f"{where}: the file has {len(frame.columns)} columns and no rows")
    return frame, notes


def has_names(path: Path) -> bool:
    """Return whether the format of a file stores column names."""
    return path.suffix.lower() not in (".npy", ".npz")


def describe_separator(path: Path, role: str, separator: str) -> tuple[str, ...]:
    """Return a note if the separator is not the one of the suffix."""
    expected = expected_separator(path)
    if separator == expected:
        return ()
    decimal = "; decimal commas are read as decimal points" if separator == ";" else ""
    return (f"{role}: the fields are separated by {separator!r} instead of {expected!r}{decimal}",)


def _read_delimited(
    path: Path, role: str, *, as_text: Collection[str], verbatim: str | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read CSV or TSV, gzipped or not.

    pandas silently pads short records and shifts long ones, so the fields of each record are counted first.
    """
    where = locate(role, path)
    try:
        separator = separator_of(path)
        header, records = _count_fields(path, role, separator)
        if records == 0:
            raise InputError(f"{where}: the file has a header and no rows")
        marks = {name: MISSING_MARKS for name in header if name != verbatim}
        frame = pd.read_csv(
            path, sep=separator, encoding="utf-8-sig", index_col=False, low_memory=False,
            keep_default_na=False, na_values=marks,
            dtype={name: str for name in {*as_text, verbatim} if name in header},
        )  # fmt: skip
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: the text is not UTF-8 (byte 0x{error.object[error.start]:02x}); save the file as UTF-8"
        ) from error
    except (pd.errors.ParserError, csv.Error) as error:
        raise InputError(
            f"{where}: cannot parse a record ({shorten_error(error)}); look for a quote that is never closed"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{where}: damaged or not a gzip file ({shorten_error(error)}); compress it again") from error
    if separator == ";":
        for name in frame.columns:
            if name != verbatim and has_decimal_commas(frame[name]):
                frame[name] = pd.to_numeric(frame[name].str.replace(",", ".", regex=False))
    return frame, describe_separator(path, role, separator)


def _count_fields(path: Path, role: str, separator: str) -> tuple[list[str], int]:
    """Return the header and the number of records; raise InputError for the first record of another width."""
    limit = csv.field_size_limit(_MAX_FIELD)
    try:
        with open_text(path) as file:
            return _count_open_file(file, path, role, separator)
    finally:
        csv.field_size_limit(limit)


def _count_open_file(file: IO[str], path: Path, role: str, separator: str) -> tuple[list[str], int]:
    reader = csv.reader(file, delimiter=separator)
    header: list[str] | None = None
    records, line = 0, 1
    for fields in reader:
        start, line = line, reader.line_num + 1
        if not fields:  # pandas skips blank lines too
            continue
        if header is None:
            header = fields
            check_names([name for name in header if name], locate(role, path))
        elif len(fields) != len(header):
            raise InputError(
                f"{locate(role, path)}: line {start} must have {len(header)} fields as in the header, got "
                f"{len(fields)}; correct the line, and quote fields that contain the separator"
            )
        else:
            records += 1
    if header is None:
        raise InputError(f"{locate(role, path)}: the file is empty; it must have a header and rows")
    return header, records


def _read_parquet(path: Path, role: str) -> pd.DataFrame:
    parquet: Any = need("pyarrow.parquet", "cli")
    arrow: Any = need("pyarrow", "cli")
    try:
        file = parquet.ParquetFile(path)
        check_names(file.schema_arrow.names, locate(role, path))
        frame = file.read().to_pandas()
    except (arrow.ArrowException, OSError) as error:
        raise parquet_file_error(path, role, error) from error
    # pandas stores a named index as a column; an index without a name only counts the rows.
    named = [name for name in frame.index.names if name is not None]
    return frame.reset_index(drop=not named)


def _read_npy(path: Path, role: str) -> pd.DataFrame:
    try:
        with path.open("rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except PermissionError:
        raise
    except _ARRAY_ERRORS as error:
        raise array_file_error(path, role, error) from error
    where = locate(role, path)
    if array.ndim != 2:
        raise InputError(f"{where}: the array must be 2-D (rows x columns), got shape {array.shape}; reshape it")
    return pd.DataFrame(_check_dtype(array, where), columns=_number_names("x", array.shape[1]))


def _read_npz(path: Path, role: str) -> pd.DataFrame:
    where = locate(role, path)
    try:
        if not zipfile.is_zipfile(path):  # np.load chooses the format by the content
            raise zipfile.BadZipFile("not a zip archive, or its end is missing")
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except PermissionError:
        raise
    except _ARRAY_ERRORS as error:
        raise array_file_error(path, role, error) from error
    if not arrays:
        raise InputError(f"{where}: the file has no arrays; save arrays such as X and y")
    frames = [_to_frame(key, array, len(arrays), where) for key, array in arrays.items()]
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"{where}: all arrays must have the same length, got {lengths}; save one table per file")
    check_names([str(name) for frame in frames for name in frame.columns], where)
    return pd.concat(frames, axis=1)


def _to_frame(key: str, array: Any, n_arrays: int, where: str) -> pd.DataFrame:
    if array.ndim not in (1, 2):
        raise InputError(f"{where}: arrays must be 1-D or 2-D, got {key!r} of shape {array.shape}; remove it")
    array = _check_dtype(array, f"{where}, array {key!r}")
    stem = "x" if key in ("X", "x") or n_arrays == 1 else key
    if array.ndim == 1:
        return pd.DataFrame({key: array})
    if array.shape[1] == 1 and stem != "x":
        return pd.DataFrame({key: array[:, 0]})
    return pd.DataFrame(array, columns=_number_names(stem, array.shape[1]))


def _number_names(stem: str, count: int) -> list[str]:
    return [f"{stem}{j}" for j in range(count)]


def _check_dtype(array: Any, where: str) -> Any:
    if array.dtype.kind not in "biufUM":
        raise InputError(
            f"{where}: the array must contain real numbers, got dtype {array.dtype}; save it as float64, or as Parquet"
        )
    native = array.dtype.newbyteorder("=")
    return array if array.dtype == native else array.astype(native)

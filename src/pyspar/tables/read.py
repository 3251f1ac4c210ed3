"""Read a file of rows into a data frame: delimited text, Parquet, the first sheet of a workbook, and numpy arrays.

The columns of a 2-D array are named x0, x1, ...; in an .npz file those of the array ``X`` too, those of another array
``A`` are A0, A1, ..., and a 1-D array is one column with the name of its key. The module also estimates
the memory that a file needs and that is free.
"""

from __future__ import annotations

import csv
import gzip
import os
import zipfile
import zlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyspar.errors import InputError, MissingExtraError, need
from pyspar.io.archives import ArrayHeader, check_entries, read_entry, read_npy_header
from pyspar.sources.files.header import (
    MISSING_MARKS,
    check_file,
    check_names,
    describe_file,
    expected_separator,
    open_text,
    separator_of,
    shorten_error,
    suffix_of,
    unreadable_file_error,
)
from pyspar.sources.files.npy import array_file_error

INPUT_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".xlsx", ".npy", ".npz")

_PACKAGES = {".parquet": "pyarrow", ".xlsx": "openpyxl"}

_MAX_FIELD = 2**27
"""The longest field in characters. A quote that is never closed exceeds it in large files."""
_SAMPLE_BYTES = 1 << 20
"""The compressed bytes from which the ratio of a gzip file is estimated."""
_TEXT_BYTES = 50
"""The bytes of a short Python string, at least, for each value of a text column."""
_MEMORY_DIVISOR = 4
"""A file is streamed if it needs more than 1/4 of free memory, because encoding takes several times its size."""


def check_input(path: Path, role: str) -> None:
    """Raise InputError if a file does not exist, is empty, or has an unknown format. Nothing is read."""
    check_file(path, role, INPUT_SUFFIXES)
    if suffix_of(path) in _PACKAGES:
        need(_PACKAGES[suffix_of(path)], "cli")


def read_table(
    path: Path, role: str, *, as_text: Collection[str] = (), verbatim: str | None = None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read a file into a data frame with unique column names and at least one row; return it with notes.

    In delimited text, the columns ``as_text`` stay text even if they look like numbers, so that ``007`` stays ``007``.
    The column ``verbatim`` is kept unchanged, including the marks of missing values.
    """
    where, suffix = describe_file(role, path), suffix_of(path)
    notes: tuple[str, ...] = ()
    if suffix == ".parquet":
        frame = _read_parquet(path, role)
    elif suffix == ".xlsx":
        frame, notes = _read_workbook(path, role, as_text=as_text, verbatim=verbatim)
    elif has_names(path):
        frame, notes = _read_delimited(path, role, as_text=as_text, verbatim=verbatim)
    else:
        frame = _join_arrays(_read_arrays(path, role), where)
    frame.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
    check_names(frame.columns, where)
    if len(frame) == 0:
        raise InputError(f"{where}: the file has {len(frame.columns)} columns and no rows")
    return frame, notes


def read_cells(path: Path, names: Collection[str], *, limit: int | None = None) -> pd.DataFrame:
    """Return columns of delimited text as they are in the file, without missing values; at most ``limit`` rows."""
    return pd.read_csv(
        path, sep=separator_of(path), encoding="utf-8-sig", index_col=False, dtype=str, keep_default_na=False,
        usecols=lambda name: name in names, nrows=limit,
    )  # fmt: skip


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
    where = describe_file(role, path)
    try:
        separator = separator_of(path)
        header = _read_header(path, role, separator)
        marks = {name: MISSING_MARKS for name in header if name != verbatim}
        frame = pd.read_csv(
            path, sep=separator, encoding="utf-8-sig", index_col=False, low_memory=False,
            keep_default_na=False, na_values=marks,
            dtype={name: str for name in {*as_text, verbatim} if name in header},
        )  # fmt: skip
    except pd.errors.ParserError as error:
        if "out of memory" in str(error):
            raise MemoryError(str(error)) from error
        raise _record_error(where, error) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: the text is not UTF-8 (byte 0x{error.object[error.start]:02x}); save the file as UTF-8"
        ) from error
    except csv.Error as error:
        raise _record_error(where, error) from error
    except (EOFError, zlib.error, gzip.BadGzipFile, PermissionError) as error:
        raise unreadable_file_error(path, role, error, "gzip") from error
    return frame, describe_separator(path, role, separator)


def _record_error(where: str, error: Exception) -> InputError:
    return InputError(f"{where}: cannot parse a record ({shorten_error(error)}); look for a quote that is never closed")


def _read_header(path: Path, role: str, separator: str) -> list[str]:
    """Return the header; raise InputError for a file without rows, and for the first record of another width."""
    where = describe_file(role, path)
    header: list[str] = []
    records, line = 0, 1
    limit = csv.field_size_limit(_MAX_FIELD)
    try:
        with open_text(path) as file:
            for fields in (reader := csv.reader(file, delimiter=separator)):
                start, line = line, reader.line_num + 1
                if not header:
                    header = fields  # empty for a blank line, which pandas skips too
                elif fields and len(fields) != len(header):
                    raise InputError(
                        f"{where}: line {start} must have {len(header)} fields as in the header, got {len(fields)}; "
                        "correct the line, and quote fields that contain the separator"
                    )
                else:
                    records += bool(fields)
    finally:
        csv.field_size_limit(limit)
    check_names([name for name in header if name], where)
    if records == 0:
        missing = "has a header and no rows" if header else "is empty; it must have a header and rows"
        raise InputError(f"{where}: the file {missing}")
    return header


def _read_parquet(path: Path, role: str) -> pd.DataFrame:
    parquet: Any = need("pyarrow.parquet", "cli")
    try:
        file = parquet.ParquetFile(path, page_checksum_verification=True)
        check_names(file.schema_arrow.names, describe_file(role, path))
        frame = file.read().to_pandas()
    except (InputError, MemoryError):
        raise
    except Exception as error:  # a damaged description of the columns raises errors of many types in pandas
        raise unreadable_file_error(path, role, error, "Parquet") from error
    # pandas stores a named index as a column; an index without a name only counts the rows.
    named = [name for name in frame.index.names if name is not None]
    return frame.reset_index(drop=not named)


def _read_workbook(
    path: Path, role: str, *, as_text: Collection[str], verbatim: str | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read the first sheet of a workbook. Its first row contains the column names."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_entries(archive, path.stat().st_size, describe_file(role, path), compressed=True)
            if damaged := archive.testzip():  # openpyxl ignores missing entries: without styles, dates become numbers
                raise zipfile.BadZipFile(f"{damaged} does not match its checksum or its name")
        with pd.ExcelFile(path, engine="openpyxl") as book:
            sheets = [str(name) for name in book.sheet_names]
            header = [str(name) for name in pd.read_excel(book, nrows=0).columns]
            frame = pd.read_excel(
                book, keep_default_na=False, na_values={name: MISSING_MARKS for name in header if name != verbatim},
                dtype={name: str for name in {*as_text, verbatim} if name in header},
            )  # fmt: skip
    except (InputError, MemoryError):
        raise
    except Exception as error:  # openpyxl raises errors of many types for malformed files
        raise unreadable_file_error(path, role, error, ".xlsx", "save the sheet as CSV") from error
    frame = frame.dropna(how="all", ignore_index=False)
    notes = (f"{role}: the first of {len(sheets)} sheets is read ({sheets[0]!r})",) if len(sheets) > 1 else ()
    return frame.reset_index(drop=True), notes


def _read_arrays(path: Path, role: str) -> dict[str, Any]:
    """Return the arrays of an .npz file by name. The array of an .npy file must be a matrix and is named X.

    The sizes in all headers are compared with the file and with the free memory before an array is allocated.
    """
    where, size = describe_file(role, path), path.stat().st_size
    try:
        if suffix_of(path) == ".npz":
            with zipfile.ZipFile(path) as archive:
                entries = check_entries(archive, size, where, compressed=True)
                headers = {}
                for name, info in entries.items():
                    with archive.open(info) as file:
                        headers[name] = read_npy_header(file, info.file_size)
                _check_memory(headers.values(), where)
                return {name.removesuffix(".npy"): read_entry(archive, info) for name, info in entries.items()}
        with path.open("rb") as file:
            header = read_npy_header(file, size)
            if len(header.shape) != 2:
                raise InputError(
                    f"{where}: the array must be 2-D (rows x columns), got shape {header.shape}; reshape it"
                )
            _check_memory([header], where)
            file.seek(0)
            return {"X": np.lib.format.read_array(file, allow_pickle=False)}
    except (InputError, MemoryError):
        raise
    except Exception as error:  # zipfile and numpy raise errors of many types for malformed files
        raise array_file_error(path, role, error) from error


def _check_memory(headers: Iterable[ArrayHeader], where: str) -> None:
    needed, free = sum(header.n_bytes for header in headers), free_memory()
    if free is not None and needed > free:
        raise InputError(
            f"{where}: the arrays need {needed / 1e9:.3g} GB of memory, but {free / 1e9:.3g} GB are free; save fewer "
            "rows or columns, or one .npy file for --stream"
        )


def _join_arrays(arrays: dict[str, Any], where: str) -> pd.DataFrame:
    if not arrays:
        raise InputError(f"{where}: the file has no arrays; save arrays such as X and y")
    frames = [_to_frame(key, array, len(arrays), where) for key, array in arrays.items()]
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"{where}: all arrays must have the same length, got {lengths}; save one table per file")
    return pd.concat(frames, axis=1)


def _to_frame(key: str, array: Any, n_arrays: int, where: str) -> pd.DataFrame:
    if array.ndim not in (1, 2):
        raise InputError(f"{where}: arrays must be 1-D or 2-D, got {key!r} of shape {array.shape}; remove it")
    if array.dtype.kind not in "biufUM":
        raise InputError(
            f"{where}, array {key!r}: the array must contain real numbers, got dtype {array.dtype}; save it as "
            "float64, or as Parquet"
        )
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    stem = "x" if key in ("X", "x") or n_arrays == 1 else key
    if array.ndim == 1 or (array.shape[1] == 1 and stem != "x"):
        return pd.DataFrame({key: array.reshape(-1)})
    return pd.DataFrame(array, columns=[f"{stem}{j}" for j in range(array.shape[1])])


def exceeds_memory(path: Path) -> bool:
    """Return whether a file needs more than a quarter of the free memory."""
    free = free_memory()
    return free is not None and path.is_file() and decoded_size(path) > free // _MEMORY_DIVISOR


def decoded_size(path: Path) -> int:
    """Return about how many bytes a file has in memory: as its footer says, or from a sample of compressed text.

    A file that cannot be read has the size on disk; reading it raises an error that names the reason.
    """
    suffix, size = suffix_of(path), path.stat().st_size
    try:
        if suffix == ".parquet":
            return _parquet_size(path)
        if suffix.endswith(".gz"):
            return int(size * _compression_ratio(path))
        if suffix in (".npz", ".xlsx"):
            with zipfile.ZipFile(path) as archive:
                return sum(entry.file_size for entry in archive.infolist())
    except MissingExtraError:
        raise
    except Exception:  # noqa: BLE001 - damaged files raise errors of many types; the reader reports them
        return size
    return size


def free_memory() -> int | None:
    """Return the free memory in bytes, or None if the system does not report it.

    It is the least of the machine's free memory, the limit of the process, and the limit of its container.
    """
    known = [size for size in (_machine_memory(), _process_memory(), _container_memory()) if size is not None]
    return min(known) if known else None


def _parquet_size(path: Path) -> int:
    parquet: Any = need("pyarrow.parquet", "cli")
    with parquet.ParquetFile(path) as file:
        schema, footer = file.schema_arrow, file.metadata
        rows = int(footer.num_rows)
        widths = 0
        for field in schema:
            try:
                widths += max(1, field.type.bit_width // 8)
            except ValueError:  # text, lists and other types of variable length
                widths += _TEXT_BYTES
        encoded = sum(int(footer.row_group(j).total_byte_size) for j in range(footer.num_row_groups))
        return max(rows * widths, encoded)


def _compression_ratio(path: Path) -> float:
    with path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    decoder = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    if not sample.startswith(b"\x1f\x8b"):
        raise gzip.BadGzipFile
    n_bytes = 0
    data = sample
    while data:  # in pieces, so that an extreme ratio does not fill the memory
        n_bytes += len(decoder.decompress(data, _SAMPLE_BYTES))
        data = decoder.unconsumed_tail
    return n_bytes / len(sample)


def _machine_memory() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _process_memory() -> int | None:
    """Return what the limit on the address space of this process leaves (``ulimit -v``)."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError, IndexError):
        return None
    return None if limit == resource.RLIM_INFINITY else max(0, limit - used)


def _container_memory() -> int | None:
    """Return what the limit of a control group leaves (version 2, as in containers)."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        return None if limit == "max" else max(0, int(limit) - int((folder / "memory.current").read_text()))
    except (OSError, ValueError):
        return None

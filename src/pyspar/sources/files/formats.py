"""File formats, and the properties of a file that do not require its rows: its size in memory and its separator."""

from __future__ import annotations

import csv
import gzip
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pyspar.errors import InputError, MissingExtraError, need
from pyspar.wording import list_some

_SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
_SEPARATORS = (",", ";", "\t")
_SAMPLE_BYTES = 1 << 20
"""The compressed bytes from which the ratio of a gzip file is estimated."""
_TEXT_BYTES = 50
"""The bytes of a short Python string, at least, for each value of a text column."""
_MEMORY_DIVISOR = 4
"""A file is streamed if it needs more than 1/4 of free memory, because encoding takes several times its size."""


def describe_file(role: str, path: Path, column: str | None = None) -> str:
    """Return the start of a message about a file.

    >>> describe_file("source", Path("homes.csv"), "price")
    "source 'homes.csv', column 'price'"
    """
    where = f"{role} {str(path)!r}"
    return where if column is None else f"{where}, column {column!r}"


def check_file(path: Path, role: str, suffixes: Sequence[str]) -> None:
    """Raise InputError if a file does not exist, is empty, or has an unknown suffix. Nothing is read."""
    where = describe_file(role, path)
    if path.is_dir():
        raise InputError(f"{where} is a folder; pass a file, or a folder of .parquet files with --stream")
    if not path.is_file():
        kind = "file" if role == "file" else f"{role} file"
        raise InputError(f"{kind} not found: {str(path)!r}; check the path")
    suffix = suffix_of(path)
    if suffix not in suffixes and suffix in _SPREADSHEETS:
        raise InputError(f"{where}: {suffix} files are not supported here; save the sheet as CSV")
    if suffix not in suffixes:
        raise InputError(
            f"{where}: unsupported suffix {suffix or 'none'!r}; the supported suffixes are {', '.join(suffixes)}"
        )
    if path.stat().st_size == 0:
        raise InputError(f"{where}: the file is empty (0 bytes)")


def check_unique(names: Iterable[str], where: str) -> None:
    """Raise InputError if a column name occurs twice."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"{where}: duplicate column names {list_some(repeated)}; rename the columns")


def suffix_of(path: Path) -> str:
    """Return the suffix that determines the format; ``.gz`` is returned with the suffix before it.

    >>> suffix_of(Path("rows.2024.CSV.gz"))
    '.csv.gz'
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def format_of(path: Path) -> FileFormat:
    """Return the format of a file by its suffix; a folder contains Parquet files."""
    if path.is_dir():
        return PARQUET
    suffix = suffix_of(path)
    return next((file_format for file_format in FORMATS if suffix in file_format.suffixes), _OTHER)


def expected_separator(path: Path) -> str:
    """Return the separator that belongs to the suffix: a tab for ``.tsv``, otherwise a comma."""
    return "\t" if ".tsv" in suffix_of(path) else ","


def separator_of(path: Path) -> str:
    """Return the separator implied by the suffix. If it does not split the header, return the separator that does."""
    expected = expected_separator(path)
    fields = {mark: len(read_header(path, mark)) for mark in _SEPARATORS}
    best = max(fields, key=lambda mark: fields[mark])
    return expected if fields[expected] > 1 or fields[best] < 2 else best


def read_header(path: Path, separator: str) -> list[str]:
    """Return the fields of the first record that is not empty, or an empty list."""
    with open_text(path) as file:
        return next((fields for fields in csv.reader(file, delimiter=separator) if fields), [])


def open_text(path: Path) -> IO[str]:
    """Open a text file, gzipped or not. A byte order mark is skipped."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def exceeds_memory(path: Path) -> bool:
    """Return whether a file needs more than a quarter of the free memory."""
    free = free_memory()
    return free is not None and path.is_file() and decoded_size(path) > free // _MEMORY_DIVISOR


def decoded_size(path: Path) -> int:
    """Estimate the size of a file in memory in bytes, from its footer or from a sample of compressed text.

    For a file that cannot be read, return the size on disk. Reading it later raises an error with the reason.
    """
    try:
        return format_of(path).estimate_size(path)
    except MissingExtraError:
        raise
    except Exception:  # noqa: BLE001 - damaged files raise errors of many types; the reader reports them
        return _file_size(path)


def _file_size(path: Path) -> int:
    return path.stat().st_size


def _archive_size(path: Path) -> int:
    with zipfile.ZipFile(path) as archive:
        return sum(entry.file_size for entry in archive.infolist())


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


def _text_size(path: Path) -> int:
    """Return the size of text. If it is compressed, its ratio is estimated from a sample."""
    if path.suffix.lower() != ".gz":
        return _file_size(path)
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
    return int(_file_size(path) * n_bytes / len(sample))


def free_memory() -> int | None:
    """Return the free memory in bytes, or None if the system does not report it.

    It is the least of the machine's free memory, the limit of the process, and the limit of its container.
    """
    known = []
    for measure in (_machine_memory, _process_memory, _container_memory):
        with suppress(AttributeError, ImportError, IndexError, OSError, ValueError):  # the system does not report it
            known.append(measure())
    return min((size for size in known if size is not None), default=None)


def _machine_memory() -> int:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _process_memory() -> int | None:
    """Return what the limit on the address space of this process leaves (``ulimit -v``)."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return None if limit == resource.RLIM_INFINITY else max(0, limit - used)


def _container_memory() -> int | None:
    """Return what the limit of a control group leaves (version 2, as in containers)."""
    folder = Path("/sys/fs/cgroup")
    limit = (folder / "memory.max").read_text().strip()
    return None if limit == "max" else max(0, int(limit) - int((folder / "memory.current").read_text()))


@dataclass(frozen=True)
class FileFormat:
    """A format of files of rows.

    ``estimate_size`` returns the size of a file in memory in bytes. ``opener`` is the module of
    ``pyspar.sources.files`` whose ``open_file`` reads it in batches; it is empty for a format that can only be read as
    a whole. ``package`` is the package that reads it into memory, if it is optional. ``has_names`` says whether it
    stores column names, and ``has_header`` whether these are its first row.
    """

    suffixes: tuple[str, ...]
    estimate_size: Callable[[Path], int]
    opener: str = ""
    package: str = ""
    has_names: bool = True
    has_header: bool = False


TEXT = FileFormat((".csv", ".tsv", ".csv.gz", ".tsv.gz"), _text_size, "text", has_header=True)
PARQUET = FileFormat((".parquet",), _parquet_size, "parquet", "pyarrow")
WORKBOOK = FileFormat((".xlsx",), _archive_size, package="openpyxl", has_header=True)
ARRAY = FileFormat((".npy",), _file_size, "npy", has_names=False)
ARRAYS = FileFormat((".npz",), _archive_size, has_names=False)
_OTHER = FileFormat((), _file_size, has_header=True)
"""The format of a file with an unknown suffix, which is refused before it is read."""
FORMATS = (TEXT, PARQUET, WORKBOOK, ARRAY, ARRAYS)
"""All formats. ``pyspar.tables.read`` has a reader into memory for each of them."""
INPUT_SUFFIXES = tuple(suffix for file_format in FORMATS for suffix in file_format.suffixes)
STREAM_SUFFIXES = tuple(suffix for file_format in FORMATS if file_format.opener for suffix in file_format.suffixes)

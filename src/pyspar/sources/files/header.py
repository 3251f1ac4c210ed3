"""What is known of a file before its rows are read: its format, its size in memory, its separator and column names.

Messages about files, rows and columns, and the fixes that they suggest, are written here too.
"""

from __future__ import annotations

import csv
import errno
import gzip
import os
import shlex
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pyspar.errors import InputError, MissingExtraError, need
from pyspar.wording import list_some, suggest_name

MISSING_MARKS = ["", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"]
MISSING_MARKS += ["na", "n.a.", "N.A.", "Null", "-", "--", "?", "."]
"""Text that is read as a missing value, except in the id column. ``number_text`` adds some in columns of numbers."""
_SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
_SEPARATORS = (",", ";", "\t")
_MIN_SIMILARITY = 0.78
"""Allows one wrong letter in five ('prize' for 'price'), but not one in four ('rate' for 'date')."""
_MAX_CELLS = _MAX_ROWS = 5
"""The largest number of bad cells, and of row numbers, in a message."""
_MAX_DROP_OPTIONS = 20
"""The largest number of ``--drop`` options in a message."""
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
    with open_text(path) as file:
        header = next((line for line in file if line.strip()), "")
    fields = {mark: len(next(csv.reader([header], delimiter=mark), [])) for mark in _SEPARATORS}
    if fields[expected] > 1:
        return expected
    best = max(fields, key=lambda mark: fields[mark])
    return best if fields[best] > 1 else expected


def open_text(path: Path) -> IO[str]:
    """Open a text file, gzipped or not. A byte order mark is skipped."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def describe_rows(rows: Sequence[int], path: Path) -> str:
    """Return the numbers of some rows: as a spreadsheet shows the file, and as data rows.

    >>> describe_rows([3, 10], Path("homes.csv"))
    'rows 5, 12 (the header is row 1; data rows 3, 10 counted from 0)'
    >>> describe_rows([3], Path("homes.parquet"))
    'row 3 (counted from 0)'
    """
    plural, more = "" if len(rows) == 1 else "s", ", ..." if len(rows) > _MAX_ROWS else ""
    data = ", ".join(str(row) for row in rows[:_MAX_ROWS]) + more
    if not format_of(path).has_header:
        return f"row{plural} {data} (counted from 0)"
    shown = ", ".join(str(row + 2) for row in rows[:_MAX_ROWS]) + more
    return f"row{plural} {shown} (the header is row 1; data row{plural} {data} counted from 0)"


def suggest_column(name: str, names: Iterable[str]) -> str:
    """Return the fix for a column name that does not exist: similar names, or all names.

    >>> suggest_column("Pirce", ["rooms", "price"])
    "did you mean 'price'?"
    >>> suggest_column("rate", ["date", "price"])
    "the columns are 'date', 'price'"
    """
    names = list(names)
    return suggest_name(name, names, cutoff=_MIN_SIMILARITY) or f"the columns are {list_some(names, 12)}"


def check_column(name: str | None, option: str, names: Iterable[str], where: str) -> None:
    """Raise InputError if the column that an option names does not exist. None is the option left out."""
    names = list(names)
    if name is not None and name not in names:
        raise InputError(f"{where}: no {option} column {name!r}; {suggest_column(name, names)}")


def suggest_drop(names: Sequence[str]) -> str:
    """Return the options of the command line that ignore some columns.

    >>> suggest_drop(["tax", "living area"])
    "ignore the columns with --drop tax --drop 'living area'"
    >>> suggest_drop(["tax"])
    'ignore the column with --drop tax'
    """
    options = " ".join(f"--drop {shlex.quote(name)}" for name in names[:_MAX_DROP_OPTIONS])
    more = f" and so on ({len(names)} columns)" if len(names) > _MAX_DROP_OPTIONS else ""
    return f"ignore the column{'' if len(names) == 1 else 's'} with {options}{more}"


def bad_cells_error(
    cells: Sequence[tuple[str, int, str]], path: Path, role: str, *, label: str | None = None
) -> InputError:
    """Return an InputError that names bad cells, which are column, row and text, and the cures.

    A bad cell in the column ``label`` of a source can only be ignored with its row. The commands that read a "file", a
    "batch" or "labels" have fewer options than those that read a source and a target.
    """
    names = list(dict.fromkeys(name for name, _, _ in cells))
    listed = "; ".join(
        f"{text[:40]!r} in column {name!r}, {describe_rows([row], path)}" for name, row, text in cells[:_MAX_CELLS]
    )
    more = f"; and {len(cells) - _MAX_CELLS:,} more" if len(cells) > _MAX_CELLS else ""
    count = "1 bad cell" if len(cells) == 1 else f"{len(cells):,} bad cells"
    fix = "correct the file, or pass --bad-cells impute"
    if role in ("batch", "labels"):
        fix = "correct the file"
    elif role == "file":
        fix += " to treat such cells as missing" + (", or leave out --label" if label in names else "")
    elif label in names:
        fix += " --drop-unlabelled to ignore such rows" if role == "source" else " to treat such cells as missing"
    else:
        name = shlex.quote(names[0])
        fix += f" to treat such cells as missing, --drop {name} to ignore the column, or --category {name}"
    return InputError(f"{describe_file(role, path)}: {count} among numbers or dates: {listed}{more}; {fix}")


def shorten_error(error: BaseException) -> str:
    """Return the text of an exception on one line, at most 200 characters."""
    return " ".join(str(error).split())[:200]


def unreadable_file_error(
    path: Path, role: str, error: BaseException, format_name: str, cure: str = "save it again"
) -> InputError:
    """Return an InputError for a file that a library or the operating system cannot read.

    Raise MemoryError if that is the cause, because the file may be in order.
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        raise MemoryError(str(error)) from error
    if isinstance(error, PermissionError):
        return InputError(f"cannot read {describe_file(role, path)}: {(error.strerror or 'permission denied').lower()}")
    reason = f"no array {error.args[0]!r}" if isinstance(error, KeyError) and error.args else shorten_error(error)
    return InputError(f"{describe_file(role, path)}: damaged or not a {format_name} file ({reason}); {cure}")


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

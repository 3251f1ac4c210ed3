"""The files of a command: those to read, and whether they fit into memory; those to write, and how.

Paths and options are checked before anything is read. Files are written whole or not at all.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from pyspar.errors import InputError, MissingExtraError, need
from pyspar.estimators.validation import check_alpha
from pyspar.io.atomic import whole_files
from pyspar.io.moments import is_moments_file
from pyspar.sources.files import STREAM_SUFFIXES
from pyspar.sources.files.header import suffix_of
from pyspar.sources.files.number_text import is_plain

Method = Literal["bayes", "spar", "ols", "ridge", "pcr"]
Features = Literal["all", "num"]
BadCells = Literal["stop", "impute"]
DEFAULT_ALPHA = 0.999
"""The confidence of the paper's rule."""
_SAMPLE_BYTES = 1 << 20
"""The compressed bytes from which the ratio of a gzip file is estimated."""
_TEXT_BYTES = 50
"""The bytes of a short Python string, at least, for each value of a text column."""
_MEMORY_DIVISOR = 4
"""A file is streamed if it needs more than 1/4 of free memory, because encoding takes several times its size."""
OUTPUT_SUFFIXES = (".csv", ".tsv", ".parquet", ".npy")


@dataclass(frozen=True)
class Request:
    """Two files and how to read them.

    ``source`` and ``target`` contain rows or Moments. ``label`` may be None if the source contains Moments. ``alpha``
    is the confidence of the paper's rule, by default 0.999; if it is set, ``bayes`` uses that rule as well.
    ``identity`` is the column with the ids of the rows, ``drop`` are columns to ignore, and ``categories`` are columns
    that are categories even if they contain numbers. ``stream`` reads the files in batches even if they fit into
    memory. ``bad_cells`` says what to do with text among numbers, and ``drop_unlabelled`` ignores source rows without
    a label. ``groups`` is the column with the groups of the rows, which is no feature. ``labels`` is a file with labels
    of target rows, as ``spar label`` writes it and a person fills it in. ``cost`` is the
    column with the cost of each label, which is no feature either.
    """

    source: Path
    target: Path
    label: str | None
    alpha: float | None = None
    features: Features = "all"
    identity: str | None = None
    drop: tuple[str, ...] = ()
    stream: bool = False
    categories: tuple[str, ...] = ()
    bad_cells: BadCells = "stop"
    drop_unlabelled: bool = False
    groups: str | None = None
    labels: Path | None = None
    cost: str | None = None

    def check(self) -> None:
        """Raise InputError if the confidence is not in [0, 1]."""
        try:
            check_alpha(self.confidence)
        except ValueError as error:
            raise InputError(str(error)) from error

    @property
    def confidence(self) -> float:
        """The confidence of the paper's rule."""
        return DEFAULT_ALPHA if self.alpha is None else self.alpha

    @property
    def is_streamed(self) -> bool:
        """Whether the files are read in batches: on request, for folders, large files and files of Moments."""
        paths = (self.source, self.target)
        if self.stream or any(path.is_dir() or contains_moments(path) for path in paths):
            return True
        return any(map(exceeds_memory, paths)) and all(suffix_of(path) in STREAM_SUFFIXES for path in paths)


def contains_moments(path: Path) -> bool:
    """Return whether ``spar summarize`` or ``pyspar.save`` wrote this file."""
    return path.suffix.lower() == ".npz" and is_moments_file(path)


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


@dataclass(frozen=True)
class Writing:
    """How predictions are written: the level of their intervals or None, and whether text must not be a formula."""

    level: float | None = None
    safe_csv: bool = False


PREDICTIONS_ONLY = Writing()
"""No intervals, and text as it is."""


def check_outputs(
    output: Path | None, save: Path | None, *, inputs: tuple[Path, ...], identity: str | None, writing: Writing
) -> None:
    """Raise InputError for predictions and models that cannot be written."""
    if writing.level is not None and not 0.0 < writing.level < 1.0:
        raise InputError(f"--level must be in (0, 1), got {writing.level:g}; try 0.9")
    if writing.safe_csv and (output is None or output.suffix.lower() not in (".csv", ".tsv")):
        raise InputError("--safe-csv needs an output that ends in .csv or .tsv; add -o predictions.csv")
    if output is not None:
        check_path(output, "--output", OUTPUT_SUFFIXES, inputs)
        if output.suffix.lower() == ".npy" and identity is not None:
            raise InputError("--output must be .csv, .tsv or .parquet with --id; a .npy file has no id column")
        if output.suffix.lower() == ".parquet":
            need("pyarrow", "cli")
    if save is not None:
        check_path(save, "--save", (".skops",), inputs)
        need("skops.io", "cli")


def check_reports(paths: Sequence[Path], *, inputs: tuple[Path, ...]) -> None:
    """Raise InputError for reports of ``spar inspect`` that cannot be written."""
    for number, path in enumerate(paths):
        check_path(path, "--report", (".html", ".json"), inputs)
        if any(_is_same_file(path, other) for other in paths[:number]):
            raise InputError(f"--report {str(path)!r} is given twice; choose another name")
        if path.suffix.lower() == ".html":
            need("jinja2", "report")
            need("matplotlib", "report")


def check_path(path: Path, option: str, suffixes: tuple[str, ...], inputs: tuple[Path, ...]) -> None:
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
    if any(_is_same_file(path, other) for other in inputs):
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


def intervals_of(model: Any, rows: Any, level: float | None) -> tuple[Any, ...]:
    """Return the two ends of the interval of each row, or nothing without a level or if the model has no intervals."""
    if level is None or not hasattr(model, "predict_interval"):
        return ()
    return tuple(model.predict_interval(rows, level))


def write_predictions(
    columns: Sequence[Any], ids: pd.Series[Any] | None, path: Path, *, safe_csv: bool = False
) -> None:
    """Write predictions and, if given, the ends of their intervals, in the format of the suffix.

    The first column is the id or the number of the row, counted from 0.
    """
    suffix = path.suffix.lower()
    if suffix == ".npy":
        array = io.BytesIO()  # np.save reports a full disk without its reason
        np.save(array, np.asarray(columns[0], dtype="<f8"))
        path.write_bytes(array.getvalue())
        return
    key, values = ("row", np.arange(len(columns[0]))) if ids is None else (str(ids.name), ids.to_numpy())
    table = pd.DataFrame({key: values, **dict(zip(name_columns(key), columns))})
    if suffix == ".parquet":
        table.to_parquet(path, index=False, write_page_checksum=True)
    else:
        table = make_table_safe(table) if safe_csv else table
        table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")


def make_table_safe(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose text and column names a spreadsheet does not read as formulas."""
    table = table.rename(columns=make_safe)
    return table.map(lambda cell: make_safe(cell) if isinstance(cell, str) else cell)


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

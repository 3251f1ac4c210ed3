"""The memory that a file needs when it is read, and the memory that is free."""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

from pyspar.errors import MissingExtraError, need
from pyspar.sources.files.header import suffix_of

_SAMPLE_BYTES = 1 << 20
"""The compressed bytes from which the ratio of a gzip file is estimated."""
_TEXT_BYTES = 50
"""The bytes of a short Python string, at least, for each value of a text column."""


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

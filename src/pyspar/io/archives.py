"""Check zip archives and numpy arrays before their content is read.

Each array must have the size that its header states. In files of pyspar each entry must also be stored uncompressed.
Reading a checked file of pyspar therefore allocates no more memory than the file occupies on disk. The ``.npz`` files
of users may be compressed; the size that a compressed entry can have is limited by its compressed size.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from tokenize import TokenError
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from pyspar.errors import InputError

_ENCRYPTED = 0x1
_MAX_DEFLATE_RATIO = 1032
"""The largest ratio of original and compressed size that the format deflate can express."""
_HEADER_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_PLAIN_KINDS = "biufcSUmM"
"""The kinds of dtype in files of pyspar: numbers, text and dates. Objects and structures are rejected."""
HEADER_LOCK = threading.RLock()
"""Held while numpy parses the header of an array: ``ast.parse`` in two threads can fail in Python 3.11.7."""


@dataclass(frozen=True)
class ArrayHeader:
    """The shape and dtype of an array in a file, whether it is stored by columns, and where its data start."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool
    offset: int

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def check_entries(archive: ZipFile, size: int, where: str, *, compressed: bool = False) -> dict[str, ZipInfo]:
    """Return the entries of an archive of ``size`` bytes by name; raise InputError if one is not acceptable.

    ``compressed`` also accepts entries that are compressed by deflate.
    """
    entries: dict[str, ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename
        if name in entries:
            raise InputError(f"{where} has two entries named {name!r}; write the file again")
        is_plain = info.compress_type == ZIP_STORED and info.compress_size == info.file_size
        is_deflated = info.compress_type == ZIP_DEFLATED and info.file_size <= _MAX_DEFLATE_RATIO * info.compress_size
        if info.flag_bits & _ENCRYPTED or not (is_plain or (compressed and is_deflated)):
            raise InputError(
                f"{where}: the entry {name!r} must be stored {'or deflated' if compressed else 'uncompressed'}, got "
                f"zip method {info.compress_type}, flags {info.flag_bits:#x}, and {info.compress_size} bytes for "
                f"{info.file_size}; write the file again"
            )
        if info.comment:  # numpy writes none; one flipped bit in its length hides the entries after this one
            raise InputError(f"{where}: the entry {name!r} has a comment; write the file again")
        entries[name] = info
    total = sum(info.compress_size for info in entries.values())
    if total > size:
        raise InputError(f"{where} has {size} bytes, but its entries claim {total} bytes; write the file again")
    return entries


def read_npy_header(file: IO[bytes], size: int) -> ArrayHeader:
    """Return the header of an ``.npy`` file of ``size`` bytes; raise ValueError if the size contradicts it."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADER_READERS:
        raise ValueError(f"version {version} of the format is not supported")
    with HEADER_LOCK:
        shape, by_columns, dtype = _HEADER_READERS[version](file)
    header = ArrayHeader(shape, dtype, by_columns, file.tell())
    if dtype.hasobject:
        raise ValueError("object arrays are not read")
    if min(shape, default=0) < 0 or dtype.itemsize == 0 or header.n_bytes != size - header.offset:
        raise ValueError(
            f"{size - header.offset} bytes of data, but the header describes the shape {shape} and the dtype {dtype}"
        )
    return header


def read_entry(archive: ZipFile, info: ZipInfo) -> Any:
    """Return an array of an archive whose header has been checked."""
    with archive.open(info) as file, HEADER_LOCK:
        array = np.lib.format.read_array(file, allow_pickle=False)
        file.read()  # the checksum is compared at the end of the entry
        return array


def read_array_header(archive: ZipFile, info: ZipInfo, where: str) -> ArrayHeader:
    """Return the header of an .npy entry; raise InputError if it is damaged or contradicts the size of the entry."""
    try:
        with archive.open(info) as file:
            header = read_npy_header(file, info.file_size)
        if header.dtype.kind not in _PLAIN_KINDS:
            raise ValueError(f"arrays of dtype {header.dtype} are not read")
    except (ValueError, TypeError, SyntaxError, TokenError, RecursionError, EOFError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{where}: {info.filename!r} is not an array of numbers or text ({reason}); write it again"
        ) from error
    return header

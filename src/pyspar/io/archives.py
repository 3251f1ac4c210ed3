"""Check zip archives and numpy arrays before their content is read.

Each entry must be stored uncompressed, and each array must have the size that its header states. Reading a checked
archive therefore allocates no more memory than the file occupies on disk.
"""

from __future__ import annotations

import math
import re
from typing import IO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from pyspar.errors import InputError

_PREFIX = 10  # bytes before the header of an .npy file: magic string, version, length of the header
_ENCRYPTED = 0x1
_HEADER = re.compile(
    r"\{'descr': '(?P<dtype>[<>|=][biufcSUmM]\d{1,9}(\[\w{1,9}\])?)', 'fortran_order': (True|False), "
    r"'shape': \((?P<shape>(\d{1,18}(, \d{1,18})*,?)?)\), \} *\n"
)
"""The header that numpy writes for plain dtypes. Object and structured dtypes do not match."""


def check_entries(archive: ZipFile, size: int, where: str) -> dict[str, ZipInfo]:
    """Return the entries of an archive of ``size`` bytes by name; raise InputError if one is not acceptable."""
    entries: dict[str, ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename
        if name in entries:
            raise InputError(f"{where} has two entries named {name!r}; write the file again")
        if info.compress_type != ZIP_STORED or info.flag_bits & _ENCRYPTED or info.compress_size != info.file_size:
            raise InputError(
                f"{where}: the entry {name!r} must be stored uncompressed, got zip method {info.compress_type} and "
                f"flags {info.flag_bits:#x}; write the file again"
            )
        entries[name] = info
    total = sum(info.file_size for info in entries.values())
    if total > size:
        raise InputError(f"{where} has {size} bytes, but its entries claim {total} bytes; write the file again")
    return entries


def read_array_header(archive: ZipFile, info: ZipInfo, where: str) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Return the shape and dtype of an .npy entry; raise InputError if its size contradicts them."""
    with archive.open(info) as file:
        header, offset = _read_header(file)
    match = _HEADER.fullmatch(header)
    if match is None:
        raise InputError(
            f"{where}: {info.filename!r} must be an array of numbers or text in format 1.0 of numpy, got the header "
            f"{header[:80]!r}; write the file again"
        )
    try:
        dtype = np.dtype(match["dtype"])
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {info.filename!r} has the unknown dtype {match['dtype']!r}") from error
    shape = tuple(int(length) for length in match["shape"].split(",") if length)
    stored = info.file_size - offset
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != stored:
        raise InputError(
            f"{where}: {info.filename!r} has {stored} bytes, but its header describes the shape {shape} and the dtype "
            f"{dtype}; write the file again"
        )
    return shape, dtype


def _read_header(file: IO[bytes]) -> tuple[str, int]:
    """Return the header of an array and the number of bytes before the data."""
    prefix = file.read(_PREFIX)
    if len(prefix) < _PREFIX or prefix[:8] != b"\x93NUMPY\x01\x00":
        return repr(prefix), 0
    length = int.from_bytes(prefix[8:], "little")
    return file.read(length).decode("latin1"), _PREFIX + length

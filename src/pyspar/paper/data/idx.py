"""IDX files, the format of MNIST and its kin: a magic number, the sizes, then the bytes; plain or gzipped."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError

_IMAGES = 0x0803  # unsigned bytes (08) in three dimensions (03)


def read_idx_images(path: Path, *, sha256: str) -> NDArray[np.uint8]:
    """Return the images (n, height, width) of a file, after checking the sum of its decompressed bytes.

    Archives of the same bytes differ (distributions strip names and dates from gzip headers), so the bytes are summed.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path} is no whole gzip file ({error}); get it again.") from error
    magic = int.from_bytes(data[:4], "big")
    if magic != _IMAGES:
        raise InputError(
            f"{path} must be an IDX file of images, magic number {_IMAGES:#06x}. Got {magic:#06x} instead."
        )
    n, height, width = (int.from_bytes(data[at : at + 4], "big") for at in (4, 8, 12))
    if len(data) != 16 + n * height * width:
        raise InputError(
            f"{path} must hold {n} images of {height} x {width} pixels, {16 + n * height * width} bytes. "
            f"Got {len(data)} bytes; get it again."
        )
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise InputError(f"{path} has changed: its bytes, unzipped, should have sha256 {sha256}, but have {found}.")
    return np.frombuffer(data, np.uint8, offset=16).reshape(n, height, width)

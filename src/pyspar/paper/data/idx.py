"""Reader of IDX files, the format of MNIST: a magic number, the sizes, then the bytes; plain or gzipped."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError

_IMAGES_MAGIC = 0x0803  # unsigned bytes (08) in three dimensions (03)


def read_idx_images(path: Path, *, sha256: str) -> NDArray[np.uint8]:
    """Return the images (n, height, width) of a file, after comparing the checksum of its decompressed bytes.

    The checksum is that of the decompressed bytes, because gzip headers differ between distributions.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {str(path)!r}: not a complete gzip file ({error}); get it again") from error
    magic = int.from_bytes(data[:4], "big")
    if magic != _IMAGES_MAGIC:
        raise InputError(
            f"{str(path)!r} must be an IDX file of images with magic number {_IMAGES_MAGIC:#06x}, got {magic:#06x}"
        )
    n, height, width = (int.from_bytes(data[start : start + 4], "big") for start in (4, 8, 12))
    if len(data) != 16 + n * height * width:
        raise InputError(
            f"{str(path)!r} must have {16 + n * height * width} bytes for {n} images of {height} x {width} pixels, got "
            f"{len(data)}; get it again"
        )
    actual = hashlib.sha256(data).hexdigest()
    if actual != sha256:
        raise InputError(f"wrong checksum of {str(path)!r}: expected sha256 {sha256} after decompression, got {actual}")
    return np.frombuffer(data, np.uint8, offset=16).reshape(n, height, width)

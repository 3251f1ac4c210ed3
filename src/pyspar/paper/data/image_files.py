"""Rows that are images in separate files, read when they are indexed, by several threads and at most once per image.

Decompressing an image of PovertyMap takes 11 ms, so training would wait for it. The first read of an image stores it as
float16 in one memory-mapped file (16 GB for all of PovertyMap) in the cache folder. The standardised pixels keep three
digits. If the disk has no room for the file, the images are read again in every epoch.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError, MissingDataError, warn
from pyspar.paper.data.files import list_names

THREADS = 8


class ImageFiles:
    """Images ``pattern.format(number)`` in a folder as rows of float32. Each is an npz file with the array ``x``.
    ``images[rows]`` (an array of indices, a slice or a mask) is an array of images. ``cache`` is the file that stores
    them, or None. Row ``number`` of it is the image with this number; ``count`` is the number of its rows.
    """

    dtype = np.dtype(np.float32)

    def __init__(
        self, folder: Path, numbers: NDArray[np.int64], *, pattern: str, cache: Path | None = None, count: int = 0
    ) -> None:
        self.folder, self.pattern, self.cache, self.count = Path(folder), pattern, cache, count
        self.numbers = np.asarray(numbers, np.int64)

    def __reduce__(self) -> Any:  # a worker process opens the cache itself
        make = partial(ImageFiles, pattern=self.pattern, cache=self.cache, count=self.count)
        return make, (self.folder, self.numbers)

    def __len__(self) -> int:
        return int(self.numbers.size)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *read_image(self.path(int(self.numbers[0]))).shape)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        numbers = np.atleast_1d(self.numbers[rows])
        if self._stored is None:
            return self._read(numbers)
        pixels, known = self._stored
        new = np.unique(numbers[~known[numbers]])
        if new.size:
            pixels[new] = self._read(new)
            known[new] = True  # after the pixels, so that a process that is killed leaves no wrong row
        return np.asarray(pixels[numbers], np.float32)

    def _read(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        images = np.empty((numbers.size, *self.shape[1:]), np.float32)

        def read(row: int) -> None:
            image = read_image(self.path(int(numbers[row])))
            if image.shape != self.shape[1:]:
                raise InputError(
                    f"{str(self.path(int(numbers[row])))!r} must have the shape {self.shape[1:]} of the first image, "
                    f"got {image.shape}"
                )
            images[row] = image

        with ThreadPoolExecutor(THREADS) as threads:  # decompressing releases Python's lock
            list(threads.map(read, range(numbers.size)))
        return images

    @cached_property
    def _stored(self) -> tuple[Any, Any] | None:
        """The memory-mapped pixels and whether each image is in them, or None without a cache."""
        if self.cache is None:
            return None
        shape = (self.count, *self.shape[1:])
        try:
            self.cache.parent.mkdir(parents=True, exist_ok=True)
            size = 2 * int(np.prod(shape))
            with open(self.cache, "ab") as file:
                if file.tell() != size and hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)  # a full disk raises here, and not while training
                os.ftruncate(file.fileno(), size)
            with open(self.cache.with_suffix(".known"), "ab") as file:
                os.ftruncate(file.fileno(), self.count)
            pixels = np.memmap(self.cache, np.float16, "r+", shape=shape)
            return pixels, np.memmap(self.cache.with_suffix(".known"), np.bool_, "r+", shape=(self.count,))
        except OSError as error:
            self.cache.unlink(missing_ok=True)
            warn(f"cannot store images in {self.cache}: {error.strerror or error}; every epoch reads the image files")
            return None

    def path(self, number: int) -> Path:
        return self.folder / self.pattern.format(number)

    def missing(self) -> NDArray[np.int64]:
        present = set(list_names(self.folder))
        return self.numbers[[self.pattern.format(n) not in present for n in self.numbers.tolist()]]


def read_image(path: Path) -> NDArray[np.float32]:
    """Read the array ``x`` of an npz file as float32. Raise if it contains anything but finite numbers."""
    try:
        with np.load(path, allow_pickle=False) as file, np.errstate(over="ignore"):
            stored = np.asarray(file["x"])
            image = stored.astype(np.float32, casting="same_kind" if stored.dtype.kind == "f" else "safe")
    except FileNotFoundError as error:
        raise MissingDataError(f"file not found: {str(path)!r}; the data set is incomplete") from error
    except PermissionError:
        raise
    except KeyError as error:
        raise InputError(f"{str(path)!r} must be an npz file with an array 'x'") from error
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError, OSError) as error:
        raise InputError(f"cannot read {str(path)!r}: not an npz file with numbers ({error}); get it again") from error
    finite = np.isfinite(image)
    if not finite.all():
        raise InputError(
            f"{str(path)!r} must contain finite numbers, but {np.sum(~finite):,} of {image.size:,} values are NaN, "
            "infinite or too large for float32; get it again"
        )
    return image

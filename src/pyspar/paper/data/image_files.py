"""Rows that are images in separate files, read when they are indexed."""

from __future__ import annotations

import zipfile
import zlib
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.files import list_names


class ImageFiles:
    """Images ``pattern.format(number)`` in a folder as rows of float32. Each is an npz file with the array ``x``.

    ``images[k]`` is one image, and ``images[rows]`` (indices, a slice or a mask) is an array of images. The
    last ``keep`` images stay in memory.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, folder: Path, numbers: NDArray[np.int64], *, pattern: str, keep: int = 0) -> None:
        self.folder, self.pattern, self.keep = Path(folder), pattern, keep
        self.numbers = np.asarray(numbers, np.int64)
        self._read_image = lru_cache(maxsize=keep)(read_image)

    def __reduce__(self) -> Any:  # a worker process starts without images in memory
        return partial(ImageFiles, pattern=self.pattern, keep=self.keep), (self.folder, self.numbers)

    def __len__(self) -> int:
        return int(self.numbers.size)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, then the shape of the first image."""
        return (len(self), *self._read_image(self.path(int(self.numbers[0]))).shape)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        numbers = self.numbers[rows]
        images = np.empty((*numbers.shape, *self.shape[1:]), np.float32)
        for row, number in np.ndenumerate(numbers):
            image = self._read_image(self.path(int(number)))
            if image.shape != self.shape[1:]:
                raise InputError(
                    f"{str(self.path(int(number)))!r} must have the shape {self.shape[1:]} of the first image, got "
                    f"{image.shape}"
                )
            images[row] = image
        return images

    def path(self, number: int) -> Path:
        """Return the file of an image."""
        return self.folder / self.pattern.format(number)

    def missing(self) -> NDArray[np.int64]:
        """Return the numbers of the images without a file."""
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

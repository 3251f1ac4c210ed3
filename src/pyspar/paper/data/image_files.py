"""Rows that are images in separate files, read when they are indexed."""

from __future__ import annotations

import zipfile
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.access import convert_permission_errors, list_names


class ImageFiles:
    """Images ``pattern.format(number)`` in a folder as rows of float32. Each is an npz file with the array ``x``.

    ``images[k]`` is one image, and ``images[rows]`` (indices, a slice or a mask) is an array of images. Only the last
    ``keep`` images are kept in memory.
    """

    def __init__(self, folder: Path, numbers: NDArray[np.int64], *, pattern: str, keep: int = 0) -> None:
        if keep < 0:
            raise InputError(f"keep must be at least 0, got {keep}")
        self.folder = Path(folder)
        self.numbers = np.asarray(numbers, np.int64)
        self.pattern = pattern
        self.keep = keep
        self._kept: OrderedDict[int, NDArray[np.float32]] = OrderedDict()
        self._row_shape: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return int(self.numbers.size)

    @property
    def dtype(self) -> np.dtype[np.float32]:
        """float32, for files of any type."""
        return np.dtype(np.float32)

    @property
    def ndim(self) -> int:
        """The number of axes, including that of the rows."""
        return len(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, then the shape of the first image."""
        if self._row_shape is None:
            if not len(self):
                raise InputError("the shape of the images is unknown, because there are none")
            self._row_shape = self._image(int(self.numbers[0])).shape
        return (len(self), *self._row_shape)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        numbers = self.numbers[rows]
        if numbers.ndim == 0:
            return self._image(int(numbers))
        images = np.empty((numbers.size, *self.shape[1:]), np.float32)
        for row, number in enumerate(numbers.tolist()):
            images[row] = self._image(number)
        return images

    def path(self, number: int) -> Path:
        """Return the file of an image."""
        return self.folder / self.pattern.format(number)

    def missing(self) -> NDArray[np.int64]:
        """Return the numbers of the images without a file."""
        present = set(list_names(self.folder))
        return self.numbers[[self.pattern.format(n) not in present for n in self.numbers.tolist()]]

    def __getstate__(self) -> dict[str, Any]:
        # A worker process starts without images in memory, because reading is cheaper than sending.
        return self.__dict__ | {"_kept": OrderedDict()}

    def _image(self, number: int) -> NDArray[np.float32]:
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        image = read_image(self.path(number))
        if self._row_shape is not None and image.shape != self._row_shape:
            raise InputError(
                f"{str(self.path(number))!r} must have shape {self._row_shape} as the first image, got {image.shape}"
            )
        if self.keep:
            image.flags.writeable = False  # it may be returned again
            self._kept[number] = image
            if len(self._kept) > self.keep:
                self._kept.popitem(last=False)
        return image


def read_image(path: Path) -> NDArray[np.float32]:
    """Read the array ``x`` of an npz file as float32. Raise if it contains anything but finite numbers."""
    try:
        with convert_permission_errors(path), np.load(path, allow_pickle=False) as file:
            stored = np.asarray(file["x"])
    except InputError:
        raise
    except FileNotFoundError as error:
        raise MissingDataError(f"file not found: {str(path)!r}; the data set is incomplete") from error
    except KeyError as error:
        raise InputError(f"{str(path)!r} must be an npz file with an array 'x'") from error
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError, OSError) as error:
        raise InputError(f"cannot read {str(path)!r}: not a complete npz file ({error}); get it again") from error
    if stored.dtype.kind not in "biuf":
        raise InputError(f"{str(path)!r} must contain real numbers, got dtype {stored.dtype}; get it again")
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite and raise below
        image = np.asarray(stored, np.float32)
    finite = np.isfinite(image)
    if not finite.all():
        raise InputError(
            f"{str(path)!r} must contain finite numbers, but {np.sum(~finite):,} of {image.size:,} values are NaN, "
            "infinite or too large for float32; get it again"
        )
    return image

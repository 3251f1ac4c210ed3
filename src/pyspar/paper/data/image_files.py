"""Rows that lie in files, one image each, and are read when they are asked for."""

from __future__ import annotations

import zipfile
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.access import names_in, permitted


class ImageFiles:
    """Images ``pattern.format(number)`` of a folder, each an npz file with the array ``x``, as rows of float32.

    ``images[k]`` is one image, ``images[rows]`` (numbers, a slice or a mask) an array of them. Nothing is kept in
    memory but the last ``keep`` images that were read.
    """

    def __init__(self, folder: Path, numbers: NDArray[np.int64], *, pattern: str, keep: int = 0) -> None:
        if keep < 0:
            raise InputError(f"keep must be a number of images, 0 or more. Got {keep} instead.")
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
        """The type of all images, whatever the type in the file."""
        return np.dtype(np.float32)

    @property
    def ndim(self) -> int:
        """The number of axes, rows counted."""
        return len(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, then what the first image has."""
        if self._row_shape is None:
            if not len(self):
                raise InputError("expected at least one image. Got none, so their shape is not known.")
            self._row_shape = self._image(int(self.numbers[0])).shape
        return (len(self), *self._row_shape)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        chosen = self.numbers[rows]
        if chosen.ndim == 0:
            return self._image(int(chosen))
        images = np.empty((chosen.size, *self.shape[1:]), np.float32)
        for place, number in enumerate(chosen.tolist()):
            images[place] = self._image(number)
        return images

    def path(self, number: int) -> Path:
        """Return the file of an image."""
        return self.folder / self.pattern.format(number)

    def missing(self) -> NDArray[np.int64]:
        """Return the numbers of the images that have no file."""
        present = set(names_in(self.folder))
        return self.numbers[[self.pattern.format(n) not in present for n in self.numbers.tolist()]]

    def __getstate__(self) -> dict[str, Any]:
        # A worker process starts with an empty memory: images are cheaper to read than to send.
        return self.__dict__ | {"_kept": OrderedDict()}

    def _image(self, number: int) -> NDArray[np.float32]:
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        image = read_image(self.path(number))
        if self._row_shape is not None and image.shape != self._row_shape:
            raise InputError(
                f"{self.path(number)} must have the shape {self._row_shape} of the first image. Got {image.shape}."
            )
        if self.keep:
            image.flags.writeable = False  # it may be handed out again
            self._kept[number] = image
            if len(self._kept) > self.keep:
                self._kept.popitem(last=False)
        return image


def read_image(path: Path) -> NDArray[np.float32]:
    """Read the array ``x`` of an npz file as float32; what holds anything but finite numbers is refused."""
    try:
        with permitted(path), np.load(path, allow_pickle=False) as file:
            stored = np.asarray(file["x"])
    except InputError:
        raise
    except FileNotFoundError as error:
        raise MissingDataError(f"{path} is missing; the folder is not the whole data set.") from error
    except KeyError as error:
        raise InputError(f"{path} must be an npz file with an array named 'x'. It has none of that name.") from error
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError, OSError) as error:
        raise InputError(f"{path} is no whole npz file ({error}); get it again.") from error
    if stored.dtype.kind not in "biuf":
        raise InputError(f"{path} must hold an image of real numbers. Got the type {stored.dtype}; get it again.")
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is refused below
        image = np.asarray(stored, np.float32)
    finite = np.isfinite(image)
    if not finite.all():
        raise InputError(
            f"{path} must hold finite images. Got {np.sum(~finite):,} of {image.size:,} values that are NaN, infinite "
            "or too large for float32; get it again."
        )
    return image

"""Moments as an ``.npz`` file: a source summarised once, shipped without its rows, merged later.

A file is checked before its arrays are read: the zip archive, the shape and dtype of every array against the size that
is stored, and the shapes against each other. Reading a file therefore allocates no more than the file's own size.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo, is_zipfile

import numpy as np

from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.io.archives import array_header, checked_entries
from pyspar.io.atomic import whole_file

FORMAT = "pyspar-moments-1"
_KINDS = {  # of the dtypes: U text, f floats of 8 bytes, i and u integers
    "format": "U",
    "root": "f",
    "n_features": "iu",
    "rows": "iu",
    "weight": "fiu",
    "weight2": "fiu",
    "eps": "f",
    "blur": "fiu",
    "names": "U",
    "outputs": "U",
}
_REQUIRED = tuple(key for key in _KINDS if key != "outputs")


def write_moments(moments: Moments, path: str | os.PathLike[str], outputs: Sequence[str] = ()) -> None:
    """Write Moments, whole or not at all; ``outputs`` are the names of the labels, which Moments do not keep."""
    repeated = _repeated(moments.names)
    if repeated:
        raise InputError(f"expected features with different names. Got {repeated[:3]} more than once; rename them.")
    with whole_file(path) as temporary, open(temporary, "wb") as file:
        np.savez(
            file,
            format=np.array(FORMAT),
            root=moments.root,
            n_features=np.array(moments.n_features),
            rows=np.array(moments.rows),
            weight=np.array(moments.weight),
            weight2=np.array(moments.weight2),
            eps=moments.eps,
            blur=np.array(moments.blur),
            names=np.array(moments.names, dtype=np.str_),
            outputs=np.array(tuple(outputs), dtype=np.str_),
        )


def is_moments_file(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file says of itself that it holds Moments; an ``.npz`` of rows does not."""
    try:
        if not is_zipfile(path):
            return False
        with ZipFile(path) as archive:
            where, info = repr(str(path)), archive.getinfo("format.npy")
            checked_entries(archive, Path(path).stat().st_size, where)
            return array_header(archive, info, where)[0] == () and str(_read(archive, info)) == FORMAT
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is not a file of Moments
        return False


def read_moments(path: str | os.PathLike[str]) -> Moments:
    """Read what :func:`write_moments` wrote; anything else is refused with what is wrong with it."""
    where = repr(str(path))
    with _opened(path) as (archive, entries):
        shapes = {key: array_header(archive, info, where)[0] for key, info in entries.items()}
        small = {key: _read(archive, entries[key]) for key in _REQUIRED if key != "root"}
        names = _texts(small["names"])
        if str(small["format"]) != FORMAT:
            raise InputError(f"{where} has format {str(small['format'])!r}. This version of pyspar reads {FORMAT}.")
        wrong = _wrong_numbers(small, shapes["root"]) or _wrong_names(names, int(small["n_features"]))
        root = None if wrong else np.asarray(_read(archive, entries["root"]), dtype=np.float64)
        wrong = wrong or _wrong_root(root, float(small["weight"]))
    if wrong or root is None:
        raise InputError(f"{where} cannot be Moments: {wrong}. Write the file again.")
    eps = np.asarray(small["eps"], dtype=np.float64)
    counts = int(small["n_features"]), int(small["rows"])
    sums = float(small["weight"]), float(small["weight2"])
    return Moments(root, *counts, *sums, eps, float(small["blur"]), names)


def read_outputs(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the names of the labels in a file of Moments, or nothing where whoever wrote it gave none."""
    with _opened(path) as (archive, entries):
        return _texts(_read(archive, entries["outputs"])) if "outputs" in entries else ()


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[ZipFile, dict[str, ZipInfo]]]:
    """Open a file of Moments and yield its entries, whose dtypes and numbers of dimensions have been checked."""
    where = repr(str(path))
    try:
        with ZipFile(path) as archive:
            found = checked_entries(archive, Path(path).stat().st_size, where)
            entries = {name.removesuffix(".npy"): info for name, info in found.items() if name.endswith(".npy")}
            missing = [key for key in _REQUIRED if key not in entries]
            if missing:
                raise InputError(f"{where} is not a file of Moments: it lacks {', '.join(missing)}.")
            entries = {key: entries[key] for key in _KINDS if key in entries}
            for key, info in entries.items():
                shape, dtype = array_header(archive, info, where)
                dimensions = {"root": 2, "eps": 1, "names": 1, "outputs": 1}.get(key, 0)
                known = dtype.kind in _KINDS[key] and (dtype.kind != "f" or dtype.itemsize == 8)
                if not known or len(shape) != dimensions:
                    raise InputError(
                        f"{where}: {key} must have {dimensions} dimensions and a dtype of kind {_KINDS[key]!r}. "
                        f"Got {dtype} and the shape {shape}; write the file again."
                    )
            yield archive, entries
    except (InputError, MemoryError):
        raise
    except Exception as error:  # zipfile and numpy raise errors of many types for malformed files
        raise InputError(f"{where} is not a readable .npz file ({error}); write it again.") from error


def _read(archive: ZipFile, info: ZipInfo) -> Any:
    with archive.open(info) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
        file.read()  # the checksum is compared at the end of the entry
        return array


def _texts(array: Any) -> tuple[str, ...]:
    return tuple(str(text) for text in array)


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _wrong_numbers(found: dict[str, Any], shape: tuple[int, ...]) -> str:
    """Say what is wrong with the numbers beside the root and with its shape, or return nothing."""
    d, rows, blur = int(found["n_features"]), int(found["rows"]), float(found["blur"])
    eps = found["eps"]
    if not 1 <= d < shape[1] or not 1 <= shape[0] <= shape[1]:
        return f"the root has the shape {shape} for {d} features"
    if rows < 1:
        return f"the number of rows is {rows}, expected at least 1"
    for name in ("weight", "weight2"):
        if not 0.0 < float(found[name]) < np.inf:
            return f"{name} is {float(found[name])}, expected a positive number"
    if not 0.0 <= blur < 1.0:
        return f"blur is {blur}, expected a number from 0 to 1"
    if eps.shape != (d,) or not ((eps > 0.0) & (eps < 1.0)).all():
        return f"eps must be {d} numbers between 0 and 1"
    return ""


def _wrong_names(names: tuple[str, ...], n_features: int) -> str:
    if len(names) not in (0, n_features):
        return f"{n_features} features have {len(names)} names"
    repeated = _repeated(names)
    return f"several features have the names {repeated[:3]}" if repeated else ""


def _wrong_root(root: Any, weight: float) -> str:
    if root is None or not np.isfinite(root).all():
        return "the root has entries that are not finite"
    if np.any(root[1:, 0] != 0.0) or not np.isclose(abs(float(root[0, 0])), np.sqrt(weight), rtol=1e-9, atol=0.0):
        return f"the first column of the root does not fit the weight {weight}"
    return ""

"""numpy files: numbers without names, read with pickle off, and given names here.

The columns of a 2-D array are x0, x1, ...; in an .npz file, those of the array ``X`` too, those of another array ``A``
are A0, A1, ..., and a 1-D array is one column under its own key.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyspar.errors import InputError
from pyspar.sources.files.names import check_names, few

ARRAY_SUFFIXES = (".npy", ".npz")

_BROKEN = (ValueError, EOFError, OSError, KeyError, SyntaxError, zipfile.BadZipFile, zlib.error)
"""What numpy raises for files that are cut off or not what their suffix says."""


def has_names(path: Path) -> bool:
    """Say whether a file names its columns itself."""
    return path.suffix.lower() not in ARRAY_SUFFIXES


def read_npy(path: Path, role: str) -> pd.DataFrame:
    """Read one 2-D array of numbers."""
    try:
        with path.open("rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except _BROKEN as error:
        raise _broken(path, role, error) from error
    if array.ndim != 2:
        raise InputError(
            f"{role} {str(path)!r}: expected a 2-D array, rows x columns. Got shape {array.shape}; reshape it."
        )
    return pd.DataFrame(_check_kind(array, f"{role} {str(path)!r}"), columns=_numbered("x", array.shape[1]))


def read_npz(path: Path, role: str) -> pd.DataFrame:
    """Read named arrays of as many rows each."""
    where = f"{role} {str(path)!r}"
    try:
        if not zipfile.is_zipfile(path):  # np.load goes by the content, and would return something else
            raise zipfile.BadZipFile("not a zip archive, or its end is missing")
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except _BROKEN as error:
        raise _broken(path, role, error) from error
    if not arrays:
        raise InputError(f"{where}: expected arrays such as X and y. Got none.")
    blocks = [_block(key, array, len(arrays), where) for key, array in arrays.items()]
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(
            f"{where}: expected arrays with one entry per row. Got lengths {lengths}; keep one table in a file."
        )
    check_names([str(name) for block in blocks for name in block.columns], where)
    return pd.concat(blocks, axis=1)


def _block(key: str, array: Any, n_arrays: int, where: str) -> pd.DataFrame:
    if array.ndim not in (1, 2):
        raise InputError(f"{where}: expected 1-D and 2-D arrays. Got {key!r} of shape {array.shape}; leave it out.")
    array = _check_kind(array, f"{where}, array {key!r}")
    stem = "x" if key in ("X", "x") or n_arrays == 1 else key
    if array.ndim == 1:
        return pd.DataFrame({key: array})
    if array.shape[1] == 1 and stem != "x":
        return pd.DataFrame({key: array[:, 0]})
    return pd.DataFrame(array, columns=_numbered(stem, array.shape[1]))


def _numbered(stem: str, count: int) -> list[str]:
    return [f"{stem}{j}" for j in range(count)]


def _check_kind(array: Any, where: str) -> Any:
    if array.dtype.kind not in "biufUM":
        raise InputError(
            f"{where}: expected real numbers. Got dtype {array.dtype}; save the table as float64, or as Parquet."
        )
    native = array.dtype.newbyteorder("=")
    return array if array.dtype == native else array.astype(native)


def _broken(path: Path, role: str, error: BaseException) -> InputError:
    if "allow_pickle" in str(error) or "Object arrays" in str(error):
        return InputError(
            f"{role} {str(path)!r}: expected plain numbers. Got Python objects, which could run code when read; "
            "save the table as float64, or as Parquet."
        )
    keys = few([str(error.args[0])]) if isinstance(error, KeyError) and error.args else " ".join(str(error).split())
    return InputError(
        f"{role} {str(path)!r}: expected a whole {path.suffix} file. Got a broken one ({keys}); save it again."
    )

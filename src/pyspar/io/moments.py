"""Moments as ``.npz`` files, to share a source without its rows and to merge sources later.

A file is checked before its arrays are read: the zip archive, the shape and dtype of every array against the stored
size, and the shapes against each other. Reading a file therefore allocates no more than the file's own size.
"""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile, ZipInfo, is_zipfile

import numpy as np

from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.io.archives import check_entries, read_array_header, read_entry
from pyspar.io.atomic import whole_file

FORMAT = "pyspar-moments-1"
_DTYPE_KINDS = {  # U: text, f: floats of 8 bytes, i and u: integers
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
    "formats": "U",
}
_REQUIRED = tuple(key for key in _DTYPE_KINDS if key not in ("outputs", "formats"))
_DIMENSIONS = {"root": 2, "eps": 1, "names": 1, "outputs": 1, "formats": 2}


class ColumnFormat(NamedTuple):
    """How the numbers of a column were written, without any cell of it.

    ``decimal`` is the decimal mark, a comma or a point. ``sign`` is '%', a currency sign, or ''. ``proven`` is 'yes' if
    a cell can only be read with this decimal mark, otherwise ''. ``ambiguous`` is the mark in cells that are other
    numbers with the other decimal mark, or ''.
    """

    name: str
    decimal: str
    sign: str
    proven: str
    ambiguous: str

    @property
    def is_valid(self) -> bool:
        is_sign = self.sign in ("", "%") or (len(self.sign) == 1 and unicodedata.category(self.sign) == "Sc")
        return (
            self.decimal in (",", ".") and is_sign and self.proven in ("", "yes") and self.ambiguous in ("", ",", ".")
        )


def write_moments(
    moments: Moments,
    path: str | os.PathLike[str],
    outputs: Sequence[str] = (),
    formats: Sequence[ColumnFormat] = (),
) -> None:
    """Write Moments atomically.

    ``outputs`` are the names of the labels, and ``formats`` are the formats of features and labels in the file of rows.
    Moments contain neither.
    """
    repeated = _find_repeated(moments.names)
    if repeated:
        raise InputError(f"feature names must be unique, got {repeated[:3]} more than once; rename them")
    texts = {"format": FORMAT, "names": moments.names, "outputs": tuple(outputs)}
    entries: dict[str, Any] = {
        key: np.array(texts[key], dtype=np.str_) if key in texts else np.asarray(getattr(moments, key))
        for key in _DTYPE_KINDS
        if key != "formats"
    }
    if formats:
        entries["formats"] = np.array(formats, dtype=np.str_)
    with whole_file(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **entries)


def is_moments_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is an ``.npz`` file of Moments, not of rows."""
    try:
        if not is_zipfile(path):
            return False
        with ZipFile(path) as archive:
            where, info = repr(str(path)), archive.getinfo("format.npy")
            check_entries(archive, Path(path).stat().st_size, where)
            return read_array_header(archive, info, where)[0] == () and str(read_entry(archive, info)) == FORMAT
    except Exception:  # noqa: BLE001 - a file that cannot be read is not a file of Moments
        return False


def read_moments(path: str | os.PathLike[str]) -> Moments:
    """Read a file that :func:`write_moments` wrote; raise InputError with the reason for any other file."""
    where = repr(str(path))
    with _open_entries(path) as (archive, entries):
        shapes = {key: read_array_header(archive, info, where)[0] for key, info in entries.items()}
        scalars = {key: read_entry(archive, entries[key]) for key in _REQUIRED if key != "root"}
        names = _to_texts(scalars["names"])
        if str(scalars["format"]) != FORMAT:
            raise InputError(
                f"{where} has the format {str(scalars['format'])!r}; this version of pyspar reads {FORMAT!r}"
            )
        problem = _check_numbers(scalars, shapes["root"]) or _check_names(names, int(scalars["n_features"]))
        root = None if problem else np.asarray(read_entry(archive, entries["root"]), dtype=np.float64)
        problem = problem or _check_root(root, float(scalars["weight"]))
        _read_formats(archive, entries, where)
    if problem or root is None:
        raise InputError(f"{where} is not a valid file of Moments: {problem}; write the file again")
    n_features, rows = int(scalars["n_features"]), int(scalars["rows"])
    weight, weight2, blur = (float(scalars[key]) for key in ("weight", "weight2", "blur"))
    return Moments(root, n_features, rows, weight, weight2, np.asarray(scalars["eps"], dtype=np.float64), blur, names)


def read_outputs(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the names of the labels in a file of Moments; empty if the file has none."""
    with _open_entries(path) as (archive, entries):
        return _to_texts(read_entry(archive, entries["outputs"])) if "outputs" in entries else ()


def read_formats(path: str | os.PathLike[str]) -> tuple[ColumnFormat, ...]:
    """Return the formats of the columns in a file of Moments; empty if the file has none."""
    with _open_entries(path) as (archive, entries):
        return _read_formats(archive, entries, repr(str(path)))


def _read_formats(archive: ZipFile, entries: dict[str, ZipInfo], where: str) -> tuple[ColumnFormat, ...]:
    if "formats" not in entries:
        return ()
    problem, width = "", read_array_header(archive, entries["formats"], where)[0][1]
    if width == len(ColumnFormat._fields):
        formats = tuple(ColumnFormat(*_to_texts(row)) for row in read_entry(archive, entries["formats"]))
        invalid = [tuple(column) for column in formats if not column.is_valid]
        repeated = _find_repeated([column.name for column in formats])
        if not invalid and not repeated:
            return formats
        problem = f"the format {invalid[0]}" if invalid else f"several formats of the columns {repeated[:3]}"
    problem = problem or f"formats of {width} fields instead of {len(ColumnFormat._fields)}"
    raise InputError(f"{where} is not a valid file of Moments: it has {problem}; write the file again")


@contextmanager
def _open_entries(path: str | os.PathLike[str]) -> Iterator[tuple[ZipFile, dict[str, ZipInfo]]]:
    """Open a file of Moments and yield its entries, whose dtypes and numbers of dimensions have been checked."""
    where = repr(str(path))
    try:
        with ZipFile(path) as archive:
            stored = check_entries(archive, Path(path).stat().st_size, where)
            entries = {name.removesuffix(".npy"): info for name, info in stored.items() if name.endswith(".npy")}
            missing = [key for key in _REQUIRED if key not in entries]
            if missing:
                raise InputError(f"{where} is not a file of Moments: it has no {', '.join(missing)}")
            unknown = [name for name in stored if name.removesuffix(".npy") not in _DTYPE_KINDS]
            if unknown:  # perhaps a damaged name
                raise InputError(f"{where}: the entry {unknown[0]!r} does not belong into a file of Moments; remove it")
            for key, info in entries.items():
                shape, dtype = read_array_header(archive, info, where)
                dimensions = _DIMENSIONS.get(key, 0)
                is_valid = dtype.kind in _DTYPE_KINDS[key] and (dtype.kind != "f" or dtype.itemsize == 8)
                if not is_valid or len(shape) != dimensions:
                    raise InputError(
                        f"{where}: {key} must have {dimensions} dimensions and a dtype of kind {_DTYPE_KINDS[key]!r}, "
                        f"got {dtype} and the shape {shape}; write the file again"
                    )
            yield archive, entries
    except (InputError, MemoryError):
        raise
    except Exception as error:  # zipfile and numpy raise errors of many types for malformed files
        raise InputError(f"{where} is not a readable .npz file ({error}); write it again") from error


def _to_texts(array: Any) -> tuple[str, ...]:
    return tuple(str(text) for text in array)


def _find_repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _check_numbers(fields: dict[str, Any], shape: tuple[int, ...]) -> str:
    """Return the problem with the numbers beside the root or with the shape of the root, or an empty string."""
    d, rows, blur = int(fields["n_features"]), int(fields["rows"]), float(fields["blur"])
    eps = fields["eps"]
    if not 1 <= d < shape[1] or not 1 <= shape[0] <= shape[1]:
        return f"the root has the shape {shape} for {d} features"
    if rows < 1:
        return f"the number of rows is {rows}, expected at least 1"
    for name in ("weight", "weight2"):
        if not 0.0 < float(fields[name]) < np.inf:
            return f"{name} is {float(fields[name])}, expected a positive number"
    if not 0.0 <= blur < 1.0:
        return f"blur is {blur}, expected a number from 0 to 1"
    if eps.shape != (d,) or not ((eps > 0.0) & (eps < 1.0)).all():
        return f"eps must be {d} numbers between 0 and 1"
    return ""


def _check_names(names: tuple[str, ...], n_features: int) -> str:
    if len(names) not in (0, n_features):
        return f"{n_features} features have {len(names)} names"
    repeated = _find_repeated(names)
    return f"several features have the names {repeated[:3]}" if repeated else ""


def _check_root(root: Any, weight: float) -> str:
    if root is None or not np.isfinite(root).all():
        return "the root has entries that are not finite"
    if np.any(root[1:, 0] != 0.0) or not np.isclose(abs(float(root[0, 0])), np.sqrt(weight), rtol=1e-9, atol=0.0):
        return f"the first column of the root does not fit the weight {weight}"
    return ""

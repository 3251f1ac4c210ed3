"""Moments as ``.npz`` files, to share a source without its rows and to merge sources later.

A file is checked before its arrays are read: the zip archive, the shape and dtype of every array against the stored
size, and the shapes against each other. Reading a file therefore allocates no more than the file's own size.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile, ZipInfo

import numpy as np

from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.io.archives import check_entries, read_array_header, read_entry
from pyspar.io.atomic import whole_file

FORMAT = "pyspar-moments-1"
_FIELDS = {
    "format": ("U", 0),
    "root": ("f", 2),
    "n_features": ("iu", 0),
    "rows": ("iu", 0),
    "weight": ("fiu", 0),
    "weight2": ("fiu", 0),
    "eps": ("f", 1),
    "names": ("U", 1),
    "outputs": ("U", 1),
    "tails": ("f", 2),
}
"""The kinds of dtype (U: text, f: floats of 8 bytes, i and u: integers) and the number of dimensions of each array."""
_OPTIONAL = ("outputs", "tails")


class MomentsFile(NamedTuple):
    """The content of a file: Moments, and the names of the labels."""

    moments: Moments
    outputs: tuple[str, ...] = ()


def write_moments(moments: Moments, path: str | os.PathLike[str], outputs: Sequence[str] = ()) -> None:
    """Write Moments atomically, with the names of the labels."""
    if repeated := _find_repeated(moments.names):
        raise InputError(f"feature names must be unique, got {repeated[:3]} more than once; rename them")
    texts: dict[str, Any] = {"format": FORMAT, "names": moments.names, "outputs": tuple(outputs)}
    arrays: dict[str, Any] = {key: np.array(text, dtype=np.str_) for key, text in texts.items()}
    arrays |= {key: np.asarray(getattr(moments, key)) for key in _FIELDS if key not in (*texts, *_OPTIONAL)}
    arrays |= {} if moments.tails is None else {"tails": moments.tails}
    with whole_file(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)


def is_moments_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is an ``.npz`` file of Moments, not of rows."""
    try:
        with ZipFile(path) as archive:
            return {"format.npy", "root.npy"} <= set(archive.namelist())
    except Exception:  # noqa: BLE001 - zipfile raises errors of many types for malformed files
        return False


def read_moments_file(path: str | os.PathLike[str]) -> MomentsFile:
    """Read a file that :func:`write_moments` wrote; raise InputError with the reason for any other file."""
    where = repr(str(path))
    try:
        with ZipFile(path) as archive:
            entries = _check_arrays(archive, Path(path).stat().st_size, where)
            fields = {key: read_entry(archive, info) for key, info in entries.items()}
    except (InputError, MemoryError):
        raise
    except Exception as error:  # zipfile and numpy raise errors of many types for malformed files
        raise InputError(f"{where} is not a readable .npz file ({error}); write it again") from error
    if str(fields["format"]) != FORMAT:
        raise InputError(f"{where} has the format {str(fields['format'])!r}; this version of pyspar reads {FORMAT!r}")
    names, outputs = _to_texts(fields["names"]), _to_texts(fields.get("outputs", ()))
    problem = next(_find_problems(fields, names), None)
    if problem is not None:
        raise InputError(f"{where} is not a valid file of Moments: {problem}; write the file again")
    values: dict[str, Any] = {key: int(fields[key]) for key in ("n_features", "rows")}
    values |= {key: float(fields[key]) for key in ("weight", "weight2")}
    values |= {key: np.asarray(fields[key], dtype=np.float64) for key in ("root", "eps")}
    moments = Moments(**values, names=names, tails=fields.get("tails"))
    return MomentsFile(moments, outputs)


def _check_arrays(archive: ZipFile, size: int, where: str) -> dict[str, ZipInfo]:
    """Return the entries of an archive by field; raise InputError for other fields, dtypes or numbers of dimensions."""
    stored = check_entries(archive, size, where)
    entries = {name.removesuffix(".npy"): info for name, info in stored.items() if name.endswith(".npy")}
    if missing := [key for key in _FIELDS if key not in entries and key not in _OPTIONAL]:
        raise InputError(f"{where} is not a file of Moments: it has no {', '.join(missing)}")
    if unknown := [name for name in stored if name.removesuffix(".npy") not in _FIELDS]:  # perhaps a damaged name
        raise InputError(f"{where}: the entry {unknown[0]!r} does not belong in a file of Moments; remove it")
    for key, info in entries.items():
        (kinds, dimensions), header = _FIELDS[key], read_array_header(archive, info, where)
        shape, dtype = header.shape, header.dtype
        if dtype.kind not in kinds or (dtype.kind == "f" and dtype.itemsize != 8) or len(shape) != dimensions:
            raise InputError(
                f"{where}: {key} must have {dimensions} dimensions and a dtype of kind {kinds!r}, got {dtype} and the "
                f"shape {shape}; write the file again"
            )
    return entries


def _find_problems(fields: dict[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    """Yield the problems of the fields. A check assumes that the checks before it found none."""
    root, eps, d = fields["root"], fields["eps"], int(fields["n_features"])
    if not 1 <= d < root.shape[1] or not 1 <= root.shape[0] <= root.shape[1]:
        yield f"the root has the shape {root.shape} for {d} features"
    if fields["rows"] < 1:
        yield f"the number of rows is {fields['rows']}, expected at least 1"
    for name in ("weight", "weight2"):
        if not 0.0 < fields[name] < np.inf:
            yield f"{name} is {fields[name]}, expected a positive number"
    if eps.shape != (d,) or not ((eps > 0.0) & (eps < 1.0)).all():
        yield f"eps must be {d} numbers between 0 and 1"
    if "tails" in fields and (fields["tails"].shape != (2, d) or not np.isfinite(fields["tails"]).all()):
        yield f"tails must be 2 x {d} finite numbers"
    if len(names) not in (0, d):
        yield f"{d} features have {len(names)} names"
    if repeated := _find_repeated(names):
        yield f"several features have the names {repeated[:3]}"
    if not np.isfinite(root).all():
        yield "the root has entries that are not finite"
    if root[1:, 0].any() or not np.isclose(abs(root[0, 0]), np.sqrt(fields["weight"]), rtol=1e-9, atol=0.0):
        yield f"the first column of the root does not fit the weight {fields['weight']}"


def _to_texts(array: Any) -> tuple[str, ...]:
    return tuple(str(text) for text in array)


def _find_repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]

"""Moments as an ``.npz`` file: a source summarised once, shipped without its rows, merged later."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyspar.atomic import whole_file
from pyspar.core.moments import Moments
from pyspar.errors import InputError

FORMAT = "pyspar-moments-1"
_KEYS = ("format", "root", "n_features", "rows", "weight", "weight2", "eps", "blur", "names")


def write_moments(moments: Moments, path: str | os.PathLike[str], outputs: Sequence[str] = ()) -> None:
    """Write Moments, whole or not at all; ``outputs`` are the names of the labels, which Moments do not keep."""
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
        if not zipfile.is_zipfile(path):  # np.load would read a whole array of another format
            return False
        with np.load(path, allow_pickle=False) as stored:
            return "format" in stored.files and str(stored["format"]) == FORMAT
    except (OSError, ValueError, zipfile.BadZipFile, EOFError):
        return False


def read_moments(path: str | os.PathLike[str]) -> Moments:
    """Read what :func:`write_moments` wrote; anything else is refused with what is wrong with it."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            missing = [key for key in _KEYS if key not in stored.files]
            if missing:
                raise InputError(f"{str(path)!r} is not a file of Moments: it lacks {', '.join(missing)}.")
            found: dict[str, Any] = {key: stored[key] for key in _KEYS}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!r} is not a readable .npz file ({error}); write it again.") from error
    if str(found["format"]) != FORMAT:
        raise InputError(f"{str(path)!r} has format {found['format']}. This version of pyspar reads {FORMAT}.")
    root = np.asarray(found["root"], dtype=np.float64)
    d, names = int(found["n_features"]), tuple(str(name) for name in found["names"])
    sound = root.ndim == 2 and root.shape[1] > d >= 1 and len(root) >= 1 and len(names) in (0, d)
    eps, blur, weight = (np.asarray(found[key], dtype=np.float64) for key in ("eps", "blur", "weight"))
    sound = sound and eps.shape == (d,) and bool(((eps > 0.0) & (eps < 1.0)).all())
    sound = sound and 0.0 <= float(blur) < 1.0 and bool(np.isclose(float(root[0, 0]) ** 2, float(weight), rtol=1e-9))
    if not sound or not np.isfinite(root).all() or np.any(root[1:, 0] != 0.0) or not float(found["weight"]) > 0:
        raise InputError(f"{str(path)!r} holds numbers that cannot be Moments; write it again.")
    sums = float(found["weight"]), float(found["weight2"])
    return Moments(root, d, int(found["rows"]), *sums, found["eps"], float(found["blur"]), names)


def read_outputs(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the names of the labels in a file of Moments, or nothing where whoever wrote it gave none."""
    with np.load(path, allow_pickle=False) as stored:
        return tuple(str(name) for name in stored["outputs"]) if "outputs" in stored.files else ()

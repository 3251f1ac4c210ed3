"""``save`` and ``load`` without pickle, so that opening an untrusted file cannot run code.

Fitted models are ``.skops`` files, Moments are ``.npz`` files.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspar.core.moments import Moments
from pyspar.errors import InputError, need
from pyspar.io.archives import HEADER_LOCK
from pyspar.io.atomic import whole_file
from pyspar.io.model_schema import COLUMN_TYPES, DTYPE, TRUSTED, check_model
from pyspar.io.moments import read_moments_file, write_moments


def save(thing: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a ``.skops`` file, or Moments to an ``.npz`` file. On failure no file is changed.

    A model is an estimator, or a pipeline that ends in one. A model that :func:`load` rejects is not saved.
    """
    suffix = Path(path).suffix
    expected = ".npz" if isinstance(thing, Moments) else ".skops"
    if suffix != expected:
        raise InputError(f"the file name must end in {expected}, got {str(path)!r}")
    if isinstance(thing, Moments):
        write_moments(thing, path)
        return
    if not hasattr(thing, "predict"):
        raise TypeError(f"expected a fitted model or Moments, got {type(thing).__name__}")
    corrected = getattr(thing, "model", None)  # of a TargetCorrection
    fixes = {"save its best_estimator_": thing, "correct and save its best_estimator_": corrected}
    for fix, model in fixes.items():
        if hasattr(model, "cv_results_"):
            raise InputError(f"a {type(model).__name__} cannot be saved; {fix}")
    with whole_file(path) as temporary:
        write_model(thing, temporary)


def write_model(model: Any, path: Path) -> None:
    """Write a model to a temporary file; raise InputError if :func:`load` would reject it."""
    skops = need("skops.io", "cli")
    skops.dump(model, path)
    _list_trusted_names(skops, path.read_bytes(), "the model")


def load(path: str | os.PathLike[str]) -> Any:
    """Read a file that :func:`save` wrote.

    A model may contain the types of pyspar's own estimators, estimators of scikit-learn, and the universal functions of
    numpy and scipy. A file with other types raises an error that names them. Opening a file runs no code from the file.
    """
    if not Path(path).is_file():
        raise InputError(f"file not found: {str(path)!r}")
    if Path(path).suffix == ".npz":
        return read_moments_file(path).moments
    skops = need("skops.io", "cli")
    where = repr(str(path))
    data = Path(path).read_bytes()  # read once: the bytes that are loaded are the bytes that were checked
    try:
        trusted = _list_trusted_names(skops, data, where)
        with HEADER_LOCK:
            model = skops.loads(data, trusted=trusted)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # zipfile, json, numpy and skops raise errors of many types for malformed files
        raise InputError(f"{where} is not a readable skops file ({error}); save the model again") from error
    if not hasattr(type(model), "predict"):
        raise InputError(f"{where} must contain a model, got {type(model).__name__}, which has no predict")
    return model


def _list_trusted_names(skops: ModuleType, data: bytes, where: str) -> list[str]:
    """Return the names in a file that skops does not trust by itself; raise InputError if pyspar rejects one."""
    rejected = check_model(data, where)
    untrusted = set() if rejected else set(skops.get_untrusted_types(data=data))
    rejected |= untrusted - TRUSTED - COLUMN_TYPES - {DTYPE}
    names = ", ".join(sorted(rejected))
    if rejected and all(name.startswith("pyspar.") for name in rejected):
        raise InputError(
            f"{where} contains types that this version of pyspar does not read: {names}; the file was written by "
            "another version: fit and save the model again"
        )
    if rejected:
        raise InputError(
            f"{where} contains types that are not on pyspar's list of types in files: {names}; "
            "tree models and your own functions are not on it; for your own files, use skops.io.dump(model, path) and "
            "skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))"
        )
    return sorted(untrusted)

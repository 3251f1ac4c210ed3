"""Save and load without pickle, so that a file from elsewhere cannot run code when it is opened.

Fitted models are ``.skops`` files, Moments are ``.npz`` files; the suffix says which.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspar.core.moments import Moments
from pyspar.errors import InputError, need
from pyspar.io.atomic import whole_file
from pyspar.io.model_schema import DTYPE, TRUSTED, check_model
from pyspar.io.moments import read_moments, write_moments


def save(thing: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a ``.skops`` file, or Moments to an ``.npz`` file, whole or not at all.

    A model is an estimator, or a pipeline that ends in one. A model that :func:`load` would refuse is refused here.
    """
    suffix = Path(path).suffix
    wanted = ".npz" if isinstance(thing, Moments) else ".skops"
    if suffix != wanted:
        raise InputError(f"expected a file name that ends in {wanted}. Got {str(path)!r}; {wanted} is what load reads.")
    if isinstance(thing, Moments):
        write_moments(thing, path)
        return
    if not hasattr(thing, "predict"):
        raise TypeError(f"expected a fitted model or Moments. Got {type(thing).__name__} instead.")
    skops = need("skops.io", "cli")
    with whole_file(path) as temporary:
        skops.dump(thing, temporary)
        _trusted(skops, temporary.read_bytes(), "the model")


def load(path: str | os.PathLike[str]) -> Any:
    """Read what :func:`save` wrote.

    A model may hold the types that pyspar's own estimators consist of, estimators of scikit-learn, and the universal
    functions of numpy and scipy. A file that holds anything else is refused, and the error names it. Opening a file
    runs no code from the file.
    """
    if not Path(path).is_file():
        raise InputError(f"expected a model file. Got {str(path)!r}, which does not exist.")
    if Path(path).suffix == ".npz":
        return read_moments(path)
    skops = need("skops.io", "cli")
    where = repr(str(path))
    data = Path(path).read_bytes()  # read once: the bytes that are loaded are the bytes that were checked
    try:
        model = skops.loads(data, trusted=_trusted(skops, data, where))
    except (InputError, MemoryError):
        raise
    except Exception as error:  # zipfile, json, numpy and skops raise errors of many types for malformed files
        raise InputError(f"{where} is not a readable skops file ({error}); save the model again.") from error
    if not hasattr(type(model), "predict"):
        raise InputError(f"{where} must hold a model. Got {type(model).__name__}, which has no predict.")
    return model


def _trusted(skops: ModuleType, data: bytes, where: str) -> list[str]:
    """Return the names in a file that skops asks about, all of which are accepted; otherwise raise InputError."""
    refused = check_model(data, where)
    asked = set() if refused else set(skops.get_untrusted_types(data=data))
    refused |= asked - TRUSTED - {DTYPE}
    if refused:
        raise InputError(
            f"{where} holds types that pyspar does not trust: {', '.join(sorted(refused))}. Leave functions of your "
            "own out of the pipeline, or keep it with skops.io and a list of what you trust."
        )
    return sorted(asked)

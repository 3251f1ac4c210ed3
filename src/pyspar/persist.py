"""Save and load without pickle, so that a file from elsewhere cannot run code when it is opened.

Fitted models are ``.skops`` files, Moments are ``.npz`` files; the suffix says which.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyspar.atomic import whole_file
from pyspar.core.moments import Moments
from pyspar.errors import InputError, need
from pyspar.moments_file import read_moments, write_moments

_PLAIN = ("numpy.dtype",)
"""A dtype only describes numbers, and scikit-learn's imputer and encoder keep one."""


def save(thing: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a ``.skops`` file, or Moments to an ``.npz`` file, whole or not at all.

    A model is an estimator, or a pipeline that ends in one. What :func:`load` would not trust is refused here.
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
        _refuse_foreign(skops.get_untrusted_types(file=temporary), "the model")


def load(path: str | os.PathLike[str]) -> Any:
    """Read what :func:`save` wrote.

    Of a model, only types of pyspar itself and numpy's dtypes are trusted beyond what skops trusts (numpy, scipy,
    scikit-learn); a file that holds anything else is refused, with the names.
    """
    if not Path(path).is_file():
        raise InputError(f"expected a model file. Got {str(path)!r}, which does not exist.")
    if Path(path).suffix == ".npz":
        return read_moments(path)
    skops = need("skops.io", "cli")
    try:
        unknown = skops.get_untrusted_types(file=path)
    except Exception as error:  # skops raises whatever zipfile and json raise; the cause stays attached
        raise InputError(f"{str(path)!r} is not a readable skops file ({error}); save it again.") from error
    _refuse_foreign(unknown, repr(str(path)))
    return skops.load(path, trusted=unknown)


def _refuse_foreign(unknown: list[str], what: str) -> None:
    foreign = [name for name in unknown if not name.startswith("pyspar.") and name not in _PLAIN]
    if foreign:
        raise InputError(
            f"{what} holds types that pyspar does not trust: {', '.join(foreign)}. Leave functions of your own out of "
            "the pipeline, or keep it with skops.io and a list of what you trust."
        )

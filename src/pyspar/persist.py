"""Save and load fitted models with skops: no pickle, so a file from elsewhere cannot run code when it is opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyspar.atomic import whole_file
from pyspar.errors import InputError, need

_PLAIN = ("numpy.dtype",)
"""A dtype only describes numbers, and scikit-learn's imputer and encoder keep one."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, or a pipeline that ends in one, to a ``.skops`` file, whole or not at all."""
    skops = need("skops.io", "cli")
    with whole_file(path) as temporary:
        skops.dump(model, temporary)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote.

    Only types of pyspar itself and numpy's dtypes are trusted beyond what skops trusts (numpy, scipy, scikit-learn); a
    file that holds anything else is refused, with the names.
    """
    skops = need("skops.io", "cli")
    if not Path(path).is_file():
        raise InputError(f"expected a model file. Got {str(path)!r}, which does not exist.")
    try:
        unknown = skops.get_untrusted_types(file=path)
    except Exception as error:  # skops raises whatever zipfile and json raise; the cause stays attached
        raise InputError(f"{str(path)!r} is not a readable skops file ({error}); save it again.") from error
    foreign = [name for name in unknown if not name.startswith("pyspar.") and name not in _PLAIN]
    if foreign:
        raise InputError(f"{str(path)!r} holds types that pyspar does not trust: {', '.join(foreign)}.")
    return skops.load(path, trusted=unknown)

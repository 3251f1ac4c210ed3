"""The exceptions and warnings of our own; everything else is a plain ValueError or TypeError."""

from __future__ import annotations

import importlib
from types import ModuleType


class SparWarning(UserWarning):
    """The result is well defined, but not what one may think; the text names the consequence."""


class MissingExtraError(ImportError):
    """A feature needs a package that the light install leaves out; the text says what to install."""


class InputError(ValueError):
    """A file or a column is not what was expected; the command line prints the text and exits with code 2."""


class MissingDataError(InputError):
    """A data set is in none of the places where it is looked for; the text says how to get it."""


def need(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say which extra brings it.

    >>> need("no_such", "cli")
    Traceback (most recent call last):
    pyspar.errors.MissingExtraError: This needs the package 'no_such'. Install it with: pip install 'pyspar[cli]'
    """
    try:
        return importlib.import_module(module)
    except MissingExtraError:  # the module asked for a package of its own, and was told which
        raise
    except ImportError as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        name = (missing or module).partition(".")[0]
        raise MissingExtraError(
            f"This needs the package {name!r}. Install it with: pip install 'pyspar[{extra}]'"
        ) from error

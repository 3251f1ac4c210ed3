"""The exceptions and warnings of pyspar. Other invalid arguments raise ValueError or TypeError."""

from __future__ import annotations

import importlib
from types import ModuleType


class SparWarning(UserWarning):
    """The result is defined but may be misleading; the message states the consequence."""


class MissingExtraError(ImportError):
    """An optional package is not installed; the message gives the pip command."""


class InputError(ValueError):
    """A file, a column or an argument is invalid; the command line prints the message and exits with status 2."""


class MissingDataError(InputError):
    """A data set was not found in any of its locations; the message explains how to obtain it."""


def need(module: str, extra: str) -> ModuleType:
    """Import an optional package, or raise an error with the pip command that installs it.

    >>> need("no_such", "cli")
    Traceback (most recent call last):
    pyspar.errors.MissingExtraError: cannot import the package 'no_such'; install it with: pip install 'pyspar[cli]'
    """
    try:
        return importlib.import_module(module)
    except MissingExtraError:  # raised while the module imported an optional package itself
        raise
    except ImportError as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        name = (missing or module).partition(".")[0]
        raise MissingExtraError(
            f"cannot import the package {name!r}; install it with: pip install 'pyspar[{extra}]'"
        ) from error

"""The exceptions and warnings of pyspar. Other invalid arguments raise ValueError or TypeError."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType

_collected: ContextVar[list[str] | None] = ContextVar("pyspar_collected_warnings", default=None)


class SparWarning(UserWarning):
    """The result is defined but may be misleading; the message states the consequence."""


class MissingExtraError(ImportError):
    """An optional package is not installed; the message gives the pip command."""


class InputError(ValueError):
    """A file, a column or an argument is invalid; the command line prints the message and exits with status 2."""


class MissingDataError(InputError):
    """A data set was not found in any of its locations; the message explains how to obtain it."""


def warn(text: str) -> None:
    """Emit a SparWarning that names the caller's line, or add its text to the list of ``collect_warnings``.

    The caller is the first one outside pyspar and scikit-learn.
    """
    collected = _collected.get()
    if collected is None:
        frame, level = sys._getframe(), 1
        while frame.f_back is not None and re.match(r"(pyspar|sklearn)\b", frame.f_globals.get("__name__") or ""):
            frame, level = frame.f_back, level + 1
        warnings.warn(text, SparWarning, stacklevel=level)
    elif text not in collected:
        collected.append(text)


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the texts of our warnings, without repetitions, instead of emitting them.

    ``warnings.catch_warnings`` would change the filters of the whole process. This affects the current thread only.

    >>> with collect_warnings() as texts:
    ...     warn("few rows")
    ...     warn("few rows")
    >>> texts
    ['few rows']
    """
    texts: list[str] = []
    token = _collected.set(texts)
    try:
        yield texts
    finally:
        _collected.reset(token)


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
        name = ((isinstance(error, ModuleNotFoundError) and error.name) or module).partition(".")[0]
        raise MissingExtraError(
            f"cannot import the package {name!r}; install it with: pip install 'pyspar[{extra}]'"
        ) from error

"""The exceptions and warnings of pyspar. Other invalid arguments raise ValueError or TypeError."""

from __future__ import annotations

import importlib
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


def warn(text: str, *, stacklevel: int = 1) -> None:
    """Emit a SparWarning, or add its text to the list of ``collect_warnings`` if that is active in this thread.

    ``stacklevel`` counts from the function that calls this one.
    """
    collected = _collected.get()
    if collected is None:
        warnings.warn(text, SparWarning, stacklevel=stacklevel + 1)
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
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        name = (missing or module).partition(".")[0]
        raise MissingExtraError(
            f"cannot import the package {name!r}; install it with: pip install 'pyspar[{extra}]'"
        ) from error

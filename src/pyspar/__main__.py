"""The entry point of the command ``spar``. Ctrl-C and SIGTERM end it with exit code 130 at every moment."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn


class Stopped(KeyboardInterrupt):
    """Raised for Ctrl-C and SIGTERM; after a plain KeyboardInterrupt ``python -m`` may end by the signal instead."""


def main() -> None:
    """Run the command line."""
    _set_handler(_leave)  # no file is written while modules are imported
    try:
        from pyspar.cli.app import run
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.stderr.write(f"spar needs the package {error.name!r}. Install it with: pip install 'pyspar[cli]'\n")
        raise SystemExit(2) from None
    try:
        _set_handler(_stop)
        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        _set_handler(_leave)


def _set_handler(handler: signal._HANDLER) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores signals on purpose
            signal.signal(number, handler)


def _stop(number: int, frame: object) -> NoReturn:
    raise Stopped


def _leave(number: int, frame: object) -> NoReturn:
    os._exit(130)


if __name__ == "__main__":
    main()

"""The entry point of the command ``spar``. It names the package to install if one is missing."""

from __future__ import annotations

import sys

from pyspar.terminal import STOP_CODE, leave_at_once, stoppable


def main() -> None:
    """Run the command line."""
    leave_at_once()  # no file is written while modules are imported
    try:
        from pyspar.cli.app import run
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.stderr.write(f"spar needs the package {error.name!r}. Install it with: pip install 'pyspar[cli]'\n")
        raise SystemExit(2) from None
    try:
        with stoppable():
            run()
    except KeyboardInterrupt:  # before or after the command itself
        sys.exit(STOP_CODE)


if __name__ == "__main__":
    main()

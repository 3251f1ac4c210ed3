"""The suites without the command line's packages: ``python -m pyspar.paper SUITE... --device cuda --out DIR``.

It needs numpy, scipy, scikit-learn and torch, and nothing else; tables go to files and to stdout as Markdown.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyspar.errors import InputError, MissingExtraError
from pyspar.interrupts import STOPPED, stoppable
from pyspar.paper.experiments.reproduce import cautions, chosen_suites, listing, reproduce
from pyspar.paper.output.lines import Lines
from pyspar.paper.output.tables import result_markdown
from pyspar.paper.runs.run_suite import Options


def main(arguments: list[str] | None = None) -> int:
    """Run suites; 0 if all was done, 1 if something failed or was skipped, 2 for what cannot be begun."""
    parser = argparse.ArgumentParser("python -m pyspar.paper", description="Run experiments of the paper.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="names, or all; none lists them")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, default=Path("reproduction"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--features", choices=("keep", "drop"), default="keep")
    parser.add_argument("--mini", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    try:
        options = Options(
            given.out, given.seeds, given.device, given.jobs, given.data, given.features == "keep", given.mini
        )
        if not given.suites:
            sys.stdout.write("".join(f"{name:22} {state}; {about}\n" for name, about, state in listing(given.data)))
            return 0
        troubles = 0
        suites = chosen_suites(given.suites)
        for caution in cautions(suites, options):
            _say(caution)
        for suite in suites:
            result = reproduce(suite, options, Lines(_say))
            sys.stdout.write(f"\n## {result.title}\n\n{result_markdown(result)}")
            for notice in result.notices:
                _say(notice)
            troubles += len(result.troubles)
        return 1 if troubles else 0
    except (InputError, MissingExtraError, OSError) as error:
        _say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        _say("stopped; the same command goes on from here")
        return STOPPED


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    with stoppable():
        sys.exit(main())

"""Run suites without the packages of the command line: ``python -m pyspar.paper SUITE... --device cuda --out DIR``.

It requires numpy, scipy, scikit-learn and torch. Tables are written to files and, as Markdown, to stdout.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyspar.errors import InputError, MissingExtraError
from pyspar.paper.experiments.reproduce import describe_suites, find_cautions, reproduce, select_suites
from pyspar.paper.output.tables import format_result
from pyspar.paper.runs.run_suite import Options


def main(arguments: list[str] | None = None) -> int:
    """Run suites. Return 0 on success, 1 if a run failed or was skipped, and 2 for wrong arguments or files."""
    parser = argparse.ArgumentParser("python -m pyspar.paper", description="Run experiments of the paper.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="names of suites, or all; lists them if omitted")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, default=Path("reproduction"))
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--methods", action="append", default=[], metavar="NAME")
    parser.add_argument("--eval-batch", type=int, default=256)
    parser.add_argument("--drop-features", dest="keep", action="store_false")
    parser.add_argument("--mini", action="store_true", help=argparse.SUPPRESS)
    given = vars(parser.parse_args(arguments))
    try:
        names = given.pop("suites")
        options = Options(**{**given, "methods": tuple(given["methods"])}, show=True)
        if not names:
            rows = describe_suites(options.data)
            sys.stdout.write("".join(f"{name:30} {state}; {about}\n" for name, about, state in rows))
            return 0
        suites = select_suites(names)
        sys.stderr.writelines(f"{caution}\n" for caution in find_cautions(suites, options))
        failures = 0
        for suite in suites:
            result = reproduce(suite, options)
            sys.stdout.write(f"\n## {result.title}\n\n{format_result(result)}")
            sys.stderr.writelines(f"{notice}\n" for notice in result.notices)
            failures += len(result.failures)
        return 1 if failures else 0
    except (InputError, MissingExtraError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; run the same command again to continue\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())

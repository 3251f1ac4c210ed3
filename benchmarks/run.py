"""Run the benchmarks one after another; each prints a table of ratios and writes ``benchmarks/results/NAME.json``."""

from __future__ import annotations

import argparse
import subprocess
import sys

ALL = (
    "imports", "floor", "regressors", "bayes", "wide", "wide_heads", "growth", "cluster", "streaming", "cmixup",
    "seeds",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"default: {', '.join(ALL)}; run peers and gpu separately")
    chosen = parser.parse_args().names or list(ALL)
    for number, name in enumerate(chosen, start=1):
        print(f"\n[{number}/{len(chosen)}] {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)


if __name__ == "__main__":
    main()

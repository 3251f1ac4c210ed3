"""The time to import pyspar, against scikit-learn's linear models."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.measure import interleaved, keep, show


def load(code):
    subprocess.run([sys.executable, "-c", code], check=True)


def main(turns: int = 7) -> None:
    tasks = {
        "nothing": lambda: load("pass"),
        "import pyspar": lambda: load("import pyspar"),
        "from pyspar import SpARRegressor": lambda: load("from pyspar import SpARRegressor"),
        "import sklearn.linear_model": lambda: load("import sklearn.linear_model"),
    }
    seconds = interleaved(tasks, turns)
    reference = seconds["import sklearn.linear_model"]
    rows = [[name, s, s / reference] for name, s in seconds.items()]
    show("import, in a new process", ["what", "seconds", "ratio to sklearn.linear_model"], rows)
    keep("imports", seconds, turns=turns)


if __name__ == "__main__":
    main()

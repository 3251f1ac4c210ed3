"""Compare the time to import pyspar with that of scikit-learn's linear models."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.measure import median_seconds, print_table, save_record


def run_code(code):
    subprocess.run([sys.executable, "-c", code], check=True)


def main(turns: int = 7) -> None:
    tasks = {
        "nothing": lambda: run_code("pass"),
        "import pyspar": lambda: run_code("import pyspar"),
        "from pyspar import SpARRegressor": lambda: run_code("from pyspar import SpARRegressor"),
        "import sklearn.linear_model": lambda: run_code("import sklearn.linear_model"),
    }
    seconds = median_seconds(tasks, turns)
    reference = seconds["import sklearn.linear_model"]
    rows = [[name, s, s / reference] for name, s in seconds.items()]
    print_table("import, in a new process", ["code", "seconds", "ratio to sklearn.linear_model"], rows)
    save_record("imports", seconds, turns=turns)


if __name__ == "__main__":
    main()

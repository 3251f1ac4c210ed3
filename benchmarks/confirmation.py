"""How often do target labels confirm a model, and how often are they wrong? ``python -m benchmarks.confirmation``.

For each raw task of ``benchmarks.shifts``: random labels of target rows, the interval of the RMSE from them, and
whether the actual error on all target rows exceeds 1.3 times the error at home.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

import numpy as np

from benchmarks.shifts.sets import REGISTER, Task
from pyspar import BayesSpARRegressor
from pyspar.core.mean_square import SquaredErrors
from pyspar.estimators.calibrated_forecasts import EXCESS
from pyspar.inspection.judgement import weigh_evidence

DRAWS = 50
SIZES = (10, 20, 30, 50, 100)


def measure(parts: Sequence[str], draws: int = DRAWS) -> dict[int, tuple[int, float, float, float]]:
    """Return by number of labels: the tasks, the share of draws that confirm, those that err, and the coverage."""
    rng = np.random.default_rng(0)
    counts: dict[int, list[tuple[float, float, float]]] = {n: [] for n in SIZES}
    for shift in REGISTER.values():
        if parts and shift.half not in parts:
            continue
        X, y, Z, yz = Task(shift, "raw").arrays()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            est = BayesSpARRegressor().fit(X, y)
            errors = est.adapted(Z).predict(Z) - yz
        home, actual = float(est.home_rmse()), float(np.sqrt(np.mean(errors**2)))
        for n in SIZES:
            if len(errors) < n:
                continue
            samples = [rng.choice(len(errors), n, replace=False) for _ in range(draws)]
            found = [weigh_evidence({"model": SquaredErrors.of(errors[rows])}, home)["model"] for rows in samples]
            confirmed = float(np.mean([evidence.confirmed for evidence in found]))
            covered = float(np.mean([evidence.interval[1] >= actual for evidence in found]))
            counts[n].append((confirmed, confirmed * (actual > EXCESS * home), covered))
    table = {}
    for n, rows in counts.items():
        confirmed, wrong, covered = np.array(rows).T
        table[n] = len(rows), confirmed.mean(), wrong.sum() / max(confirmed.sum(), 1e-300), covered.mean()
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="parts of the tasks, such as last; default: all")
    print("labels  tasks  confirmed  of these wrong  upper end holds")
    for n, (tasks, confirmed, wrong, covered) in measure(parser.parse_args().parts).items():
        print(f"{n:6}  {tasks:5}  {confirmed:9.1%}  {wrong:14.1%}  {covered:15.1%}")


if __name__ == "__main__":
    main()

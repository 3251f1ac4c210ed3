"""How often do target labels confirm a model, and how often are they wrong? ``python -m benchmarks.confirmation``.

For each raw task of ``benchmarks.shifts``: random labels of target rows, and the judgement of ``pyspar.inspect`` with
them. A confirmation is wrong if the actual error of the recommended weights on all target rows exceeds 1.3 times the
error at home.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.measure import print_table, run_in_processes
from benchmarks.shifts.sets import REGISTER, Task
from benchmarks.trust.check import binomial_interval
from pyspar import BayesSpARRegressor, inspect
from pyspar.core.mean_square import SquaredErrors
from pyspar.estimators.calibrated_forecasts import EXCESS
from pyspar.inspection.judgement import Judgement, weigh_evidence

DRAWS = 50
SIZES = (10, 20, 30, 50, 100)
Shares = tuple[float, float, float]
"""The shares of draws that confirm, that confirm an excessive error, and whose upper end is not too low."""


def measure(name: str, draws: int = DRAWS) -> dict[int, Shares]:
    """Return the shares of draws for each number of labels that one data set has."""
    X, y, Z, yz = Task(REGISTER[name], "raw").arrays()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        est = BayesSpARRegressor().fit(X, y)
        (judgement,) = inspect(est, Z).outputs
        predictions = {judgement.before: est.predict(Z), judgement.adapted: est.adapted(Z).predict(Z)}
    errors = {weights: predicted - yz for weights, predicted in predictions.items()}
    rng, shares = np.random.default_rng(0), {}
    for n in SIZES:
        if n <= len(yz):
            samples = [rng.choice(len(yz), n, replace=False) for _ in range(draws)]
            shares[n] = tuple(np.mean([judge_draw(judgement, errors, rows) for rows in samples], axis=0))
    return shares


def judge_draw(judgement: Judgement, errors: Mapping[str, np.ndarray], rows: np.ndarray) -> Shares:
    """Return whether labels of these rows confirm the model, whether that is wrong, and whether the upper end holds."""
    squares = {weights: SquaredErrors.of(error[rows]) for weights, error in errors.items()}
    judged = replace(judgement, evidence=weigh_evidence(squares, judgement.home))
    actual = SquaredErrors.of(errors[judged.recommended]).rmse
    is_wrong = judged.is_confirmed and actual > EXCESS * judgement.home
    return judged.is_confirmed, is_wrong, judged.labels.interval[1] >= actual


def summarise(found: Sequence[Mapping[int, Shares]]) -> list[list[str]]:
    """Return a row for each number of labels. Data sets have equal weight."""
    rows = []
    for n in SIZES:
        shares = np.array([of_set[n] for of_set in found if n in of_set])
        if not len(shares):
            continue
        confirmed, wrong, covered = shares.T
        share = wrong.sum() / confirmed.sum() if confirmed.any() else 0.0
        low, high = binomial_interval(share, max(round(confirmed.sum()), 1))
        rows.append([str(n), str(len(shares)), f"{confirmed.mean():.1%}", f"{share:.1%}", f"{low:.1%} to {high:.1%}",
                     f"{covered.mean():.1%}"])  # fmt: skip
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.confirmation", description=__doc__)
    parser.add_argument("parts", nargs="*", help="parts of the tasks, such as last; default: all")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each, 1 by default")
    args = parser.parse_args()
    names = [(name,) for name, shift in sorted(REGISTER.items()) if not args.parts or shift.half in args.parts]
    found = [shares for _, shares in run_in_processes(measure, names, jobs=args.jobs, description="labelling")]
    header = ["labels", "tasks", "confirmed", "of these wrong", "CI", "upper end holds"]
    print_table(f"confirmed by random labels ({', '.join(args.parts) or 'all parts'})", header, summarise(found))


if __name__ == "__main__":
    main()

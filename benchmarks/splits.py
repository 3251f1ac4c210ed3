"""The README's example at every other split: ``python -m benchmarks.splits`` writes ``results/splits.md``.

The example splits the computers at two thirds of the months, because SpAR helps there. Here each month from 10 to 31
is the last one of the source in turn, and all later months are the target.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from examples.demo.__main__ import PENALTIES, Case, fit_others, load_computers, with_squares
from sklearn.linear_model import RidgeCV

from benchmarks.records import RESULTS
from pyspar import BayesSpARRegressor, SpARRegressor, adapt_pipeline
from pyspar.progress import progress_bar

MONTHS = range(10, 32)
TARGET = RESULTS / "splits.md"
RIDGE, SPAR, BAYES = "RidgeCV, squares", "SpAR, squares", "BayesSpAR, squares"
CLEAR = 1.02
"""A ratio of errors above this, or below its inverse, counts as a difference."""


def split_at(table: Case, month: int) -> Case:
    """Return the case whose source ends with a month."""
    later = (table.X["trend"] > month).to_numpy()
    return Case(table.X[~later], table.y[~later], table.X[later], table.y[later])


def measure(case: Case, methods: tuple[str, ...] = (RIDGE, SPAR, BAYES)) -> dict[str, float]:
    """Return the errors of methods on the target; "others" are the models without squares."""
    regressors = {RIDGE: RidgeCV(PENALTIES), SPAR: SpARRegressor(), BAYES: BayesSpARRegressor()}
    errors = {name: case.rmse(model) for name, model in (fit_others(case) if "others" in methods else {}).items()}
    for name, regressor in regressors.items():
        if name in methods:
            model = with_squares(regressor).fit(case.X, case.y)
            errors[name] = case.rmse(model if name == RIDGE else adapt_pipeline(model, case.Z))
    return errors


def all_computers() -> Case:
    """Return all computers as the source of a case without a target."""
    case = load_computers()
    return Case(
        X=pd.concat([case.X, case.Z]), y=np.concatenate([case.y, case.truth]), Z=case.Z.iloc[:0], truth=case.truth[:0]
    )


def compare(errors: dict[int, dict[str, float]], name: str) -> tuple[int, int, float, float]:
    """Return how often a method is clearly better than ridge on squares, how often worse, and mean and worst ratio."""
    ratios = np.array([row[name] / row[RIDGE] for row in errors.values()])
    better, worse = int((ratios < 1 / CLEAR).sum()), int((ratios > CLEAR).sum())
    return better, worse, float(np.exp(np.log(ratios).mean())), float(ratios.max())


def write(errors: dict[int, dict[str, float]]) -> str:
    """Return the page: each method against ridge, and one line for each month."""
    names = list(next(iter(errors.values())))
    lines = ["# The README's example at other splits", ""]
    lines += [f"| RMSE / {RIDGE} | better by > 2 % | worse by > 2 % | mean | worst |", "|---|---|---|---|---|"]
    for name in (SPAR, BAYES):
        better, worse, mean, worst = compare(errors, name)
        lines.append(f"| {name} | {better} of {len(errors)} | {worse} of {len(errors)} | {mean:.2f} | {worst:.2f} |")
    lines += ["", f"| last month of the source | {' | '.join(names)} |", f"|{'---|' * (len(names) + 1)}"]
    lines += [f"| {month} | {' | '.join(f'{row[name]:.0f}' for name in names)} |" for month, row in errors.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compute every split and write the page."""
    table, errors = all_computers(), {}
    with progress_bar("splits", total=len(MONTHS), unit="splits", show=True) as advance:
        for done, month in enumerate(MONTHS, start=1):
            errors[month] = measure(split_at(table, month), ("others", RIDGE, SPAR, BAYES))
            advance(done)
    page = write(errors)
    TARGET.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()

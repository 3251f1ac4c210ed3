"""Priors of the correction that were compared, with and without the reduced evidence of heavy tails.

``python -m benchmarks.labels.priors`` measures them and prints the tables of two decision records:
``0021-prior-of-no-drift.md`` (all parts except ``final``) and ``0023-heavy-tails.md`` (these and ``final``).
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.labels.bases import OURS, Problem, problems
from benchmarks.labels.run import DRAWS, MIN_ROWS_LEFT, RESULTS, Record, append_record, draw_rows, read, tidy
from benchmarks.labels.run import RECORDS as METHOD_RECORDS
from benchmarks.labels.settings import Models, Setting
from benchmarks.report import table
from benchmarks.shifts.sets import FINAL, NEW, NEWEST
from pyspar.core.drift import find_outlier

RECORDS = RESULTS / "labels-priors.jsonl"
MODELS = (OURS, "HistGradientBoosting")
LABELS = (10, 30, 50)


class Prior(NamedTuple):
    """The exponent of the weights of a size x, the probability of no drift if set, and whether the kurtosis is used."""

    power: float
    none: float | None = None
    tails: bool = False


FORMER, ADOPTED = "(1 + x)^-2", "1/2, heavy tails"
WITHOUT_TAILS: dict[str, Prior] = {
    FORMER: Prior(2.0),
    "(1 + x)^-1": Prior(1.0),
    "(1 + x)^-4": Prior(4.0),
    "1/2 and (1 + x)^-2": Prior(2.0, 0.5),
    "1/2 and (1 + x)^-1": Prior(1.0, 0.5),
    "1/4 and (1 + x)^-1": Prior(1.0, 0.25),
    "3/4 and (1 + x)^-1": Prior(1.0, 0.75),
    "1/2 and (1 + x)^-1/2": Prior(0.5, 0.5),
}
WITH_TAILS = {
    "1/4, heavy tails": Prior(1.0, 0.25, True),
    ADOPTED: Prior(1.0, 0.5, True),
    "3/4, heavy tails": Prior(1.0, 0.75, True),
}
PRIORS = WITHOUT_TAILS | WITH_TAILS

BOUNDS = (0.0, 0.6, 0.75, 0.9, np.inf)
"""Classes of sets by the error with 30 labels and the former prior, relative to no labels."""


def average_models(at: Setting, rows: np.ndarray) -> Models:
    """Return the models of the correction with three components, without an outlying label."""
    outlier = find_outlier(at.residual(rows))
    rows = rows if outlier is None else np.delete(rows, outlier)
    return at.models(rows, at.linear(rows))


def correct(models: Models, q: np.ndarray, prior: Prior) -> np.ndarray:
    """Return the correction of all target rows with predictions q."""
    return models.correct(q, models.prior(prior.power, prior.none), tails=prior.tails)[0]


def measure(problem: Problem, base: str, n: int) -> list[Record]:
    """Return a record for each prior: the error on the rows without a label, once per draw of the labelled rows."""
    at = Setting(problem, base)
    key = {"set": problem.shift.name, "part": problem.shift.part, "base": base, "n": n}
    records = [key | {"method": name, "rmse": [], "without": []} for name in PRIORS]
    for draw in range(DRAWS):
        rows = draw_rows(problem, n, draw)
        left = np.setdiff1d(np.arange(len(at.q)), rows)
        models = average_models(at, rows)
        for record in records:
            drift = correct(models, at.q, PRIORS[record["method"]])
            for name, error in (("rmse", at.residual(left) - drift[left]), ("without", at.residual(left))):
                record[name].append(float(f"{np.sqrt(np.mean(np.square(error))):.5g}"))
    return records


def run() -> None:
    """Make the missing records."""
    from rich.progress import track

    known = read(RECORDS)
    found = [p for part in ("design", NEW, NEWEST, FINAL) for p in problems(part)]
    found = [p for p in found if len(p.arrays[2]) - LABELS[-1] >= MIN_ROWS_LEFT]
    for problem in track(found, description="comparing priors"):
        for base in MODELS:
            for n in LABELS:
                if any((problem.shift.name, base, name, n) not in known for name in PRIORS):
                    for record in measure(problem, base, n):
                        append_record(RECORDS, record)
    tidy(RECORDS)


def compare(names: Collection[str], labels: Sequence[int], *, final: bool) -> str:
    """Return a table: mean and worst ratio over all sets, and the number of sets where the error rises by over 5 %."""
    ratios = read_ratios(final=final)
    rows = []
    for name in names:
        row = [name]
        for base in MODELS:
            for n in labels:
                found = np.array(list(ratios[base, n, name].values()))
                row.append(f"{_mean(found):.3f} ({found.max():.2f}, {np.sum(found > 1.05)})")
        rows.append(row)
    return table(["prior", *(f"{base}, {n} labels" for base in MODELS for n in labels)], rows)


def compare_classes(names: Collection[str], n: int = LABELS[0], *, final: bool) -> str:
    """Return a table of the mean ratio with n labels, by the size of the drift."""
    ratios = read_ratios(final=final)
    classes = list(itertools.pairwise(BOUNDS))
    rows = []
    for base in MODELS:
        strength = ratios[base, 30, FORMER]
        sets = [[name for name in strength if low <= strength[name] < high] for low, high in classes]
        rows.append([base, "number of sets", *(f"{len(names)}" for names in sets)])
        for prior in (*names, "line"):
            known = ratios[base, n, prior]
            rows.append([base, prior, *(f"{_mean([known[s] for s in names if s in known]):.3f}" for names in sets)])
    return table(["model", "prior", *(f"{low:g} to {high:g}" for low, high in classes)], rows)


def read_ratios(*, final: bool) -> dict[tuple[str, int, str], dict[str, float]]:
    """Return the error relative to no labels by set, for each model, number of labels and prior, and for the line.

    The part ``final`` is included on request.
    """
    ratios: dict[tuple[str, int, str], dict[str, float]] = {}
    lines = {key: record for key, record in read(METHOD_RECORDS).items() if key[2] == "line"}
    for (name, base, method, n), record in {**read(RECORDS), **lines}.items():
        if final or record["part"] != FINAL:
            ratios.setdefault((base, n, method), {})[name] = float(np.mean(record["rmse"]) / np.mean(record["without"]))
    return ratios


def _mean(ratios: Sequence[float] | np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labels.priors", description=__doc__)
    parser.add_argument("--no-run", action="store_true", help="only print the tables of the existing records")
    args = parser.parse_args()
    if not args.no_run:
        run()
    print(compare(WITHOUT_TAILS, LABELS[:2], final=False))
    print(compare_classes(WITHOUT_TAILS, final=False))
    names = ["1/4 and (1 + x)^-1", "1/2 and (1 + x)^-1", "3/4 and (1 + x)^-1", *WITH_TAILS]
    print(compare(names, LABELS, final=True))
    print(compare_classes(names, final=True))


if __name__ == "__main__":
    main()

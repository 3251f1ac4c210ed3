"""Compare corrections that are smooth functions of the features with linear ones.

``python -m benchmarks.labels.smooth`` prints the tables of ``docs/decisions/0026-smooth-corrections.md`` from the
records of ``python -m benchmarks.labels``, and simulates linear drifts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from benchmarks.labels.bases import OURS
from benchmarks.labels.methods import CORRECTION, LINEAR_CORRECTION
from benchmarks.labels.report import Groups, ratio, split_records, summarise
from benchmarks.labels.run import LABELS, PEER_RECORDS, RECORDS, read
from benchmarks.report import table
from pyspar.core.drift import fit_drift

BASES = (OURS, "HistGradientBoosting")
DESIGN_LABELS = (10, 30)
CLASSES = (0.0, 0.6, 0.75, 0.9, np.inf)
"""Limits of the ratio with 30 labels and a linear correction; a small ratio means a large drift."""


NAMES = {LINEAR_CORRECTION: "linear", CORRECTION: "smooth"}


def compare_numbers(records: Groups, labels: Sequence[int]) -> str:
    """Return a table of both corrections by model and number of labels: geometric mean and worst data set."""
    rows = [
        [base, name, *(str(summarise(records, base, method, n)) for n in labels)]
        for base in BASES
        for method, name in NAMES.items()
    ]
    return table(["model", "correction", *(f"{n} labels" for n in labels)], rows)


def compare_classes(design: Groups) -> str:
    """Return a table of both corrections by the size of the drift, on the design data."""
    rows = []
    for base in BASES:
        of_sets = {
            (method, n): {r["set"]: ratio(r) for r in design[base, method, n]}
            for method in NAMES
            for n in DESIGN_LABELS
        }
        reference = of_sets[LINEAR_CORRECTION, 30]
        for low, high in pairwise(CLASSES):
            names = [name for name, value in reference.items() if low <= value < high]
            means = [np.exp(np.mean([np.log(found[name]) for name in names])) for found in of_sets.values()]
            rows.append([base, f"{low:g} to {high:g}", str(len(names)), *(f"{mean:.3f}" for mean in means)])
    header = [f"{name}, {n} labels" for name in NAMES.values() for n in DESIGN_LABELS]
    return table(["model", "ratio with 30 labels, linear", "sets", *header], rows)


def simulate(n: int, targets: int = 200) -> tuple[float, float]:
    """Return the RMSE of the linear and of the smooth correction if the drift is linear, relative to the noise."""
    rng = np.random.default_rng(0)
    errors2 = np.zeros(2)
    for _ in range(targets):
        Z = rng.normal(size=(1000, 5))
        before = Z @ rng.normal(size=5)
        truth = before + Z @ rng.normal(size=5) + 1.0
        labels = truth[:n] + rng.normal(size=n)
        for i, smooth in enumerate((False, True)):
            drift = fit_drift(Z[:n], before[:n], labels, target_features=Z, target_prediction=before, smooth=smooth)
            errors2[i] += np.mean(np.square(drift.correct(Z[n:], before[n:]) - truth[n:])) + 1.0
    linear, smooth_rmse = np.sqrt(errors2 / targets)
    return float(linear), float(smooth_rmse)


def simulate_rough(n: int, targets: int = 20) -> tuple[float, float, float]:
    """Return the RMSE without correction, with the linear and with the smooth one, for a drift rougher than the prior.

    The drift is sin(3 z) for one of five features z, and the noise has the standard deviation 0.1.
    """
    rng = np.random.default_rng(0)
    errors2 = np.zeros(3)
    for _ in range(targets):
        Z = rng.normal(size=(n + 500, 5))
        before = Z[:, 0]
        truth = before + np.sin(3.0 * Z[:, 0])
        labels = truth[:n] + 0.1 * rng.normal(size=n)
        errors2[0] += np.mean(np.square(before[n:] - truth[n:])) + 0.01
        for i, smooth in enumerate((False, True), 1):
            drift = fit_drift(Z[:n], before[:n], labels, target_features=Z, target_prediction=before, smooth=smooth)
            errors2[i] += np.mean(np.square(drift.correct(Z[n:], before[n:]) - truth[n:])) + 0.01
    none, linear, smooth_rmse = np.sqrt(errors2 / targets)
    return float(none), float(linear), float(smooth_rmse)


def main() -> None:
    held_out, _, design = split_records(read(RECORDS, PEER_RECORDS))
    rows = [[str(n), *(f"{value:.3f}" for value in simulate(n))] for n in (10, 30, 100, 300)]
    print(compare_numbers(design, DESIGN_LABELS), compare_classes(design), compare_numbers(held_out, LABELS), sep="\n")
    print(table(["labels", "linear", "smooth"], rows))
    rough = [[str(n), *(f"{value:.3f}" for value in simulate_rough(n))] for n in (10, 30, 100, 300, 600, 1500)]
    print(table(["labels", "no correction", "linear", "smooth"], rough))


if __name__ == "__main__":
    main()

"""False alarms and power of the tests for a changed relation, by simulation: ``python -m benchmarks.relation``.

A target has five normal features and noise of standard deviation 1. Drifts are stated in units of the noise. Every
number is the share of 1,000 simulated targets in which the test at level 5 % found a change. The second table counts
sequences of 200 labels in which the test of ``TargetWatch`` found a change at any of 200 looks. The
third table has the error of a correction if nothing has changed, and its expected error. The last table compares
expected and actual error after an offset.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.labels.methods import Lookup
from pyspar import BayesSpARRegressor, TargetCorrection
from pyspar.core.concept_shift import evidence_p_values
from pyspar.core.drift_models import log_bayes_factors

D, TARGETS, DRAWS, LEVEL = 5, 1000, 40, 0.05
SIZES = (5, 10, 30, 100)
LOOKS = 200
OFFSETS, OFFSET_TARGETS = (1.0, 10.0, 100.0, 1000.0), 200


def draw_residuals(
    rng: np.random.Generator, n: int, drift: str, size: float, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return [1 q], the features, and residuals (n, count) with a drift whose root mean square is ``size``."""
    features = rng.normal(size=(n, D)) / np.sqrt(D)
    q = rng.normal(size=n)
    noise = rng.standard_t(3, size=(n, count)) if drift == "heavy tails" else rng.normal(size=(n, count))
    shift = {
        "offset": np.ones((n, count)),
        "slope": np.repeat(q[:, None], count, axis=1),
        "weights": features @ rng.normal(size=(D, count)),
    }.get(drift, np.zeros((n, count)))
    return np.column_stack([np.ones(n), q]), features, noise + size * shift


def measure_rate(n: int, drift: str, size: float) -> float:
    """Return the share of targets in which the test finds a change."""
    rng, found = np.random.default_rng([n, len(drift), int(10 * size)]), 0
    for _ in range(DRAWS):
        line, features, residuals = draw_residuals(rng, n, drift, size, TARGETS // DRAWS)
        found += int(np.sum(evidence_p_values(line, features, residuals, n) <= LEVEL))
    return found / TARGETS


def measure_fitted_rate(n: int) -> float:
    """Return the share without drift for a regressor fitted on 100 source rows and adapted to a wider target."""
    rng, found = np.random.default_rng(n), 0
    for _ in range(TARGETS):
        X, Z = rng.normal(size=(100, D)), 2.0 * rng.normal(size=(n + 50, D)) + 1.0
        w = rng.normal(size=D)
        y = np.where(np.arange(n + 50) < n, Z @ w + rng.normal(size=n + 50), np.nan)
        est = BayesSpARRegressor().fit(X, X @ w + rng.normal(size=100)).adapt(Z, y)
        found += est.drift_.p_value <= LEVEL
    return found / TARGETS


def measure_watch(drift: str, size: float) -> tuple[float, float]:
    """Return the share of sequences in which any of 200 looks finds a change, and the median first look."""
    rng, first = np.random.default_rng([len(drift), int(10 * size)]), []
    for _ in range(DRAWS):
        line, features, residuals = draw_residuals(rng, LOOKS, drift, size, TARGETS // DRAWS)
        factors = [
            log_bayes_factors(features[:n], line[:n], residuals[:n], float(n), np.square(residuals[:n]).sum(axis=0))
            for n in range(1, LOOKS + 1)
        ]
        above = np.array(factors) >= np.log(1.0 / LEVEL)
        first += [int(np.argmax(column)) + 1 if column.any() else LOOKS + 1 for column in above.T]
    return float(np.mean(np.array(first) <= LOOKS)), float(np.median(first))


class CorrectionErrors(NamedTuple):
    """RMSEs of a corrected model, relative to the model before: their mean and 90 % quantile.

    ``expected`` is the mean expected RMSE of the corrected model, relative to its mean RMSE.
    """

    mean: float
    high: float
    expected: float


def measure_correction(n: int, offset: float = 0.0, targets: int = TARGETS) -> CorrectionErrors:
    """Measure corrections by n labels of targets whose labels have an offset."""
    rng = np.random.default_rng(n)
    errors = np.empty((targets, 3))
    for row in errors:
        Z = rng.normal(size=(n + 200, D))
        residual = offset + rng.normal(size=len(Z))
        labels = np.where(np.arange(len(Z)) < n, Z[:, 0] + residual, np.nan)
        fixed = TargetCorrection(Lookup(Z, Z[:, 0])).fit(Z, labels)
        left = Z[:, 0] + residual - fixed.predict(Z)
        row[:] = *(np.sqrt(np.mean(np.square(e[n:]))) for e in (residual, left)), float(fixed.expected_rmse())
    before, after, expected = errors.T
    ratios = after / before
    return CorrectionErrors(ratios.mean(), np.quantile(ratios, 0.9), expected.mean() / after.mean())


def main() -> None:
    drifts = [("none", 0.0), ("heavy tails", 0.0)]
    drifts += [(name, size) for name in ("offset", "slope", "weights") for size in (0.5, 1.0, 2.0)]
    columns = " | ".join(f"{n} labels" for n in SIZES)
    print(f"| drift | {columns} |\n|---|{'---|' * len(SIZES)}")
    for name, size in drifts:
        rates = " | ".join(f"{measure_rate(n, name, size):.1%}" for n in SIZES)
        print(f"| {name}{f', {size:g}' if size else ''} | {rates} |", flush=True)
    rates = " | ".join(f"{measure_fitted_rate(n):.1%}" if n < 100 else "not run" for n in SIZES)
    print(f"| none, `adapt(Z, y)` of a regressor with 100 source rows | {rates} |", flush=True)
    print(f"\n| drift | found in {LOOKS} looks | median first look |\n|---|---|---|")
    for name, size in (("none", 0.0), ("offset", 0.5), ("offset", 1.0), ("slope", 1.0), ("weights", 1.0)):
        found, first = measure_watch(name, size)
        text = f"{first:.0f}" if first <= LOOKS else f"over {LOOKS}"
        print(f"| {name}{f', {size:g}' if size else ''} | {found:.1%} | {text} |", flush=True)
    print("\n| labels | mean ratio of the errors | 90 % of the ratios below | expected / actual error |")
    print("|---|---|---|---|")
    for n in SIZES:
        found = measure_correction(n)
        print(f"| {n} | {found.mean:.3f} | {found.high:.2f} | {found.expected:.2f} |", flush=True)
    print(f"\n| labels | {' | '.join(f'offset {offset:,g}' for offset in OFFSETS)} |\n|---|{'---|' * len(OFFSETS)}")
    for n in SIZES:
        ratios = (measure_correction(n, offset, OFFSET_TARGETS).expected for offset in OFFSETS)
        print(f"| {n} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |", flush=True)


if __name__ == "__main__":
    main()

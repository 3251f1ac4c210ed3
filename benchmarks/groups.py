"""Coverage of the narrow interval for new groups, by simulation: ``python -m benchmarks.groups``.

Source and target have the same distribution. Rows have four normal features and noise of standard deviation 1, and each
group has an offset of standard deviation 1.5. The target has as many groups as the source, all new. Every number is the
share of 300 targets whose RMSE is inside the 95 % interval, among those in which no shift is found.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.linear_model import LinearRegression

from benchmarks.report import table
from pyspar import BayesSpARRegressor
from pyspar.inspection import inspect

TARGETS = 300
ROWS = 20
"""The mean number of rows of a group."""
NUMBERS = (2, 3, 5, 10, 30)


def draw_rows(rng: np.random.Generator, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of rows of new groups."""
    X = rng.normal(size=(len(group), 4))
    return X, X.sum(axis=1) + 1.5 * rng.normal(size=group.max() + 1)[group] + rng.normal(size=len(group))


def draw_groups(rng: np.random.Generator, groups: int, equal: bool) -> np.ndarray:
    """Return the group of each row. Unequal sizes are proportional to the exponential of a normal variable."""
    sizes = np.ones(groups) if equal else np.exp(1.5 * rng.normal(size=groups))
    counts = np.maximum(np.round(ROWS * groups * sizes / sizes.sum()), 1).astype(int)
    return np.repeat(np.arange(groups), counts)


def measure_coverage(groups: int, *, equal: bool) -> tuple[float, float]:
    """Return the coverage for ``BayesSpARRegressor`` and for least squares of scikit-learn."""
    inside: tuple[list[bool], list[bool]] = ([], [])
    for seed in range(TARGETS):
        rng = np.random.default_rng([seed, groups])
        group = draw_groups(rng, groups, equal)
        X, y = draw_rows(rng, group)
        Z, truth = draw_rows(rng, draw_groups(rng, groups, equal))
        ours = BayesSpARRegressor().fit(X, y, groups=group).adapt(Z)
        if ours.separation_.found:
            continue
        other = LinearRegression().fit(X, y)
        (output,) = inspect(other, Z, source=(X, y), groups=group).outputs
        for found, model, forecast in zip(inside, (ours, other), (ours.expected_rmse(Z), output.expected), strict=True):
            low, high = forecast.interval95
            found.append(low <= np.sqrt(np.mean(np.square(model.predict(Z) - truth))) <= high)
    return float(np.mean(inside[0])), float(np.mean(inside[1]))


def main() -> None:
    rows = []
    for groups in NUMBERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few groups: the coverage shows the effect
            measured = [share for equal in (True, False) for share in measure_coverage(groups, equal=equal)]
        rows.append([str(groups), *(f"{share:.0%}".replace("%", " %") for share in measured)])
    header = ["groups", *(f"{name}, {sizes} sizes" for sizes in ("equal", "unequal") for name in ("pyspar", "other"))]
    print(table(header, rows))


if __name__ == "__main__":
    main()

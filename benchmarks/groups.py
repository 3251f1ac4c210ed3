"""Coverage of the narrow interval for new groups, by simulation: ``python -m benchmarks.groups``.

Source and target have the same distribution. Rows have four normal features and noise of standard deviation 1. By
default each group has a normal offset of standard deviation 1.5. The target has as many groups as the source, all new.
The coverage is the share of 300 targets whose RMSE is inside the 95 % interval, among those in which no shift is found.
The width is the median of the upper end, divided by the expected RMSE.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression

from benchmarks.report import table
from pyspar import BayesSpARRegressor
from pyspar.inspection import inspect

TARGETS = 300
ROWS = 20
"""The mean number of rows of a group."""
NUMBERS = (2, 3, 5, 10, 30)
SIZES = ("equal", "unequal", "one large")
EFFECTS = ("no effect", "slopes", "heavy tails", "noise")


def draw_rows(rng: np.random.Generator, group: np.ndarray, effect: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of rows of new groups."""
    X, n_groups = rng.normal(size=(len(group), 4)), group.max() + 1
    noise, offsets, slopes = np.ones(n_groups), np.zeros(n_groups), np.ones((n_groups, 4))
    if effect == "offsets":
        offsets = 1.5 * rng.normal(size=n_groups)
    elif effect == "heavy tails":
        offsets = 1.5 * rng.standard_t(3, size=n_groups)
    elif effect == "slopes":
        slopes += rng.normal(size=(n_groups, 4))
    elif effect == "noise":
        noise = np.exp(0.5 * rng.normal(size=n_groups))
    return X, (X * slopes[group]).sum(axis=1) + offsets[group] + noise[group] * rng.normal(size=len(group))


def draw_groups(rng: np.random.Generator, groups: int, sizes: str) -> np.ndarray:
    """Return the group of each row. Unequal sizes are proportional to the exponential of a normal variable."""
    share = np.exp(1.5 * rng.normal(size=groups)) if sizes == "unequal" else np.ones(groups)
    if sizes == "one large":  # 90 % of all rows
        share[0] = 9.0 * (groups - 1)
    counts = np.maximum(np.round(ROWS * groups * share / share.sum()), 1).astype(int)
    return np.repeat(np.arange(groups), counts)


def measure(groups: int, sizes: str, effect: str) -> list[str]:
    """Return coverage and width for ``BayesSpARRegressor``, then for least squares of scikit-learn."""
    found: tuple[list[Any], list[Any]] = ([], [])
    for seed in range(TARGETS):
        rng = np.random.default_rng([seed, groups])
        group = draw_groups(rng, groups, sizes)
        X, y = draw_rows(rng, group, effect)
        Z, truth = draw_rows(rng, draw_groups(rng, groups, sizes), effect)
        ours = BayesSpARRegressor().fit(X, y, groups=group).adapt(Z)
        if ours.separation_.found:
            continue
        other = LinearRegression().fit(X, y)
        (output,) = inspect(other, Z, source=(X, y), groups=group).outputs
        for kind, model, forecast in zip(found, (ours, other), (ours.expected_rmse(Z), output.expected), strict=True):
            low, high = forecast.interval95
            actual = np.sqrt(np.mean(np.square(model.predict(Z) - truth)))
            kind.append((low <= actual <= high, high / forecast.rmse))
    coverage, width = np.mean(found, axis=1)[:, 0], np.median(found, axis=1)[:, 1]
    return [text for c, w in zip(coverage, width, strict=True) for text in (f"{100 * c:.0f} %", f"{w:.3g}")]


def main() -> None:
    settings = [(groups, sizes, "offsets") for sizes, groups in product(SIZES, NUMBERS)]
    settings += [(10, sizes, effect) for effect, sizes in product(EFFECTS, SIZES)]
    rows = []
    for groups, sizes, effect in settings:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few rows: the coverage shows the effect
            rows.append([sizes, effect, str(groups), *measure(groups, sizes, effect)])
    print(table(["sizes", "effect of groups", "groups", "pyspar", "width", "other", "width"], rows))


if __name__ == "__main__":
    main()

"""500 well-posed problems with a seed, and the kinds of estimators and inputs that they exercise.

``answers.npz`` has the answers of the version 0.2.0, which was twice as large and is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

PROBES = 6
"""Target rows whose predictions are compared."""
LINEAR = {
    "spar": ("spar", {}),
    "spar, no intercept": ("spar", {"fit_intercept": False}),
    "spar, unbiased noise": ("spar", {"noise": "unbiased"}),
    "spar, exact level": ("spar", {"noise": "exact", "alpha": 0.99}),
    "bayes": ("bayes", {}),
    "bayes, source scale": ("bayes", {"prior_scale": "source"}),
    "bayes, equal scale": ("bayes", {"prior_scale": "equal", "fit_intercept": False}),
    "bayes, chi2": ("bayes", {"alpha": 0.99}),
    "bayes, centred": ("bayes", {"centre": True}),
}
SHAPES = {
    "tall": {},
    "few rows": {"n": 14, "d": 20},
    "few target rows": {"m": 5},
    "two outputs": {"outputs": 2},
    "weights": {"weights": True},
    "float32": {"dtype": "float32"},
    "scaled columns": {"scales": True},
    "rank-deficient target": {"target_rank": 3},
    "dependent columns": {"dependent": True},
    "offset": {"offset": 50.0},
    "sparse": {"container": "sparse"},
    "batches": {"container": "batches"},
    "Moments": {"container": "Moments"},
    "Dask": {"container": "Dask"},
}
HEADS = ("bayes", "spar", "ols")


@dataclass(frozen=True)
class Problem:
    """One problem: its name, the kind of question, the settings of the estimator and of the data."""

    name: str
    question: str
    estimator: tuple[str, dict[str, object]]
    data: dict[str, object]
    seed: int


def problems() -> Iterator[Problem]:
    """Yield all problems in a fixed order."""
    seed = 0
    for shape, data in SHAPES.items():
        for name, estimator in LINEAR.items():
            for _ in range(3):
                seed += 1
                yield Problem(f"{name} / {shape} / {seed}", "linear", estimator, data, seed)
    for n_labels in (5, 10, 30, 100):
        for base in ("ridge", "forest"):
            for _ in range(8):
                seed += 1
                yield Problem(
                    f"correction of {base}, {n_labels} labels / {seed}", "correction", (base, {"n": n_labels}), {}, seed
                )
    for method in HEADS:
        for bias in (True, False):
            for _ in range(11):
                seed += 1
                yield Problem(f"head {method}, bias {bias} / {seed}", "head", (method, {"bias": bias}), {"d": 12}, seed)


def make_data(
    seed: int,
    *,
    n: int = 120,
    m: int = 60,
    d: int = 8,
    outputs: int = 1,
    weights: bool = False,
    dtype: str = "float64",
    scales: bool = False,
    target_rank: int | None = None,
    dependent: bool = False,
    offset: float = 0.0,
    container: str = "array",
) -> dict[str, np.ndarray]:
    """Return source, labels, target and weights. The container is applied by the caller."""
    rng = np.random.default_rng([seed, 1])
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    X = rng.normal(size=(n, d)) * np.geomspace(2.0, 0.05, d) @ rotation
    Z = rng.normal(size=(m, d)) * np.linspace(1.0, 3.0, d) @ rotation
    if target_rank is not None:
        Z = rng.normal(size=(m, target_rank)) * np.linspace(1.0, 3.0, target_rank) @ rotation[:target_rank]
    w = rng.normal(size=(d, outputs))
    y = X @ w + 0.5 * rng.normal(size=(n, outputs)) + 1.0
    if dependent:
        X, Z = np.column_stack([X, X[:, 0] + X[:, 1]]), np.column_stack([Z, Z[:, 0] + Z[:, 1]])
    if scales:
        factors = 10.0 ** rng.uniform(-4, 4, X.shape[1])
        X, Z = X * factors, Z * factors
    X, Z = (X + offset).astype(dtype), (Z + offset).astype(dtype)
    return {
        "X": X,
        "y": y[:, 0] if outputs == 1 else y,
        "Z": Z,
        "sample_weight": rng.integers(1, 4, n).astype(float) if weights else None,
    }


def make_target_labels(seed: int, Z: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of a drifted target, and the same with NaN for all rows but n."""
    rng = np.random.default_rng([seed, 2])
    truth = 1.5 + 1.2 * Z[:, 0] - 0.5 * Z[:, 1] + 0.4 * rng.normal(size=len(Z))
    known = np.full(len(Z), np.nan)
    rows = rng.permutation(len(Z))[:n]
    known[rows] = truth[rows]
    return truth, known

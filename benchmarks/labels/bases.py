"""The models that are corrected, each fitted once on the source of a set. Their predictions are cached."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

from benchmarks.shifts.methods import ridge_cv
from benchmarks.shifts.sets import EVIDENCE_PARTS, REGISTER, Shift, Task, cache_folder
from pyspar import BayesSpARRegressor

MOST_SOURCE_ROWS = 3000
MIN_TARGET_ROWS = 90

OURS = "BayesSpAR"
NETWORK = "MLP"


def mlp() -> Any:
    """Return a network with two hidden layers. The columns of a set are already standardised by the source."""
    network = MLPRegressor(hidden_layer_sizes=(64, 64), early_stopping=True, max_iter=300, random_state=0)
    return TransformedTargetRegressor(network, transformer=StandardScaler())


BASES: dict[str, Callable[[], Any]] = {
    "RidgeCV": ridge_cv,
    OURS: BayesSpARRegressor,
    "HistGradientBoosting": lambda: HistGradientBoostingRegressor(random_state=0),
    "RandomForest": lambda: RandomForestRegressor(random_state=0, n_jobs=1),
    NETWORK: mlp,
}


@dataclass(frozen=True)
class Problem:
    """The raw columns of one set, standardised by the source, with at most 3,000 rows of the source."""

    shift: Shift

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return X, y, Z and the labels of Z."""
        X, y, Z, yz = Task(self.shift, "raw").arrays()
        if len(X) > MOST_SOURCE_ROWS:
            kept = np.sort(np.random.default_rng(0).choice(len(X), MOST_SOURCE_ROWS, replace=False))
            X, y = X[kept], y[kept]
        return X, y, Z, yz

    def base(self, name: str) -> dict[str, np.ndarray]:
        """Return the predictions of a model for the target, and for a network the outputs and weights of its head."""
        if name in self._fitted:
            return self._fitted[name]
        path = cache_folder() / "labels" / f"{self.shift.name}-{name}.npz"
        if not path.exists():
            X, y, Z, _ = self.arrays
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{path.stem}.{os.getpid()}.part.npz")
            np.savez(part, **_fit_base(name, X, y, Z))
            part.replace(path)
        with np.load(path) as kept:
            self._fitted[name] = dict(kept)
        return self._fitted[name]

    @cached_property
    def _fitted(self) -> dict[str, dict[str, np.ndarray]]:
        return {}


def problems(part: str) -> Iterator[Problem]:
    """Yield the problems of a part in the order of their names; ``design`` stands for ``EVIDENCE_PARTS``."""
    parts = EVIDENCE_PARTS if part == "design" else (part,)
    known = {shift.part for shift in REGISTER.values()}
    if not set(parts) <= known:
        raise ValueError(f"part must be 'design' or one of {sorted(known)}, got {part!r}")
    for name in sorted(REGISTER):
        if REGISTER[name].part in parts:
            problem = Problem(REGISTER[name])
            if len(problem.arrays[2]) >= MIN_TARGET_ROWS:
                yield problem


def fit(name: str, X: np.ndarray, y: np.ndarray, Z: np.ndarray, weight: Any = None) -> Any:
    """Fit a model on rows with optional weights. Our estimator is adapted to the target."""
    model = BASES[name]().fit(X, y, **({} if weight is None else {"sample_weight": weight}))
    return model.adapt(Z) if name == OURS else model


def fit_predict(name: str, X: np.ndarray, y: np.ndarray, Z: np.ndarray, weight: Any = None) -> np.ndarray:
    """Fit a model on rows with optional weights and return its predictions for the target."""
    return np.ravel(fit(name, X, y, Z, weight).predict(Z))


def _fit_base(name: str, X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> dict[str, np.ndarray]:
    if name != NETWORK:
        return {"prediction": fit_predict(name, X, y, Z)}
    model = mlp().fit(X, y)
    network, scaler = model.regressor_, model.transformer_
    hidden = Z
    for weights, bias in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
        hidden = np.maximum(hidden @ weights + bias, 0.0)
    scale, centre = float(scaler.scale_[0]), float(scaler.mean_[0])
    return {
        "prediction": np.ravel(model.predict(Z)),
        "hidden": hidden,
        "head": network.coefs_[-1][:, 0] * scale,
        "bias": network.intercepts_[-1] * scale + centre,
        "scale": np.array(scale),
    }

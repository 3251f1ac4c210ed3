"""Records of tasks: what is known without target labels, and the actual errors.

The split is that of the data set ("shift"), or a random split of the same rows with the same numbers of rows ("random",
"random-2" and so on). The labels of the target are used only for the actual error and for ``need``: quantiles over the
target rows of the absolute error divided by the scale of the row.
"""

from __future__ import annotations

import copy
import hashlib
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV

from benchmarks.records import RESULTS, known_keys, update
from benchmarks.shifts.features import MAPS
from benchmarks.shifts.methods import PENALTIES
from benchmarks.shifts.sets import REGISTER, Task
from pyspar import BayesSpARRegressor, Moments, SpARRegressor
from pyspar.core.forecast import row_scale
from pyspar.core.separation import measure_separation
from pyspar.estimators.cross_validation import left_out_errors

RECORDS = RESULTS / "forecasts.csv.gz"
KEYS = ("set", "map", "split", "model")
MOST_ROWS, FOLDS = 2500, 3
"""The source rows of other regressors, and the folds of cross-validation."""
NEED = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 1.0])
LINEAR: dict[str, Callable[[], Any]] = {"BayesSpAR": BayesSpARRegressor, "SpAR": SpARRegressor}
REGRESSORS: dict[str, Callable[[], Any]] = {
    "RidgeCV": lambda: RidgeCV(PENALTIES),
    "HistGradientBoosting": lambda: HistGradientBoostingRegressor(random_state=0),
    "RandomForest": lambda: RandomForestRegressor(40, random_state=0),
}
NETWORK = "network 64-64"
KINDS = {**dict.fromkeys(LINEAR, "linear"), **dict.fromkeys(REGRESSORS, "regressor"), NETWORK: "network"}

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Record = dict[str, Any]
Key = tuple[str, str, str, str]


def list_tasks(names: Iterable[str]) -> list[Key]:
    """Return the keys of all records: three feature maps for BayesSpAR, raw columns for others."""
    names = sorted(names)
    keys = [(name, map, "shift", "BayesSpAR") for map in MAPS for name in names]
    keys += [(name, "raw", "shift", model) for model in KINDS if model != "BayesSpAR" for name in names]
    return keys + [(name, "raw", "random", model) for model in ("BayesSpAR", *REGRESSORS) for name in names]


def run(keys: Iterable[Key], every: int = 50) -> None:
    """Make the missing records, and write them ``every`` so many."""
    known, rows = known_keys(RECORDS, KEYS), list[Record]()
    for key in keys:
        if key not in known:
            rows += measure(*key)
        if len(rows) >= every:
            update(RECORDS, rows, KEYS)
            rows = []
    update(RECORDS, rows, KEYS)


def load(name: str, feature_map: str, split: str) -> Arrays:
    """Return X, y, Z and the labels of Z."""
    if split == "shift":
        return Task(REGISTER[name], feature_map).arrays()
    X, y, Z, yz = Task(REGISTER[name], "raw").arrays()
    rows, labels = np.vstack([X, Z]), np.concatenate([y, yz])
    order = _generator(name if split == "random" else f"{name}/{split}").permutation(len(rows))
    one, two = order[: len(X)], order[len(X) :]
    X, Z = MAPS[feature_map](rows[one], labels[one], rows[two])
    return X, labels[one], Z, labels[two]


def measure(name: str, feature_map: str, split: str, model: str) -> list[Record]:
    """Return the record of one model on one task; none for a network without enough rows."""
    X, y, Z, yz = load(name, feature_map, split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if model in LINEAR:
            own = measure_linear(LINEAR[model](), X, y, Z, yz)
        elif model in REGRESSORS:
            own = measure_regressor(REGRESSORS[model](), X, y, Z, yz)
        elif len(X) >= MIN_NETWORK_ROWS:
            own = measure_network(X, y, Z, yz, f"{name}/{split}")
        else:
            return []
    key = {"set": name, "part": REGISTER[name].part, "map": feature_map, "split": split, "model": model}
    return [{**key, "m": len(Z), "d": X.shape[1], **own}]


def separate(X: np.ndarray, Z: np.ndarray, *, by_rows: bool = False) -> Record:
    """Return the separation. ``inspect`` compares the rows for other regressors, and Moments otherwise."""
    found = measure_separation(Moments.of(X), Moments.of(Z), (X, Z) if by_rows else None)
    return {"auc": found.auc, "p_value": found.p_value, "matched": found.matched}


def measure_linear(est: Any, X: np.ndarray, y: np.ndarray, Z: np.ndarray, yz: np.ndarray) -> Record:
    """Return the forecast of a regressor of this package, adapted to the target, before its calibration."""
    est.fit(X, y).adapt(Z)
    forecast, prediction = est.expected_rmse(Z), est.predict(Z)
    scale = row_scale(est._posterior(est._adapted_to), Z, prediction[:, None])[:, 0]
    need = np.quantile(np.abs(yz - prediction) / np.maximum(scale, np.finfo(float).tiny), NEED)
    return {
        **separate(X, Z), "n": len(X), "source": forecast.source_rmse, "known": forecast.model_rmse,
        "spread": y.std(), "actual": _rms(prediction - yz), "variation": 2.0,
        "need": " ".join(f"{value:.3g}" for value in need),
    }  # fmt: skip


def measure_regressor(model: Any, X: np.ndarray, y: np.ndarray, Z: np.ndarray, yz: np.ndarray) -> Record:
    """Return the cross-validated error of another regressor, and its actual error."""
    rows = np.random.default_rng(2).permutation(len(X))[:MOST_ROWS]
    found, (X, y) = separate(X, Z, by_rows=True), (X[rows], y[rows])
    errors = left_out_errors(model, X, y, folds=FOLDS)[:, 0]
    return {**found, **_describe(errors, y), "actual": _rms(model.fit(X, y).predict(Z) - yz)}


MIN_NETWORK_ROWS, MOST_NETWORK_ROWS = 250, 2000
EPOCHS, PATIENCE = 50, 6


def measure_network(X: np.ndarray, y: np.ndarray, Z: np.ndarray, yz: np.ndarray, seed: str) -> Record:
    """Return the error of a small network on held-out rows, which also stop its training, and its actual error.

    The separation is that of the features that enter its head, on held-out and target rows.
    """
    import torch
    from torch import nn

    torch.set_num_threads(1)
    rng = _generator(seed)
    order = rng.permutation(len(X))[:MOST_NETWORK_ROWS]
    size = max(len(order) // 5, 50)
    held_out, training = order[:size], order[size:]
    centre, unit = y[training].mean(), y[training].std() or 1.0
    torch.manual_seed(int(rng.integers(2**31)))
    body, head = nn.Sequential(nn.Linear(X.shape[1], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()), nn.Linear(64, 1)
    net = nn.Sequential(body, head)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
    inputs, labels = (torch.tensor(of[training], dtype=torch.float32) for of in (X, (y - centre) / unit))

    def features(rows: np.ndarray) -> Any:
        return body(torch.tensor(rows, dtype=torch.float32))

    def predict(rows: np.ndarray) -> np.ndarray:
        return np.asarray(head(features(rows)).detach().squeeze(1).double().numpy() * unit + centre)

    batch, best, wait, state = 64 if len(training) > 600 else 32, np.inf, 0, net.state_dict()
    for _ in range(EPOCHS):
        for at in torch.randperm(len(training)).split(batch):
            loss = ((net(inputs[at]).squeeze(1) - labels[at]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        error = _rms(predict(X[held_out]) - y[held_out]) / unit
        wait = 0 if error < best - 1e-4 else wait + 1
        if not wait:
            best, state = error, copy.deepcopy(net.state_dict())
        if wait >= PATIENCE:
            break
    net.load_state_dict(state)
    found = separate(*(features(rows).detach().double().numpy() for rows in (X[held_out], Z)))
    return {**found, **_describe(predict(X[held_out]) - y[held_out], y[training]), "actual": _rms(predict(Z) - yz)}


def _describe(errors: np.ndarray, labels: np.ndarray) -> Record:
    squares = np.square(errors)
    variation = squares.var() / max(squares.mean() ** 2, np.finfo(float).tiny)
    home = _rms(errors)
    return {"n": len(errors), "source": home, "known": home, "spread": labels.std(), "variation": variation}


def _generator(seed: str) -> np.random.Generator:
    return np.random.default_rng(int(hashlib.sha256(seed.encode()).hexdigest()[:8], 16))


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))

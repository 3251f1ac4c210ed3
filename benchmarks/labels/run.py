"""Measure the methods on real shifts, and on simulated changes of the measurement. Fitted models are cached."""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.labels.methods import CANDIDATES, CORRECTION, MAPPED, METHODS, SPAR, Case, Method
from benchmarks.records import RESULTS, known_keys, update
from benchmarks.shifts.sets import REGISTER, cache_folder
from pyspar import BayesSpARRegressor
from pyspar.estimators.correction import MIN_WEIGHT

RECORDS = RESULTS / "labels.csv.gz"
KEYS = ("set", "shift", "model", "method", "n")
BOOSTING, OURS = "HistGradientBoosting", "BayesSpAR"
MODELS = {BOOSTING: "hgb", OURS: "ours"}
LABELS = {5: 4, 10: 6, 30: 2}
"""The numbers of labels, and how often the labelled rows are drawn."""
SHARES = {"develop": 3, "validate": 2, "test": 1}
"""A third of the sets of ``develop`` and half of ``validate`` suffice to choose and to confirm."""
MOST_ROWS, MOST_TARGET_ROWS, MIN_TARGET_ROWS, MIN_ROWS_LEFT = 3000, 1000, 90, 40
NATURAL, MEASUREMENT = "natural", "measurement"


@dataclass(frozen=True)
class Target:
    """The target of a set: standardised features, labels, and predictions by model."""

    name: str
    shift: str
    Z: np.ndarray
    y: np.ndarray
    predictions: dict[str, np.ndarray]
    others: dict[str, np.ndarray]  # candidates around boosting


def map_columns(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Give each column of Z the mean and spread that it has in X. Columns that are constant in either stay."""
    source, target = X.std(axis=0), Z.std(axis=0)
    varies = (source > 1e-9 * np.abs(X).max(axis=0)) & (target > 1e-9 * np.abs(Z).max(axis=0))
    factor = np.where(varies, source / np.where(varies, target, 1.0), 1.0)
    return np.where(varies, (Z - Z.mean(axis=0)) * factor + X.mean(axis=0), Z)


def fit_models(name: str) -> dict[str, np.ndarray]:
    """Fit all models on the source of a set, and boosting on two thirds of it for a simulated change.

    The remaining third is the target of the simulation: each column is multiplied by U(0.7, 1.4), and N(0, 0.4) spreads
    are added.
    """
    X, y, Z, labels, _ = REGISTER[name].arrays()
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    X, y = _sample(X, y, rng)
    Z, labels = _sample(Z, labels, rng)
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    X, Z = (X - mean) / spread, (Z - mean) / spread
    boosting = HistGradientBoostingRegressor(random_state=0).fit(X, y)
    order = rng.permutation(len(X))
    moved, kept = order[: len(X) // 3], order[len(X) // 3 :]
    columns = X.shape[1]
    T = X[moved] * rng.uniform(0.7, 1.4, columns) + rng.normal(0.0, 0.4, columns) * X.std(axis=0)
    other = HistGradientBoostingRegressor(random_state=0).fit(X[kept], y[kept])
    return {
        "Z": Z, "yz": labels, "hgb": boosting.predict(Z), "hgb_mapped": boosting.predict(map_columns(X, Z)),
        "ours": np.ravel(BayesSpARRegressor().fit(X, y).adapt(Z).predict(Z)),
        "mZ": T, "myz": y[moved], "m_hgb": other.predict(T), "m_hgb_mapped": other.predict(map_columns(X[kept], T)),
        "m_ours": np.ravel(BayesSpARRegressor().fit(X[kept], y[kept]).adapt(T).predict(T)),
    }  # fmt: skip


def targets(name: str) -> Iterator[Target]:
    """Yield the real and the simulated target of a set; the models are fitted once."""
    path = cache_folder() / "labels" / f"{name}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{name}.{os.getpid()}.part.npz")
        np.savez(part, **fit_models(name))
        part.replace(path)
    with np.load(path) as arrays:
        kept = {key: arrays[key] for key in arrays.files}
        for first in ("Z", "mZ"):  # every k-th row of a large target
            step = -(-len(kept[first]) // MOST_TARGET_ROWS)
            own = [key for key in kept if kept[key].ndim and key.startswith("m") == (first == "mZ")]
            kept |= {key: kept[key][::step] for key in own}
        if len(kept["Z"]) >= MIN_TARGET_ROWS:
            predictions = {model: kept[key] for model, key in MODELS.items()}
            others = {MAPPED: kept["hgb_mapped"], SPAR: kept["ours"]}
            yield Target(name, NATURAL, kept["Z"], kept["yz"], predictions, others)
        if len(kept["mZ"]) >= MIN_TARGET_ROWS:
            others = {MAPPED: kept["m_hgb_mapped"], SPAR: kept["m_ours"]}
            yield Target(name, MEASUREMENT, kept["mZ"], kept["myz"], {BOOSTING: kept["m_hgb"]}, others)


def measure(target: Target, model: str, n: int, draws: int) -> list[dict[str, Any]]:
    """Return a record per method: means over the draws of the labelled rows, and the worst draw."""
    methods: dict[str, Method] = dict(METHODS if target.shift == NATURAL else {CORRECTION: METHODS[CORRECTION]})
    if model == BOOSTING:
        methods |= CANDIDATES
    found: dict[str, list[dict[str, float]]] = {name: [] for name in methods}
    before = target.predictions[model]
    for draw in range(draws):
        seed = [zlib.crc32(target.name.encode()), draw]
        rows = np.random.default_rng(seed).permutation(len(target.Z))[:n]
        left = np.setdiff1d(np.arange(len(target.Z)), rows)
        without = _rmse(before[left], target.y[left])
        case = Case(target.Z, before, rows, target.y[rows], target.others)
        if without == 0.0:
            return []
        for name, method in methods.items():
            answer = method(case)
            rmse = _rmse(answer.prediction[left], target.y[left])
            scores = {"rmse": rmse, "without": without, "ratio": rmse / without}
            if answer.fitted is not None and answer.interval is not None:
                low, high = (ends[left] for ends in answer.interval)
                error, drift = answer.fitted.expected_rmse(), answer.fitted.drift_
                scores["coverage"] = float(np.mean((low <= target.y[left]) & (target.y[left] <= high)))
                scores["actual_to_expected"] = rmse / error.rmse
                scores["inside80"] = error.interval80[0] <= rmse <= error.interval80[1]
                scores["inside95"] = error.interval95[0] <= rmse <= error.interval95[1]
                scores["far_labels"] = float(len(drift.label_weights) > 0)
                scores["named_labels"] = float(min(drift.label_weights.values(), default=1.0) < MIN_WEIGHT)
            found[name].append(scores)
    head = {"set": target.name, "part": REGISTER[target.name].part, "shift": target.shift, "model": model, "n": n}
    return [head | {"method": name, "draws": draws} | _summarise(scores) for name, scores in found.items()]


def run(part: str, *, again: bool = False) -> int:
    """Make the missing records of a part; return their number."""
    known = set() if again else known_keys(RECORDS, ("set", "shift", "model", "n"))
    made, rows = 0, []
    names = sorted(name for name, shift in REGISTER.items() if shift.part == part)
    names = [name for name in names if zlib.crc32(name.encode()) % SHARES[part] == 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            for target in targets(name):
                for model in target.predictions:
                    for n, draws in LABELS.items():
                        key = (name, target.shift, model, n)
                        if len(target.Z) - n < MIN_ROWS_LEFT or key in known:
                            continue
                        if target.shift == NATURAL or n > 5:
                            rows += measure(target, model, n, draws)
            if len(rows) > 300:
                update(RECORDS, rows, KEYS)
                made, rows = made + len(rows), []
    update(RECORDS, rows, KEYS)
    return made + len(rows)


def _summarise(scores: list[dict[str, float]]) -> dict[str, float]:
    table = {key: np.array([score[key] for score in scores]) for key in scores[0]}
    record = {
        "ratio": float(table["rmse"].mean() / table["without"].mean()),
        "worst": float(table["ratio"].max()),
        "worse": float((table["ratio"] > 1.0).mean()),
        "harmed": float((table["ratio"] > 1.05).mean()),
    }
    for key in ("coverage", "actual_to_expected", "inside80", "inside95", "far_labels", "named_labels"):
        if key in table:
            record[key] = float(np.median(table[key]) if key == "actual_to_expected" else table[key].mean())
    return record


def _sample(rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    if len(rows) <= MOST_ROWS:
        return rows, labels
    kept = np.sort(rng.choice(len(rows), MOST_ROWS, replace=False))
    return rows[kept], labels[kept]


def _rmse(prediction: np.ndarray, labels: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(prediction - labels))))

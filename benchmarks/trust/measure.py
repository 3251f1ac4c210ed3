"""Records of tasks: forecasts without target labels, and the actual errors.

A record describes one regressor on one task. The split is that of the data set ("shift"), or a random split of the same
rows with the same numbers of rows ("random", "random-2" and so on). ``spread`` is the standard deviation of the source
labels. The labels of the target are used only for the actual error and for ``need``: the quantiles over target rows of
the factor that a row interval needs to contain the label.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV

from benchmarks.measure import run_in_processes
from benchmarks.shifts.features import MAPS
from benchmarks.shifts.methods import PENALTIES
from benchmarks.shifts.records import RESULTS, Record, append
from benchmarks.shifts.sets import REGISTER, Task
from benchmarks.trust.learn import QUANTILES, ROW_LEVELS
from pyspar import BayesSpARRegressor, Moments
from pyspar.core.forecast import LEVELS
from pyspar.core.separation import measure_separation
from pyspar.io.atomic import whole_file

RECORDS = RESULTS / "trust.jsonl"
MOST_ROWS, MOST_TARGET_ROWS, FOLDS = 2500, 300, 3
"""The source rows of other regressors, the target rows for row intervals, and the folds of cross-validation."""
OTHERS: dict[str, Callable[[], Any]] = {
    "RidgeCV": lambda: RidgeCV(PENALTIES),
    "HistGradientBoosting": lambda: HistGradientBoostingRegressor(random_state=0),
    "RandomForest": lambda: RandomForestRegressor(40, random_state=0),
}

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Key = tuple[str, str, str]


def list_tasks(names: Iterable[str], random_splits: int = 1) -> list[Key]:
    """Return the (task, split, regressor) of all records: three feature maps for BayesSpAR, raw columns for others.

    The slowest are the first, so that parallel processes end at about the same time.
    """
    names = sorted(names)
    alike = ["random", *(f"random-{number}" for number in range(2, random_splits + 1))]
    linear = [(f"{name}/{map}", "shift", "BayesSpAR") for map in reversed(MAPS) for name in names]
    linear += [(f"{name}/raw", split, "BayesSpAR") for split in alike for name in names]
    others = [(f"{name}/raw", split, other) for other in OTHERS for split in ("shift", *alike) for name in names]
    return [*linear, *others]


def read() -> dict[Key, Record]:
    """Read the records. A last line that is not complete is skipped."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines(keepends=True) if RECORDS.exists() else ()
    records = (json.loads(line) for line in lines if line.endswith("\n"))
    return {(r["task"], r["split"], r["regressor"]): r for r in records}


def run(tasks: Iterable[Key], jobs: int = 1) -> list[Key]:
    """Make the missing records, each written when it is complete, and return the tasks that failed."""
    known = read()
    missing = [key for key in tasks if key not in known]
    if missing:
        _write_records(known)  # without an incomplete line
        for key, record in run_in_processes(measure, missing, jobs=jobs, description="measuring"):
            append(RECORDS, record)
            missing.remove(key)
        _write_records(read())
    return missing


def separate_again(jobs: int = 1) -> None:
    """Measure the separation of all records again, for a change of :mod:`pyspar.core.separation`."""
    records = read()
    pairs = sorted({key[:2] for key in records})
    found = dict(run_in_processes(separate_task, pairs, jobs=jobs, description="separating"))
    if len(found) < len(pairs):
        raise SystemExit(f"{len(pairs) - len(found)} separations failed, so the records are unchanged")
    _write_records({key: record | found[key[:2]] for key, record in records.items()})


def separate_task(task: str, split: str) -> Record:
    """Return how well source and target rows of a task can be distinguished."""
    X, _, Z, _ = load(*task.split("/"), split)
    return separate(X, Z)


def separate(X: np.ndarray, Z: np.ndarray) -> Record:
    """Return how well source and target rows can be distinguished."""
    found = measure_separation(Moments.of(X), Moments.of(Z))
    return {"auc": _digits(found.auc), "p_value": _digits(found.p_value), "matched": found.matched}


def _write_records(records: Mapping[Key, Record]) -> None:
    with whole_file(RECORDS) as part:
        part.write_text("".join(json.dumps(record) + "\n" for _, record in sorted(records.items())), encoding="utf-8")


def measure(task: str, split: str, regressor: str) -> Record:
    """Make the record of one regressor on one task."""
    name, feature_map = task.split("/")
    X, y, Z, yz = load(name, feature_map, split)
    record: Record = {
        "task": task, "set": name, "map": feature_map, "part": REGISTER[name].part, "regressor": regressor,
        "split": split, "n": len(X), "m": len(Z), "d": X.shape[1],
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record |= separate(X, Z)
        of_kind = measure_linear(X, y, Z, yz) if regressor == "BayesSpAR" else measure_other(X, y, Z, yz, regressor)
    return record | of_kind


def load(name: str, feature_map: str, split: str) -> Arrays:
    """Return X, y, Z and the labels of Z."""
    if split == "shift":
        return Task(REGISTER[name], feature_map).arrays()
    X, y, Z, yz = Task(REGISTER[name], "raw").arrays()
    rows, labels = np.vstack([X, Z]), np.concatenate([y, yz])
    seed = name if split == "random" else f"{name}/{split}"
    rng = np.random.default_rng(int(hashlib.sha256(seed.encode()).hexdigest()[:8], 16))
    order = rng.permutation(len(rows))
    one, two = order[: len(X)], order[len(X) :]
    X, Z = MAPS[feature_map](rows[one], labels[one], rows[two])
    return X, labels[one], Z, labels[two]


def measure_linear(X: np.ndarray, y: np.ndarray, Z: np.ndarray, yz: np.ndarray) -> Record:
    """Return the forecast of the default regressor of this package, adapted to the target."""
    est = BayesSpARRegressor().fit(X, y)
    home = float(est.source_rmse())
    est.adapt(Z)
    forecast, prediction = est.expected_rmse(Z), est.predict(Z)
    rows = np.random.default_rng(0).permutation(len(Z))[:MOST_TARGET_ROWS]
    error = yz[rows] - prediction[rows]
    need = []
    for level in ROW_LEVELS:
        low, high = est.predict_interval(Z[rows], level, basis="linear")
        below, above = np.minimum(low - prediction[rows], 0.0), np.maximum(high - prediction[rows], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(error > 0.0, error / above, error / below)
        factors = np.nan_to_num(np.where(error == 0.0, 0.0, factors), nan=1e9, posinf=1e9)
        need.append([_digits(value, 3) for value in np.quantile(factors, QUANTILES)])
    return {
        "home": _digits(home),
        "spread": _digits(y.std()),
        "actual": _digits(_rms(prediction - yz)),
        "expected": _digits(forecast.rmse),
        "narrow80": [_digits(end) for end in forecast.interval80_if_linear],
        "narrow95": [_digits(end) for end in forecast.interval95_if_linear],
        "outside": _digits(float(est.adaptation_.outside_energy)),
        "need": need,
    }


def measure_other(X: np.ndarray, y: np.ndarray, Z: np.ndarray, yz: np.ndarray, regressor: str) -> Record:
    """Return the cross-validated error of another regressor, and its actual error."""
    rows = np.random.default_rng(2).permutation(len(X))[:MOST_ROWS]
    X, y, make = X[rows], y[rows], OTHERS[regressor]
    folds = np.random.default_rng(1).permutation(len(X)) % FOLDS
    squares = np.zeros(len(X))
    for fold in range(FOLDS):
        kept, left_out = folds != fold, folds == fold
        squares[left_out] = (make().fit(X[kept], y[kept]).predict(X[left_out]) - y[left_out]) ** 2
    home = float(np.sqrt(squares.mean()))
    error = 0.5 * squares.std() / max(home**2, 1e-300) * np.sqrt(1.0 / len(X) + 1.0 / len(Z))
    record: Record = {"home": _digits(home), "spread": _digits(y.std())}
    record["actual"] = _digits(_rms(make().fit(X, y).predict(Z) - yz))
    record |= {"expected": record["home"], "outside": 0.0}
    for level in LEVELS:
        reach = np.exp(NormalDist().inv_cdf((1.0 + level) / 2.0) * error)
        record[f"narrow{round(100 * level)}"] = [_digits(home / reach), _digits(home * reach)]
    return record


def write(path: Path, experience: dict[str, Any]) -> None:
    """Write the experience as indented JSON, whole or not at all."""
    with whole_file(path) as part:
        part.write_text(json.dumps(experience, indent=1) + "\n", encoding="utf-8")


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _digits(value: float, digits: int = 6) -> float:
    return float(f"{value:.{digits}g}")

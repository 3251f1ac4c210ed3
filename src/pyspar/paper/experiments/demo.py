"""The demo: five linear methods on a data set with a natural shift, and the directions that SpAR removed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyspar.core.adapt import Adaptation
from pyspar.estimators.bayes import BayesSpARRegressor
from pyspar.estimators.pcr import PCRRegressor
from pyspar.estimators.spar import SpARRegressor
from pyspar.paper.data import Part, ShiftTask, communities_and_crime
from pyspar.paper.output.figures import draw_demo


@dataclass(frozen=True)
class Demo:
    """The errors of each method, the adaptation by SpAR, and the path of the figure."""

    task: ShiftTask
    errors: dict[str, tuple[float, float]]
    adaptation: Adaptation
    figure: Path


def run(out: Path) -> Demo:
    """Fit on the source, adapt to the target, and score each method on all target rows and on the worst group."""
    task = communities_and_crime()
    prepare = make_pipeline(SimpleImputer(), StandardScaler()).fit(task.train.X)
    X, Z = prepare.transform(task.train.X), prepare.transform(task.test.X)
    ols = SpARRegressor().fit(X, task.train.y)
    methods: dict[str, Any] = {
        "OLS": ols,
        "ridge": RidgeCV(np.logspace(-6, 6, 49)).fit(X, task.train.y),
        "PCR": PCRRegressor().fit(X, task.train.y),
        "SpAR": ols.adapted(Z),
        "Bayes-SpAR": BayesSpARRegressor().fit(X, task.train.y).adapt(Z),
    }
    errors = {name: _score(model.predict(Z), task.test) for name, model in methods.items()}
    adaptation: Adaptation = methods["SpAR"].adaptation_
    out.mkdir(parents=True, exist_ok=True)
    figure = draw_demo(adaptation, errors, task.group_kind, out / "demo.png")
    return Demo(task, errors, adaptation, figure)


def _score(prediction: np.ndarray, part: Part) -> tuple[float, float]:
    """Return the RMSE over all rows and the largest RMSE of a group."""
    squares = (prediction - part.y) ** 2
    worst = max(float(squares[part.group == g].mean()) for g in np.unique(part.group))
    return float(np.sqrt(squares.mean())), float(np.sqrt(worst))

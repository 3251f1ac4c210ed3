"""The heads that are compared, those of ``pyspar.estimators.heads.new_head_weights`` included, and their metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from pyspar.core.moments import Moments, Vector
from pyspar.core.refit import error_roots_of
from pyspar.core.spectrum import default_cutoff
from pyspar.errors import collect_warnings
from pyspar.estimators.heads import HeadMethod, new_head_weights
from pyspar.paper.parameters import check_name
from pyspar.paper.runs.spec import CUTS, HEADS, canonical_json, recipe_of
from pyspar.paper.runs.store import Features

Groups = NDArray[np.int64]
METRIC_TITLES = {"rmse": "RMSE", "mse": "MSE", "r": "r", "spearman": "Spearman's r", "minutes": "minutes"}
_HIGHER_IS_BETTER = ("r", "spearman")


def rmse(prediction: Vector, y: Vector) -> float:
    """Return the root mean squared error."""
    return float(np.sqrt(np.mean((prediction - y) ** 2)))


def pearson(prediction: Vector, y: Vector) -> float:
    """Return Pearson's correlation, or nan if either argument is constant."""
    if np.ptp(prediction) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.clip(np.corrcoef(prediction, y)[0, 1], -1.0, 1.0))


def spearman(prediction: Vector, y: Vector) -> float:
    """Return Spearman's rank correlation, or nan if either argument is constant."""
    return pearson(rankdata(prediction), rankdata(y))


_FUNCTIONS: dict[str, Callable[[Vector, Vector], float]] = {"rmse": rmse, "r": pearson, "spearman": spearman}


def measure(metric: str, prediction: Vector, y: Vector, group: Groups) -> float:
    """Return a metric by its name. "worst-group ..." is the metric of the group with the worst value. Groups with
    constant labels, such as single rows, have no correlation and are ignored by "worst-group r". If the predictions of
    any other group are constant, the worst correlation is nan.
    """
    plain = metric.removeprefix("worst-group ")
    function = _FUNCTIONS[plain]
    if plain == metric:
        return function(prediction, y)
    groups = [group == g for g in np.unique(group)]
    if lower_is_better(metric):
        return float(np.max([function(prediction[rows], y[rows]) for rows in groups]))
    values = [function(prediction[rows], y[rows]) for rows in groups if np.ptp(y[rows])]
    return float(np.min(values)) if values else float("nan")


def round_to_float32(value: float) -> float:
    """Round a number to seven significant digits, the precision of float32 features. Further digits depend on the
    memory alignment of arrays, so that records of one seed would differ between calls.
    """
    return float(f"{value:.7g}")


def lower_is_better(metric: str) -> bool:
    """Return whether smaller values of a metric are better."""
    return metric.removeprefix("worst-group ") not in _HIGHER_IS_BETTER


def metric_title(metric: str) -> str:
    """Return the name of a metric in the heading of a table."""
    plain = metric.removeprefix("worst-group ")
    return metric[: len(metric) - len(plain)] + METRIC_TITLES.get(plain, plain)


METHODS: dict[str, HeadMethod] = {"OLS": "ols", "SpAR": "spar", "Bayes-SpAR": "bayes"}
"""The name of a head in the tables, and the corresponding ``method`` of ``adapt_head``."""


@dataclass(frozen=True)
class Head:
    """A head that predicts from features: its name, its parameters, and the rows to which it is adapted. ``adapt_to``
    is "test" for the test inputs, as in most of the paper, or "unlabeled" for a separate pool.
    """

    name: str
    params: dict[str, Any] = field(default_factory=dict)
    adapt_to: str = "test"

    @property
    def key(self) -> str:
        """The key of its scores: all three fields, and the version of its rule from the second version on."""
        version = [self.recipe] if self.recipe > 1 else []
        return canonical_json([self.name, self.params, self.adapt_to, *version])

    @property
    def recipe(self) -> int:
        return recipe_of(self.name)

    def label(self, method: str) -> str:
        return method if self.name == "trained" else f"{method} + {self.name}"


def predict_with_heads(features: Features, heads: list[Head]) -> dict[str, Vector]:
    """Return the predictions for the test rows by the key of each head. The moments are computed once for all heads."""
    source = Moments.of(features.train, features.y_train)
    targets: dict[str, Moments] = {}
    test = features.test.astype(np.float64)
    predictions = {}
    for head in heads:
        check_name("head", head.name, HEADS)
        if head.name == "trained":
            predictions[head.key] = np.asarray(test @ features.head.T)[:, 0]
            continue
        method, _, variant = head.name.partition(", ")
        if method != "OLS" and head.adapt_to not in targets:
            targets[head.adapt_to] = Moments.of(_target_rows(features, head.adapt_to))
        options: dict[str, Any] = {"cutoff": CUTS.get(variant, 1.0) * default_cutoff(source), **head.params}
        if head.name == "Bayes-SpAR":
            options["error_roots"] = error_roots_of(features.train, features.y_train[:, None], features.head)
        with collect_warnings():
            # A network often has too few rows per direction to estimate the noise; the scores show the effect.
            target = targets.get(head.adapt_to) if method != "OLS" else None
            new = new_head_weights(source, target, features.head, None, METHODS[method], **options)
        predictions[head.key] = test @ new.coef[0]
    return predictions


def _target_rows(features: Features, adapt_to: str) -> NDArray[np.float32]:
    target = features.test if adapt_to == "test" else features.unlabeled
    if target is None:
        raise ValueError("the task has no unlabelled rows to adapt to; use adapt_to='test'.")
    return target

"""Calibration of forecasts by experience with real shifts, and the labels that a fitted regressor expects.

``python -m benchmarks.trust`` computes ``experience.json`` from real data sets, each with a natural shift, and from
random splits of the same data sets. The file names the data sets. Tasks are grouped by the
separation of source and target (:mod:`pyspar.core.separation`): ``"none"`` if no shift is found, ``"matched"`` if their
features are more similar than those of random samples, otherwise by the AUC. Matched tasks have the factors of tasks
with a small AUC and their own base rates.

Two kinds of regressors are distinguished: "linear" are the regressors of this package with the forecasts of their
belief, and "any" are other regressors, whose expected error is their cross-validated error.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from sklearn.pipeline import Pipeline

from pyspar.core.arrays import Matrix
from pyspar.core.belief import RidgeBelief, ridge_belief
from pyspar.core.forecast import Interval
from pyspar.core.separation import Separation

Kind = Literal["linear", "any"]
Outcome = Literal["hurts", "no-shift", "unverified", "unknown"]
EXCESS = 1.3
"""An outcome is judged by whether the actual error exceeds this many times the error at home."""
HURTS_RATIO = 1.1
"""A shift hurts if the expected error on the target exceeds this many times the error at home."""
OUTSIDE_LIMIT = 0.01
"""The outcome is unknown if a larger share of the target's variation lies outside the span of the source."""
FILE = Path(__file__).with_name("experience.json")


@dataclass(frozen=True)
class BaseRate:
    """How often the actual error exceeded ``threshold`` times the error at home, among real shifts with one outcome.

    Attributes
    ----------
    n_tasks : int
        The number of real shifts (data sets) with this outcome.
    n_exceeded : int
        The number of those whose actual error exceeded ``threshold`` times the error at home. A data set that was
        measured with several sets of features counts once, with the share of those that exceeded.
    threshold : float
    is_of_outcome : bool
        Whether these shifts had the same outcome; otherwise they had a similar separation and any outcome.
    is_of_separation : bool
        Whether these shifts had a similar separation; otherwise they had the same outcome and any separation.
    """

    n_tasks: int
    n_exceeded: int
    threshold: float = EXCESS
    is_of_outcome: bool = True
    is_of_separation: bool = True

    @property
    def rate(self) -> float:
        """The share of tasks that exceeded the threshold; NaN without tasks."""
        return self.n_exceeded / self.n_tasks if self.n_tasks else float("nan")


def judge_outcome(
    *, expected: float, home: float, separation: Separation, outside: float = 0.0, unseen: bool = False
) -> Outcome:
    """Return the outcome for a target without labels.

    Parameters
    ----------
    expected : float
        The expected RMSE on the target.
    home : float
        The expected RMSE on rows like those of the source (on new groups, if the rows have groups).
    separation : Separation
    outside : float
        The share of the target's variation outside the span of the source (``Adaptation.outside_energy``).
    unseen : bool
        Whether the target has categories that the source does not have.

    Returns
    -------
    {"unknown", "no-shift", "hurts", "unverified"}
        "unknown" if the target lies partly outside the span of the source, has unseen categories, or an error cannot be
        computed. "hurts" if the expected error exceeds 1.1 times the error at home, or 1.3 times if no shift was found.
        "no-shift" if source and target rows cannot be distinguished. "unverified" otherwise: a shift was found, the
        error is not expected to increase much, and only labels can verify that.

    Examples
    --------
    >>> judge_outcome(expected=2.0, home=1.0, separation=Separation(auc=0.9, p_value=0.0, found=True))
    'hurts'
    """
    if unseen or not outside <= OUTSIDE_LIMIT or not (np.isfinite(expected) and np.isfinite(home)):
        return "unknown"
    if expected > HURTS_RATIO * home and (separation.found or expected > EXCESS * home):
        return "hurts"
    return "unverified" if separation.found else "no-shift"


def separation_class(separation: Separation) -> str:
    """Return the class of a separation: "none" or "matched" if no shift is found, else a range of AUCs: "0.5-0.95"."""
    if not separation.found:
        return "matched" if separation.matched else "none"
    ends: list[float] = _experience()["auc_limits"]
    return auc_classes(ends)[bisect_right(ends, separation.auc)]


def auc_classes(ends: list[float]) -> list[str]:
    """Return the names of the classes between given ends.

    >>> auc_classes([0.7, 0.95])
    ['0.5-0.7', '0.7-0.95', '0.95-1']
    """
    limits = [0.5, *ends, 1]
    return [f"{low:g}-{high:g}" for low, high in pairwise(limits)]


def rmse_factors(level: float, separation: Separation, kind: Kind = "linear") -> Interval:
    """Return the factors by which the expected RMSE is multiplied for an interval of level 0.8 or 0.95."""
    low, high = _experience()[kind]["rmse"][f"{level:g}"][separation_class(separation)]
    return low, high


def rmse_interval(
    level: float, rmse: float, narrow: Interval, separation: Separation, kind: Kind = "linear"
) -> Interval:
    """Return the interval of the RMSE on a target.

    If no shift is found and the rows are not matched, this is the interval ``narrow`` (of the model or of
    cross-validation), stretched on the log scale by what random splits of real data need. Otherwise it is the expected
    RMSE times ``rmse_factors``.
    """
    low, high = narrow
    if separation_class(separation) != "none" or not (0.0 < low <= rmse <= high < np.inf):
        factors = rmse_factors(level, separation, kind)
        return (rmse * factors[0], rmse * factors[1])
    down, up = _experience()[kind]["stretch"][f"{level:g}"]
    return float(rmse * (low / rmse) ** down), float(rmse * (high / rmse) ** up)


def row_factor(level: float, separation: Separation | None) -> float:
    """Return the factor for the half-widths of row intervals of a level; ``None`` is a regressor without a target.

    It is interpolated between the levels of the file, in normal quantiles.
    """
    rows: dict[str, dict[str, float]] = _experience()["linear"]["rows"]
    name = "none" if separation is None else separation_class(separation)
    levels = sorted(rows, key=float)
    wanted, *known = (NormalDist().inv_cdf((1.0 + value) / 2.0) for value in (level, *map(float, levels)))
    return float(np.interp(wanted, known, [rows[value][name] for value in levels]))


def base_rate(outcome: Outcome, separation: Separation, kind: Kind = "linear") -> BaseRate:
    """Return how often real shifts with an outcome, and with a similar separation, had an excessive error.

    If no data set had this outcome with this separation, those with other separations are counted. If none had this
    outcome at all, such as "unknown" for other regressors, those with this separation and any outcome are counted.
    """
    rates: dict[str, dict[str, list[int]]] = _experience()[kind]["base_rates"]
    name, counts = separation_class(separation), rates.get(outcome, {})
    if counts:
        found = [counts[name]] if name in counts else list(counts.values())
    else:
        found = [of_outcome[name] for of_outcome in rates.values() if name in of_outcome]
    return BaseRate(
        sum(n for n, _ in found),
        sum(k for _, k in found),
        is_of_outcome=bool(counts),
        is_of_separation=not counts or name in counts,
    )


@cache
def _experience() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


def predict_from_source(estimator: Any, rows: Matrix) -> tuple[Matrix, list[Matrix]]:
    """Return the posterior mean of the labels of rows, and the root of its covariance relative to the noise.

    They are of shapes (m, K) and, for each output, (m, r). ``estimator`` is a fitted AdaptableRegressor.
    """
    prior = estimator._prior_for_rows()
    belief = ridge_belief(prior.transform_source(estimator._source), fit_intercept=estimator._belief.centred)
    coef, intercept = prior.weights(belief, belief.w_hat)
    centred = prior.transform_rows(rows) - belief.x_mean
    return rows @ coef + intercept, [_error_root(belief, centred, k) for k in range(coef.shape[1])]


def predict_if_known(model: Any, blocks: list[Any]) -> tuple[Matrix | None, list[Matrix] | None]:
    """Return what ``predict_from_source`` returns for the rows of any model.

    For a model other than our estimators, alone or as the last step of a Pipeline, nothing is known: both are None.
    """
    transform = None
    if isinstance(model, Pipeline):
        transform, model = model[:-1] if len(model.steps) > 1 else None, model.steps[-1][1]
    if not hasattr(model, "_prior_for_rows"):  # base.py imports this module, so its class cannot be imported here
        return None, None
    rows = [model._rows(Z if transform is None else transform.transform(Z)) for Z in blocks]
    return predict_from_source(model, np.vstack(rows))


def _error_root(belief: RidgeBelief, rows: Matrix, output: int) -> Matrix:
    """Return L with ``sigma^2 L L'`` the posterior covariance of the predictions of rows about the source mean."""
    along = rows @ belief.x.V
    largest = float(belief.x.lam[0]) if belief.x.rank else 1.0
    kappa = float(belief.evidence.kappa[output])
    parts = [np.full((len(rows), 1), np.sqrt(belief.relative_mean_variance))]
    if np.isfinite(kappa):
        parts.append(along / np.sqrt(np.square(belief.x.lam) + kappa * largest**2))
        if kappa > 0.0 and belief.x.rank < rows.shape[1]:
            parts.append((rows - along @ belief.x.V.T) / (np.sqrt(kappa) * largest))
    return np.hstack(parts)

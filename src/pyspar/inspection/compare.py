"""Compared: the weights that an inspection sets side by side, and what is known of the features behind them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.core.prior import in_units_of, inverse, spread_of_features
from pyspar.core.spectrum import ROUNDING_SLACK
from pyspar.errors import InputError
from pyspar.estimators.base import weights_of
from pyspar.estimators.bayes import BayesSpARRegressor
from pyspar.estimators.spar import SpARRegressor
from pyspar.estimators.validation import read_moments
from pyspar.inspection.directions import by_column
from pyspar.inspection.findings import MOVED, DataFacts, Leader

Weights = Mapping[str, Any]
"""By name a pair (coef, intercept), or a fitted linear estimator that has them."""
Pair = tuple[Matrix, Vector]
_ROUNDING = 3e-14
"""A share of the largest weight that is nothing."""
_REMAINDER = 1e-9
"""A share of a weight that is a rounding error."""
OURS = ("OLS", "ridge", "SpAR", "Bayes-SpAR")


class Compared:
    """The weights to compare, and what adapting did along the target's directions.

    The directions are those of the features in the units that the estimator was fitted in, or with ``as_given`` in the
    features' own units, as for :class:`pyspar.SpARRegressor`. The paper's rule judges the same directions, so that one
    picture shows both. No warning is raised here: the findings say the same.
    """

    def __init__(self, estimator: Any, target: Moments, *, as_given: bool = False) -> None:
        self.alpha = float(estimator.alpha)
        centred = estimator._belief.centred  # as it was fitted
        self.units: Vector = np.ones(estimator.n_features_in_) if as_given else units_of(estimator)
        unadapted, adapted = copy.copy(estimator).reset(), _adapted(estimator, target)
        like = {"alpha": self.alpha, "fit_intercept": centred, "solver": estimator.solver}
        if isinstance(estimator, SpARRegressor):
            flat, paper = unadapted, adapted
            ours = _fitted(BayesSpARRegressor(**like), estimator, estimator._source)
            ours_adapted = _adapted(ours, target)
        else:
            flat = _fitted(SpARRegressor(**like), estimator, in_units_of(estimator._source, self.units))
            paper = _adapted(flat, in_units_of(target, self.units))
            ours, ours_adapted = unadapted, adapted
        back = inverse(self.units)
        self.paper = paper.adaptation_
        self.removed: Matrix = taken_away(self.paper.z.V, unadapted, adapted, self.units)
        self.own = weights_of(adapted)
        self.limits: tuple[str, ...] = ours.evidence_.limit
        self.candidates: dict[str, Pair] = {
            "OLS": _in_own_units(flat, back),
            "ridge": weights_of(ours),
            "SpAR": _in_own_units(paper, back),
            "Bayes-SpAR": weights_of(ours_adapted),
        }
        self.adapted = "SpAR" if isinstance(estimator, SpARRegressor) else "Bayes-SpAR"
        """The name of the weights that adapting the estimator gives."""


def units_of(estimator: Any) -> Vector:
    """Return the unit of each feature that an estimator was fitted in."""
    if isinstance(estimator, BayesSpARRegressor):
        return estimator._fitted_prior.units
    return np.ones(estimator.n_features_in_)


def taken_away(directions: Matrix, before: Any, after: Any, units: Vector) -> Matrix:
    """Return the share by which adapting shortened the weight along each direction, 0 to 1; 0 for one that grew."""
    w, kept = (weights_of(fitted)[0] * units[:, None] for fitted in (before, after))
    had, has = np.abs(directions.T @ w), np.abs(directions.T @ kept)
    some = had > _ROUNDING * np.abs(w).max(axis=0, initial=0.0)
    share = np.clip(1.0 - has / np.where(some, had, 1.0), 0.0, 1.0)
    # What was removed leaves a rounding error, and so does what was not touched.
    share = np.where(np.abs(share - np.round(share)) < _REMAINDER, np.round(share), share)
    return np.where(some, share, 0.0)


def _in_own_units(estimator: Any, back: Vector) -> Pair:
    coef, intercept = weights_of(estimator)
    return coef * back[:, None], intercept


def _adapted(estimator: Any, target: Moments) -> Any:
    """Return an estimator adapted to a target whose rows are counted already, without warnings."""
    found = copy.copy(estimator)
    found._adapt_moments(target)
    return found


def _fitted(new: Any, estimator: Any, moments: Moments) -> Any:
    """Return an estimator fitted to moments, with the outputs of another's shape, without warnings."""
    new._learn(read_moments(moments, y_ndim=estimator._y_ndim))
    return new


def given_weights(given: Weights | None, shape: tuple[int, ...], columns: Any = None) -> dict[str, Pair]:
    """Return the weights that the caller names, in the shape of our own; ``columns`` are the source's, if any."""
    if given is not None and not isinstance(given, Mapping):
        raise InputError(
            f"weights must be a dict of name to (coef, intercept) or to a fitted linear estimator. Got "
            f"{type(given).__name__}; for example weights={{'in use': (coef, intercept)}}."
        )
    found: dict[str, Pair] = {}
    for name, value in (given or {}).items():
        if str(name) in OURS:
            raise InputError(f"weights: the name {name!r} stands for our own already; choose another.")
        theirs = getattr(value, "feature_names_in_", None)
        if theirs is not None and columns is not None and list(theirs) != list(columns):
            raise InputError(
                f"weights[{name!r}] must be of an estimator with the source's columns in their order. Got others; fit "
                "it to X[list(estimator.feature_names_in_)]."
            )
        coef, intercept = (_real(f"weights[{name!r}]", part) for part in _halves(f"weights[{name!r}]", value))
        array = coef[:, None] if coef.ndim == 1 else coef.T
        if array.shape != shape or not np.isfinite(array).all():
            raise InputError(
                f"weights[{name!r}] must be finite, one coefficient for each of {shape[0]} features and a row for each "
                f"of {shape[1]} outputs. Got shape {coef.shape}."
            )
        if intercept.shape not in ((), (1,), (shape[1],)) or not np.isfinite(intercept).all():
            raise InputError(
                f"weights[{name!r}] must have a finite intercept, one number or one for each of {shape[1]} outputs. "
                f"Got {intercept.tolist()!r}; pass 0.0 for none."
            )
        found[str(name)] = array, np.broadcast_to(intercept, (shape[1],))
    return found


def _halves(what: str, value: Any) -> tuple[Any, Any]:
    """Return the coefficients and the intercept of what a caller gave for weights."""
    if hasattr(value, "coef_"):
        return value.coef_, getattr(value, "intercept_", 0.0)
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return value[0], value[1]
    got = f"{type(value).__name__} of {len(value)}" if isinstance(value, (tuple, list)) else type(value).__name__
    cure = "fit it first, or take the last step of a pipeline" if hasattr(value, "fit") else "for example (coef, 0.0)"
    raise InputError(
        f"{what} must be a pair (coef, intercept), or a fitted linear estimator that has coef_ and intercept_. Got "
        f"{got}; {cure}."
    )


def _real(what: str, values: Any) -> Matrix:
    try:
        if values is None or np.iscomplexobj(values):
            raise TypeError(f"{type(values).__name__} is no real number")
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what} must hold real numbers: coefficients, and an intercept that is 0.0 where there is none. Got what "
            f"cannot be one ({error})."
        ) from error


def facts_of(estimator: Any, target: Moments, names: Sequence[str], models: Compared) -> DataFacts:
    """Gather what the findings need to know of the features."""
    source, d = estimator._source, target.n_features
    spread = spread_of_features(source, fit_intercept=True)
    mean, there = source.mean[:d], target.without_outputs()
    distance = there.spread_about(mean)
    noise = ROUNDING_SLACK * there.eps * there.column_lengths() / np.sqrt(there.weight)
    stuck = [names[int(j)] for j in np.flatnonzero((spread == 0.0) & (distance > noise))]
    away = np.abs(target.mean[:d] - mean) * inverse(spread)
    moved = [(names[j], float(away[j])) for j in np.argsort(-away, kind="stable") if away[j] > MOVED]
    units = units_of(estimator)
    own = (spread * inverse(units))[(spread > 0.0) & (units > 0.0)]
    return DataFacts(
        rows=source.weight,
        rank=int(estimator.rank_),
        outside=models.paper.outside_energy,
        stuck=tuple(dict.fromkeys(stuck)),
        moved=tuple(dict(reversed(moved)).items())[::-1],
        apart=float(own.max() / own.min()) if own.size else 1.0,
    )


def leaders_of(estimator: Any, target: Moments, names: Sequence[str], models: Compared) -> tuple[Leader | None, ...]:
    """Return for each output the column that carries most of what the features explain, by the weights of ridge."""
    source, d = estimator._source, target.n_features
    spread = spread_of_features(source, fit_intercept=True)
    reach = target.spread_about(source.mean[:d]) * inverse(spread)
    carried = models.candidates["ridge"][0] * spread[:, None]
    columns, squares = by_column(carried / np.abs(carried).max(axis=0, initial=1e-300), names)
    found: list[Leader | None] = []
    for each in squares.T:
        total, place = float(each.sum()), int(np.argmax(each))
        far = max(float(reach[i]) for i, name in enumerate(names) if name == columns[place])
        known = 0.0 < total < np.inf
        found.append(Leader(columns[place], float(each[place]) / total, len(columns), far) if known else None)
    return tuple(found)

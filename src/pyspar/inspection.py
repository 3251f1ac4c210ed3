"""Inspection: what a fitted regressor and an unlabelled target say about the errors to come, as data.

Terminal, JSON and report all show this one object. Every number is finite or None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pyspar._checks import target_moments
from pyspar._forecasting import weights_of
from pyspar.bayes import BayesSpARRegressor
from pyspar.core.adapt import Adaptation
from pyspar.core.arrays import Matrix, Vector
from pyspar.core.forecast import Forecast, Forecaster
from pyspar.core.moments import Moments
from pyspar.core.path import alpha_path
from pyspar.core.posterior import posterior_of
from pyspar.errors import InputError
from pyspar.estimators import SpARRegressor

ASSUMPTION = "if the labels are linear in the features, in the source and in the target alike, with noise of one size"
WORTH = 0.98
"""Adapting is called worth it where it takes away at least this share's complement of the expected error."""

_LOADS = 5
Weights = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Direction:
    """One direction of the target, for one output.

    Attributes
    ----------
    energy : float
        Share of the target's squared length about the source mean.
    keeping, removing : float
        Expected squared error per row of keeping its weight as least squares has it, and of setting it to zero.
    inflation : float
        Spectral inflation in units of the noise: ``Var / (M sigma^2)``.
    alpha, doubt : float
        The paper's rule removes it from this confidence on; ``doubt`` is one minus it, unrounded.
    outside : float
        The share of it that the source does not span.
    removed : float
        What this estimator took away of its weight, 0 to 1.
    loads : pairs of (column, share)
        The columns it consists of most.
    """

    energy: float
    keeping: float
    removing: float
    inflation: float
    alpha: float
    doubt: float
    outside: float
    removed: float
    loads: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class OutputInspection:
    """What is expected for one output: of each set of weights, overall and by group, and along each direction."""

    forecasts: tuple[Forecast, ...]
    groups: Mapping[str, tuple[Forecast, ...]]
    directions: tuple[Direction, ...]
    in_distribution: float
    worth: bool
    verdict: str

    def forecast(self, name: str) -> Forecast:
        """Return the forecast of one set of weights."""
        for found in self.forecasts:
            if found.name == name:
                return found
        raise KeyError(f"no weights named {name!r}; there are {[f.name for f in self.forecasts]}")


@dataclass(frozen=True)
class Inspection:
    """All of it. ``as_dict`` gives plain Python for JSON."""

    n_source: float
    n_target: float
    columns: tuple[str, ...]
    estimator: str
    alpha: float
    rank: int
    outside_energy: float
    outputs: tuple[OutputInspection, ...]
    assumption: str = ASSUMPTION

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, text, lists and dicts; what is not finite is None."""
        return _plain(asdict(self))

    def __repr__(self) -> str:
        return "\n".join(output.verdict for output in self.outputs)


def inspect(
    estimator: Any, Z: Any, *, groups: Any = None, weights: Weights | None = None, sample_weight: Any = None
) -> Inspection:
    """Say what errors to expect on a target before any label of it, and whether adapting to it is worth it.

    Parameters
    ----------
    estimator : fitted SpARRegressor or BayesSpARRegressor
        It is not changed; whether it is adapted already does not matter.
    Z : whatever ``adapt`` takes
    groups : array of shape (m,), optional
        A label for each row of Z; the forecasts are then also made per group.
    weights : dict of name to (coef, intercept), optional
        Further weights to forecast, for example those of a model that is in use.
    sample_weight : array of shape (m,), optional

    Returns
    -------
    Inspection

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import BayesSpARRegressor, inspect
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(200, 2)) * [1, 0.01], rng.normal(size=(100, 2))
    >>> found = inspect(BayesSpARRegressor(rule="positive-part").fit(X, X[:, 0] + rng.normal(size=200)), Z)
    >>> found.outputs[0].worth
    True
    """
    if not isinstance(estimator, (SpARRegressor, BayesSpARRegressor)):
        raise TypeError(
            f"estimator must be a SpARRegressor or a BayesSpARRegressor. Got {type(estimator).__name__} instead; of a "
            "pipeline pass its last step, and Z as the earlier steps transform it."
        )
    check_is_fitted(estimator)
    target = target_moments(estimator, Z, sample_weight, solver=estimator.solver)
    parts = _parts(estimator, Z, groups, sample_weight)
    candidates = _candidates(estimator, target, weights)
    posterior = posterior_of(estimator.moments_, fit_intercept=bool(estimator.fit_intercept))
    whole = Forecaster(posterior, target)
    by_group = {name: Forecaster(posterior, moments) for name, moments in parts.items()}
    at_home = Forecaster(posterior, estimator.moments_.without_outputs())
    adapted = estimator.adapted(target)
    paper = _least_squares(estimator).adapted(target)
    columns = _columns(estimator)
    outputs = []
    for k in range(len(posterior.unit)):
        forecasts = tuple(whole.of(name, *pair, k) for name, pair in candidates.items())
        outputs.append(
            OutputInspection(
                forecasts=forecasts,
                groups={g: tuple(f.of(n, *pair, k) for n, pair in candidates.items()) for g, f in by_group.items()},
                directions=_directions(paper.adaptation_, adapted, columns, k),
                in_distribution=at_home.of("source", *candidates["ridge"], k).rmse,
                worth=_worth(forecasts),
                verdict=_verdict(forecasts),
            )
        )
    return Inspection(
        n_source=estimator.moments_.weight,
        n_target=target.weight,
        columns=columns,
        estimator=repr(estimator),
        alpha=float(estimator.alpha),
        rank=int(estimator.rank_),
        outside_energy=paper.adaptation_.outside_energy,
        outputs=tuple(outputs),
    )


def _candidates(estimator: Any, target: Moments, given: Weights | None) -> dict[str, tuple[Matrix, Vector]]:
    """Return the weights to compare: least squares, ridge, the paper's, ours, and what the caller names."""
    plain, ours = _least_squares(estimator), _ours(estimator)
    fitted = {
        "OLS": plain,
        "ridge": ours,
        "SpAR": plain.adapted(target),
        "Bayes-SpAR": ours.adapted(target),
    }
    found = {name: weights_of(est) for name, est in fitted.items()}
    shape = found["OLS"][0].shape
    for name, (coef, intercept) in (given or {}).items():
        if name in found:
            raise InputError(f"weights: the name {name!r} stands for our own already; choose another.")
        array = np.asarray(coef, dtype=np.float64)
        array = array[:, None] if array.ndim == 1 else array.T
        if array.shape != shape or not np.isfinite(array).all():
            raise InputError(
                f"weights[{name!r}] must be finite, one coefficient for each of {shape[0]} features and a row for each "
                f"of {shape[1]} outputs. Got shape {np.shape(coef)}."
            )
        found[name] = array, np.broadcast_to(np.asarray(intercept, dtype=np.float64), (shape[1],))
    return found


def _least_squares(estimator: Any) -> SpARRegressor:
    if isinstance(estimator, SpARRegressor):
        return estimator.adapted(estimator.moments_.without_outputs()).reset()
    plain = SpARRegressor(estimator.alpha, fit_intercept=estimator.fit_intercept, solver=estimator.solver)
    return _fit_like(plain, estimator)


def _ours(estimator: Any) -> BayesSpARRegressor:
    if isinstance(estimator, BayesSpARRegressor):
        return estimator.adapted(estimator.moments_.without_outputs()).reset()
    ours = BayesSpARRegressor(rule="positive-part", fit_intercept=estimator.fit_intercept, solver=estimator.solver)
    return _fit_like(ours, estimator)


def _fit_like(new: Any, estimator: Any) -> Any:
    new.fit_moments(estimator.moments_)
    new._y_ndim = estimator._y_ndim
    return new


def _parts(estimator: Any, Z: Any, groups: Any, sample_weight: Any) -> dict[str, Moments]:
    if groups is None:
        return {}
    label = np.asarray(groups)
    rows = getattr(Z, "shape", (None,))[0]
    if isinstance(Z, Moments) or label.ndim != 1 or len(label) != rows:
        raise InputError(
            f"groups must have one entry for each row of Z. Got shape {label.shape} for "
            f"{'Moments, which have no rows' if isinstance(Z, Moments) else f'{rows} rows'}."
        )
    weight = None if sample_weight is None else np.asarray(sample_weight)
    parts = {}
    for name in np.unique(label):
        chosen = np.flatnonzero(label == name)
        rows_of = Z.iloc[chosen] if hasattr(Z, "iloc") else Z[chosen]
        part_weight = None if weight is None else weight[chosen]
        parts[str(name)] = target_moments(estimator, rows_of, part_weight, solver=estimator.solver)
    return parts


def _directions(paper: Adaptation, adapted: Any, columns: tuple[str, ...], output: int) -> tuple[Direction, ...]:
    """Describe the target's directions, worst first; what was removed is measured on the weights themselves."""
    path, M = alpha_path(paper), paper.n_target
    var, bias = paper.var[:, output] / M, paper.bias_hat[:, output] / M
    energy = (paper.z.lam / paper.z.lam.max(initial=1e-300)) ** 2
    energy = energy / max(float(energy.sum()), 1e-300)
    sigma2 = float(paper.sigma2[output])
    after = paper.z.V.T @ weights_of(adapted)[0][:, output]
    before = paper.terms.mean[:, output]
    with np.errstate(divide="ignore", invalid="ignore"):
        removed = np.clip(np.nan_to_num(1.0 - after / before, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0)
        inflation = var / sigma2 if sigma2 > 0.0 else np.zeros_like(var)
    outside = paper.outside
    found = []
    for j in np.argsort(-var, kind="stable"):
        share = paper.z.V[:, j] ** 2
        top = np.argsort(-share, kind="stable")[:_LOADS]
        found.append(
            Direction(
                float(energy[j]),
                float(var[j]),
                float(bias[j]),
                float(inflation[j]),
                float(path.alpha[j, output]),
                float(path.doubt[j, output]),
                float(outside[j]),
                float(removed[j]),
                tuple((columns[i], float(share[i])) for i in top),
            )
        )
    return tuple(found)


def _columns(estimator: Any) -> tuple[str, ...]:
    names = getattr(estimator, "feature_names_in_", None)
    return tuple(f"x{i}" for i in range(estimator.n_features_in_)) if names is None else tuple(map(str, names))


def _by_name(forecasts: tuple[Forecast, ...]) -> dict[str, Forecast]:
    return {found.name: found for found in forecasts}


def _worth(forecasts: tuple[Forecast, ...]) -> bool:
    named = _by_name(forecasts)
    return named["Bayes-SpAR"].rmse < WORTH * named["OLS"].rmse


def _verdict(forecasts: tuple[Forecast, ...]) -> str:
    """Say in one sentence whether adapting is worth it, with its assumption."""
    named = _by_name(forecasts)
    before, after = named["OLS"], named["Bayes-SpAR"]
    share = after.rmse / before.rmse if before.rmse > 0.0 else 1.0
    low, high = after.interval95
    range95 = f"95 %: {low:.4g} to {high:.4g}"
    if share < WORTH:
        what = (
            f"Adapting is worth it: the expected RMSE falls from {before.rmse:.4g} to {after.rmse:.4g} "
            f"({100.0 * (1.0 - share):.0f} % less; {range95})"
        )
    elif share <= 1.0 / WORTH:
        what = (
            f"Adapting changes little: an expected RMSE of {before.rmse:.4g} as it is and {after.rmse:.4g} adapted "
            f"({range95})"
        )
    else:
        what = (
            f"Adapting is insurance that costs: the expected RMSE rises from {before.rmse:.4g} to {after.rmse:.4g} "
            f"({100.0 * (share - 1.0):.0f} % more; {range95})"
        )
    return f"{what}, {ASSUMPTION}."


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value

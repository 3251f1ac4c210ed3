"""Inspection: what a fitted regressor and an unlabelled target say about the errors to come, as data.

Terminal, JSON and report all show this one object. Every number is finite or None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pyspar.core.forecast import Forecast, Forecaster
from pyspar.core.linalg import root_sum_squares
from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.estimators.bayes import BayesSpARRegressor
from pyspar.estimators.pipelines import last_step, names_made
from pyspar.estimators.spar import SpARRegressor
from pyspar.inspection.compare import Compared, Pair, Weights, facts_of, given_weights, leaders_of
from pyspar.inspection.directions import Direction, directions_of, removed_columns
from pyspar.inspection.findings import Finding, LabelFacts, findings_in_data, findings_in_label
from pyspar.inspection.groups import rows_by_group
from pyspar.inspection.judgement import ASSUMPTION, judged, verdict_of
from pyspar.inspection.target_rows import Predictions, predictions_of
from pyspar.inspection.unseen_categories import unseen_by, with_unseen


@dataclass(frozen=True)
class OutputInspection:
    """What is expected for one output.

    Attributes
    ----------
    name : str
    forecasts : tuple of Forecast
        Of each set of weights, on the whole target.
    groups : dict of group to tuple of Forecast
    directions : tuple of Direction
        The target's, the costliest to keep first.
    columns : pairs of (column, share)
        What the removed directions consist of.
    in_distribution : float
        The expected RMSE of least squares on rows like the source's.
    label_mean, label_std : float
        Of the source's labels.
    worth : bool
        Whether adapting takes away at least a twentieth of the expected error.
    verdict : str
    findings : tuple of Finding
        What concerns this output alone; ``Inspection.findings`` has all.
    predictions : Predictions or None
        Of some rows, where the target came as rows.
    """

    name: str
    forecasts: tuple[Forecast, ...]
    groups: Mapping[str, tuple[Forecast, ...]]
    directions: tuple[Direction, ...]
    columns: tuple[tuple[str, float], ...]
    in_distribution: float
    label_mean: float
    label_std: float
    worth: bool
    verdict: str
    findings: tuple[Finding, ...]
    predictions: Predictions | None

    def forecast(self, name: str) -> Forecast:
        """Return the forecast of one set of weights."""
        for found in self.forecasts:
            if found.name == name:
                return found
        raise KeyError(f"no weights named {name!r}; there are {[f.name for f in self.forecasts]}")


@dataclass(frozen=True)
class Inspection:
    """All of it. ``as_dict`` gives plain Python for JSON.

    ``adapted`` names the forecast of the weights that adapting the estimator gives. ``findings`` are all there are:
    those of each output, which name it, and then those of the features, whose ``output`` is None.
    """

    n_source: float
    n_target: float
    columns: tuple[str, ...]
    estimator: str
    adapted: str
    alpha: float
    rank: int
    outside_energy: float
    findings: tuple[Finding, ...]
    outputs: tuple[OutputInspection, ...]
    assumption: str = ASSUMPTION

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, text, lists and dicts; what is not finite is None."""
        return dict(plain(asdict(self)))

    def __repr__(self) -> str:
        return "\n".join(output.verdict for output in self.outputs)


def inspect(
    estimator: Any,
    Z: Any,
    *,
    groups: Any = None,
    weights: Weights | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> Inspection:
    """Say what errors to expect on a target before any label of it, and whether adapting to it is worth it.

    Parameters
    ----------
    estimator : fitted SpARRegressor or BayesSpARRegressor, or a Pipeline that ends in one
        It is not changed; whether it is adapted already does not matter.
    Z : whatever ``adapt`` takes
        For a pipeline, rows as it would be given them to predict.
    groups : array of shape (m,), optional
        A label for each row of Z; the forecasts are then also made per group.
    weights : dict of name to (coef, intercept) or to a fitted linear estimator, optional
        Further weights to forecast, for example those of a model that is in use.
    sample_weight : array of shape (m,), optional
    columns : sequence of str, optional
        What each feature is called; features of one name, such as those of a category, are told of as one column.
        For a pipeline, what the features are called that its last step is given.
    outputs : sequence of str, optional
        What each label is called.

    Returns
    -------
    Inspection

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import BayesSpARRegressor, inspect
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(50, 40)), rng.normal(size=(100, 40))
    >>> found = inspect(BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=50)), Z)
    >>> found.outputs[0].worth
    True
    >>> found.outputs[0].findings[0].code
    'SPAR001'
    """
    given, raw, steps = repr(estimator), Z, None
    if isinstance(estimator, Pipeline):
        columns = names_made(estimator) if columns is None else columns
        steps, (estimator, Z) = estimator[:-1], last_step(estimator, Z)
    if not isinstance(estimator, (SpARRegressor, BayesSpARRegressor)):
        raise TypeError(
            "estimator must be a SpARRegressor or a BayesSpARRegressor, or a pipeline that ends in one. Got "
            f"{type(estimator).__name__} instead."
        )
    check_is_fitted(estimator)
    target = estimator._target(Z, sample_weight)
    parts = _parts(estimator, Z, groups, sample_weight)
    names = _names("columns", columns, _columns(estimator))
    labels = _names("outputs", outputs, _outputs(estimator))
    models = Compared(estimator, target)
    found = replace(inspection_of(estimator, Z, target, models, names, labels, parts, weights), estimator=given)
    return found if steps is None else with_unseen(found, unseen_by(steps, raw, sample_weight))


@np.errstate(over="ignore", invalid="ignore")  # what exceeds float64 is unknown, and shown as such
def inspection_of(
    estimator: Any,
    Z: Any,
    target: Moments,
    models: Compared,
    names: Sequence[str],
    labels: Sequence[str],
    parts: Mapping[str, Moments] = MappingProxyType({}),
    weights: Weights | None = None,
) -> Inspection:
    """Return the inspection of checked input: ``target`` are the moments of Z, ``parts`` those of its groups."""
    candidates = {**models.candidates, **_given(estimator, weights, models)}
    whole: Forecaster = estimator._forecaster(target)
    by_group = {name: whole.on(moments) for name, moments in parts.items()}
    at_home: Forecaster = estimator._forecaster(estimator._source.without_outputs())
    guess = whole.best()[0] * models.units[:, None]
    predictions = predictions_of(Z, candidates["OLS"], models.own)
    d, about = len(models.units), estimator._source
    label_std = root_sum_squares(about.root_about(None)[:, d:]) / np.sqrt(about.weight)
    leaders = leaders_of(estimator, target, names, models)
    found = []
    for k, label in enumerate(labels):
        forecasts = tuple(whole.of(name, *pair, k) for name, pair in candidates.items())
        directions = directions_of(models.paper, models.removed, guess, names, k)
        home = at_home.of("source", *candidates["OLS"], k).rmse
        judgement = judged(forecasts, home, models.adapted)
        findings = findings_in_label(LabelFacts(judgement, directions, models.limits[k], leaders[k]))
        found.append(
            OutputInspection(
                name=label,
                forecasts=forecasts,
                groups={g: tuple(f.of(n, *pair, k) for n, pair in candidates.items()) for g, f in by_group.items()},
                directions=directions,
                columns=removed_columns(models.paper, models.removed, names, k),
                in_distribution=home,
                label_mean=float(about.mean[d + k]),
                label_std=float(label_std[k]),
                worth=judgement.worth,
                verdict=verdict_of(judgement),
                findings=tuple(replace(each, output=label) for each in findings),
                predictions=None if predictions is None else predictions[k],
            )
        )
    return Inspection(
        n_source=about.weight,
        n_target=target.weight,
        columns=tuple(dict.fromkeys(names)),
        estimator=repr(estimator),
        adapted=models.adapted,
        alpha=models.alpha,
        rank=int(estimator.rank_),
        outside_energy=models.paper.outside_energy,
        findings=(
            *(each for output in found for each in output.findings),
            *findings_in_data(facts_of(estimator, target, names, models)),
        ),
        outputs=tuple(found),
    )


def _parts(estimator: Any, Z: Any, groups: Any, sample_weight: Any) -> dict[str, Moments]:
    if groups is None:
        return {}
    Z = np.asarray(Z) if isinstance(Z, (list, tuple)) else Z
    Z = Z.tocsr() if hasattr(Z, "tocsr") else Z  # not every sparse matrix can be asked for some of its rows
    weight = None if sample_weight is None else np.asarray(sample_weight)
    parts = {}
    for name, chosen in rows_by_group(groups, Z).items():
        rows = Z.iloc[chosen] if hasattr(Z, "iloc") else Z[chosen]
        part_weight = None if weight is None else weight[chosen]
        if part_weight is not None and not part_weight.any():
            raise InputError(
                f"sample_weight must not be zero for a whole group. Got that for {name!r}, {len(chosen)} rows; leave "
                "them out of Z, groups and sample_weight, or weigh them."
            )
        try:
            parts[name] = estimator._target(rows, part_weight)
        except ValueError as error:
            raise InputError(f"group {name!r}: {error}") from error
    return parts


def _given(estimator: Any, weights: Weights | None, models: Compared) -> dict[str, Pair]:
    columns = getattr(estimator, "feature_names_in_", None)
    return given_weights(weights, models.candidates["OLS"][0].shape, columns)


def _columns(estimator: Any) -> tuple[str, ...]:
    names = getattr(estimator, "feature_names_in_", None)
    return tuple(f"x{i}" for i in range(estimator.n_features_in_)) if names is None else tuple(map(str, names))


def _outputs(estimator: Any) -> tuple[str, ...]:
    count = estimator.moments_.n_outputs
    return ("y",) if count == 1 else tuple(f"y{k}" for k in range(count))


def _names(what: str, given: Sequence[str] | None, own: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        return own
    if isinstance(given, str) or len(given) != len(own):
        raise InputError(f"{what} must be {len(own)} names. Got {given if isinstance(given, str) else len(given)!r}.")
    return tuple(map(str, given))


def plain(value: Any) -> Any:
    """Return plain Python for JSON: lists and dicts, and None for what is not finite."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value

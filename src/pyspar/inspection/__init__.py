"""``inspect``: forecast the errors of a fitted regressor on an unlabelled target, and whether adapting is worth it.

A module imports only from modules to its left: compare, directions, judgement, findings, results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pyspar.core.forecast import Forecast, Forecaster
from pyspar.core.linalg import root_sum_squares
from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.estimators.bayes import BayesSpARRegressor
from pyspar.estimators.pipelines import last_step, output_names
from pyspar.estimators.spar import SpARRegressor
from pyspar.inspection.compare import Comparison, NamedWeights, add_weights, compare_weights
from pyspar.inspection.directions import describe_directions, list_removed_columns
from pyspar.inspection.findings import derive_label_findings, find_leading_columns, list_feature_findings
from pyspar.inspection.judgement import Judgement, write_verdict
from pyspar.inspection.results import Inspection, OutputInspection
from pyspar.inspection.target_rows import compute_group_moments, predict_sample
from pyspar.inspection.unseen_categories import add_unseen, find_unseen

__all__ = ["Inspection", "OutputInspection", "build_inspection", "inspect"]


def inspect(
    estimator: Any,
    Z: Any,
    *,
    groups: Any = None,
    weights: NamedWeights | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> Inspection:
    """Forecast the errors on an unlabelled target, and judge whether adapting to it is worth it.

    Parameters
    ----------
    estimator : fitted SpARRegressor or BayesSpARRegressor, or a Pipeline that ends in one
        It is not changed. The result does not depend on whether it is already adapted.
    Z : anything that ``adapt`` accepts
        For a pipeline, rows that its ``predict`` accepts.
    groups : array of shape (m,), optional
        A label for each row of Z; errors are then also forecast for each group.
    weights : dict of name to (coef, intercept) or to a fitted linear estimator, optional
        Further weights to forecast, for example those of a model in use.
    sample_weight : array of shape (m,), optional
    columns : sequence of str, optional
        The name of each feature. Features with the same name, such as those of a category, are treated as one column.
        For a pipeline, the names of the features that its last step receives.
    outputs : sequence of str, optional
        The name of each label.

    Returns
    -------
    Inspection

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import BayesSpARRegressor, inspect
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(50, 40)), rng.normal(size=(100, 40))
    >>> inspection = inspect(BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=50)), Z)
    >>> inspection.outputs[0].worth
    True
    >>> inspection.outputs[0].findings[0].code
    'SPAR001'
    """
    description, rows, preprocessing = repr(estimator), Z, None
    if isinstance(estimator, Pipeline):
        columns = output_names(estimator) if columns is None else columns
        preprocessing, (estimator, Z) = estimator[:-1], last_step(estimator, Z)
    if not isinstance(estimator, (SpARRegressor, BayesSpARRegressor)):
        raise TypeError(
            "estimator must be a SpARRegressor, a BayesSpARRegressor, or a pipeline that ends in one, got "
            f"{type(estimator).__name__}"
        )
    check_is_fitted(estimator)
    target = estimator._target(Z, sample_weight)
    group_moments = compute_group_moments(estimator, Z, groups, sample_weight)
    features = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(estimator.n_features_in_)])
    n_outputs = estimator.moments_.n_outputs
    labels = ["y"] if n_outputs == 1 else [f"y{k}" for k in range(n_outputs)]
    inspection = build_inspection(
        add_weights(compare_weights(estimator, target), weights),
        Z,
        columns=_check_names("columns", columns, features),
        outputs=_check_names("outputs", outputs, labels),
        description=description,
        groups=group_moments,
    )
    if preprocessing is None:
        return inspection
    return add_unseen(inspection, find_unseen(preprocessing, rows, sample_weight))


@np.errstate(over="ignore", invalid="ignore")  # numbers that exceed float64 are shown as unknown
def build_inspection(
    comparison: Comparison,
    Z: Any,
    *,
    columns: Sequence[str],
    outputs: Sequence[str],
    description: str,
    groups: Mapping[str, Moments] | None = None,
) -> Inspection:
    """Return the inspection of checked input.

    ``Z`` are the rows behind ``comparison.target``, ``description`` is the estimator as text, and ``groups`` holds the
    moments of each group of rows.
    """
    estimator, candidates = comparison.estimator, comparison.candidates
    source, d = estimator._source, len(comparison.units)
    on_target: Forecaster = estimator._forecaster(comparison.target)
    on_source: Forecaster = estimator._forecaster(source.without_outputs())
    on_groups = {name: on_target.on(moments) for name, moments in (groups or {}).items()}
    posterior_mean = on_target.best()[0] * comparison.units[:, None]
    predictions = predict_sample(Z, candidates["OLS"], candidates[comparison.adapted])
    label_std = root_sum_squares(source.root_about(None)[:, d:]) / np.sqrt(source.weight)
    leaders = find_leading_columns(comparison, columns)

    def forecast_all(forecaster: Forecaster, k: int) -> tuple[Forecast, ...]:
        return tuple(forecaster.forecast(name, *pair, k) for name, pair in candidates.items())

    inspected = []
    for k, name in enumerate(outputs):
        forecasts = forecast_all(on_target, k)
        directions = describe_directions(comparison, posterior_mean, columns, k)
        source_rmse = on_source.forecast("source", *candidates["OLS"], k).rmse
        judgement = Judgement({f.name: f for f in forecasts}, source_rmse, comparison.adapted)
        findings = derive_label_findings(judgement, directions, comparison.limits[k], leaders[k])
        inspected.append(
            OutputInspection(
                name=name,
                forecasts=forecasts,
                groups={group: forecast_all(forecaster, k) for group, forecaster in on_groups.items()},
                directions=directions,
                columns=list_removed_columns(comparison, columns, k),
                in_distribution=source_rmse,
                label_mean=float(source.mean[d + k]),
                label_std=float(label_std[k]),
                worth=judgement.is_worthwhile,
                verdict=write_verdict(judgement),
                findings=tuple(replace(finding, output=name) for finding in findings),
                predictions=None if predictions is None else predictions[k],
            )
        )
    label_findings = [finding for output in inspected for finding in output.findings]
    return Inspection(
        n_source=source.weight,
        n_target=comparison.target.weight,
        columns=tuple(dict.fromkeys(columns)),
        estimator=description,
        adapted=comparison.adapted,
        alpha=float(estimator.alpha),
        rank=int(estimator.rank_),
        outside_energy=comparison.adaptation.outside_energy,
        findings=(*label_findings, *list_feature_findings(comparison, columns)),
        outputs=tuple(inspected),
    )


def _check_names(parameter: str, names: Sequence[str] | None, default: Sequence[str]) -> tuple[str, ...]:
    names = default if names is None else names
    if isinstance(names, str) or len(names) != len(default):
        got = repr(names) if isinstance(names, str) else len(names)
        raise InputError(f"{parameter} must be a sequence of {len(default)} names, got {got}")
    return tuple(map(str, names))

"""``inspect``: forecast the errors of a fitted regressor on an unlabelled target, and judge them.

A module imports only from modules to its left: compare, target_rows, directions, labels, judgement, findings, results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pyspar.core.forecast import Forecast, Forecaster
from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.core.roots import root_sum_squares
from pyspar.errors import InputError
from pyspar.estimators.base import refuse_corrected
from pyspar.estimators.bayes import BayesSpARRegressor
from pyspar.estimators.correction import TargetCorrection
from pyspar.estimators.pipelines import InnerRegressor, find_regressor, list_layers, output_names
from pyspar.estimators.spar import SpARRegressor
from pyspar.inspection.compare import Comparison, NamedWeights, add_weights, compare_weights
from pyspar.inspection.directions import describe_directions, list_removed_columns
from pyspar.inspection.findings import (
    Finding,
    derive_label_findings,
    describe_absurd,
    describe_moved,
    find_leading_columns,
    find_moved_columns,
    list_feature_findings,
    sort_by_severity,
)
from pyspar.inspection.judgement import Judgement
from pyspar.inspection.labels import read_target_labels, weigh_evidence
from pyspar.inspection.regressor_inspection import inspect_regressor
from pyspar.inspection.results import Inspection, OutputInspection, describe_output, find_worst_outcome
from pyspar.inspection.target_rows import (
    compute_group_moments,
    find_absurd_rows,
    predict_rows,
    sample_predictions,
)
from pyspar.inspection.unseen_categories import (
    NO_UNSEEN_ROWS,
    UnseenRows,
    count_unseen,
    describe_columns,
    describe_unseen,
    find_unseen,
    is_serious,
)

__all__ = ["Inspection", "OutputInspection", "build_inspection", "describe_gaps", "inspect"]

TargetErrors = Mapping[str, Sequence[SquaredErrors]]
"""For each set of weights, the errors on the labelled target rows, one summary per output."""


def inspect(
    estimator: Any,
    Z: Any,
    *,
    source: tuple[Any, Any] | None = None,
    y: Any = None,
    groups: Any = None,
    target_groups: Any = None,
    weights: NamedWeights | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> Inspection:
    """Forecast the errors on a target whose labels are unknown, or known for some rows, and judge them.

    Parameters
    ----------
    estimator : fitted SpARRegressor or BayesSpARRegressor
        Or a Pipeline, TransformedTargetRegressor or search that contains one. It is not changed. The result does not
        depend on whether it is already adapted. All errors of a TransformedTargetRegressor are in the units of the
        transformed labels; :func:`pyspar.expected_rmse` has the units of y. With ``source``, any fitted regressor.
    Z : anything that ``adapt`` accepts
        For a pipeline, rows that its ``predict`` accepts.
    source : pair (X, y), optional
        The rows and labels that the regressor was fitted on. The error at home is then that of cross-validation with
        clones of the regressor, and adapting is not considered.
    y : array of shape (m,) or (m, K), optional
        Labels of target rows, NaN where unknown. They do not change the forecasts. What they show comes first in the
        result. The labelled rows should be drawn at random from the target.
    groups : array, optional
        With ``source``, the group of each source row: rows of one group are never on both sides of a split. Without
        ``source``, such groups are an argument of ``fit``.
    target_groups : array, optional
        A group for each row of Z; errors are then also forecast for each group. Not available with ``source``.
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
    >>> inspection.outcome, inspection.outputs[0].recommended
    ('no-shift', 'Bayes-SpAR')
    """
    if source is not None:
        if weights is not None or sample_weight is not None:
            raise InputError("weights and sample_weight are not available with source; leave them out")
        if target_groups is not None:
            raise InputError("target_groups are not available with source; inspect the rows of each group separately")
        return inspect_regressor(estimator, Z, source=source, y=y, groups=groups, outputs=outputs)
    if groups is not None:
        raise InputError(
            "groups are the groups of source rows and need source; pass them to fit as groups, or pass the groups of "
            "target rows as target_groups"
        )
    regressor = list_layers(estimator)[-1]
    if not isinstance(regressor, (SpARRegressor, BayesSpARRegressor)):
        raise TypeError(
            "estimator must be a SpARRegressor, a BayesSpARRegressor, or a pipeline that ends in one, got "
            f"{type(regressor).__name__}; {_suggest_instead(regressor)}"
        )
    check_is_fitted(regressor)
    refuse_corrected(regressor, "inspect")
    description, rows = repr(getattr(estimator, "best_estimator_", estimator)), Z
    part = find_regressor(estimator, rows)
    estimator, Z, preprocessing = regressor, part.Z, part.preprocessing
    columns = _shorten_names(output_names(preprocessing)) if columns is None else columns
    if part.transformers and estimator._y_ndim > 1:
        raise TypeError("inspect supports transformed labels with one dimension of y only, got two")
    target = estimator._target(Z, sample_weight)
    group_moments = compute_group_moments(estimator, Z, target_groups, sample_weight)
    features = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(estimator.n_features_in_)])
    comparison = add_weights(compare_weights(estimator, target), weights)
    return build_inspection(
        comparison,
        Z,
        columns=_check_names("columns", columns, features),
        outputs=_check_names("outputs", outputs, _name_labels(estimator, is_transformed=bool(part.transformers))),
        description=description,
        groups=group_moments,
        unseen=NO_UNSEEN_ROWS if preprocessing is None else find_unseen(preprocessing, rows, sample_weight),
        errors=None if y is None else _measure_errors(comparison, part, y, sample_weight),
    )


@np.errstate(over="ignore", invalid="ignore")  # numbers that exceed float64 are shown as unknown
def build_inspection(
    comparison: Comparison,
    Z: Any,
    *,
    columns: Sequence[str],
    outputs: Sequence[str],
    description: str,
    groups: Mapping[str, Moments] | None = None,
    unseen: UnseenRows = NO_UNSEEN_ROWS,
    errors: TargetErrors | None = None,
) -> Inspection:
    """Return the inspection of checked input.

    ``Z`` are the rows behind ``comparison.target``, ``description`` is the estimator as text, ``groups`` holds the
    moments of each group of rows, and ``errors`` those on labelled target rows.
    """
    estimator, candidates = comparison.estimator, comparison.candidates
    source, d = estimator._source, len(comparison.units)
    on_target: Forecaster = estimator._forecaster(comparison.target)
    on_groups = {name: on_target.on(moments) for name, moments in (groups or {}).items()}
    posterior_mean = _correct_centre(estimator, on_target.best()[0]) * comparison.units[:, None]
    used = (comparison.before, comparison.adapted, *comparison.alternatives)
    predicted = {name: predict_rows(Z, candidates[name]) for name in used}
    label_std = root_sum_squares(source.root_about(None)[:, d:]) / np.sqrt(source.weight)
    leaders = find_leading_columns(comparison, columns)
    separation, homes = on_target.separation, np.atleast_1d(estimator.home_rmse()).tolist()
    gap, uncovered = describe_gaps(unseen)

    def forecast_all(forecaster: Forecaster, k: int) -> tuple[Forecast, ...]:
        return tuple(forecaster.forecast(name, *pair, k) for name, pair in candidates.items())

    inspected = []
    for k, name in enumerate(outputs):
        forecasts = forecast_all(on_target, k)
        directions = describe_directions(comparison, posterior_mean, columns, k)
        judgement = Judgement(
            forecasts={f.name: f for f in forecasts},
            home=homes[k],
            before=comparison.before,
            adapted=comparison.adapted,
            alternatives=comparison.alternatives,
            separation=separation,
            n_target=comparison.target.rows,
            outside=comparison.outside,
            gap=gap,
            uncovered=uncovered,
            evidence={
                weights: weigh_evidence(squares[k], homes[k])
                for weights, squares in (errors or {}).items()
                if squares[k].n
            },
        )
        mean, std = float(source.mean[d + k]), float(label_std[k])
        recommended = predicted[judgement.recommended]
        absurd = None
        if recommended is not None:
            absurd = find_absurd_rows(recommended[:, k], _get_label_range(estimator, k), mean, std)
        findings = derive_label_findings(
            judgement,
            directions,
            limit=comparison.limits[k],
            leader=leaders[k],
            absurd=absurd,
            has_rule=comparison.has_rule,
        )
        inspected.append(
            describe_output(
                judgement,
                name=name,
                findings=tuple(replace(finding, output=name) for finding in findings),
                label_mean=mean,
                label_std=std,
                groups={group: forecast_all(forecaster, k) for group, forecaster in on_groups.items()},
                directions=directions,
                columns=list_removed_columns(comparison, columns, k),
                predictions=sample_predictions(predicted[comparison.before], predicted[comparison.adapted], k),
                absurd=absurd,
            )
        )
    label_findings = [finding for output in inspected for finding in output.findings]
    unseen_finding = describe_unseen(unseen)
    feature_findings = [*([unseen_finding] if unseen_finding else []), *list_feature_findings(comparison, columns)]
    return Inspection(
        outcome=find_worst_outcome(output.outcome for output in inspected),
        n_source=source.weight,
        n_target=comparison.target.weight,
        separation=separation,
        columns=tuple(dict.fromkeys(columns)),
        estimator=description,
        before=comparison.before,
        adapted=comparison.adapted,
        alpha=float(estimator.alpha),
        has_rule=comparison.has_rule,
        rank=int(estimator.rank_),
        outside_energy=comparison.outside,
        findings=sort_by_severity([*label_findings, *feature_findings]),
        outputs=tuple(inspected),
    )


def _suggest_instead(regressor: Any) -> str:
    if isinstance(regressor, TargetCorrection):
        return "pyspar.expected_rmse(model, Z) returns the expected error of a corrected model"
    return "pass source=(X, y) for any other regressor"


def _measure_errors(comparison: Comparison, part: InnerRegressor, y: Any, sample_weight: Any) -> TargetErrors:
    """Return the errors of all candidates on the labelled rows. Rows with weight zero are ignored."""
    n_outputs, Z = comparison.estimator.moments_.n_outputs, part.Z
    labels = read_target_labels(y, Z, n_outputs)
    labels = part.from_labels(labels) if part.transformers else labels
    if sample_weight is not None:
        labels = np.where(np.asarray(sample_weight)[:, None] == 0.0, np.nan, labels)
    errors = {}
    for name, weights in comparison.candidates.items():
        predicted = predict_rows(Z, weights)
        if predicted is None:
            return {}
        errors[name] = [SquaredErrors.of(labels[:, k] - predicted[:, k]) for k in range(n_outputs)]
    return errors


def _correct_centre(estimator: Any, coef: Any) -> Any:
    return coef - estimator._fitted_prior.coef if isinstance(estimator, BayesSpARRegressor) else coef


def describe_gaps(unseen: UnseenRows) -> tuple[str, str]:
    """Return why the error is unknown, and a sentence about the rows that the forecast does not cover."""
    if not unseen.rows:
        return "", ""
    count, columns = count_unseen(unseen), describe_columns(unseen.columns)
    gap = f"{count} have categories that do not occur in the source ({columns})" if is_serious(unseen) else ""
    return gap, f"The forecast does not cover {count} with unseen categories ({columns})."


def list_quick_findings(
    estimator: Any, target: Moments, columns: Sequence[str], predictions: Any, name: str
) -> tuple[Finding, ...]:
    """Return the findings that need no directions: columns whose mean moved far, and implausible predictions.

    ``estimator`` is fitted on the source with one label, and ``predictions`` of the model called ``name`` are None if
    the target has no rows in memory.
    """
    source, d = estimator._source, target.n_features
    findings = [describe_moved(moved)] if (moved := find_moved_columns(source, target, columns)) else []
    if predictions is not None and np.isfinite(predictions).all():
        std = float(root_sum_squares(source.root_about(None)[:, d:])[0] / np.sqrt(source.weight))
        absurd = find_absurd_rows(predictions, _get_label_range(estimator, 0), float(source.mean[d]), std)
        findings += [] if absurd is None else [describe_absurd(absurd, name)]
    return sort_by_severity(findings)


def _get_label_range(estimator: Any, output: int) -> tuple[float, float] | None:
    """Return the smallest and the largest source label, or None for an estimator that was fitted on Moments."""
    label_range = getattr(estimator, "label_range_", None)
    return None if label_range is None else (float(label_range[0, output]), float(label_range[1, output]))


def _shorten_names(names: Sequence[str] | None) -> Sequence[str] | None:
    """Return feature names without the names of the transformers (``num__age`` is ``age``), if they stay unique."""
    if names is None:
        return None
    short = [name.partition("__")[2] or name for name in names]
    return short if len(set(short)) == len(short) else names


def _name_labels(estimator: Any, *, is_transformed: bool) -> Sequence[str]:
    if is_transformed:
        return ["transformed y"]
    n_outputs = estimator.moments_.n_outputs
    default = ["y"] if n_outputs == 1 else [f"y{k}" for k in range(n_outputs)]
    return getattr(estimator, "label_names_", default)


def _check_names(parameter: str, names: Sequence[str] | None, default: Sequence[str]) -> tuple[str, ...]:
    names = default if names is None else names
    if isinstance(names, str) or len(names) != len(default):
        got = repr(names) if isinstance(names, str) else len(names)
        raise InputError(f"{parameter} must be a sequence of {len(default)} names, got {got}")
    return tuple(map(str, names))

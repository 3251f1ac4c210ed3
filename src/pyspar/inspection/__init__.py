"""``inspect``: forecast the errors of a fitted regressor on an unlabelled target, and judge them.

A module imports only from modules to its left: compare, target_rows, judgement, findings, results,
any_regressor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.forecast import Forecast
from pyspar.core.mean_square import SquaredErrors
from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.estimators.calibrated_forecasts import Forecaster
from pyspar.estimators.correction import TargetCorrection
from pyspar.estimators.pipelines import InnerRegressor, find_regressor, list_layers, output_names
from pyspar.estimators.target_labels import check_index, forecast_correction
from pyspar.estimators.unseen_categories import NO_UNSEEN_ROWS, UnseenRows, find_unseen
from pyspar.inspection.any_regressor import inspect_regressor
from pyspar.inspection.compare import (
    Comparison,
    Pair,
    compare_weights,
    describe_directions,
    list_removed_columns,
)
from pyspar.inspection.findings import describe_unseen, list_feature_findings
from pyspar.inspection.judgement import Judgement
from pyspar.inspection.results import (
    Inspection,
    OutputInspection,
    describe_output,
    join_outputs,
    name_outputs,
    read_names,
)
from pyspar.inspection.target_rows import (
    compute_group_moments,
    predict_rows,
    read_target_labels,
    summarise_labels,
    weigh_evidence,
)

__all__ = ["Inspection", "OutputInspection", "build_inspection", "inspect"]

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
    y : array of shape (m,) or (m, K), or mapping, optional
        Labels of target rows, NaN where unknown, or ``{row position: label}``. They do not change the forecasts. What
        they show comes first in the result. The labelled rows should be drawn at random from the target.
    groups : array, optional
        With ``source``, the group of each source row: rows of one group are never on both sides of a split. Without
        ``source``, such groups are an argument of ``fit``.
    target_groups : array, optional
        A group for each row of Z; errors are then also forecast for each group. Not available with ``source``.
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
    if hasattr(estimator, "named_modules") and not hasattr(estimator, "get_params"):
        raise TypeError(
            f"estimator must be a regressor with predict, got the network {type(estimator).__name__}; "
            "adapt_head(...).expected_rmse() forecasts the error of a network"
        )
    check_index(Z, y)
    regressor = list_layers(estimator)[-1]
    if isinstance(regressor, TargetCorrection):
        raise TypeError(
            "inspect needs a model without a correction by target labels, got a TargetCorrection; "
            "pyspar.expected_rmse(model, Z) returns its expected error (rmse) and that before the correction "
            "(rmse_uncorrected), and pyspar.inspect(model.model, Z, ...) inspects the model before the correction"
        )
    if source is not None:
        if sample_weight is not None:
            raise InputError("sample_weight is not available with source; leave it out")
        if target_groups is not None:
            raise InputError("target_groups are not available with source; inspect the rows of each group separately")
        return inspect_regressor(estimator, Z, source=source, y=y, groups=groups, outputs=outputs)
    if groups is not None:
        raise InputError(
            "groups are the groups of source rows and need source; pass them to fit as groups, or pass the groups of "
            "target rows as target_groups"
        )
    description, rows = repr(getattr(estimator, "best_estimator_", estimator)), Z
    part = find_regressor(estimator, rows)
    estimator, Z, preprocessing = regressor, part.Z, part.preprocessing
    columns = _shorten_names(output_names(preprocessing)) if columns is None else columns
    if part.transformers and estimator._y_ndim > 1:
        raise TypeError("inspect supports transformed labels with one dimension of y only, got two")
    target = estimator._target(Z, sample_weight)
    group_moments = compute_group_moments(estimator, Z, target_groups, sample_weight)
    features = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(estimator.n_features_in_)])
    labels = ["transformed y"] if part.transformers else getattr(estimator, "label_names_", None)
    comparison = compare_weights(estimator, target, read_names("columns", columns, features))
    return build_inspection(
        comparison,
        Z,
        outputs=name_outputs(outputs, labels, estimator.moments_.n_outputs),
        description=description,
        groups=group_moments,
        unseen=NO_UNSEEN_ROWS if preprocessing is None else find_unseen(preprocessing, rows, sample_weight),
        labels=None if y is None else _read_labels(comparison, part, y, sample_weight),
        is_transformed=bool(part.transformers),
    )


def build_inspection(
    comparison: Comparison,
    Z: Any,
    *,
    outputs: Sequence[str],
    description: str,
    groups: Mapping[str, Moments] | None = None,
    unseen: UnseenRows = NO_UNSEEN_ROWS,
    errors: TargetErrors | None = None,
    labels: Matrix | None = None,
    is_transformed: bool = False,
    is_command: bool = False,
) -> Inspection:
    """Return the inspection of checked input.

    ``Z`` are the rows behind ``comparison.target``, ``description`` is the estimator as text, ``groups`` holds the
    moments of each group of rows, ``labels`` the labels of target rows (m, K), NaN where unknown, and ``errors`` those
    of the candidates on labelled rows, if they are measured already. ``is_transformed`` is whether the labels of the
    estimator are transformed, and ``is_command`` whether the result is that of ``spar inspect``.
    """
    estimator, candidates, target = comparison.estimator, comparison.candidates, comparison.target
    on_target: Forecaster = estimator._model.forecaster(target)
    on_groups = {name: on_target.on(moments) for name, moments in (groups or {}).items()}
    posterior_mean = comparison.prior.correction(on_target.best()[0])
    predicted = {name: predict_rows(Z, weights) for name, weights in candidates.items()}
    known = {name: rows for name, rows in predicted.items() if rows is not None}
    if errors is None and labels is not None and len(known) == len(predicted):
        errors = {name: list(map(SquaredErrors.of, (labels - rows).T.copy())) for name, rows in known.items()}
    inspected = []
    for k, home in enumerate(np.atleast_1d(estimator.source_rmse()).tolist()):
        judgement = Judgement(
            forecasts=_forecast_all(comparison, on_target, k),
            home=home,
            before=comparison.before,
            adapted=comparison.adapted,
            separation=on_target.separation,
            alternatives=comparison.alternatives,
            home_is_of_groups=estimator._folds is not None and estimator._folds.rmse is not None,
            is_transformed=is_transformed,
            is_command=is_command and not isinstance(Z, Moments),
            n_target=target.rows,
            outside=comparison.outside,
            unseen=unseen,
            evidence=weigh_evidence({name: squares[k] for name, squares in (errors or {}).items()}, home, target.rows),
        )
        if labels is not None and not is_transformed:  # TargetCorrection corrects in the unit of y
            judgement = add_correction(judgement, Z, candidates, labels[:, k], k)
        inspected.append(
            describe_output(
                judgement,
                outputs[k],
                summarise_labels(estimator, k),
                {name: None if rows is None else rows[:, k] for name, rows in predicted.items()},
                directions=describe_directions(comparison, posterior_mean, k),
                limit=comparison.ridge.evidence_.limit[k],
                groups={group: _forecast_all(comparison, on_group, k) for group, on_group in on_groups.items()},
                columns=list_removed_columns(comparison, k),
            )
        )
    return join_outputs(
        inspected,
        [*describe_unseen(unseen), *list_feature_findings(comparison)],
        n_source=estimator._source.weight,
        n_target=target.weight,
        columns=tuple(dict.fromkeys(comparison.columns)),
        estimator=description,
        alpha=0.999 if estimator.alpha is None else float(estimator.alpha),
        has_rule=comparison.has_rule,
        rank=int(estimator.rank_),
    )


def _forecast_all(comparison: Comparison, forecaster: Forecaster, output: int) -> tuple[Forecast, ...]:
    return tuple(forecaster.forecast(name, *pair, output) for name, pair in comparison.candidates.items())


def _read_labels(comparison: Comparison, part: InnerRegressor, y: Any, sample_weight: Any) -> Matrix:
    """Return the labels of target rows (m, K), NaN where unknown. Rows with weight zero are ignored."""
    labels = read_target_labels(y, part.Z, comparison.estimator.moments_.n_outputs)
    if part.transformers:
        with np.errstate(invalid="ignore", divide="ignore"):
            transformed = part.from_labels(labels)
        if bad := np.flatnonzero((np.isfinite(labels) & ~np.isfinite(transformed)).any(axis=1)).tolist():
            raise InputError(
                f"y has {len(bad)} labels that cannot be transformed, the first in row {bad[0]} "
                f"({labels[bad[0]].tolist()}); use NaN if they are unknown"
            )
        labels = transformed
    return labels if sample_weight is None else np.where(np.asarray(sample_weight)[:, None] == 0.0, np.nan, labels)


def add_correction(
    judgement: Judgement, Z: Any, candidates: Mapping[str, Pair], labels: Vector, output: int = 0
) -> Judgement:
    """Return a judgement that knows the expected error after a correction, if there are dense rows in memory."""
    name = judgement.recommended
    predicted = None if hasattr(Z, "tocsr") else predict_rows(Z, candidates[name])
    if predicted is None:
        return judgement
    rows = np.asarray(Z, dtype=np.float64)
    return replace(judgement, corrected=forecast_correction(rows, predicted[:, output], labels, name, smooth=False))


def _shorten_names(names: Sequence[str] | None) -> Sequence[str] | None:
    """Return feature names without the names of the transformers (``num__age`` is ``age``), if they stay unique."""
    if names is None:
        return None
    short = [name.partition("__")[2] or name for name in names]
    return short if len(set(short)) == len(short) else names

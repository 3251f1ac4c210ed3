"""``inspect``: forecast and, where labels are known, measure the error of a fitted regressor on a target.

Our own regressors store the moments of their source, so the target may be Moments, a stream or Dask, and the model as
fitted is compared with the adapted one. Any other model needs its source rows. A TargetCorrection forecasts its error.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from pyspar.core.moments import Matrix, Moments, Vector, column_names
from pyspar.core.separation import LEVEL, measure_separation
from pyspar.errors import InputError, collect_warnings
from pyspar.estimators import labels as label_input
from pyspar.estimators.align import AlignedRegressor
from pyspar.estimators.calibration import forecast_from_errors
from pyspar.estimators.correction import TargetCorrection
from pyspar.estimators.cross_validation import left_out_errors
from pyspar.estimators.labels import compute_features, count_rows, fit_features, read_labels, read_predictions
from pyspar.estimators.pipelines import find_regressor, find_unseen, name_regressor, output_names, split_model
from pyspar.estimators.validation import find_missing, is_frame, label_names_of
from pyspar.report.judge import InspectedModel, SourceLabel, Target, judge_correction, judge_output
from pyspar.report.shift_report import ColumnDrift, Finding, OutputReport, Shares, ShiftReport
from pyspar.sources import kind_of, moments_of, refuse_unread_tables

MIN_SHARE = 0.005
MAX_CHANGE = 1e3  # the largest mean shift and change of spread that count in the shares of columns
MIN_INCREASE = 0.01  # columns are responsible for an increase of the squared error of this share, else for the shift
TINY = 1e-300


def inspect(
    model: Any, Z: Any, *, source: tuple[Any, Any] | None = None, y: Any = None, groups: Any = None,
    sample_weight: Any = None, columns: Sequence[str] | None = None, outputs: Sequence[str] | None = None,
) -> ShiftReport:  # fmt: skip
    """Forecast the error of a model on a target, measure it where labels are known, and advise.

    Parameters
    ----------
    model : fitted regressor
        A SpARRegressor, BayesSpARRegressor or TargetCorrection, also in a Pipeline or search; or, with ``source``, any
        object with ``predict``.
    Z : target rows, as for ``predict``; for pyspar's regressors outside a pipeline, anything that ``adapt`` accepts
    source : pair (X, y), optional
        The rows and labels that the model was fitted on. The source RMSE is then that of cross-validation with clones
        of the model. A model that cannot be cloned needs held-out rows.
    y : array of shape (m,) or (m, K), or mapping, optional
        Labels of a random sample of target rows, NaN where unknown, or ``{row position: label}``.
    groups : array, optional
        With ``source``, the group of each source row, which the splits keep together. Else an argument of ``fit``.
    sample_weight : array of shape (m,), optional; equal or zero for rows with labels
    columns, outputs : sequences of str, optional
        The names of the features and of the labels. Features with the same name are one column.

    Examples
    --------
    >>> import numpy as np
    >>> from pyspar import BayesSpARRegressor, inspect
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(50, 40)), rng.normal(size=(100, 40))
    >>> inspect(BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=50)), Z).outcome
    'no-shift'
    """
    if hasattr(model, "named_modules") and not hasattr(model, "get_params"):
        raise TypeError(
            f"model must have predict, got the network {type(model).__name__}; "
            "pyspar.nn.adapt_head(model, source, target).expected_rmse() forecasts its error"
        )
    if hasattr(model, "expected_rmse") and not hasattr(model, "predict"):
        raise TypeError(f"{type(model).__name__} forecasts its own error; call its expected_rmse()")
    if isinstance(model, AlignedRegressor):
        raise InputError(
            "an aligned model predicts only the target, so source rows do not show its error; inspect its .model, or "
            "label target rows for TargetCorrection({'trained': model, 'aligned': aligned})"
        )
    label_input.check_index(Z, y)
    if isinstance(split_model(model)[1], TargetCorrection):
        if source is not None or y is not None:
            raise InputError("a TargetCorrection already uses the target labels; pass the model and Z alone")
        return _inspect_correction(model, Z)
    if source is not None:
        if sample_weight is not None:
            raise InputError("sample_weight is not available with source; leave it out")
        return _inspect_any(model, Z, source, y, groups, columns, outputs)
    if groups is not None:
        raise InputError("groups are those of the source rows and need source; pass them to fit as groups")
    return _inspect_own(model, Z, y, sample_weight, columns, outputs)


def _inspect_own(model: Any, Z: Any, y: Any, sample_weight: Any, columns: Any, outputs: Any) -> ShiftReport:
    """Return the report of a SpARRegressor or BayesSpARRegressor, before and after adapting."""
    estimator, rows, preprocessing = find_regressor(model, Z)
    moments, target = estimator.moments_, estimator._target(rows, sample_weight)
    kind = "moments" if isinstance(rows, Moments) else kind_of(rows)
    features = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(estimator.n_features_in_)])
    if columns is None and (full_names := output_names(preprocessing)) is not None:
        short = [name.partition("__")[2] or name for name in full_names]  # num__age is age
        columns = short if len(set(short)) == len(short) else full_names
    names, D, K = _read_names("columns", columns, features), moments.n_features, moments.n_outputs
    labels = None
    if y is not None:
        if kind not in ("rows", "sparse"):
            raise InputError(f"y needs target rows in memory, got {type(rows).__name__} as Z; pass the rows")
        labels = read_labels(y, count_rows(rows), "inspect", "target y", outputs=K)[0]
        if sample_weight is not None:
            labels = np.where(np.asarray(sample_weight)[:, None] == 0.0, np.nan, labels)
            if np.ptp(np.asarray(sample_weight)[np.isfinite(labels).any(axis=1)]) > 0.0:
                raise InputError("rows with labels must have equal sample_weight; repeat rows instead")
    with collect_warnings():  # the findings report the same problems
        models = estimator._before_adapting(), copy.copy(estimator).adapt(target)
    in_memory = kind in ("rows", "sparse")
    predictions = [np.asarray(one.predict(rows)).reshape(-1, K) if in_memory else None for one in models]
    forecasts = [list(np.atleast_1d(one.expected_rmse(target))) for one in models]
    drift, unseen = measure_column_drift(moments, target, names), find_unseen(preprocessing, Z)
    is_new = all(column.is_constant for column in drift)  # nothing of the target occurs in the source
    outside = 1.0 if is_new else _outside_share(models[1], moments.spread[:D])
    on_target = Target(target.weight, measure_separation(moments, target), drift, outside, unseen)
    reports = []
    for k, name in enumerate(_read_names("outputs", outputs, getattr(estimator, "label_names_", None), K)):
        candidates = [
            InspectedModel(f"{type(one).__name__} {when}", f[k], f[k].model_rmse, None if p is None else p[:, k], one)
            for one, f, p, when in zip(models, forecasts, predictions, ("as fitted", "adapted"), strict=True)
        ]
        source = SourceLabel.of(estimator, k, forecasts[0][k].source_rmse)
        details = describe_increase(*models, moments, names, k)
        if details["increase"] < MIN_INCREASE * source.rmse**2:
            details |= {"responsible": _share_drift(on_target), "responsible_for": "shift"}
        reports.append(judge_output(
            name, candidates, source, on_target, labels=None if labels is None else labels[:, k],
            rows=rows if kind == "rows" and K == 1 else None, new_groups=estimator._group_rmse is not None, **details,
        ))  # fmt: skip
    return _join(type(estimator).__name__, reports, on_target, moments.weight)


def describe_increase(fitted: Any, adapted: Any, source: Moments, names: Sequence[str], k: int) -> dict[str, Any]:
    """Return where the target raises the expected squared error of the fitted model, and what adapting changes.

    The cost of a direction is its variance and what adapting changes. What exceeds the variance without a shift (1 / N
    of the noise) is divided among the columns by their squared displacement in source standard deviations.
    """
    a, D = adapted.adaptation_, adapted.n_features_in_
    units, V, energy = np.asarray(getattr(adapted, "units_", np.ones(D))), a.z.V, np.square(a.z.lam)
    before, after = (V.T @ (np.reshape(one.coef_, (-1, D))[k] * units) for one in (fitted, adapted))
    keeping, removed = a.terms.var[:, k] / a.n_target, a.removed[:, k]
    changed = energy * np.square(before - after) / a.n_target
    shrunk = np.clip(1.0 - np.abs(after) / np.maximum(np.abs(before), TINY), 0.0, 1.0) * (before != 0.0)
    excess = np.maximum(keeping + changed - np.atleast_1d(a.sigma2)[k] / a.n_source, 0.0)
    spread = np.maximum(source.spread[:D], np.maximum(units / MAX_CHANGE, TINY))
    displaced = np.square(V * (units / spread)[:, None])
    columns, shares = _sum_by_column(displaced / np.maximum(displaced.sum(axis=0), TINY), names)
    varies, size = energy > 0.0, float(excess.sum())
    counts = [int(mask.sum()) for mask in (varies, removed & varies, ~removed & varies & (shrunk > 0.5))]
    change = dict(zip(("n_directions", "n_removed", "n_shrunk"), counts), change=math.sqrt(float(changed.sum())))
    blame = shares @ excess / max(size, TINY)
    order = [i for i in np.argsort(-blame, kind="stable") if blame[i] >= MIN_SHARE]
    responsible = tuple((columns[i], float(blame[i])) for i in order)
    return {"increase": size, "responsible": responsible, "responsible_for": "increase", "change": change}


def _outside_share(adapted: Any, spread: Vector) -> float:
    """Return the share of the target's variation outside the span of the source, for any units of the features.

    Features that are constant in the source are not counted; they have their own finding.
    """
    a = adapted.adaptation_
    if hasattr(adapted, "units_"):
        return float(a.outside_energy)
    rows = a.z.lam[:, None] * a.z.V.T
    size = np.maximum(np.sqrt(np.square(rows).sum(axis=0) / a.n_target), spread)
    scale = np.where(spread > 0.0, 1.0 / np.maximum(size, TINY), 0.0)
    basis, rows = np.linalg.qr(a.x.V * scale[:, None])[0], rows * scale
    return float(np.square(rows - (rows @ basis) @ basis.T).sum() / max(np.square(rows).sum(), TINY))


def _inspect_any(model: Any, Z: Any, source: Any, y: Any, groups: Any, columns: Any, outputs: Any) -> ShiftReport:
    """Return the report of any model with ``predict``, given its source rows."""
    label_input.check_model(model)
    if not isinstance(source, (tuple, list)) or len(source) != 2:
        raise InputError(f"source must be a pair (X, y) of rows and labels, got {type(source).__name__}")
    X, source_y = source[0], np.asarray(source[1], dtype=np.float64)
    for rows in (X, Z):
        refuse_unread_tables(rows)
    n, m = count_rows(X), count_rows(Z)
    if source_y.ndim not in (1, 2) or len(source_y) != n or not np.isfinite(source_y).all():
        raise InputError(f"y must have one finite label for each of {n} source rows, got shape {source_y.shape}")
    if m < 1 or n < 10:
        raise InputError(f"at least 10 source rows and one target row are needed, got {n} and {m}")
    own = source_y.reshape(n, -1)
    K, method, predictions = own.shape[1], name_regressor(model), read_predictions(model, Z, m, own.shape[1])
    labels = None if y is None else read_labels(y, m, "inspect", "target y", outputs=K)[0]
    on_target = describe_target(X, Z, columns)
    try:
        can_refit = hasattr(clone(model), "fit")
    except TypeError:  # not an estimator in the sense of scikit-learn
        can_refit = False
    errors = left_out_errors(model, X, source_y, groups) if can_refit else read_predictions(model, X, n, K) - own
    forecasts = forecast_from_errors(errors, own, kind="regressor", separation=on_target.separation, n_target=m)
    reports = []
    for k, name in enumerate(_read_names("outputs", outputs, label_names_of(source[1]), K)):
        low, high, mean, std = (float(of(own[:, k])) for of in (np.min, np.max, np.mean, np.std))
        lowest = float((own + errors)[:, k].min())
        reports.append(judge_output(
            name, [InspectedModel(method, forecasts[k], forecasts[k].source_rmse, predictions[:, k], model)],
            SourceLabel(forecasts[k].source_rmse, mean, std, (low, high), lowest), on_target, can_forecast=False,
            labels=None if labels is None else labels[:, k],
            rows=Z if source_y.ndim == 1 and not hasattr(Z, "tocsr") else None,
            responsible=_share_drift(on_target), responsible_for="shift", new_groups=groups is not None,
        ))  # fmt: skip
    further = [] if can_refit else [Finding("SPAR021", "warning", {"model": method})]
    return _join(method, reports, on_target, n, *further)


def describe_target(X: Any, Z: Any, columns: Any = None) -> Target:
    """Return how target rows differ from source rows.

    Missing numbers are replaced by the source mean, text has a feature per category, and dates are ignored.
    """
    if hasattr(X, "tocsr"):
        moments, target, features = moments_of(X), moments_of(Z), None
        names, unseen, missing = [f"x{j}" for j in range(X.shape[1])], None, {}
    else:
        both = (rows.rename(columns=str) if is_frame(rows) and not column_names(rows) else rows for rows in (X, Z))
        X, Z = (rows if is_frame(rows) else np.asarray(rows) for rows in both)
        encoder = fit_features(None, None, X)
        features = compute_features(encoder, X), compute_features(encoder, Z)
        moments, target = map(Moments.of, features)
        names = list(output_names(encoder) or [f"x{j}" for j in range(target.n_features)])
        unseen, missing = find_unseen(encoder, Z), find_missing(X, Z, names)
        if is_frame(X):  # "numbers__area" is area, and "words__town_Bonn" is town
            known, plain = set(map(str, X.columns)), [name.partition("__")[2] for name in names]
            names = [name if name in known else name.rpartition("_")[0] for name in plain]
    drift = measure_column_drift(moments, target, _read_names("columns", columns, names))
    separation = measure_separation(moments, target, features)
    if missing:
        separation = replace(separation, p_value=min(separation.p_value, LEVEL), found=True, matched=False)
    outside = float(all(column.is_constant for column in drift))
    return Target(target.weight, separation, drift, outside, unseen, missing)


def _inspect_correction(model: Any, Z: Any) -> ShiftReport:
    """Return the report of a TargetCorrection: its own forecast, and that without the correction."""
    correction, rows, _ = find_regressor(model, Z)
    forecasts, drifts = map(np.atleast_1d, (correction.expected_rmse(rows), correction.drift_))
    names, method = _read_names("outputs", None, None, len(forecasts)), name_regressor(correction.model_)
    outputs = [judge_correction(method, *of) for of in zip(names, forecasts, drifts) if of[1] is not None]
    return ShiftReport.of(method, outputs, n_source=math.nan, n_target=count_rows(rows), separation=None)


def _join(model: str, outputs: list[OutputReport], target: Target, n_source: float, *further: Finding) -> ShiftReport:
    is_settled = all(output.confirmed and output.n_labels >= target.n_target for output in outputs)
    findings = [*target.find_problems(is_settled=is_settled), *further]
    about = {"separation": target.separation, "columns": target.drift, "outside": target.outside}
    return ShiftReport.of(model, outputs, findings, n_source=n_source, n_target=target.n_target, **about)


def measure_column_drift(source: Moments, target: Moments, names: Sequence[str]) -> tuple[ColumnDrift, ...]:
    """Return how each column differs, the largest difference first.

    The size of a difference is the Kullback-Leibler divergence of normal features,
    ``(shift**2 + ratio**2 - 1) / 2 - log(ratio)``, summed over the features of a column.
    """
    d = target.n_features
    noise = np.maximum(*(m.rounding()[:d] / np.sqrt(m.weight) for m in (source, target)))
    difference = target.mean[:d] - source.mean[:d]
    spread, own = (np.where(m.spread[:d] > noise, m.spread[:d], 0.0) for m in (source, target))
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(np.abs(difference) > noise, difference / spread, 0.0)
        ratio = np.where((spread > 0.0) | (own > 0.0), own / spread, 1.0)
    bounded, scaled = np.clip(shift, -MAX_CHANGE, MAX_CHANGE), np.clip(ratio, 1.0 / MAX_CHANGE, MAX_CHANGE)
    divergence = (bounded**2 + scaled**2 - 1.0) / 2.0 - np.log(scaled)
    columns, sums = _sum_by_column(divergence[:, None], names)
    largest = {names[j]: j for j in np.argsort(-divergence, kind="stable")[::-1].tolist()}
    order = [(columns[i], largest[columns[i]], sums[i, 0]) for i in np.argsort(-sums[:, 0], kind="stable")]
    total = max(float(sums.sum()), TINY)
    return tuple(ColumnDrift(name, float(shift[j]), float(ratio[j]), float(size / total)) for name, j, size in order)


def _share_drift(target: Target) -> Shares:
    """Return the columns that differ with their shares; none if no shift was found."""
    return tuple((c.name, c.share) for c in target.drift if target.separation.found and c.share >= MIN_SHARE)


def _sum_by_column(shares: Matrix, names: Sequence[str]) -> tuple[tuple[str, ...], Matrix]:
    """Return the distinct columns, and the sums of the rows of ``shares`` of each column.

    >>> _sum_by_column(np.ones((3, 1)), ["a", "b", "a"])[1].ravel()
    array([2., 1.])
    """
    columns = tuple(dict.fromkeys(names))
    place = {name: i for i, name in enumerate(columns)}
    sums = np.zeros((len(columns), shares.shape[1]))
    np.add.at(sums, [place[name] for name in names], shares)
    return columns, sums


def _read_names(parameter: str, names: Sequence[str] | None, default: Any, n_outputs: int = 0) -> tuple[str, ...]:
    """Return names as text, or the default names; refuse another number of names."""
    if n_outputs and (default is None or len(default) != n_outputs):
        default = ["y"] if n_outputs == 1 else [f"y{k}" for k in range(n_outputs)]
    names = default if names is None else names
    if isinstance(names, str) or len(names) != len(default):
        got = repr(names) if isinstance(names, str) else len(names)
        raise InputError(f"{parameter} must be a sequence of {len(default)} names, got {got}")
    return tuple(map(str, names))

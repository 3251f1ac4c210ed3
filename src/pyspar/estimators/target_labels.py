"""Labels of some target rows: read them, fit the drift of a model with them, and report its size and error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_array

from pyspar.core.arrays import Mask, Matrix, Vector
from pyspar.core.concept_shift import ShiftTest, run_shift_test
from pyspar.core.drift import MIN_LABELS, OUTLIER_LEVEL, Drift, find_outlier, fit_drift
from pyspar.core.forecast import Forecast, Interval
from pyspar.errors import collect_warnings, warn
from pyspar.estimators.validation import is_missing, refuse_other_than_rows
from pyspar.sources import refuse_dates, refuse_extreme_weights, refuse_large
from pyspar.wording import format_interval, format_number, list_some


@dataclass(frozen=True)
class DriftPart:
    """The size of one component of a drift.

    Attributes
    ----------
    size : float
    interval : pair of float
        Contains the size with probability 90 % under the averaged model.
    p_value : float
        Of the test that the component is zero. NaN with too few labels.
    """

    size: float
    interval: Interval
    p_value: float


@dataclass(frozen=True)
class TargetDrift:
    """The difference between a model and the labels of a target, for one output.

    Attributes
    ----------
    offset : DriftPart
        The mean of the labels above the predictions, at the mean of the target; in the unit of the label. With a smooth
        function of the features, a part of it can be attributed to that function.
    slope : DriftPart
        The relative change of differences between predictions: 0.2 makes them 20 % larger.
    weights : DriftPart
        The root mean square, over the target, of the function of the features; in the unit of the label. The size is
        the posterior median, which is zero if no such function is more probable than not.
    p_value : float
        Of the test that no component differs from zero: the relation between features and label is the model's.
    n_labels : float
        The number of labelled rows, by their weights.
    """

    offset: DriftPart
    slope: DriftPart
    weights: DriftPart
    p_value: float
    n_labels: float

    def __repr__(self) -> str:
        lines = [f"drift from {self.n_labels:g} labels (changed relation: {_format_p(self.p_value)})"]
        for name in ("offset", "slope", "weights"):
            part: DriftPart = getattr(self, name)
            interval = f"90 %: {format_interval(part.interval, 3)}"
            lines.append(f"  {name:<8}{format_number(part.size, 3):>9}  ({interval}), {_format_p(part.p_value)}")
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class LabelForecast(Forecast):
    """The expected error of a corrected model on its target, for one output.

    The intervals contain the error with probability 80 % and 95 %, if the drift follows the model (linear or smooth).
    The labels may have heavier tails than normal noise. ``variance`` is the uncertainty of the correction, and ``bias``
    is zero.

    Attributes
    ----------
    rmse_uncorrected : float
        The expected error of the model without correction.
    n_labels : float
        The number of labels, by their weights.
    """

    rmse_uncorrected: float = np.nan
    n_labels: float = 0.0


ENOUGH_LABELS = 10
"""With fewer labels, the measured error neither confirms a forecast nor prevents its alarm."""
MAX_FORECAST_LABELS = 100
"""With more labels an inspection does not forecast a correction: it would take longer than all other forecasts."""


def read_labels(y: Any, rows: int, owner: str, name: str = "y", *, outputs: int | None = None) -> tuple[Matrix, int]:
    """Return labels of shape (rows, K), with NaN where unknown, and the dimension of y.

    ``y`` is an array with one entry per row, or a mapping from row positions to labels. ``name`` is that of the
    argument in messages. ``outputs`` is the required number of columns.
    """
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None; use NaN for unknown labels")
    if isinstance(y, Mapping):
        y = _from_mapping(y, rows, name)
    refuse_dates(name, y)
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(np.float64), np.nan)
    if str(getattr(y, "dtype", "")) == "object" and getattr(y, "ndim", 0) == 1:
        y = np.array([np.nan if is_missing(label) else label for label in y], dtype=object)
    y = check_array(
        y, ensure_2d=False, ensure_all_finite="allow-nan", ensure_min_samples=0, dtype=None, input_name=name
    )
    if y.ndim > 2 or y.ndim == 0:
        raise ValueError(f"{name} must have one or two dimensions, got shape {y.shape}")
    try:
        labels = y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must contain numbers, or NaN where a label is unknown ({error})") from None
    if len(labels) != rows:
        others = "if Z has only the labelled rows, pass the others as unlabelled=, or " if name == "y" else ""
        raise ValueError(
            f"{name} must have one entry for each of {rows} rows, NaN where the label is unknown, got {len(labels)}; "
            f"{others}pass {name} as {{row position: label}}"
        )
    if np.isinf(labels).any():
        raise ValueError(f"Input {name} contains infinity or a value too large for dtype('float64').")
    refuse_large(name, labels)
    labels = labels.reshape(rows, -1)
    if outputs is not None and labels.shape[1] != outputs:
        raise ValueError(f"{name} must have one column for each of {outputs} output(s), got {labels.shape[1]}")
    return labels, y.ndim


def check_labelled_rows(Z: Any, y: Any) -> None:
    """Raise TypeError if rows with labels are not dense rows in memory; then as ``check_index``."""
    refuse_other_than_rows("Z", Z, "labels y")
    check_index(Z, y)


def check_index(Z: Any, y: Any) -> None:
    """Raise ValueError if rows and labels have a pandas index and disagree. Warn if keys of y may be index labels.

    The index 0, 1, ... agrees with every other index, unless both have the same labels in another order.
    """
    index: Any = getattr(Z, "index", None)
    own: Any = getattr(y, "index", None)
    if type(index).__module__.partition(".")[0] != "pandas":
        return
    count = import_module("pandas").RangeIndex
    if isinstance(y, Mapping) and y and not index.equals(count(len(index))) and set(y) <= set(index):
        warn(
            "the keys of y are row positions, but all of them are also index labels of Z. If index labels are meant, "
            "pass pd.Series(y).reindex(Z.index).",
        )
    if type(own).__module__.partition(".")[0] != "pandas" or index.equals(own):
        return
    if set(index) != set(own) and any(labels.equals(count(len(labels))) for labels in (index, own)):
        return
    difference = next((f"row {i}: {a!r} and {b!r}" for i, (a, b) in enumerate(zip(index, own)) if a != b), "lengths")
    raise ValueError(
        f"Z and y must have the same index, got different ones ({difference}); pass y.reindex(Z.index) to match them "
        "by index, or y.to_numpy() if they have the same order"
    )


def read_predictions(model: Any, Z: Any, rows: int, outputs: int | None = None) -> Matrix:
    """Return the model's predictions of shape (rows, K)."""
    prediction = np.asarray(model.predict(Z))
    if prediction.dtype.kind not in "biufO":
        raise ValueError(f"model.predict must return numbers, got {prediction.dtype} from {type(model).__name__}")
    prediction = prediction.astype(np.float64)
    if prediction.ndim not in (1, 2) or len(prediction) != rows:
        raise ValueError(f"model.predict must return one prediction for each of {rows} rows, got {prediction.shape}")
    if not np.isfinite(prediction).all():
        raise ValueError(f"model.predict must return finite numbers, got NaN or infinity from {type(model).__name__}")
    refuse_large("the predictions", prediction)
    prediction = prediction.reshape(rows, -1)
    if outputs is not None and prediction.shape[1] != outputs:
        raise ValueError(
            f"y must have one column for each of the model's {prediction.shape[1]} output(s), got {outputs}"
        )
    return prediction


def check_counts(sample_weight: Any, rows: int) -> Vector:
    """Return the weights of rows: finite, not negative, not all zero."""
    refuse_extreme_weights("sample_weight", sample_weight)
    weights = _check_sample_weight(sample_weight, np.empty((rows, 1)), dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight must not be all zero; weights are counts of rows")
    return np.asarray(weights)


def fit_outputs(
    features: Matrix,
    prediction: Matrix,
    labels: Matrix,
    counts: Vector,
    reference: Matrix | None = None,
    roots: list[Matrix] | None = None,
    *,
    smooth: bool = False,
) -> tuple[list[Drift], list[TargetDrift], Mask]:
    """Return the drift and its report for each output, and the rows of which a label was used.

    The arguments have a row for each row of the target, and unknown labels are NaN. ``reference`` are the predictions
    that the test compares with the labels, by default the model's, and ``roots`` their uncertainty relative to the
    noise, one per output (``run_shift_test``). With ``smooth`` the drift may be any smooth function of the features.
    """
    reference = prediction if reference is None else reference
    outputs = [
        _fit_output(features, prediction[:, k], labels[:, k], counts, reference[:, k], root, smooth)
        for k, root in enumerate(roots or [None] * labels.shape[1])
    ]
    drifts, reports, used = zip(*outputs)
    return list(drifts), list(reports), np.logical_or.reduce(used)


def _fit_output(
    features: Matrix,
    prediction: Vector,
    labels: Vector,
    counts: Vector,
    reference: Vector,
    root: Matrix | None,
    smooth: bool,
) -> tuple[Drift, TargetDrift, Mask]:
    known = np.isfinite(labels) & (counts > 0.0)
    if int(known.sum()) > MIN_LABELS:
        known = _drop_outlier(labels, prediction, counts, known)
    n = int(known.sum())
    if n < MIN_LABELS:
        raise ValueError(
            f"Found {n} sample(s) with a label while a minimum of {MIN_LABELS} is required; label more rows "
            "(pyspar.rows_to_label chooses them)"
        )
    if (total := float(counts[known].sum())) < MIN_LABELS:
        raise ValueError(
            f"sample_weight counts the {n} labelled rows as {total:.3g} rows, while a minimum of {MIN_LABELS} is "
            "required; weights are counts of rows, so divide them by their mean if only their ratios matter"
        )
    if (labels == prediction)[known].all():
        warn(f"all {n} labels are equal to the predictions; check whether they were measured")
    if np.ptp(labels[known]) == 0.0:
        value = f"{labels[known][0]:g}; the correction moves the predictions towards this value"
        warn(f"all {n} labels are {value}; check whether it stands for a missing label")
    drift = fit_drift(
        features[known], prediction[known], labels[known], counts=counts[known],
        target_features=features, target_prediction=prediction, target_counts=counts, smooth=smooth,
    )  # fmt: skip
    rows, q = drift.basis.features.units.standardise(features[known], prediction[known])
    root = None if root is None else root[known]
    test = run_shift_test(rows, q, (labels - reference)[known], counts[known], root)
    return drift, _describe(drift, test), known


def forecast_correction(
    features: Matrix, prediction: Vector, labels: Vector, name: str, *, smooth: bool
) -> LabelForecast | None:
    """Return the expected error of a model on its target after a correction with the known labels.

    None if there are too few or more than ``MAX_FORECAST_LABELS`` labels, if all rows have a label, or if all labels
    are equal. A label that is far from all others is not used.
    """
    known, counts = np.isfinite(labels), np.ones(len(labels))
    if known.all() or not known.any() or known.sum() > MAX_FORECAST_LABELS or np.ptp(labels[known]) == 0.0:
        return None
    if int(known.sum()) > MIN_LABELS:
        with collect_warnings():
            known = _drop_outlier(labels, prediction, counts, known)
    if int(known.sum()) < MIN_LABELS or (labels == prediction)[known].all():
        return None
    rows = features[known], prediction[known], labels[known]
    drift = fit_drift(*rows, target_features=features, target_prediction=prediction, smooth=smooth)
    return forecast_error(drift, name)


def forecast_error(drift: Drift, name: str) -> LabelForecast:
    """Return the expected error of the corrected model on the target."""
    draws = drift.draw_mse()
    variance = drift.expected_variance()
    before2 = variance + drift.noise2 + float(drift.mean @ drift.moment @ drift.mean)
    return LabelForecast(
        name=name,
        rmse=float(np.sqrt(variance + drift.noise2)),
        interval80=_root_interval(draws, 0.8),
        interval95=_root_interval(draws, 0.95),
        rmse_noiseless=float(np.sqrt(variance)),
        variance=variance,
        bias=0.0,
        noise=drift.noise2,
        rmse_uncorrected=float(np.sqrt(before2)),
        n_labels=drift.degrees,
    )


def _root_interval(squares: Vector, level: float) -> Interval:
    low, high = np.sqrt(np.quantile(squares, [0.5 - level / 2.0, 0.5 + level / 2.0]))
    return float(low), float(high)


def _drop_outlier(labels: Vector, prediction: Vector, counts: Vector, known: Any) -> Any:
    """Return the mask of known labels without a label that is far from all others, and warn about it."""
    rows = np.flatnonzero(known)
    outlier = find_outlier((labels - prediction)[rows], counts[rows])
    if outlier is None:
        return known
    row = int(rows[outlier])
    warn(
        f"the label {labels[row]:g} of row {row} (prediction {prediction[row]:g}) is ignored: its residual is too far "
        f"from those of the other labels (t-test, p < {OUTLIER_LEVEL:g}). Check the label; if it is correct, the "
        "expected error is too low.",
    )
    return known & (np.arange(len(known)) != row)


def _describe(drift: Drift, test: ShiftTest) -> TargetDrift:
    units = 1.0, drift.basis.features.units.prediction_scale, 1.0
    middles = float(drift.mean[0]), float(drift.mean[1]), float(drift.sizes[2, 1])
    offset, slope, weights = (
        DriftPart(middle * unit, (float(low) * unit, float(high) * unit), p_value)
        for middle, (low, _, high), unit, p_value in zip(
            middles, drift.sizes, units, (test.offset, test.slope, test.weights), strict=True
        )
    )
    return TargetDrift(offset, slope, weights, test.p_value, drift.degrees)


def _from_mapping(y: Mapping[Any, Any], rows: int, name: str) -> Matrix:
    """Return labels by row position as an array."""
    positions = [p for p in y if isinstance(p, (int, np.integer)) and not isinstance(p, bool) and 0 <= p < rows]
    if len(positions) < len(y):
        unknown = [p for p in y if p not in set(positions)]
        raise ValueError(f"{name} must map row positions from 0 to {rows - 1} to labels, got {list_some(unknown)}")
    width = len(np.atleast_1d(next(iter(y.values())))) if y else 1
    several = bool(y) and np.ndim(next(iter(y.values()))) == 1
    labels = np.full((rows, width), np.nan)
    for position, label in y.items():
        if not is_missing(label) and np.prod(np.shape(label), dtype=int) != width:
            raise ValueError(f"{name} must have {width} label(s) per row, got {label!r} for row {position}")
        try:
            labels[position] = np.nan if is_missing(label) else label
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must contain numbers, got {label!r} for row {position} ({error})") from None
    return labels if several else labels[:, 0]


def _format_p(p_value: float) -> str:
    if np.isnan(p_value):
        return "p unknown: too few labels or source rows"
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"

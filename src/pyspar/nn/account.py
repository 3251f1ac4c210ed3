"""Compare the trained, the refitted and the adapted head on the source, and detect results that cannot be meant.

All numbers come from the moments of the features, so no batch is read again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyspar.core.arrays import Mask, Matrix, Vector
from pyspar.core.belief import least_squares
from pyspar.core.moments import Moments
from pyspar.core.roots import root_sum_squares
from pyspar.core.spectrum import rotate_features
from pyspar.errors import InputError, warn
from pyspar.estimators.heads import NewHead
from pyspar.estimators.labels import describe_other_unit
from pyspar.wording import format_number

MIN_CORRELATION = 0.7
"""Labels and predictions with a smaller correlation are not linearly related."""
MAX_ERROR = 1.5
"""The largest error of a trained head on the source, in standard deviations of the labels. The constant mean has 1."""
MAX_SLOPE = 5.0
"""The largest factor between labels and predictions that are linearly related."""
MAX_SOURCE_LOSS = 1.1
"""The largest ratio of the adapted to the trained head's error on the source without a warning."""
CONSTANT_SHARE = 1e-3
"""Predictions that vary by less than this share of the labels' standard deviation are constant."""


@dataclass(frozen=True, eq=False)
class HeadAccount:
    """What a new head changes. Arrays have one number per output.

    Attributes
    ----------
    trained, refitted, adapted : arrays of shape (K,)
        The RMSE on the source rows of the given head, of least squares on these rows, and of the new head. Least
        squares has the smallest error by construction, in particular if the rows are those of the training.
    label_spread : array of shape (K,)
        The standard deviation of the source labels.
    trained_spread, adapted_spread : arrays of shape (K,), or None without a target
        The standard deviation of the predictions on the target, before and after.
    """

    trained: Vector
    refitted: Vector
    adapted: Vector
    label_spread: Vector
    trained_spread: Vector | None
    adapted_spread: Vector | None

    @property
    def is_constant(self) -> Mask:
        """Whether the new head predicts a constant on the target, where the given head does not."""
        if self.adapted_spread is None or self.trained_spread is None:
            return np.zeros(len(self.trained), dtype=bool)
        limit = CONSTANT_SHARE * self.label_spread
        return np.asarray((self.adapted_spread <= limit) & (self.trained_spread > limit))

    @property
    def is_worse(self) -> Mask:
        """Whether the error on the source grew by more than 10 %."""
        return np.asarray(self.adapted > MAX_SOURCE_LOSS * self.trained)

    def warn(self) -> None:
        """Warn of a head that became constant on the target, or worse on the source."""
        for output in np.flatnonzero(self.is_constant | self.is_worse).tolist():
            name = _name_output(output, self.trained)
            if self.is_constant[output]:
                text = (
                    f"the new head predicts a constant on the target{name}: no weight is significant there; "
                    "use the trained model, or pass more source rows"
                )
            else:
                text = (
                    f"the new head has a larger error on the source than the trained one{name}: RMSE "
                    f"{format_number(self.adapted[output])} instead of {format_number(self.trained[output])}; "
                    "use the trained model, or method='bayes' with cutoff=0, which changes it least"
                )
            warn(text)

    def warn_of_correction(self) -> None:
        """Warn of a head that target labels made worse on the source than a constant.

        A larger error on the source is expected if the relation between features and label differs on the target.
        """
        limit = np.maximum(MAX_ERROR * self.label_spread, MAX_SOURCE_LOSS * self.trained)
        for output in np.flatnonzero(self.adapted > limit).tolist():
            warn(
                f"the head corrected with target_labels has an RMSE of {format_number(self.adapted[output])} on the "
                f"source{_name_output(output, self.trained)} (trained head: {format_number(self.trained[output])}, "
                f"standard deviation of the labels: {format_number(self.label_spread[output])}); use it for this "
                "target only, and check that target_labels are on the scale that the model predicts",
            )

    def __str__(self) -> str:
        parts = (("trained", self.trained), ("refitted", self.refitted), ("adapted", self.adapted))
        return "RMSE on the source: " + ", ".join(
            f"{name} {' and '.join(format_number(float(value)) for value in values)}" for name, values in parts
        )


def compare_heads(
    source: Moments, target: Moments | None, trained: tuple[Matrix, Vector], new: NewHead, *, fit_intercept: bool
) -> HeadAccount:
    """Return the account of a trained head, weights (K, D) and biases (K,), and a new one."""
    refit = least_squares(rotate_features(source, new.directions), fit_intercept=fit_intercept)
    return HeadAccount(
        trained=_source_rmse(source, *trained),
        refitted=np.asarray(refit.residual / np.sqrt(source.weight)),
        adapted=_source_rmse(source, new.coef, new.intercept),
        label_spread=source.spread[source.n_features :],
        trained_spread=_prediction_spread(target, trained[0]),
        adapted_spread=_prediction_spread(target, new.coef),
    )


def check_label_scale(source: Moments, coef: Matrix, intercept: Vector) -> None:
    """Raise InputError if the source labels are on another scale than the predictions of the trained head."""
    d, slopes = source.n_features, measure_slopes(source, coef)
    spread, error = source.spread[source.n_features :], _source_rmse(source, coef, intercept)
    for output in np.flatnonzero(spread > 0.0).tolist():
        slope, line = slopes[output], ""
        if error[output] <= MAX_ERROR * spread[output] and not (slope < 1.0 / MAX_SLOPE or slope > MAX_SLOPE):
            continue
        if np.isfinite(slope):
            offset = source.mean[d + output] - slope * (source.mean[:d] @ coef[output] + intercept[output])
            line = f"; the labels are close to {format_number(slope)} * prediction + {format_number(offset)}"
        raise InputError(
            f"the source labels are on another scale than the model's predictions{_name_output(output, spread)}: the "
            f"RMSE of the model on the source is {format_number(error[output])}, and the standard deviation of the "
            f"labels is {format_number(spread[output])}{line}; pass labels=, a function of the batch that returns "
            "labels as the model predicts them, for example standardised, or labels_scale='ignore' if the head was "
            "never trained"
        )


def check_target_label_scale(
    source: Moments, target: Moments, coef: Matrix, intercept: Vector, features: Matrix, labels: Matrix
) -> None:
    """Raise InputError if target labels, NaN where unknown, are in another unit than the predictions of the head."""
    if labels.shape[1] != len(coef):
        return  # the correction reports the shape
    predicted = features @ coef.T + intercept
    scale = np.maximum(source.spread[source.n_features :], np.asarray(_prediction_spread(target, coef)))
    for output in np.flatnonzero(np.isfinite(labels).any(axis=0) & (scale > 0.0)).tolist():
        known = np.isfinite(labels[:, output])
        reason = describe_other_unit(predicted[known, output], labels[known, output], float(scale[output]))
        if reason is not None:
            raise InputError(
                f"target_labels are on another scale than the model's predictions{_name_output(output, scale)}: "
                f"{reason}; pass target_labels as the model predicts them, for example standardised (labels= is not "
                "applied to them), or labels_scale='ignore'"
            )


def measure_slopes(source: Moments, coef: Matrix) -> Vector:
    """Return the slope of each source label on its prediction; NaN if they are not linearly related.

    ``coef`` are weights of shape (K, D).
    """
    centred = source.root_about(None)
    predicted, labels = centred[:, : source.n_features] @ coef.T, centred[:, source.n_features :]
    length, product = root_sum_squares(predicted), (predicted * labels).sum(axis=0)
    related = (product >= MIN_CORRELATION * length * root_sum_squares(labels)) & (product > 0.0)
    return np.asarray(np.where(related, product / np.where(length > 0.0, length, np.inf) ** 2, np.nan))


def _source_rmse(source: Moments, coef: Matrix, intercept: Vector) -> Vector:
    residual = source.subtract_prediction(coef.T, intercept).column_lengths()[source.n_features :]
    return np.asarray(residual / np.sqrt(source.weight))


def _prediction_spread(target: Moments | None, coef: Matrix) -> Vector | None:
    if target is None:
        return None
    centred = target.root_about(None)[:, : target.n_features]
    return np.asarray(root_sum_squares(centred @ coef.T) / np.sqrt(target.weight))


def _name_output(output: int, outputs: Vector) -> str:
    return f" (output {output})" if len(outputs) > 1 else ""

"""TargetCorrection: correct fitted regressors with a few target labels, and average them by a power of their evidence.

A label is the prediction plus a drift plus noise. The drift, offset + slope * prediction + g(features), is fitted for
each candidate and output (``pyspar.core.drift``); docs/label-correction.md has the formulas.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import nan
from typing import Any, Self

import numpy as np
from scipy.stats import t as student
from sklearn.base import BaseEstimator, MetaEstimatorMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from pyspar.core.drift import MIN_KURTOSIS, MIN_LABELS, Array, Drift, fit_drift, weigh_labels
from pyspar.core.forecast import Forecast
from pyspar.core.moments import check_weights, column_names, refuse_masked
from pyspar.errors import InputError, warn
from pyspar.estimators.labels import check_index, compute_features, fit_features, read_labels, read_predictions
from pyspar.estimators.pipelines import name_regressor
from pyspar.estimators.validation import accepts_nan, check_choice, check_level, check_order, is_frame
from pyspar.sources import refuse_unread_tables
from pyspar.text import format_number, format_percent

MIN_WEIGHT = 1e-4  # a warning names a label with less; of right labels, fewer than 1 in 1,000 draws have it
MAX_FACTOR = 5.0  # labels whose spread differs from that of the predictions by more may have another unit
POWER = 2.0 / (MIN_KURTOSIS - 1.0)  # of a candidate's evidence: n squares with these tails vary like 0.4 n normal ones
MIN_SHARE = 1e-3  # a candidate with a smaller posterior weight is left out
MAX_CANDIDATES = 100  # the forecast draws errors of each candidate, and MIN_SHARE must be far below 1 / candidates


@dataclass(frozen=True)
class DriftPart:
    """One component of a drift."""

    size: float
    interval: tuple[float, float]  # of 90 %
    probability: float  # that it is not zero


@dataclass(frozen=True)
class TargetDrift:
    """The difference between a model and the labels of a target, for one output. Sizes are in the unit of the label."""

    probability: float  # posterior, that the relation of features and label differs from the model; the prior is 2/3
    offset: DriftPart  # the mean of the labels above the predictions at the mean of the target
    slope: DriftPart  # the relative change of differences between predictions: 0.2 makes them 20 % larger
    weights: DriftPart  # the root mean square, over the target, of the function of the features
    n_labels: float  # by ``sample_weight``
    label_weights: dict[int, float]  # of rows whose label is too far from the others to count fully

    def __repr__(self) -> str:
        text = f"drift from {self.n_labels:g} labels (relation changed: probability {self.probability:.2f})"
        for name, part in (("offset", self.offset), ("slope", self.slope), ("weights", self.weights)):
            size, low, high = map(format_number, (part.size, *part.interval))
            text += f"\n  {name:<8}{size:>9}  (90 %: {low} to {high}), probability {part.probability:.2f}"
        return text


@dataclass(frozen=True, repr=False)
class LabelForecast(Forecast):
    """The expected error of a corrected model on its target, for one output, if the drift follows its model."""

    variance: float = nan  # the part of the expected squared error from the uncertainty of the correction
    noise: float = nan  # the part from the noise of the labels
    rmse_uncorrected: float = nan
    n_labels: float = 0.0  # by ``sample_weight``


@dataclass(frozen=True)
class Candidate:
    """How well a candidate agrees with the labels. A label far from the others has less weight."""

    rmse: float  # on the labels before the correction; with several outputs, relative to that of the first candidate
    standard_error: float
    weight: float = 1.0  # the share of this candidate, after its correction, in the predictions


class TargetCorrection(MultiOutputMixin, RegressorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Correct a fitted regressor with a few labels of the target: at least 3, and ten or more if possible.

    The residuals of the labelled rows are modelled as the sum of an offset, a slope in the prediction, a smooth
    function of the features, and noise, with sizes averaged by their evidence. If the labels do not indicate a drift,
    the predictions change little. The model itself is not refitted, and no source rows are needed.

    Several candidates can be given, for example the trained model and the same model after an alignment. Each is
    corrected, and the predictions are averaged by their evidence to the power 0.4, because noise may have the tails of
    a Laplace distribution. The prior weight of the first is twice that of any other.

    Parameters
    ----------
    model : fitted regressor, or dict of names and at most 100 fitted regressors
        Any object with ``predict``, or a torch module. ``clone`` does not clone it.
    features : transformer, optional
        Computes the numeric features of the correction from the rows. An unfitted one is fitted on the target rows. By
        default, the features are the inputs of the last step of a Pipeline, and otherwise the columns of the rows
        without dates, with text one-hot encoded and the mean for missing numbers. They are standardised by the target.
    smooth : bool, default True
        If False, the function of the features is linear. A smooth correction is reduced where it is extrapolated.

    Attributes
    ----------
    drift_ : TargetDrift, or a list with one per output if y had two dimensions
        The drift of the candidate with the largest weight. None for an output without labels, which is not corrected. A
        label too far from the others gets a smaller weight (``label_weights``), with a warning if it is below 0.01 %.
    chosen_ : str
        The candidate to use without a correction: the one whose predictions of the target are nearest, in mean square,
        to the corrected average, so that its expected error is the smallest.
    candidates_ : dict of str to Candidate
        ``rmse`` on the labels before the correction with its ``standard_error``, and the ``weight`` in the predictions.
    model_, features_ : the chosen model, and the fitted transformer of its features
    n_labels_ : int, the number of rows with at least one label; rows of weight zero do not count

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from pyspar import TargetCorrection
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
    >>> model = LinearRegression().fit(X, X[:, 0] + 0.1 * rng.normal(size=200))
    >>> truth = Z[:, 0] + 2.0 + 0.1 * rng.normal(size=200)  # the target's labels are larger by 2
    >>> fixed = TargetCorrection(model).fit(Z, {row: truth[row] for row in range(10)})
    >>> bool(np.abs(fixed.predict(Z) - truth)[10:].mean() < 0.2)
    True
    >>> round(fixed.drift_.offset.size), fixed.drift_.probability > 0.99
    (2, True)
    """

    drift_: TargetDrift | list[TargetDrift | None] | None
    candidates_: dict[str, Candidate]
    _parts: dict[str, tuple[Any, Any, list[Drift | None]]]  # model, features and drifts of candidates with a weight
    _between: Array  # the mean over the target of the variance between candidates, per output
    _y_ndim: int

    def __init__(self, model: Any, features: Any = None, smooth: bool = True) -> None:
        self.model = model
        self.features = features
        self.smooth = smooth

    def __sklearn_clone__(self) -> Any:
        """Return an unfitted copy with the same models, which must stay fitted."""
        new = type(self)(self.model, clone(self.features, safe=False), self.smooth)
        if hasattr(self, "_metadata_request"):
            new._metadata_request = self._metadata_request
        return new

    def fit(self, Z: Any, y: Any, sample_weight: Any = None) -> Self:
        """Correct each candidate with the known labels of a target, and compute the weights of the candidates.

        Parameters
        ----------
        Z : array or data frame of shape (m, D)
            All rows of the target, also those without a label.
        y : array of shape (m,) or (m, K), or mapping
            Labels, with NaN where unknown. A mapping has row positions as keys, ``{3: 1.7, 12: 0.4}``, or
            ``{3: [1.7, nan]}`` with several outputs. If Z and y have a pandas index, it must be the same.
        sample_weight : array of shape (m,), optional
            Counts of rows: a weight of 2 is the same as two copies of the row. Weights of which only the ratios matter,
            such as inverse probabilities, must be divided by their mean.
        """
        models = self.model if isinstance(self.model, dict) else {"model": self.model}
        if not 1 <= len(models) <= MAX_CANDIDATES:
            expected = f"model must be a fitted regressor or a dict of 1 to {MAX_CANDIDATES} of them"
            raise InputError(f"{expected}, got {len(models)}; average similar ones, or leave some out")
        check_choice("smooth", self.smooth, (True, False))
        check_index(Z, y)
        new = clone(self)  # compute everything first, so that an error leaves a fitted correction unchanged
        rows, new._column_order = new._read(Z, reset=True), column_names(Z, integers=True)
        labels, new._y_ndim = read_labels(y, len(rows), type(self).__name__)
        counts = np.ones(len(labels)) if sample_weight is None else check_weights(sample_weight, len(labels))
        labels = np.where(counts[:, None] > 0.0, labels, np.nan)
        owner = ("model[{!r}]" if isinstance(self.model, dict) else "{}").format  # in messages
        predictions = {name: read_predictions(one, rows, len(rows), owner=owner(name)) for name, one in models.items()}
        outputs = {name: values.shape[1] for name, values in predictions.items()}
        if set(outputs.values()) != {labels.shape[1]}:
            raise ValueError(f"y must have one column for each output, got {labels.shape[1]} for outputs {outputs}")
        weights = {name: weigh_known(values, labels, counts) for name, values in predictions.items()}
        fits, reports = {}, {}
        for name, model in models.items():
            transformer = fit_features(self.features, model, rows, counts)
            about = compute_features(transformer, rows), predictions[name], labels, counts
            drifts, reports[name] = fit_outputs(*about, self.smooth, weights[name])
            fits[name] = model, transformer, drifts
        evidence = np.array([[drift.log_evidence for drift in fit[2] if drift is not None] for fit in fits.values()])
        exact = np.isinf(evidence)  # the outputs whose labels are all predicted; their number comes first
        log_shares = POWER * np.where(exact, 0.0, evidence).sum(axis=1)
        log_shares += np.log([2.0] + [1.0] * (len(models) - 1))
        log_shares[exact.sum(axis=1) < exact.sum(axis=1).max()] = -np.inf
        shares = np.exp(log_shares - log_shares.max())
        shares[shares < MIN_SHARE * shares.sum()] = 0.0
        weight, best = dict(zip(models, (shares / shares.sum()).tolist())), [*models][int(np.argmax(shares))]
        warn_of_labels(predictions[best], labels, weights[best])
        new.drift_ = reports[best][0] if new._y_ndim == 1 else reports[best]
        candidates, unit = _compare(predictions, labels, counts, weights[best])
        new.candidates_ = {name: replace(one, weight=weight[name]) for name, one in candidates.items()}
        new._parts = {name: fit for name, fit in fits.items() if weight[name] > 0.0}
        new.n_labels_ = int(np.isfinite(labels).any(axis=1).sum())
        corrected, _, between = new._correct(rows, predictions)
        new._between = np.average(between, axis=0, weights=counts)
        distances = {name: float(counts @ np.square(one - corrected) @ unit) for name, one in predictions.items()}
        new.chosen_ = min(distances, key=lambda name: distances[name])
        new.model_, new.features_, _ = fits[new.chosen_]
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(new.__dict__ | self.get_params(deep=False))
        return self

    def predict(self, Z: Any) -> Any:
        """Predict with the corrected model, in the shape (m,), or (m, K) if y had two dimensions."""
        check_is_fitted(self)
        prediction = self._correct(self._read(Z))[0]
        return prediction[:, 0] if self._y_ndim == 1 else prediction

    def predict_interval(self, Z: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Return ``low, high``: an interval for each row that contains its label with a given probability.

        Student's t has the sum of the labels' weights as degrees of freedom. Outputs without labels have NaN.
        """
        check_level(level)
        check_is_fitted(self)
        prediction, scale2, _ = self._correct(self._read(Z))
        drifts = self._parts[max(self._parts, key=lambda name: self.candidates_[name].weight)][2]
        half = np.sqrt(scale2) * [np.nan if drift is None else drift.quantile(level) for drift in drifts]
        low, high = prediction - half, prediction + half
        return (low[:, 0], high[:, 0]) if self._y_ndim == 1 else (low, high)

    def expected_rmse(self, Z: Any = None) -> Any:
        """Return the expected error of the corrected model on target rows, by default those of the fit.

        A :class:`~pyspar.estimators.correction.LabelForecast`; for two-dimensional y a list, None without labels.
        """
        check_is_fitted(self)
        rows = None if Z is None else self._read(Z)
        between = self._between if rows is None else self._correct(rows)[2].mean(axis=0)
        name = "average" if len(self._parts) > 1 else name_regressor(*(part[0] for part in self._parts.values()))
        forecasts: list[LabelForecast | None] = []
        for k in range(len(between)):
            parts = []
            for candidate, (model, transformer, drifts) in self._parts.items():
                if (drift := drifts[k]) is not None:
                    if rows is not None:
                        before = read_predictions(model, rows, len(rows))[:, k]
                        drift = drift.on(compute_features(transformer, rows), before, np.ones(len(rows)))
                    parts.append((self.candidates_[candidate].weight, drift))
            forecasts.append(forecast_corrected(parts, name, float(between[k])) if parts else None)
        return forecasts[0] if self._y_ndim == 1 else forecasts

    def _correct(self, rows: Any, before: Any = None) -> tuple[Array, Array, Array]:
        """Return the average of the corrected candidates, its squared scale, the variance between them, all (m, K)."""
        means, squares = [], []
        for name, (model, transformer, drifts) in self._parts.items():
            features, known = compute_features(transformer, rows), before and before[name]
            mean = read_predictions(model if known is None else known, rows, len(rows), len(drifts)).copy()
            scale = np.full_like(mean, np.nan)
            for k, drift in enumerate(drifts):
                if drift is not None:
                    mean[:, k], scale[:, k] = drift.correct(features, mean[:, k])
            means.append(mean)
            squares.append(np.square(scale))
        shares = [self.candidates_[name].weight for name in self._parts]
        average = np.average(means, axis=0, weights=shares)
        between = np.average(np.square(np.array(means) - average), axis=0, weights=shares)
        return average, np.average(squares, axis=0, weights=shares) + between, between

    def _read(self, Z: Any, *, reset: bool = False) -> Any:
        """Check rows and return them; data frames stay data frames."""
        refuse_unread_tables(Z)
        refuse_masked("Z", Z)
        if is_frame(Z):
            if repeated := [name for name, count in Counter(Z.columns).items() if count > 1]:
                raise ValueError(f"column names must be unique, got {repeated[0]!r} twice; rename the columns")
            validate_data(self, Z, reset=reset, skip_check_array=True)
            check_order(self, Z, "Z")
            return Z
        finite = "allow-nan" if self.__sklearn_tags__().input_tags.allow_nan else True
        return validate_data(self, Z, reset=reset, dtype="numeric", ensure_all_finite=finite, allow_nd=True)  # images

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_parts")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        models = self.model.values() if isinstance(self.model, dict) else [self.model]
        tags.input_tags.allow_nan = all(map(accepts_nan, models))
        return tags


def weigh_known(prediction: Array, labels: Array, counts: Array) -> Array:
    """Check the number of labels, and return their weights (m, K), below 1 if a label is far from the others."""
    weights, is_known = np.zeros_like(labels), np.isfinite(labels)
    for k in np.flatnonzero(is_known.any(axis=0)) if is_known.any() else [0]:
        known = is_known[:, k]
        if (total := float(counts[known].sum())) < MIN_LABELS or known.sum() < MIN_LABELS:
            fix = "pass more rows" if len(known) < MIN_LABELS else "label more rows (pyspar.rows_to_label chooses them)"
            if total < known.sum():
                fix += f". With sample_weight they count as {total:.3g} rows; divide it by its mean for ratios only"
            got = f"Found {known.sum()} sample(s) with a label"
            raise ValueError(f"{got} while a minimum of {MIN_LABELS} is required; {fix}")
        weights[known, k] = weigh_labels((labels - prediction)[known, k], counts[known])
    return weights


def warn_of_labels(prediction: Array, labels: Array, weights: Array, limit: float = MIN_WEIGHT) -> None:
    """Warn of labels that are all equal, equal to the predictions or in another unit, and of a weight below a limit."""
    for k in np.flatnonzero(np.isfinite(labels).any(axis=0)):
        rows = np.flatnonzero(np.isfinite(labels[:, k]))
        y, before, weight = labels[rows, k], prediction[rows, k], weights[rows, k]
        if (y == before).all():
            warn(f"all {len(y)} labels are equal to the predictions; check whether they were measured")
        if np.ptp(y) == 0.0:
            value = f"{y[0]:g}; the correction moves the predictions towards this value"
            warn(f"all {len(y)} labels are {value}; check whether it stands for a missing label")
        if is_in_another_unit(y[weight == 1.0], before[weight == 1.0]):
            factor = f"{np.std(y) / np.std(before):.2g} times as much"
            warn(f"the labels follow the predictions but vary {factor}; check whether both have the same unit")
        if weight[far := int(np.argmin(weight))] < limit:
            warn(
                f"the label {y[far]:g} of row {rows[far]} (prediction {before[far]:g}) is far from the others and "
                f"counts as {format_percent(weight[far])} of a label; check it"
            )


def is_in_another_unit(y: Array, x: Array) -> bool:
    """Test at 1 in 1,000 whether labels y follow predictions x, and whether their spreads differ by ``MAX_FACTOR``."""
    x, y, t = x - x.mean(), y - y.mean(), student.isf(1e-3, len(x) - 2)
    # Pitman's test of two spreads: the sum and the difference of two variables are correlated if one varies more.
    pairs = (x, y), (x - MAX_FACTOR * y, x + MAX_FACTOR * y), (x, y - MAX_FACTOR * x)
    follow, less, more = (a @ b * np.sqrt(len(x) - 2 + t**2) > t * np.sqrt((a @ a) * (b @ b)) for a, b in pairs)
    return bool(follow and (less or more))


def _compare(predictions: Any, labels: Array, counts: Array, weights: Array) -> tuple[dict[str, Candidate], Array]:
    """Return the errors of the candidates on the labels, and the weight of the squares of each output."""
    weights, squared = counts[:, None] * weights, counts[:, None] * np.square(weights)
    total, factor = float(weights.sum()), np.where(weights.any(axis=0), 1.0, 0.0)
    effective = total**2 / float(squared.sum())  # the number of labels
    squares = {name: np.where(weights > 0.0, np.square(labels - values), 0.0) for name, values in predictions.items()}
    if labels.shape[1] > 1:
        first = (weights * next(iter(squares.values()))).sum(axis=0)
        factor = factor * np.where(first > 0.0, weights.sum(axis=0) / np.where(first > 0.0, first, 1.0), 1.0)
    found = {}
    for name, values in squares.items():
        mse = float((weights * values * factor).sum() / total)
        variance = float((squared * np.square(values * factor - mse)).sum()) / total**2
        error = float(np.sqrt(variance * effective / max(effective - 1.0, 1e-300)))
        found[name] = Candidate(float(np.sqrt(mse)), error / (2.0 * float(np.sqrt(mse))) if mse > 0.0 else 0.0)
    return found, factor


def fit_outputs(
    features: Array, prediction: Array, labels: Array, counts: Array, smooth: bool = False, weights: Array | None = None
) -> tuple[list[Drift | None], list[TargetDrift | None]]:
    """Return the drift of each output and its description, None for an output without labels.

    The arguments have a row per row of the target. Unknown labels are NaN. By default, labels are checked and weighed.
    """
    if weights is None:
        weights = weigh_known(prediction, labels, counts)
        warn_of_labels(prediction, labels, weights)
    drifts: list[Drift | None] = [None] * labels.shape[1]
    reports: list[TargetDrift | None] = [None] * labels.shape[1]
    for k, known in enumerate(np.isfinite(labels).T):
        if known.any():
            drifts[k] = drift = fit_drift(
                features[known], prediction[known, k], labels[known, k], counts=counts[known],
                target_features=features, target_prediction=prediction[:, k], target_counts=counts, smooth=smooth,
                label_weights=weights[known, k],
            )  # fmt: skip
            less = np.flatnonzero(known & (weights[:, k] < 1.0)).tolist()
            reports[k] = _describe_drift(drift, {row: float(weights[row, k]) for row in less})
    return drifts, reports


def forecast_corrected(parts: list[tuple[float, Drift]], name: str, between: float = 0.0) -> LabelForecast:
    """Return the expected error of corrected models with their shares, given the variance between them."""
    draws = [mse[: round(share * len(mse))] for share, mse in ((share, drift.draw_mse()) for share, drift in parts)]
    ends = np.sqrt(np.quantile(np.concatenate(draws) + between, [0.025, 0.1, 0.9, 0.975])).tolist()
    variance = sum(share * drift.expected_variance() for share, drift in parts) + between
    noise = sum(share * drift.noise2 for share, drift in parts)
    best = max(parts, key=lambda part: part[0])[1]
    before = best.expected_variance() + best.noise2 + float(best.mean @ best.moment @ best.mean)
    return LabelForecast(
        name, float(np.sqrt(variance + noise)), (ends[1], ends[2]), (ends[0], ends[3]),
        variance=variance, noise=noise, rmse_uncorrected=float(np.sqrt(before)), n_labels=best.n_labels,
    )  # fmt: skip


def _describe_drift(drift: Drift, weights: dict[int, float]) -> TargetDrift:
    """Return sizes, intervals and probabilities of the components. The function has the size of its posterior mean."""
    width = drift.quantile(0.9)
    std = np.sqrt(np.maximum(np.diag(drift.covariance)[:2], 0.0))
    offset, slope = (
        DriftPart(float(m * unit), (float((m - width * s) * unit), float((m + width * s) * unit)), float(p))
        for m, s, unit, p in zip(drift.mean[:2], std, (1.0, drift.coordinates.scale[0]), drift.probability[1:3])
    )
    mean, moment, covariance = drift.mean[2:], drift.moment[2:, 2:], drift.covariance[2:, 2:]
    size2 = float(mean @ moment @ mean)
    spread2 = float(np.einsum("ij,ij->", covariance, moment)) + drift.outside_variance * drift.outside_moment
    ends = np.sqrt(size2) + np.array([-width, width]) * np.sqrt(max(spread2, 0.0))
    function = DriftPart(float(np.sqrt(size2)), (max(float(ends[0]), 0.0), float(ends[1])), float(drift.probability[3]))
    return TargetDrift(float(drift.probability[0]), offset, slope, function, drift.n_labels, weights)

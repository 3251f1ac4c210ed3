"""Correct the linear head of a trained network for an unlabelled target, or replace it as the paper does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import nn

from pyspar.core.adapt import Adaptation
from pyspar.core.moments import Matrix, Moments, Vector
from pyspar.core.regression import least_squares
from pyspar.core.separation import measure_separation
from pyspar.errors import InputError, warn
from pyspar.estimators.calibration import forecast_error, training_p_value
from pyspar.estimators.correction import LabelForecast, TargetDrift, fit_outputs, forecast_corrected, weigh_known
from pyspar.estimators.heads import Changed, HeadMethod, NewHead, check_head_options, new_head_weights
from pyspar.estimators.validation import check_choice
from pyspar.nn.batches import Function, check_loader
from pyspar.nn.features import ErrorSums, TargetRows, open_reader
from pyspar.nn.find_head import check_not_tied, describe_layer
from pyspar.nn.models import copy_model, unwrap
from pyspar.sources import eigen_on_device_of
from pyspar.text import format_number

LabelsScale = Literal["check", "ignore"]
SourceRows = Literal["check", "held-out", "training"]
MAX_ERROR, MAX_SLOPE = 1.5, 5.0  # of labels on the scale of the predictions; the error in their spreads
MAX_MISFIT = 2.0  # of the trained head's error on the source to that of least squares, without a warning
MAX_DISTANCE = 10.0  # target labels are on another scale if their median distance exceeds so many spreads


@dataclass(frozen=True, eq=False)
class SourceFeatures:
    """What :func:`adapt_head` read from a labelled source, for further calls: the moments of features and labels."""

    moments: Moments
    error_roots: tuple[Matrix, ...]
    sample: Matrix  # of rows: inputs of the model, and errors of the trained head in the last columns


@dataclass(frozen=True, eq=False)
class HeadSummary:
    """Errors on the source rows (RMSE), one per output: of the given head, of least squares, and of the new head."""

    trained: Vector
    least_squares: Vector
    adapted: Vector

    def __str__(self) -> str:
        errors = {name: " and ".join(map(format_number, values)) for name, values in vars(self).items()}
        return "RMSE on the source: " + ", ".join(f"{name} {x}" for name, x in errors.items()).replace("_", " ")


@dataclass(frozen=True, eq=False)
class AdaptedHead:
    """A copy of a model with a new head: ``model``. Only the layer ``head_name`` differs from the given model.

    ``changed`` counts the directions along which its weights changed: all that a correction with labels concerns.
    ``adaptation`` has every number of the change before it (None with ``method="ols"``). ``source`` replaces the loader
    for another target. With target labels, ``drift`` is what they show, and ``forecast`` the expected RMSE.
    """

    model: nn.Module
    method: HeadMethod
    changed: Changed
    adaptation: Adaptation | None
    head_name: str
    summary: HeadSummary
    source: SourceFeatures
    target: Moments
    weights: tuple[Matrix, Vector]
    drift: TargetDrift | list[TargetDrift | None] | None = None
    forecast: LabelForecast | list[LabelForecast | None] | None = None
    source_rows: SourceRows = "check"

    def expected_rmse(self) -> Any:
        """Return the expected error of the new model on the target, with intervals; one per output of several.

        With target labels this is ``forecast``. Otherwise it needs source rows that were held out from training, and
        raises InputError if their errors show that they were not.
        """
        if self.forecast is not None:
            return self.forecast
        source, known = self.source.moments, self.source_rows != "check"
        inputs, errors = np.split(self.source.sample, [-source.n_outputs], axis=1)
        p_value = float(self.source_rows == "held-out") if known else training_p_value(inputs, errors)
        if p_value < 0.01:  # the probability for held-out rows with independent errors
            found = "" if known else f", and errors of neighbours that differ as after training (p = {p_value:.1g})"
            raise InputError(
                "the expected RMSE of a network needs source rows that it was not trained on, because its error on "
                f"training rows can be ten times too small, got source_rows={self.source_rows!r}{found}; pass held-out "
                "rows as the source, or source_rows='held-out' if they are"
            )
        separation = measure_separation(source.without_outputs(), self.target)
        # A head that was refitted on these rows fits them better than new ones: generalised cross-validation.
        fitted = np.full(source.n_outputs, source.n_features) if self.adaptation is None else self.adaptation.n_kept
        free = 1.0 - fitted / source.rows * (self.method != "bayes")
        if free.min() <= 0.0:
            got = f"got {source.rows} rows and {source.n_features} features; pass more rows, or use method='bayes'"
            raise InputError(f"the expected RMSE after method={self.method!r} needs more rows than features, {got}")
        forecasts = [
            forecast_error(
                float(rmse), kind="network", separation=separation, label_spread=float(spread),
                n_source=source.rows, n_target=self.target.rows, name=type(self.model).__name__,
            )
            for rmse, spread in zip(self.summary.adapted / free, source.spread[source.n_features :], strict=True)
        ]  # fmt: skip
        return forecasts if len(forecasts) > 1 else forecasts[0]

    def __repr__(self) -> str:
        head = f"{type(self.model).__name__}, head {self.head_name!r}, method {self.method!r}, {self.changed}"
        return f"AdaptedHead({head}; {f'corrected with labels: {self.forecast}' if self.drift else self.summary})"


def adapt_head(
    model: nn.Module, source_loader: Any, target_loader: Any, *, source_model: nn.Module | None = None,
    target_labels: Any = None, output: int | None = None, alpha: float = 0.999, method: HeadMethod = "bayes",
    cutoff: float | None = None, head: str | None = None, inputs: Function = None, labels: Function = None,
    labels_scale: LabelsScale = "check", source_rows: SourceRows = "check", progress: bool | None = None,
) -> AdaptedHead:  # fmt: skip
    """Return a copy of a model whose linear head is adapted to an unlabelled target.

    By default the trained head is corrected along those directions of the target's features where the source labels
    show that it is wrong; without such a direction, the weights stay as they are. The given model is never changed.

    Parameters
    ----------
    model : torch.nn.Module whose prediction is the unmodified output of a ``torch.nn.Linear``
        It is taken out of ``torch.compile``, ``DataParallel`` and ``DistributedDataParallel``.
    source_loader : iterable of labelled batches, or the ``source`` of an earlier result
        It is read once. Pass training rows to adapt a well-trained network. Pass held-out rows, several times as many
        as features, for a forecast or for a network that was trained too long.
    target_loader : iterable of batches; labels in it are ignored
    source_model : torch.nn.Module that reads the source rows: the trained one if ``model`` was aligned with the target
    target_labels : array of shape (m,) or (m, K), or mapping, optional
        Labels of some target rows in the order of ``target_loader``, NaN where unknown, or ``{row position: label}``,
        on the scale that the model predicts. The adapted head is then corrected as by :class:`pyspar.TargetCorrection`.
        ``target_loader`` must yield its rows in the same order each time.
    output : int, optional; the output that the labels belong to. Others, such as a log-variance, are unchanged
    alpha : float in [0, 1], default 0.999
        The confidence at which a direction is corrected ("bayes") or kept ("spar").
    method : {"bayes", "spar", "ols"}, default "bayes"
        "bayes" corrects the trained head. "spar" is the paper's method: least squares on the source, without the
        directions that noise can explain. "ols" is least squares. These two may harm a well-trained network.
    cutoff : float in [0, 1), optional
        Nothing is fitted along directions of the features whose singular value is below this share of the largest. The
        default is ``max(N, D)`` machine epsilons, at most 0.001. With 0, no direction is excluded.
    head : str; the name of the layer, if the model returns the outputs of several linear layers
    inputs, labels : functions of a batch, optional
        Required if batches are not tensors, pairs, or collections with common names. ``inputs`` returns a tensor, or a
        tuple or dict of the model's arguments.
    labels_scale : "check" (default) refuses labels on another scale than the predictions; "ignore" does not check them
    source_rows : {"check", "held-out", "training"}, default "check"
        Whether the network was trained on the source rows. If so, there is no forecast; the weights are the same. With
        "check", a test of the errors decides. It misses one in five networks on tables, and most on images.
    progress : bool; by default, a progress bar is shown on a terminal after two seconds

    Examples
    --------
    >>> import torch
    >>> from pyspar.nn import adapt_head
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    >>> source, target = [(torch.randn(200, 3), torch.randn(200))], [3 * torch.randn(50, 3)]
    >>> adapt_head(model, source, target).head_name
    '2'
    """
    check_head_options(method, alpha=alpha, cutoff=cutoff)
    check_choice("labels_scale", labels_scale, get_args(LabelsScale))
    check_choice("source_rows", source_rows, get_args(SourceRows))
    functions: dict[str, Any] = {"inputs": inputs, "labels": labels}
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function of the batch, got {type(function).__name__}")
    check_loader(target_loader, "target_loader")
    keep = None if target_labels is None else TargetRows(target_labels)
    adapted, source = copy_model(model), source_loader
    if not isinstance(source, SourceFeatures):
        check_loader(source_loader, "source_loader")
        body = adapted if source_model is None else copy_model(source_model, "source_model")
        with open_reader(body, source_loader, "source_loader", head, **functions) as reader:
            trained = _weights_of(reader.layer, _select_outputs(output, reader.layer))
            errors = ErrorSums(*trained, reader.run.eps)
            x = reader.read_moments(source_loader, len(trained[1]), receiver=errors, progress=progress)
        if x.rows < 2:
            raise InputError(f"source_loader must yield at least 2 rows, got {x.rows}; pass more source rows")
        if labels_scale == "check":
            _check_label_scale(x, *trained)
        source = SourceFeatures(x, errors.roots(), errors.sample.select()[0].double().numpy())
        head = reader.head
    x = source.moments
    with open_reader(adapted, target_loader, "target_loader", head, **functions) as reader:
        z = reader.read_moments(target_loader, receiver=keep, progress=progress)
        if keep is not None:
            reader.check_order(target_loader, keep.first)
    check_not_tied(unwrap(model), reader.head)
    layer, outputs = reader.layer, _select_outputs(output, reader.layer)
    coef, bias = _weights_of(layer, outputs)
    if (x.n_features, x.n_outputs) != (coef.shape[1], len(coef)):
        got = f"the source has {x.n_features} features and {x.n_outputs} outputs, but the head of the model has "
        raise InputError(f"{got}{coef.shape[1]} and {len(coef)}; pass a source_model of the same architecture")
    new = new_head_weights(
        x, z, coef, None if layer.bias is None else bias, method, alpha=alpha, cutoff=cutoff,
        error_roots=source.error_roots, eigen=eigen_on_device_of(layer.weight),
    )  # fmt: skip
    drift = forecast = None
    if keep is not None:
        new, drift, forecast = _correct(new, keep.select(len(outputs)), x, check=labels_scale == "check")
    best = np.asarray(least_squares(x, fit_intercept=layer.bias is not None).residual / np.sqrt(x.weight))
    summary = HeadSummary(_source_rmse(x, coef, bias), best, _source_rmse(x, new.coef, new.intercept))
    if method == "bayes" and labels_scale == "check" and x.rows > 5 * x.n_features:
        _warn_of_body(summary)
    _write_weights(new, layer, reader.head, outputs)
    return AdaptedHead(
        model=adapted, method=method, changed=new.changed, adaptation=new.adaptation, head_name=reader.head,
        summary=summary, source=source, target=z, weights=(new.coef, new.intercept), drift=drift, forecast=forecast,
        source_rows=source_rows,
    )  # fmt: skip


def _select_outputs(output: int | None, layer: nn.Linear) -> tuple[int, ...]:
    if output is None:
        return tuple(range(layer.out_features))
    if isinstance(output, bool) or not isinstance(output, int) or not 0 <= output < layer.out_features:
        raise ValueError(f"output must be one of 0 to {layer.out_features - 1}, got {output!r}")
    return (output,)


def _weights_of(layer: nn.Linear, outputs: tuple[int, ...]) -> tuple[Matrix, Vector]:
    """Return weights (K, D) and biases (K,) in float64; zeros for a layer without bias."""
    bias = layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias
    coef, intercept = (part.detach().to("cpu", torch.float64).numpy()[list(outputs)] for part in (layer.weight, bias))
    return coef, intercept


def _correct(
    new: NewHead, rows: tuple[Matrix, Matrix, Vector], source: Moments, *, check: bool
) -> tuple[NewHead, Any, Any]:
    """Return a head that is corrected with target labels, what they show, and the expected errors."""
    features, labels, counts = rows
    predicted = features @ new.coef.T + new.intercept
    spread = source.spread[source.n_features :]
    for k in np.flatnonzero(np.isfinite(labels).any(axis=0)).tolist() if check else []:
        distances = np.abs(labels[:, k] - predicted[:, k])
        if np.median(distances[np.isfinite(distances)]) > MAX_DISTANCE * max(spread[k], np.std(predicted[:, k])):
            raise InputError(
                "target_labels are on another scale than the model's predictions: their median distance"
                f"{_name_output(k, spread)} is {np.nanmedian(distances):.3g}, and the source labels have the standard "
                f"deviation {spread[k]:.3g}; pass them as the model predicts them, or labels_scale='ignore'"
            )
    weights = None if check else weigh_known(predicted, labels, counts)  # and without warnings of the labels
    drifts, reports = fit_outputs(features, predicted, labels, counts, weights=weights)
    coef, intercept = new.coef.copy(), new.intercept.copy()
    for k, drift in enumerate(drifts):
        if drift is not None:
            coef[k], intercept[k] = drift.linear_weights(coef[k], float(intercept[k]))
    forecasts = [drift and forecast_corrected([(1.0, drift)], "the corrected head") for drift in drifts]
    several, total = len(coef) > 1, new.changed.total
    moved = int((coef != new.coef).any(axis=1).sum()) * total // len(coef)
    corrected = replace(new, coef=coef, intercept=intercept, changed=Changed(max(new.changed.directions, moved), total))
    return corrected, reports if several else reports[0], forecasts if several else forecasts[0]


def _warn_of_body(summary: HeadSummary) -> None:
    """Warn of a body that does not fit the source."""
    for k, (trained, best) in enumerate(zip(summary.trained, summary.least_squares, strict=True)):
        if trained > MAX_MISFIT * best:
            warn(
                f"the body of the model does not fit the source{_name_output(k, summary.trained)}: the RMSE of its "
                f"head is {format_number(trained)} there, and that of least squares is {format_number(best)}; "
                "if the model was aligned with the target, pass the trained one as source_model="
            )


def _check_label_scale(source: Moments, coef: Matrix, intercept: Vector) -> None:
    """Raise InputError if the source labels are on another scale than the predictions of the trained head."""
    d, error = source.n_features, _source_rmse(source, coef, intercept)
    centred = source.root_about(None)
    for k, spread in enumerate(source.spread[d:]):
        predicted, labels = centred[:, :d] @ coef[k], centred[:, d + k]
        product, square = predicted @ labels, predicted @ predicted
        is_line = product > 0.7 * np.sqrt(square * (labels @ labels))  # the correlation is above 0.7
        slope = product / square if is_line else 1.0
        if spread > 0.0 and (error[k] > MAX_ERROR * spread or not 1.0 / MAX_SLOPE <= slope <= MAX_SLOPE):
            raise InputError(
                f"the source labels are on another scale than the model's predictions{_name_output(k, error)}: the "
                f"RMSE of the model is {format_number(error[k])}, and the labels have the standard deviation "
                f"{format_number(spread)}; pass labels=, a function that returns labels as the model predicts them, "
                "source_model= for a model aligned with the target, or labels_scale='ignore' for an untrained head"
            )


def _source_rmse(source: Moments, coef: Matrix, intercept: Vector) -> Vector:
    residual = source.subtract_prediction(coef.T, intercept).column_lengths()[source.n_features :]
    return np.asarray(residual / np.sqrt(source.weight))


def _name_output(output: int, outputs: Vector) -> str:
    return f" (output {output})" if len(outputs) > 1 else ""


def _write_weights(new: NewHead, layer: nn.Linear, name: str, outputs: tuple[int, ...]) -> None:
    """Write weights into a layer, in its dtype and on its device. A layer without bias gets one if it is needed."""
    weight, bias = (torch.as_tensor(part).to(layer.weight) for part in (new.coef, new.intercept))
    if not bool(torch.isfinite(weight).all() and torch.isfinite(bias).all()):
        raise InputError(f"the new weights of {describe_layer(name)} overflow {layer.weight.dtype}; use a wider dtype")
    if layer.bias is None and bias.any():
        layer.bias = nn.Parameter(layer.weight.new_zeros(layer.out_features), layer.weight.requires_grad)
    with torch.no_grad():
        layer.weight[list(outputs)] = weight
        if layer.bias is not None:
            layer.bias[list(outputs)] = bias

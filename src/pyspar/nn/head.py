"""Correct the linear head of a trained network for an unlabelled target, or replace it as the paper does.

The features are the inputs of the head. A hook reads them in one pass over each loader and adds them to Moments.
``pyspar.estimators.heads`` computes the new weights from the Moments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import length_hint
from typing import Any, Literal, cast, get_args

import numpy as np
import torch
from torch import Tensor, nn

from pyspar.core.adapt import Adaptation
from pyspar.core.arrays import Matrix, Vector
from pyspar.core.belief import Noise
from pyspar.core.forecast import Forecast
from pyspar.errors import InputError
from pyspar.estimators.correction import LabelForecast, TargetDrift
from pyspar.estimators.heads import Changed, HeadMethod, check_head_options, correct_head, new_head_weights
from pyspar.estimators.spar import BayesSpARRegressor, SpARRegressor
from pyspar.estimators.validation import check_choice
from pyspar.nn.account import HeadAccount, check_label_scale, check_target_label_scale, compare_heads
from pyspar.nn.batches import BatchReader, Function, check_loader, read_first_batch
from pyspar.nn.features import ErrorSums, FeatureReader, TargetRows, check_order
from pyspar.nn.find_head import check_not_tied, describe_layer, find_head
from pyspar.nn.models import check_network, copy_model, prepare_runner, unwrap
from pyspar.sources import eigen_on_device_of
from pyspar.terminal import show_progress
from pyspar.wording import format_number

LabelsScale = Literal["check", "ignore"]


@dataclass(frozen=True, eq=False)
class AdaptedHead:
    """A copy of a model with a new head, and the numbers behind it.

    Attributes
    ----------
    model : torch.nn.Module
        The copy. Only the head differs from the given model. If no direction was changed, the head is also the same.
    method : {"bayes", "spar", "ols"}
    changed : Changed
        The number of directions along which the head's weights changed without target labels, and the total number.
        Prints as "3 of 64 directions changed".
    adaptation : Adaptation or None
        Every number of the adaptation; None with ``method="ols"``.
    head_name : str
        The name of the layer.
    estimator : BayesSpARRegressor or SpARRegressor
        The regressor on the head's inputs whose weights the head has without target labels.
    account : HeadAccount
        The errors of the given head, of least squares and of the new head on the source rows, and how much their
        predictions vary on the target. ``account.is_constant`` and ``account.is_worse`` mark outputs of which a warning
        was issued. After a correction with target labels a larger error on the source is expected.
    drift : TargetDrift, a list with one per output of several, or None without target labels
        What the labels show: offset, slope and weights, each with an interval and a test.
    forecast : LabelForecast, a list with one per output of several, or None without target labels
        The expected RMSE of the new model on the target, with intervals; ``forecast.rmse_uncorrected`` is that without
        the correction.
    """

    model: nn.Module
    method: HeadMethod
    changed: Changed
    adaptation: Adaptation | None
    head_name: str
    estimator: BayesSpARRegressor | SpARRegressor
    account: HeadAccount
    drift: TargetDrift | list[TargetDrift] | None = None
    forecast: LabelForecast | list[LabelForecast] | None = None

    def expected_rmse(self) -> Forecast | list[Forecast]:
        """Return the expected error of the new model on the target, with intervals; one per output of several.

        With target labels this is ``forecast``. Otherwise it is the forecast of
        :meth:`pyspar.BayesSpARRegressor.expected_rmse` for the features. It assumes that the source rows were not used
        for training: on training rows the noise is underestimated, and the forecast is too small.
        """
        if self.forecast is not None:
            return cast("Forecast | list[Forecast]", self.forecast)
        target = getattr(self.estimator, "_adapted_to", None)
        if target is None:  # "ols" has no target, and a file does not keep the target
            raise InputError(
                "the expected RMSE needs a target, got none; use method='bayes' or 'spar', and call expected_rmse() "
                "before the result is saved"
            )
        return self.estimator.expected_rmse(target)

    def write_to(self, model: nn.Module) -> None:
        """Write the new head into a model in place, such as the model that was given to :func:`adapt_head`.

        Parameters
        ----------
        model : torch.nn.Module
            A model with a linear layer of the same name and shape. Its dtype and device do not change.
        """
        head = cast(nn.Linear, self.model.get_submodule(self.head_name))
        check_network(model)
        layer = dict(unwrap(model).named_modules()).get(self.head_name)
        if not isinstance(layer, nn.Linear) or layer.weight.shape != head.weight.shape:
            got = "no such layer" if layer is None else repr(layer)
            raise InputError(
                f"{type(model).__name__} must have a linear layer {self.head_name!r} with weights of shape "
                f"{tuple(head.weight.shape)}, got {got}; pass the model that was given to adapt_head, or a copy of it"
            )
        bias = np.zeros(len(head.weight)) if head.bias is None else _as_float64(head.bias)
        write_weights(_as_float64(head.weight), bias, layer, self.head_name)

    def __repr__(self) -> str:
        result = str(self.changed)
        factors = [format_number(float(factor)) for factor in np.atleast_1d(getattr(self.adaptation, "scale", 1.0))]
        if set(factors) != {"1"}:
            result += f", scaled by {' and '.join(factors)}"
        if self.forecast is not None:
            both = self.forecast if isinstance(self.forecast, list) else [self.forecast]
            forecasts = [forecast for forecast in both if forecast is not None]
            errors = " and ".join(format_number(forecast.rmse) for forecast in forecasts)
            result += f" without target labels; then corrected with {forecasts[0].n_labels:g} target labels, "
            result += f"expected RMSE on the target {errors}"
        elif not self.changed.directions:
            result += ": the model is unchanged"
        model = type(self.model).__name__
        return f"AdaptedHead({model}, head {self.head_name!r}, method {self.method!r}, {result}; {self.account})"


def adapt_head(
    model: nn.Module,
    source_loader: Any,
    target_loader: Any = None,
    *,
    target_labels: Any = None,
    alpha: float = 0.999,
    method: HeadMethod = "bayes",
    noise: Noise = "mle",
    cutoff: float | None = None,
    head: str | None = None,
    inputs: Function = None,
    labels: Function = None,
    mask: Function = None,
    sample_weight: Function = None,
    labels_scale: LabelsScale = "check",
    autocast: torch.dtype | None = None,
    progress: bool | None = None,
) -> AdaptedHead:
    """Return a copy of a model whose linear head is adapted to an unlabelled target.

    The given model is not changed. By default the trained head is corrected along those directions of the target's
    features where the source labels show that it is wrong. A change that has a larger effect on the target than on the
    source is scaled down. If no direction is corrected, the returned model is identical to the given one.

    Parameters
    ----------
    model : torch.nn.Module
        Its prediction must be the unmodified output of a ``torch.nn.Linear``. Models inside ``torch.compile``,
        ``DataParallel`` or ``DistributedDataParallel`` are unwrapped; the copy is the plain module.
    source_loader : iterable of labelled batches
        A ``DataLoader`` or any iterable. It is read once, with the model in evaluation mode. Features are not stored.
        Pass the training rows to repair a well-trained network. In benchmarks, rows that were held out from training
        changed the head less often. Pass held-out rows, several times as many as features, for a forecast of the error
        or for a network that was trained too long: the model fits its training rows better than new ones, so they show
        less noise than there is.
    target_loader : iterable of batches
        Labels in it are ignored. Not needed with ``method="ols"``, unless there are ``target_labels``.
    target_labels : array of shape (m,) or (m, K), or mapping, optional
        Labels of some target rows in the order of ``target_loader``, with NaN where unknown, or as ``{row position:
        label}``. They must be on the scale that the model predicts; ``labels`` is not applied to them. The head is
        adapted without labels first, and then corrected as by :class:`pyspar.TargetCorrection` with ``smooth=False``,
        on the head's inputs. A head without bias gets one. ``target_loader`` must not shuffle, and the head
        must have one input row per label.
    alpha : float in [0, 1], default 0.999
        The confidence at which a direction is corrected ("bayes") or kept ("spar").
    method : {"bayes", "spar", "ols"}, default "bayes"
        "bayes" is :func:`pyspar.core.refit.refit_head`: a ridge posterior centred at the trained head, whose correction
        is refitted along the directions where it is significant. Its test also uses the error of the trained head in
        each row, so it does not assume that all rows have the same noise. This requires memory for ``K * D**2``
        numbers, for K outputs and D features. The change includes the removal of the trained weights along directions
        below ``cutoff``. "spar" is the paper's method: it replaces the head by least squares on the source and removes
        the directions that noise can explain. A bias is refitted. "ols" only refits by least squares. "spar" and "ols"
        may harm a well-trained network.
    noise : {"mle", "unbiased", "exact"}, default "mle"
        As for :class:`pyspar.SpARRegressor`; for "spar" and "ols" only.
    cutoff : float in [0, 1), optional
        Directions of the features whose singular value is below this share of the largest are not fitted. The default
        is ``max(N, D)`` machine epsilons, at most 0.001. 0 excludes only directions within the rounding of the
        features.
    head : str, optional
        The name of the layer, if the model returns the outputs of several linear layers.
    inputs, labels : functions of a batch, optional
        Required if batches are not tensors, pairs, or collections with common names. ``inputs`` returns a tensor, a
        tuple (the model's positional arguments) or a dict (its named arguments).
    mask, sample_weight : functions of a batch, optional
        For a head on sequences: which tokens count, and with which weight. ``mask`` returns booleans (or 0 and 1), and
        ``sample_weight`` weights, one for each row of the head's input, for batches of both loaders. None excludes
        nothing. A weight of 2 equals two copies of the row.
    labels_scale : {"check", "ignore"}, default "check"
        "check" refuses source labels on another scale than the predictions: the model's error on the source exceeds 1.5
        standard deviations of the labels, or labels and predictions are linearly related by a factor above 5 or below
        0.2. It also refuses target labels whose median distance from the predictions exceeds 5 standard deviations of
        the source labels and of the predictions, and warns if the slope of at least ten target labels on the
        predictions, relative to that of the source labels, is outside 2/3 to 3/2 by more than three standard errors.
        "ignore" accepts all of them, for example for an untrained head.
    autocast : torch.bfloat16 or torch.float16, optional
        Run the model in mixed precision. The features then have that precision.
    progress : bool, optional
        Show progress: bars on a terminal if rich is installed, otherwise lines on stderr. By default, only bars
        are shown, after two seconds.

    Returns
    -------
    AdaptedHead

    Warns
    -----
    SparWarning
        If the new head predicts a constant on the target, or if its error on the source is more than 10 % larger than
        that of the given head. After a correction with target labels, if its error on the source also exceeds 1.5
        standard deviations of the source labels.

    Notes
    -----
    The function may run in several threads at the same time. It draws no random numbers. A loader that shuffles draws
    from torch's generator as in any other loop, and the state of that generator is not restored.

    Examples
    --------
    >>> import torch
    >>> from pyspar.nn import adapt_head
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    >>> source = [(torch.randn(50, 3), torch.randn(50)) for _ in range(4)]
    >>> target = [3 * torch.randn(50, 3) for _ in range(2)]
    >>> adapted = adapt_head(model, source, target)
    >>> adapted.head_name, adapted.model(target[0]).shape
    ('2', torch.Size([50, 1]))
    """
    check_network(model)
    functions = {"inputs": inputs, "labels": labels, "mask": mask, "sample_weight": sample_weight}
    numbers: Any = {"alpha": alpha, "noise": noise, "cutoff": cutoff}
    check_options(
        {"target_labels": target_labels, "method": method, "head": head, "labels_scale": labels_scale,
         "autocast": autocast, "progress": progress, **numbers, **functions}
    )  # fmt: skip
    uses_target = method != "ols" or target_labels is not None
    _check_loaders(source_loader, target_loader, uses_target)
    keep = None
    if target_labels is not None:
        check_order(target_loader)
        keep = TargetRows(target_labels)
    original = unwrap(model)
    adapted = copy_model(original)
    reader = BatchReader.of(adapted, **functions)
    with prepare_runner(adapted, autocast) as run, show_progress(progress) as reporter:
        first, batches = read_first_batch(source_loader, "source_loader")
        where = "batch 0 of source_loader"
        name = find_head(run, reader.read_arguments(first, where), head, where)
        check_not_tied(original, name)
        features = FeatureReader(run, name, reader, reporter)
        allow_padding = labels_scale == "ignore"
        layer = cast(nn.Linear, adapted.get_submodule(name))
        errors = ErrorSums(layer, run.eps) if method == "bayes" else None
        x, ndim = features.read(
            batches, "source", length_hint(source_loader), allow_padding=allow_padding, errors=errors
        )
        if x.rows < 2:
            raise InputError(f"source_loader must yield at least 2 rows, got {x.rows}; pass more source rows")
        coef, bias = _as_float64(layer.weight), None if layer.bias is None else _as_float64(layer.bias)
        trained = coef, np.zeros(len(coef)) if bias is None else bias
        if labels_scale == "check":
            check_label_scale(x, *trained)
        if keep is not None and ndim != 2:
            raise InputError(
                f"target_labels requires a head with one input row per label, got inputs with {ndim} dimensions; pool "
                "the features before the head"
            )
        z = None
        if uses_target:
            total = length_hint(target_loader)
            z, _ = features.read(iter(target_loader), "target", total, ndim=ndim, keep=keep)
    selected = None if keep is None else keep.select()
    if selected is not None and z is not None and labels_scale == "check":
        check_target_label_scale(x, z, *trained, *selected[:2])
    numbers |= {"error_roots": () if errors is None else errors.roots(), "eigen": eigen_on_device_of(layer.weight)}
    new = new_head_weights(x, None if method == "ols" else z, coef, bias, method, **numbers)
    account = compare_heads(x, z, trained, new, fit_intercept=bias is not None)
    account.warn()
    if selected is not None:
        new = correct_head(new, *selected)
        account = compare_heads(x, z, trained, new, fit_intercept=bias is not None)
        account.warn_of_correction()
    write_weights(new.coef, new.intercept, layer, name)
    adaptation = getattr(new.estimator, "adaptation_", None)
    several = len(new.coef) > 1
    drift: Any = (list(new.drifts) if several else new.drifts[0]) if new.drifts else None
    forecast: Any = (list(new.forecasts) if several else new.forecasts[0]) if new.forecasts else None
    return AdaptedHead(adapted, method, new.changed, adaptation, name, new.estimator, account, drift, forecast)


def check_options(options: Mapping[str, Any]) -> None:
    """Raise ValueError or TypeError if one of all options of :func:`adapt_head` is invalid, before anything is read."""
    check_head_options(options["method"], **{name: options[name] for name in ("alpha", "noise", "cutoff")})
    check_choice("labels_scale", options["labels_scale"], get_args(LabelsScale))
    if options["progress"] not in (None, True, False):
        raise TypeError(f"progress must be True, False or None, got {options['progress']!r}")
    if options["autocast"] not in (None, torch.bfloat16, torch.float16):
        raise TypeError(f"autocast must be torch.bfloat16, torch.float16 or None, got {options['autocast']!r}")
    if not isinstance(options["head"], str | None):
        raise TypeError(f"head must be the name of a layer, such as 'fc', got {type(options['head']).__name__}")
    for name in ("inputs", "labels", "mask", "sample_weight"):
        if options[name] is not None and not callable(options[name]):
            raise TypeError(f"{name} must be a function of the batch, got {type(options[name]).__name__}")
    if options["target_labels"] is not None:
        TargetRows(options["target_labels"])  # refuses what are no labels
        if options["mask"] is not None or options["sample_weight"] is not None:
            raise InputError("target_labels cannot be combined with mask or sample_weight; pass one or the other")


def _as_float64(parameter: Tensor) -> Matrix:
    return parameter.detach().to("cpu", torch.float64).numpy().copy()


def _check_loaders(source_loader: Any, target_loader: Any, uses_target: bool) -> None:
    check_loader(source_loader, "source_loader")
    if not uses_target:
        return
    if target_loader is None:
        raise InputError("target_loader is missing; method='ols' is the only method that does not need it")
    check_loader(target_loader, "target_loader")
    # iter() of an iterator returns the iterator itself, so the target would be empty after the source was read.
    if target_loader is source_loader and hasattr(source_loader, "__next__"):
        raise InputError(
            "source_loader and target_loader are the same iterator, which can be read only once; pass two iterators, "
            "or a list or DataLoader"
        )


def write_weights(coef: Matrix, intercept: Vector, layer: nn.Linear, name: str) -> None:
    """Write weights into a layer, in its dtype and on its device. A layer without bias gets one if it is needed."""
    weight = torch.as_tensor(coef).to(layer.weight)
    bias = torch.as_tensor(intercept).to(layer.weight)
    if not bool(torch.isfinite(weight).all() and torch.isfinite(bias).all()):
        raise InputError(
            f"the new weights of {describe_layer(name)} exceed the range of its dtype {layer.weight.dtype}; use a "
            "wider dtype"
        )
    if layer.bias is None and bias.any():
        layer.bias = nn.Parameter(torch.zeros_like(bias), layer.weight.requires_grad)
    with torch.no_grad():
        layer.weight.copy_(weight)
        if layer.bias is not None:
            layer.bias.copy_(bias)

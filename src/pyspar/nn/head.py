"""Correct the linear head of a trained network for an unlabelled target, or replace it as the paper does.

The features are the inputs of the head. A hook reads them in one pass over each loader and adds them to Moments.
``pyspar.estimators.heads`` computes the new weights from the Moments.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from pyspar.core.adapt import Adaptation
from pyspar.core.arrays import Matrix
from pyspar.core.belief import Noise
from pyspar.errors import InputError
from pyspar.estimators.bayes import BayesSpARRegressor
from pyspar.estimators.heads import Changed, HeadMethod, NewHead, fit_head
from pyspar.estimators.spar import SpARRegressor
from pyspar.nn.batches import Reader, check_loader, peeked
from pyspar.nn.features import moments_of_features
from pyspar.nn.find_head import find_head, shown
from pyspar.nn.progress import bar
from pyspar.nn.running import predicting
from pyspar.sources.kinds import use_device_of


@dataclass(frozen=True, eq=False)
class AdaptedHead:
    """A copy of a model with a new head, and the numbers behind it.

    Attributes
    ----------
    model : torch.nn.Module
        The copy. Only the head differs from the given model. If no direction was changed, the head is also the same.
    method : {"bayes", "spar", "ols"}
    changed : Changed
        The number of directions along which the head's weights changed, and the total number. Prints as
        "3 of 64 directions changed".
    adaptation : Adaptation or None
        Every number of the adaptation; None with ``method="ols"``.
    head_name : str
        The name of the layer.
    estimator : BayesSpARRegressor or SpARRegressor
        The regressor on the head's inputs whose weights the head now has. ``estimator.adapted(...)`` adapts it to
        another target without another pass over the source.
    """

    model: nn.Module
    method: HeadMethod
    changed: Changed
    adaptation: Adaptation | None
    head_name: str
    estimator: BayesSpARRegressor | SpARRegressor

    def __repr__(self) -> str:
        what = str(self.changed)
        if self.method != "bayes":
            what = f"{what}, refitted on the source" + (f", then {self.adaptation!r}" if self.adaptation else "")
        elif not self.changed.directions:
            what = f"{what}: the model is unchanged"
        return f"AdaptedHead({type(self.model).__name__}, head {self.head_name!r}, method {self.method!r}, {what})"


def adapt_head(
    model: nn.Module,
    source_loader: Any,
    target_loader: Any = None,
    *,
    alpha: float = 0.999,
    method: HeadMethod = "bayes",
    noise: Noise = "mle",
    cutoff: float | None = None,
    head: str | None = None,
    inputs: Callable[[Any], Any] | None = None,
    labels: Callable[[Any], Any] | None = None,
    autocast: torch.dtype | None = None,
    progress: bool | None = None,
) -> AdaptedHead:
    """Return a copy of a model whose linear head is adapted to an unlabelled target.

    The given model is not changed. By default the trained head is corrected along those directions of the target's
    features where the source labels prove it wrong. If there are none, the returned model is identical to the given
    one.

    Parameters
    ----------
    model : torch.nn.Module
        Its prediction must be the unmodified output of a ``torch.nn.Linear``. Models inside ``torch.compile``,
        ``DataParallel`` or ``DistributedDataParallel`` are unwrapped; the copy is the plain module.
    source_loader : iterable of labelled batches
        A ``DataLoader`` or any iterable. It is read once, with the model in evaluation mode. Features are not stored.
    target_loader : iterable of batches
        Labels in it are ignored. Not needed with ``method="ols"``.
    alpha : float in [0, 1], default 0.999
        The confidence at which a direction is corrected ("bayes") or kept ("spar").
    method : {"bayes", "spar", "ols"}, default "bayes"
        "bayes" is :class:`pyspar.BayesSpARRegressor` with ``units="common"``, ``rule="chi2"`` and the trained head,
        including its bias, as the centre. "spar" is the paper's method: it replaces the head by least squares on the
        source and removes the directions that noise can explain. A bias is refitted. "ols" only refits by least
        squares. "spar" and "ols" may harm a well-trained network.
    noise : {"mle", "unbiased", "exact"}, default "mle"
        As for :class:`pyspar.SpARRegressor`; for "spar" and "ols" only.
    cutoff : float in [0, 1), optional
        Directions of the features whose singular value is below this share of the largest are dropped. The default is
        ``max(N, D)`` machine epsilons, at most 0.001. 0 drops only directions within the rounding of the features.
    head : str, optional
        The name of the layer, if the model returns the outputs of several linear layers.
    inputs, labels : functions of a batch, optional
        Required if batches are not tensors, pairs, or collections with common names. ``inputs`` returns a tensor, a
        tuple (the model's positional arguments) or a dict (its named arguments).
    autocast : torch.bfloat16 or torch.float16, optional
        Run the model in mixed precision. The features then have that precision.
    progress : bool, optional
        Show a progress bar. By default it is shown on a terminal if rich is installed and a pass takes more than two
        seconds.

    Returns
    -------
    AdaptedHead

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
    _check_choices(model, source_loader, target_loader, method, autocast)
    _check_cutoff(cutoff)
    SpARRegressor(alpha, noise=noise)._validate_params()  # fail before the forward passes, which may take long
    given = _unwrapped(model)
    adapted = _copied(given)
    reader = Reader.of(adapted, inputs, labels)
    with predicting(adapted, autocast) as run:
        first, batches = peeked(source_loader, "source_loader")
        where = "batch 0 of source_loader"
        name = find_head(run, reader.call(first, where), _plain_name(head, given), where)
        _refuse_tied(given, name)
        with bar("source", source_loader, progress) as advance:
            x, ndim = moments_of_features(
                run, name, batches, reader, loader="source_loader", labelled=True, advance=advance
            )
        z = None
        if method != "ols":
            _, batches = peeked(target_loader, "target_loader")
            with bar("target", target_loader, progress) as advance:
                z, _ = moments_of_features(
                    run, name, batches, reader, loader="target_loader", labelled=False, ndim=ndim, advance=advance
                )
    layer = cast(nn.Linear, adapted.get_submodule(name))
    bias = None if layer.bias is None else _numbers(layer.bias)
    with use_device_of(layer.weight):
        new = fit_head(
            x, z, method, coef=_numbers(layer.weight), intercept=bias, alpha=alpha, noise=noise, cutoff=cutoff
        )
    _put(new, layer, name)
    adaptation = getattr(new.estimator, "adaptation_", None)
    return AdaptedHead(adapted, method, new.changed, adaptation, name, new.estimator)


def _numbers(parameter: Tensor) -> Matrix:
    return parameter.detach().to("cpu", torch.float64).numpy().copy()


def _check_choices(model: Any, source_loader: Any, target_loader: Any, method: Any, autocast: Any) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module. Got {type(model).__name__} instead.")
    if method not in ("bayes", "spar", "ols"):
        raise ValueError(f"method must be 'bayes', 'spar' or 'ols', got {method!r}.")
    if autocast not in (None, torch.bfloat16, torch.float16):
        raise TypeError(f"autocast must be torch.bfloat16, torch.float16 or None. Got {autocast!r} instead.")
    if method != "ols" and target_loader is None:
        raise InputError("target_loader is missing; pass it, or use method='ols' to only refit the head.")
    check_loader(source_loader, "source_loader")
    if method != "ols":
        check_loader(target_loader, "target_loader")
    # iter() of an iterator is the iterator itself: after the source has been read, the target would be empty.
    if method != "ols" and target_loader is source_loader and hasattr(source_loader, "__next__"):
        raise InputError(
            "source_loader and target_loader are the same iterator, which can be read only once. Pass two iterators, "
            "or a list or DataLoader, which can be read again."
        )


def _check_cutoff(cutoff: Any) -> None:
    number = isinstance(cutoff, (int, float)) and not isinstance(cutoff, bool)
    if cutoff is not None and not (number and 0.0 <= cutoff < 1.0):
        raise ValueError(f"cutoff must be in [0, 1), relative to the largest singular value. Got {cutoff!r}.")


def _unwrapped(model: nn.Module) -> nn.Module:
    """Return the plain module inside the wrappers of torch.compile and of parallel training."""
    while True:
        if isinstance(getattr(model, "_orig_mod", None), nn.Module):
            model = model._orig_mod  # type: ignore[assignment]
        elif isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            model = model.module
        else:
            return model


def _copied(model: nn.Module) -> nn.Module:
    """Copy a model. All further steps change only the copy, so an interruption cannot change the model."""
    if any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()):
        raise InputError(f"{type(model).__name__} has uninitialised lazy layers; train it first.")
    try:
        return copy.deepcopy(model)
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        raise TypeError(
            f"{type(model).__name__} must be a module that copy.deepcopy can copy, because the model is not "
            f"changed. Got: {error}"
        ) from error


def _plain_name(head: Any, model: nn.Module) -> str | None:
    """Return the name of a layer without the prefix of a wrapper."""
    if head is None:
        return None
    if not isinstance(head, str):
        raise TypeError(f"head must be the name of a layer, such as 'fc'. Got {type(head).__name__} instead.")
    bare = re.sub(r"^((_orig_mod|module)\.)+", "", head)
    return head if head in dict(model.named_modules()) else bare


def _refuse_tied(model: nn.Module, name: str) -> None:
    """Raise InputError for a head that shares its weight with another layer, which would change with it."""
    head = model.get_submodule(name)
    own = {p.data_ptr() for p in head.parameters(recurse=False)}
    for other, module in model.named_modules():
        for kind, parameter in module.named_parameters(recurse=False):
            if module is not head and parameter.data_ptr() in own and parameter.numel():
                raise InputError(
                    f"{type(model).__name__}: {shown(name)} shares its weight with '{other}.{kind}', so a new head "
                    "would also change the features, or untie the two. Give the head its own weight first."
                )


def _put(new: NewHead, layer: nn.Linear, name: str) -> None:
    """Write new weights into a layer, in its dtype and on its device."""
    with torch.no_grad():
        layer.weight.copy_(torch.as_tensor(new.coef))
        if layer.bias is not None:
            layer.bias.copy_(torch.as_tensor(new.intercept))
    if not all(bool(torch.isfinite(p).all()) for p in layer.parameters(recurse=False)):
        raise InputError(
            f"The new weights of {shown(name)} are too large for its dtype {layer.weight.dtype}; use a wider dtype."
        )

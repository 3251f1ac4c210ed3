"""SpARCallback: repair the head of a LightningModule at the end of fit or before predict.

The callback works with both import names of the library, ``pytorch_lightning`` and ``lightning.pytorch``.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from itertools import islice
from typing import Any, Literal, cast, get_args

import torch
from torch import nn
from torch.utils.data import DataLoader

from pyspar.errors import InputError, need, warn
from pyspar.estimators.validation import check_choice
from pyspar.integrations.head_repair import HeadRepair, get_batches, list_metrics
from pyspar.nn import AdaptedHead, adapt_head
from pyspar.nn.models import unwrap
from pyspar.wording import list_some

When = Literal["fit_end", "predict_start"]

# A Trainer calls the hooks of a callback by name, so it accepts a callback of the other import name too.
_OTHER_NAME = "lightning.pytorch" in sys.modules or not find_spec("pytorch_lightning")
Callback: Any = need("lightning.pytorch" if _OTHER_NAME else "pytorch_lightning", "lightning").Callback


class SpARCallback(HeadRepair, Callback):  # type: ignore[misc]  # found at run time
    """Repair the linear head of a LightningModule for an unlabelled target, after fit or during predict.

    Parameters
    ----------
    target : iterable of batches, or function without arguments that returns it
        Rows of the target. Labels in it are ignored. With ``when="predict_start"`` the default is the loader of
        ``trainer.predict``.
    source : iterable of labelled batches, or function without arguments that returns it
        The default is the validation loader of the last fit. Its rows are held out from training, as the forecast of
        the error requires. Without a validation loader, the default is the training loader. See
        :func:`pyspar.nn.adapt_head` for which rows to pass.
    when : {"fit_end", "predict_start"}, default "fit_end"
        "fit_end" replaces the head in the module, after the last epoch. "predict_start" repairs the weights that
        ``trainer.predict`` uses, such as those of ``ckpt_path="best"``. After ``predict``, the trained head is
        restored; ``adapted.model`` is the repaired network.
    module : str, optional
        The name of the submodule that predicts, if ``forward`` of the LightningModule does not predict.
    **options
        Options of :func:`pyspar.nn.adapt_head`, such as ``method``, ``alpha``, ``head``, ``inputs`` and ``labels``.

    Attributes
    ----------
    adapted : AdaptedHead or None
        The result of the last repair; None before the first. After ``fit``, ``adapted.model`` is the module of the
        trainer.
    metrics : dict
        The numbers that were logged.

    Notes
    -----
    Batches pass through the transfer hooks of the LightningModule, as in validation. With
    ``Trainer(fast_dev_run=True)`` only the first batches are used, and labels on another scale are accepted, because
    the model is not trained.
    """

    def __init__(
        self,
        target: Any = None,
        source: Any = None,
        *,
        when: When = "fit_end",
        module: str | None = None,
        **options: Any,
    ) -> None:
        check_choice("when", when, get_args(When))
        if module is not None and not isinstance(module, str):
            raise TypeError(f"module must be the name of a submodule, got {type(module).__name__}")
        HeadRepair.__init__(self, target, source, options, default_target=when == "predict_start")
        self.when, self.module = when, module
        self._loaders: tuple[Any, Any] = (None, None)
        self._written: torch.Tensor | None = None  # the weights that were written at the end of fit
        self._trained: tuple[Any, ...] = ()  # a head with its trained weight and bias, while predict uses others

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == self.when.partition("_")[0]:
            self.refuse_processes(
                trainer.world_size,
                "train without the callback, and run Trainer(devices=1, callbacks=[SpARCallback(..., "
                "when='predict_start')]).predict(model, loader, ckpt_path=...) afterwards",
            )

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if self.when == "fit_end":
            model = self._get_model(pl_module)
            self.check_layers(model)
            target = self.get_target()
            if target is not None:
                with _as_in_validation(trainer, model):
                    self.try_first_batch(model, target, trainer.strategy.batch_to_device)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._loaders = trainer.val_dataloaders, trainer.train_dataloader  # the trainer drops them after fit
        if self.when == "fit_end":  # here, because the model leaves its device before on_fit_end
            model = self._get_model(pl_module)
            adapted = self._adapt(trainer, model, self.get_target())
            adapted.write_to(model)
            self.adapted = replace(adapted, model=model)
            layer = cast(nn.Linear, unwrap(model).get_submodule(adapted.head_name))
            self._written = layer.weight.detach().cpu().clone()

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._warn_if_replaced(pl_module)

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self._warn_if_replaced(pl_module)

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        self._warn_if_replaced(pl_module)
        if self.when == "predict_start":
            model = self._get_model(pl_module)
            default = None
            if self.target is None:
                default = _copy_loader(_get_only_loader(trainer.predict_dataloaders, "target", "prediction"))
            self.adapted = adapted = self._adapt(trainer, model, self.get_target(default))
            layer, new = (cast(nn.Linear, m.get_submodule(adapted.head_name)) for m in (unwrap(model), adapted.model))
            self._trained = layer, layer.weight, layer.bias
            layer.weight, layer.bias = new.weight, new.bias

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        if self._trained:
            layer, layer.weight, layer.bias = self._trained
            self._trained = ()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.on_predict_end(trainer, pl_module)

    def _adapt(self, trainer: Any, model: nn.Module, target: Any) -> AdaptedHead:
        """Return the repaired model, and log its numbers."""
        options, stop = self.options, None
        if trainer.fast_dev_run:
            options, stop = {"labels_scale": "ignore", **options}, int(trainer.fast_dev_run)

        def transfer(loader: Any) -> Iterator[Any]:
            return map(trainer.strategy.batch_to_device, islice(loader, stop))

        source = self._get_source()
        with _as_in_validation(trainer, model) as hook:
            adapted = adapt_head(model, transfer(source), None if target is None else transfer(target), **options)
        for hooks in (adapted.model._forward_pre_hooks, adapted.model._forward_pre_hooks_with_kwargs):
            hooks.pop(hook.id, None)  # the copy has it too
        self.metrics = list_metrics(adapted)
        for logger in trainer.loggers:
            logger.log_metrics(self.metrics, step=trainer.global_step)
        return adapted

    def _get_model(self, pl_module: Any) -> nn.Module:
        owner, names = type(pl_module).__name__, [name for name, _ in pl_module.named_children()]
        fix = f"pass module= with the name of the submodule that predicts, such as {list_some(names)}"
        if self.module is None:
            home = type(pl_module).forward.__module__ or ""  # None for code that was run with exec
            if home.partition(".")[0] in ("torch", "lightning", "pytorch_lightning"):
                raise InputError(f"{owner} has no forward method of its own; define one, or {fix}")
            return cast(nn.Module, pl_module)
        try:
            return cast(nn.Module, pl_module.get_submodule(self.module))
        except AttributeError:
            raise InputError(f"{owner} has no submodule {self.module!r}; {fix}") from None

    def _get_source(self) -> Any:
        if self.source is not None:
            return get_batches(self.source, "source")
        for name, loaders in zip(("validation", "training"), self._loaders):
            loader = _get_only_loader(loaders, "source", name)
            if loader is not None:
                return loader
        raise InputError(
            "source is missing, and the callback has seen no fit with a validation or training loader; pass source="
        )

    def _warn_if_replaced(self, pl_module: Any) -> None:
        if self._written is None or self.adapted is None:
            return
        layer: Any = dict(unwrap(self._get_model(pl_module)).named_modules()).get(self.adapted.head_name)
        if layer is None or not torch.equal(layer.weight.detach().cpu(), self._written):
            warn(
                "the repaired head was replaced by other weights; if a callback such as StochasticWeightAveraging "
                "replaced it, put SpARCallback last in callbacks=; if a checkpoint did, use "
                "SpARCallback(when='predict_start') to repair its weights, or pass ckpt_path=None"
            )


@contextmanager
def _as_in_validation(trainer: Any, model: nn.Module) -> Iterator[Any]:
    """Let hooks treat batches of a training as those of a validation, and convert inputs to the trainer's precision.

    Labels are not converted: they would lose digits in bfloat16.
    """

    def convert(module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        return trainer.precision_plugin.convert_input(args), trainer.precision_plugin.convert_input(kwargs)

    stage = trainer.state.stage
    if trainer.training:
        trainer.validating = True
    try:
        with model.register_forward_pre_hook(convert, with_kwargs=True) as hook:
            yield hook
    finally:
        trainer.state.stage = stage


def _copy_loader(loader: Any) -> Any:
    """Return a copy of a DataLoader that can be read while the trainer reads the original.

    The trainer starts to read its loader before ``on_predict_start``, and its batch sampler has only one position.
    """
    if not isinstance(loader, DataLoader):
        return loader
    new = copy.copy(loader)
    # A DataLoader refuses to set these attributes. Persistent workers belong to _iterator.
    new.__dict__.update(batch_sampler=copy.copy(loader.batch_sampler), _iterator=None)
    return new


def _get_only_loader(loaders: Any, role: str, kind: str) -> Any:
    """Return the only loader of a trainer's collection, or None if it is empty; raise InputError for several."""
    if isinstance(loaders, Mapping):
        loaders = list(loaders.values())
    if not isinstance(loaders, (list, tuple)):
        return loaders
    if len(loaders) > 1:
        raise InputError(f"there are {len(loaders)} {kind} loaders, and only one can be the {role}; pass {role}=")
    return loaders[0] if loaders else None

"""SpARCallback: repair the head of a LightningModule at the end of fit or before predict.

The callback works with both import names of the library, ``pytorch_lightning`` and ``lightning.pytorch``.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from operator import length_hint
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from pyspar.errors import InputError, need, warn
from pyspar.estimators.validation import check_choice
from pyspar.integrations.head_repair import HeadRepair, get_batches
from pyspar.nn import adapt_head
from pyspar.nn.models import unwrap
from pyspar.wording import list_some

When = Literal["fit_end", "predict_start"]
IMPORT_NAMES = ("lightning.pytorch", "pytorch_lightning")


def _find_library() -> Any:
    """Return the library under the name that is already imported, or else under the name that is installed.

    A Trainer calls the hooks of a callback by name, so it accepts a callback of the other name too.
    """
    for name in IMPORT_NAMES:
        if name in sys.modules:
            return sys.modules[name]
    try:
        return importlib.import_module(IMPORT_NAMES[0])
    except ImportError:
        return need(IMPORT_NAMES[1], "lightning")


Callback: Any = _find_library().Callback


class SpARCallback(HeadRepair, Callback):  # type: ignore[misc]  # found at run time
    """Repair the linear head of a LightningModule, in place, for an unlabelled target.

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
        "fit_end" repairs the weights of the last epoch. "predict_start" repairs the weights that ``trainer.predict``
        uses, such as those of ``ckpt_path="best"``. Each call starts from the trained head.
    module : str, optional
        The name of the submodule that predicts, if ``forward`` of the LightningModule does not predict.
    **options
        Options of :func:`pyspar.nn.adapt_head`, such as ``method``, ``alpha``, ``head``, ``inputs`` and ``labels``.

    Attributes
    ----------
    adapted : AdaptedHead or None
        The result of the last repair; ``adapted.model`` is the module of the trainer. None before the first repair.
    account : HeadAccount or None
        The errors of the trained and of the new head on the source.
    metrics : dict
        The numbers that were logged; also restored from a checkpoint.

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
        self._head: dict[str, Any] = {}  # of the last repair: the name of the layer, its trained and its new weights

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == self.when.partition("_")[0]:
            self.refuse_processes(
                trainer.world_size,
                "train without the callback, and run Trainer(devices=1, callbacks=[SpARCallback(..., "
                "when='predict_start')]).predict(model, loader, ckpt_path=...) afterwards",
            )

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if self.when != "fit_end":
            return
        model = self._get_model(pl_module)
        self.check_layers(model)
        if self.target is not None:
            target = self.check_target()
            with _validation_stage(trainer), _convert_inputs(model, trainer.precision_plugin):
                self.try_first_batch(model, target, trainer.strategy.batch_to_device)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._loaders = trainer.val_dataloaders, trainer.train_dataloader  # the trainer drops them after fit
        if self.when == "fit_end":
            with _validation_stage(trainer):  # here, because the model leaves its device before on_fit_end
                self._repair(trainer, pl_module, self.target)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        if self.when == "fit_end":
            self._warn_if_replaced(
                pl_module,
                "a callback after SpARCallback, such as StochasticWeightAveraging; put SpARCallback last in callbacks=",
            )

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        if self.when == "predict_start":
            target = self.target
            if target is None:
                target = _copy_loader(_get_only_loader(trainer.predict_dataloaders, "target", "prediction"))
            self._repair(trainer, pl_module, target)
        else:
            self._warn_if_replaced(pl_module)

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        if self.when == "fit_end":
            self._warn_if_replaced(pl_module)

    def state_dict(self) -> dict[str, Any]:
        return {**self._head, "metrics": self.metrics} if self._head else {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self._head = {name: state_dict[name] for name in ("name", "trained", "written")}
        self.metrics = dict(state_dict["metrics"])

    def _repair(self, trainer: Any, pl_module: Any, target: Any) -> None:
        model = self._get_model(pl_module)
        options, stop = self.options, None
        if trainer.fast_dev_run:
            options, stop = {"labels_scale": "ignore", **options}, int(trainer.fast_dev_run)
        source = self._get_source()
        if target is not None:
            target = _TransferredBatches(get_batches(target, "target"), trainer, stop)
        with self._restore_trained_head(model), _convert_inputs(model, trainer.precision_plugin):
            adapted = adapt_head(model, _TransferredBatches(source, trainer, stop), target, **options)
            layer = cast(nn.Linear, unwrap(model).get_submodule(adapted.head_name))
            trained = _copy_head(layer)
            self.store_result(adapted, model)
            self._head = {"name": adapted.head_name, "trained": trained, "written": _copy_head(layer)}
        for logger in trainer.loggers:
            logger.log_metrics(self.metrics, step=trainer.global_step)

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

    @contextmanager
    def _restore_trained_head(self, model: nn.Module) -> Iterator[None]:
        """Undo an earlier repair, so that a head is never repaired twice. Restore the repair after an error."""
        if not self._is_written(model):
            yield
            return
        layer = cast(nn.Linear, unwrap(model).get_submodule(self._head["name"]))
        _set_head(layer, self._head["trained"])
        try:
            yield
        except BaseException:
            _set_head(layer, self._head["written"])
            raise

    def _is_written(self, model: nn.Module) -> bool:
        layer = dict(unwrap(model).named_modules()).get(self._head["name"]) if self._head else None
        if layer is None:
            return False
        head, written = dict(layer.named_parameters(recurse=False)), self._head["written"]
        return head.keys() == written.keys() and all(
            head[name].shape == value.shape and torch.equal(head[name].detach().cpu(), value)
            for name, value in written.items()
        )

    def _warn_if_replaced(
        self,
        pl_module: Any,
        cause: str = "other weights, such as those of a checkpoint; use SpARCallback(when='predict_start') to repair "
        "the weights of the checkpoint, or pass ckpt_path=None",
    ) -> None:
        if self._head and not self._is_written(self._get_model(pl_module)):
            warn(f"the repaired head was replaced by {cause}")


class _TransferredBatches:
    """Batches of a loader on the trainer's device, after the transfer hooks of the LightningModule."""

    def __init__(self, loader: Any, trainer: Any, stop: int | None) -> None:
        self._loader, self._trainer, self._stop = loader, trainer, stop
        self.sampler = getattr(loader, "sampler", None)  # adapt_head refuses target labels if it shuffles

    def __iter__(self) -> Iterator[Any]:
        return map(self._trainer.strategy.batch_to_device, islice(self._loader, self._stop))

    def __length_hint__(self) -> int:
        length = length_hint(self._loader)
        return length if self._stop is None else min(length, self._stop)


@contextmanager
def _validation_stage(trainer: Any) -> Iterator[None]:
    """Let hooks treat batches as those of a validation inside a ``with`` block, not as training batches."""
    stage, trainer.validating = trainer.state.stage, True
    try:
        yield
    finally:
        trainer.state.stage = stage


@contextmanager
def _convert_inputs(model: nn.Module, precision: Any) -> Iterator[None]:
    """Convert inputs to the precision of the trainer, but not labels, which would lose digits in bfloat16."""

    def convert(module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        return precision.convert_input(args), precision.convert_input(kwargs)

    with model.register_forward_pre_hook(convert, with_kwargs=True):
        yield


def _copy_head(layer: nn.Linear) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in layer.named_parameters(recurse=False)}


def _set_head(layer: nn.Linear, head: dict[str, Tensor]) -> None:
    if "bias" not in head:
        layer.bias = None  # type: ignore[assignment]
    elif layer.bias is None:
        layer.bias = nn.Parameter(torch.empty_like(head["bias"]).to(layer.weight), layer.weight.requires_grad)
    with torch.no_grad():
        for name, value in head.items():
            getattr(layer, name).copy_(value)


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

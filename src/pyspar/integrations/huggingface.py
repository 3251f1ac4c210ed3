"""SpARTrainerCallback: repair the head of a Hugging Face model at the end of ``Trainer.train``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pyspar.errors import InputError, need
from pyspar.integrations.head_repair import (
    check_batches,
    check_options,
    check_target_labels,
    get_batches,
    list_metrics,
    refuse_processes,
)
from pyspar.nn import AdaptedHead, adapt_head
from pyspar.nn.account import HeadAccount

TrainerCallback: Any = need("transformers", "huggingface").TrainerCallback


class SpARTrainerCallback(TrainerCallback):  # type: ignore[misc]  # found at run time
    """Repair the linear head of a Hugging Face model for an unlabelled target, at the end of ``Trainer.train``.

    The head is replaced in the Trainer's model, after ``load_best_model_at_end``. ``trainer.predict``,
    ``trainer.evaluate`` and ``trainer.save_model`` then use the new head. Checkpoints that were written during the
    training contain the trained head.

    Parameters
    ----------
    target : iterable of batches, or function without arguments that returns it
        Rows of the target, such as ``trainer.get_test_dataloader(dataset)``. Labels in it are ignored.
    source : iterable of labelled batches, or function without arguments that returns it
        The default is the loader of the last evaluation, because its rows are held out from training. On training
        rows, errors of the head are harder to detect. Without an evaluation, the default is the training loader.
    **options
        Options of :func:`pyspar.nn.adapt_head`, such as ``method``, ``alpha``, ``head``, ``inputs`` and ``mask``.

    Attributes
    ----------
    adapted : AdaptedHead or None
        The result; ``adapted.model`` is the model of the Trainer. None before the end of the training.
    account : HeadAccount or None
        The errors of the trained and of the new head on the source.
    metrics : dict
        The numbers that were added to ``trainer.state.log_history``.
    """

    def __init__(self, target: Any = None, source: Any = None, **options: Any) -> None:
        super().__init__()
        check_options(type(self).__name__, options)
        if target is None and options.get("method") != "ols":
            raise InputError("target is missing; pass trainer.get_test_dataloader(dataset), or method='ols'")
        check_batches(target, "target")
        check_batches(source, "source")
        self.target, self.source, self.options = target, source, options
        self.adapted: AdaptedHead | None = None
        self.account: HeadAccount | None = None
        self.metrics: dict[str, float] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Refuse target labels that do not match the target, and training in several processes, before it starts."""
        if self.target is not None:
            check_target_labels(self.options.get("target_labels"), get_batches(self.target, "target"))
        refuse_processes(
            "SpARTrainerCallback",
            args.world_size,
            "train without the callback, load the model in one process, and call pyspar.nn.adapt_head(model, "
            "source_loader, target_loader)",
        )

    def on_train_end(
        self,
        args: Any,
        state: Any,
        control: Any,
        model: Any = None,
        train_dataloader: Any = None,
        eval_dataloader: Any = None,
        **kwargs: Any,
    ) -> None:
        """Repair the head."""
        source = self.source
        if source is None:
            source = train_dataloader if eval_dataloader is None else eval_dataloader
        target = None if self.target is None else get_batches(self.target, "target")
        with _full_precision(model):
            adapted = adapt_head(model, get_batches(source, "source"), target, **self.options)
        metrics = list_metrics(adapted)
        adapted.write_to(model)
        self.adapted, self.account, self.metrics = replace(adapted, model=model), adapted.account, metrics
        state.log_history.append({**metrics, "step": state.global_step, "epoch": state.epoch})


@contextmanager
def _full_precision(model: Any) -> Iterator[None]:
    """Remove accelerate's autocast from ``forward`` inside a ``with`` block, which bf16=True and fp16=True add.

    Features in bfloat16 lose most of their directions. ``autocast=`` of the callback selects mixed precision.
    """
    wrapped, original = vars(model).get("forward"), getattr(model, "_original_forward", None)
    if wrapped is None or original is None:
        yield
        return
    model.forward = original
    try:
        yield
    finally:
        model.forward = wrapped

"""SpARTrainerCallback: repair the head of a Hugging Face model at the end of ``Trainer.train``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pyspar.errors import need
from pyspar.integrations.head_repair import HeadRepair, get_batches, list_metrics
from pyspar.nn import adapt_head

TrainerCallback: Any = need("transformers", "huggingface").TrainerCallback


class SpARTrainerCallback(HeadRepair, TrainerCallback):  # type: ignore[misc]  # found at run time
    """Repair the linear head of a Hugging Face model for an unlabelled target, at the end of ``Trainer.train``.

    The head is replaced in the Trainer's model, after ``load_best_model_at_end``. ``trainer.predict``,
    ``trainer.evaluate`` and ``trainer.save_model`` then use the new head. Checkpoints that were written during the
    training contain the trained head.

    Parameters
    ----------
    target : iterable of batches, or function without arguments that returns it
        Rows of the target, such as ``trainer.get_test_dataloader(dataset)``. Labels in it are ignored.
    source : iterable of labelled batches, or function without arguments that returns it
        The default is the loader of the last evaluation. Its rows are held out from training, as the forecast of the
        error requires. Without an evaluation, the default is the training loader. See :func:`pyspar.nn.adapt_head` for
        which rows to pass.
    **options
        Options of :func:`pyspar.nn.adapt_head`, such as ``method``, ``alpha``, ``head``, ``inputs`` and ``mask``.

    Attributes
    ----------
    adapted : AdaptedHead or None
        The result; ``adapted.model`` is the model of the Trainer. None before the end of the training.
    metrics : dict
        The numbers that were added to ``trainer.state.log_history``.
    """

    def __init__(self, target: Any = None, source: Any = None, **options: Any) -> None:
        HeadRepair.__init__(self, target, source, options)

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Refuse what cannot be repaired before the training starts."""
        fix = "train without the callback, load the model in one process, and call pyspar.nn.adapt_head"
        self.refuse_processes(args.world_size, fix)
        self.check_layers(model)
        self.get_target()

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Repair the head."""
        loaders = self.source, kwargs.get("eval_dataloader"), kwargs.get("train_dataloader")
        source = next(loader for loader in loaders if loader is not None)
        with _full_precision(model):
            adapted = adapt_head(model, get_batches(source, "source"), self.get_target(), **self.options)
        adapted.write_to(model)
        self.adapted, self.metrics = replace(adapted, model=model), list_metrics(adapted)
        state.log_history.append({**self.metrics, "step": state.global_step, "epoch": state.epoch})


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

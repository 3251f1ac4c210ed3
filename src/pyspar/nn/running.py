"""Running: a model as it predicts (no dropout, no gradient, no statistics updated), with every flag put back after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pyspar.core.arrays import EPS64
from pyspar.errors import InputError
from pyspar.nn.batches import Call, described, moved


@dataclass(frozen=True)
class Runner:
    """Runs one model on one batch after another."""

    model: nn.Module
    device: torch.device
    autocast: torch.dtype | None

    @property
    def eps(self) -> float:
        """The precision that mixed precision leaves to features, whatever dtype they are handed on in."""
        kind = self.device.type
        outer = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
        return max((float(torch.finfo(d).eps) for d in (self.autocast, outer) if d is not None), default=EPS64)

    def __call__(self, call: Call, where: str) -> Any:
        args, kwargs = moved(call[0], self.device), moved(call[1], self.device)
        try:
            # Here and not around the whole pass: a loader may compute, and that is not ours to change.
            with ExitStack() as stack:
                stack.enter_context(torch.no_grad())
                if hasattr(torch.compiler, "set_stance"):  # a compiled part would not see hooks that came after it
                    stack.enter_context(torch.compiler.set_stance("force_eager"))
                if self.autocast is not None:
                    stack.enter_context(torch.autocast(self.device.type, dtype=self.autocast))
                return self.model(*args, **kwargs)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:
            given = ", ".join([*map(described, args), *(f"{name}={described(v)}" for name, v in kwargs.items())])
            raise InputError(
                f"{where}: the model could not run on {given or 'nothing'}: {error}\nIf that is not what it should "
                "see, pass inputs=, a function of the batch."
            ) from error


@contextmanager
def predicting(model: nn.Module, autocast: torch.dtype | None) -> Iterator[Runner]:
    """Put a model into evaluation mode inside a ``with`` block; flags and random state are as before after it."""
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    flags = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield Runner(model, device, autocast)
    finally:
        for module, training in flags:
            module.training = training

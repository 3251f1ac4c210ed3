"""The settings of training: epochs, optimiser, schedule, selection of the best epoch, device and precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints

import torch

from pyspar.errors import InputError
from pyspar.paper.parameters import check_choice, check_integer, check_number

Shuffle = Literal["once", "epoch"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of training with Adam. The weights of the best epoch on the validation part are kept.

    Parameters
    ----------
    schedule : "constant" or "step", a learning rate of ``lr * gamma ** epoch``
    shuffle : "once" uses one order of the rows in every epoch, as the paper's authors do; "epoch" draws a new one
        Both drop the last, partial batch; under "once" its rows are never used.
    select : the epoch whose weights are kept
        "mse", the lowest mean squared error on the validation part; "worst-group-r", the highest Pearson correlation in
        the worst group (and the worst output, if there are several); or "last".
    device : "auto", "cpu" or "cuda"
    autocast : None or "bfloat16", mixed precision
    eval_batch_size : rows per batch where no gradient is needed, without influence on the result
    """

    epochs: int
    batch_size: int
    lr: float
    schedule: Literal["constant", "step"] = "constant"
    gamma: float = 0.96
    shuffle: Shuffle = "once"
    select: Literal["mse", "worst-group-r", "last"] = "mse"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    autocast: Literal[None, "bfloat16"] = None
    eval_batch_size: int = 256

    def __post_init__(self) -> None:
        # Stored as plain int and float, because numpy's numbers are accepted too.
        values: dict[str, Any] = {
            name: check_integer(name, getattr(self, name), low=1)
            for name in ("epochs", "batch_size", "eval_batch_size")
        }
        values["lr"] = check_number("lr", self.lr, positive=True)
        values["gamma"] = check_number("gamma", self.gamma, high=1.0, positive=True)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        for name, hint in get_type_hints(type(self)).items():
            if hint not in (int, float):
                check_choice(name, getattr(self, name), get_args(hint))
        if self.device == "cuda" and not torch.cuda.is_available():
            raise InputError("device='cuda' requires a GPU, and torch finds none; use device='auto' or 'cpu'")

    @property
    def torch_device(self) -> torch.device:
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(self.device)

    def autocast_on(self, device: torch.device) -> torch.autocast:
        """Return the context of mixed precision, which is disabled if ``autocast`` is None."""
        return torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.autocast is not None)

    def lr_at(self, epoch: int, base: float | None = None) -> float:
        """Return the learning rate of an epoch, counted from 0. ``base`` replaces ``lr``."""
        lr = self.lr if base is None else base
        return lr * self.gamma**epoch if self.schedule == "step" else lr

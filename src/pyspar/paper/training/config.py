"""The settings of training: epochs, optimiser, schedule, selection of the best epoch, device and precision."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

import torch

from pyspar.errors import InputError
from pyspar.paper.parameters import check_choice, check_integer, check_number

Shuffle = Literal["once", "epoch"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    r"""Settings of training with Adam. The weights of the best epoch on the validation part are kept.

    Parameters
    ----------
    epochs, batch_size, lr : int, int, float
    weight_decay : float
        The weight decay of Adam, a penalty :math:`\frac{wd}{2} \|w\|^2` in the gradient.
    schedule : {"constant", "step", "cosine"}
        The learning rate of epoch e (from 0): ``lr``; ``lr * gamma ** e``; or half a cosine from ``lr`` to zero.
    shuffle : {"once", "epoch"}
        "once" draws one order of the rows per seed and uses it in every epoch, as the paper's authors do. "epoch"
        draws a new order for each epoch. Both drop the last, partial batch; under "once" its rows are never used.
    select : {"mse", "worst-group-r", "last"}
        The epoch whose weights are kept: lowest mean squared error on the validation part, highest Pearson correlation
        in the worst group (and the worst output, if there are several), or the last epoch.
    device : {"auto", "cpu", "cuda"}
    autocast : {None, "bfloat16"}
        Mixed precision.
    graph : {"auto", "never"}
        On a GPU, the step of all seeds is captured once and replayed, if the objective and the network allow it.
    kernels : {"deterministic", "fastest"}
        "fastest" allows GPU convolutions whose last digits differ between runs.

    >>> TrainConfig(epochs=3, batch_size=8, lr=0.1, schedule="step", gamma=0.5).lr_at(2)
    0.025
    """

    epochs: int
    batch_size: int
    lr: float
    weight_decay: float = 0.0
    schedule: Literal["constant", "step", "cosine"] = "constant"
    gamma: float = 0.96
    shuffle: Shuffle = "once"
    select: Literal["mse", "worst-group-r", "last"] = "mse"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    autocast: Literal[None, "bfloat16"] = None
    eval_batch_size: int = 1024
    graph: Literal["auto", "never"] = "auto"
    kernels: Literal["deterministic", "fastest"] = "deterministic"

    def __post_init__(self) -> None:
        # Stored as plain int and float, because numpy's numbers are accepted too.
        values: dict[str, Any] = {
            name: check_integer(name, getattr(self, name), low=1)
            for name in ("epochs", "batch_size", "eval_batch_size")
        }
        values["lr"] = check_number("lr", self.lr, positive=True)
        values["weight_decay"] = check_number("weight_decay", self.weight_decay)
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
        """The device. "auto" is the GPU if torch finds one, else the CPU."""
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(self.device)

    @property
    def autocast_dtype(self) -> torch.dtype | None:
        """The dtype of mixed precision, or None."""
        return None if self.autocast is None else torch.bfloat16

    def lr_at(self, epoch: int, base: float | None = None) -> float:
        """Return the learning rate of an epoch, counted from 0. ``base`` replaces ``lr``."""
        lr = self.lr if base is None else base
        if self.schedule == "step":
            return lr * self.gamma**epoch
        if self.schedule == "cosine":
            return lr * 0.5 * (1.0 + math.cos(math.pi * epoch / self.epochs))
        return lr

    def result_settings(self) -> dict[str, Any]:
        """Return the settings that influence the result: all except those for the device and the speed."""
        without_effect = {"device", "graph", "eval_batch_size"}
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in without_effect}

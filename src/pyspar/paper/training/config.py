"""TrainConfig: how a network is trained, whatever it minimises; it checks itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, Literal, get_args

import torch

from pyspar.errors import InputError

Schedule = Literal["constant", "step", "cosine"]
Shuffle = Literal["once", "epoch"]
Select = Literal["mse", "worst-group-r", "last"]
Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["bfloat16", "float16"]
Graph = Literal["auto", "never"]
Kernels = Literal["deterministic", "fastest"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    r"""How to train: Adam, for a number of epochs, keeping the weights that did best on the validation part.

    Parameters
    ----------
    epochs, batch_size, lr : int, int, float
    weight_decay : float
        Adam's, as a penalty :math:`\frac{wd}{2} \|w\|^2` in the gradient.
    schedule : {"constant", "step", "cosine"}
        The learning rate of epoch e (from 0): ``lr``; ``lr * gamma ** e``; or half a cosine from ``lr`` towards zero.
    shuffle : {"once", "epoch"}
        "once" draws the order of the rows once for each seed and keeps it, as the paper's authors do; "epoch" draws it
        anew each epoch. The last, partial batch is dropped in both: under "once" its rows are never seen.
    select : {"mse", "worst-group-r", "last"}
        Which epoch's weights are kept: lowest mean squared error on the validation part, highest Pearson correlation in
        the group where that is lowest (and the output, if there are several), or the last.
    device : {"auto", "cpu", "cuda"}
    autocast : {None, "bfloat16", "float16"}
        Mixed precision; float16 scales its loss, and needs a GPU.
    graph : {"auto", "never"}
        On a GPU the step of all seeds is captured once and replayed, where the objective and the network allow it.
    kernels : {"deterministic", "fastest"}
        Whether a GPU may use convolutions whose last digits differ from run to run.

    >>> TrainConfig(epochs=3, batch_size=8, lr=0.1, schedule="step", gamma=0.5).lr_at(2)
    0.025
    """

    epochs: int
    batch_size: int
    lr: float
    weight_decay: float = 0.0
    schedule: Schedule = "constant"
    gamma: float = 0.96
    shuffle: Shuffle = "once"
    select: Select = "mse"
    device: Device = "auto"
    autocast: Precision | None = None
    eval_batch_size: int = 1024
    graph: Graph = "auto"
    kernels: Kernels = "deterministic"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "eval_batch_size"):
            _expect(name, getattr(self, name), _is_count(getattr(self, name)), "a whole number of at least 1")
            object.__setattr__(self, name, int(getattr(self, name)))  # numpy's numbers are numbers too
        _expect("lr", self.lr, _is_number(self.lr) and self.lr > 0, "a finite number above 0")
        _expect(
            "weight_decay",
            self.weight_decay,
            _is_number(self.weight_decay) and self.weight_decay >= 0,
            "a finite number of at least 0",
        )
        _expect("gamma", self.gamma, _is_number(self.gamma) and 0 < self.gamma <= 1, "a factor in (0, 1]")
        for name in ("lr", "weight_decay", "gamma"):
            object.__setattr__(self, name, float(getattr(self, name)))
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            _expect(name, value, value in choices, "one of " + ", ".join(map(repr, choices)))
        if self.device == "cuda" and not torch.cuda.is_available():
            raise InputError("device='cuda' needs a GPU that torch can see. Got none; use device='auto' or 'cpu'.")
        if self.autocast == "float16" and self.torch_device.type == "cpu":
            raise InputError("autocast='float16' needs a GPU. Got device 'cpu'; 'bfloat16' works there too.")

    @property
    def torch_device(self) -> torch.device:
        """The device meant: "auto" is the GPU where there is one."""
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(self.device)

    @property
    def autocast_dtype(self) -> torch.dtype | None:
        """The dtype of mixed precision, or None."""
        return None if self.autocast is None else getattr(torch, self.autocast)

    def lr_at(self, epoch: int, base: float | None = None) -> float:
        """Return the learning rate of an epoch, counted from 0; ``base`` stands in for ``lr``."""
        lr = self.lr if base is None else base
        if self.schedule == "step":
            return lr * self.gamma**epoch
        if self.schedule == "cosine":
            return lr * 0.5 * (1.0 + math.cos(math.pi * epoch / self.epochs))
        return lr

    def described(self) -> dict[str, Any]:
        """Return what decides the result: all fields but those that say where and how fast it is computed."""
        where = {"device", "graph", "eval_batch_size"}
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in where}


_CHOICES: dict[str, tuple[Any, ...]] = {
    "schedule": get_args(Schedule),
    "shuffle": get_args(Shuffle),
    "select": get_args(Select),
    "device": get_args(Device),
    "autocast": (None, *get_args(Precision)),
    "graph": get_args(Graph),
    "kernels": get_args(Kernels),
}


def _expect(name: str, value: Any, fine: bool, expected: str) -> None:
    if not fine:
        raise InputError(f"{name} must be {expected}. Got {value!r} instead.")


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(float(value))

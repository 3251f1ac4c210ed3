"""Batches: what in a loader's batch goes into the model, and what are the labels. A guess, or the caller's functions.

Nothing is guessed twice: a batch whose parts could mean two things is refused, and the refusal names its parts.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pyspar.errors import InputError

INPUTS = ("x", "input", "inputs", "image", "images", "img", "features", "data", "pixel_values")
LABELS = ("y", "label", "labels", "target", "targets")
_CURE = "pass inputs= and labels=, functions of the batch, for example inputs=lambda b: {inputs}, labels=lambda b: {y}"

Call = tuple[tuple[Any, ...], dict[str, Any]]


def check_loader(loader: Any, name: str) -> None:
    """Refuse what does not yield batches."""
    if isinstance(loader, torch.utils.data.Dataset) and not isinstance(loader, torch.utils.data.IterableDataset):
        raise TypeError(
            f"{name} must be an iterable of batches. Got a {type(loader).__name__}, whose items are single samples; "
            "wrap it: DataLoader(dataset, batch_size=256)."
        )
    if isinstance(loader, (Tensor, np.ndarray, Mapping, str)) or not isinstance(loader, Iterable):
        raise TypeError(
            f"{name} must be an iterable of batches, a DataLoader or a list. Got {_kind(loader)} instead; for tensors "
            "use DataLoader(TensorDataset(X, y), batch_size=256)."
        )


def peeked(loader: Iterable[Any], name: str) -> tuple[Any, Iterator[Any]]:
    """Return the first batch of a loader, and an iterator over all of them, the first included."""
    stream = iter(loader)
    for first in stream:
        return first, chain([first], stream)
    raise InputError(f"{name} must yield at least one batch. Got none; is it empty, or an iterator that is used up?")


@dataclasses.dataclass(frozen=True)
class Reader:
    """Reads batches for one model: the caller's functions where there are any, else by the names of the parts."""

    inputs: Callable[[Any], Any] | None
    labels: Callable[[Any], Any] | None
    parameters: Mapping[str, bool]  # of the model's forward; whether each must be given

    @classmethod
    def of(cls, model: nn.Module, inputs: Any, labels: Any) -> Reader:
        for name, function in (("inputs", inputs), ("labels", labels)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be a function of the batch. Got {_kind(function)} instead.")
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        try:
            found = list(inspect.signature(model.forward).parameters.values())
        except ValueError:  # a forward that is not written in Python names nothing
            found = []
        return cls(inputs, labels, {p.name: p.default is p.empty for p in found if p.kind in kinds})

    def call(self, batch: Any, where: str) -> Call:
        """Return the arguments that a batch means for the model."""
        if self.inputs is not None:
            return _as_call(self.inputs(batch))
        if _is_array(batch):
            return (batch,), {}
        fields = self._fields(batch)
        if fields is not None:
            found = self._call_of_fields({k: v for k, v in fields.items() if k.lower() not in LABELS})
            if found is not None:
                return found
        elif isinstance(batch, (tuple, list)) and len(batch) in (1, 2):
            return _as_call(batch[0])
        raise InputError(f"{where}: cannot tell what goes into the model. Got {described(batch)}; {_cure(batch)}.")

    def label(self, batch: Any, where: str) -> Tensor:
        """Return the labels of a batch."""
        found = self._label(batch, where)
        try:
            return torch.as_tensor(found).detach()
        except (TypeError, ValueError, RuntimeError):
            raise InputError(
                f"{where}: the labels must be a tensor. Got {described(found)} instead; pass labels=, a function of "
                "the batch that returns one."
            ) from None

    def _label(self, batch: Any, where: str) -> Any:
        if self.labels is not None:
            return self.labels(batch)
        fields = self._fields(batch)
        if fields is not None:
            named = [value for name, value in fields.items() if name.lower() in LABELS]
            if len(named) == 1:
                return named[0]
        elif isinstance(batch, (tuple, list)) and len(batch) == 2:
            return batch[1]
        raise InputError(f"{where}: cannot tell which are the labels. Got {described(batch)}; {_cure(batch)}.")

    def _fields(self, batch: Any) -> dict[str, Any] | None:
        """Return the named parts of a batch, or None if its parts have no names."""
        if isinstance(batch, Mapping):
            return {str(name): value for name, value in batch.items()}
        if hasattr(batch, "_asdict"):
            return dict(batch._asdict())
        if isinstance(batch, (tuple, list)) or _is_array(batch):
            return None
        names = dict.fromkeys([*getattr(batch, "__dict__", ()), *INPUTS, *LABELS, "X", "Y", *self.parameters])
        found = {name: getattr(batch, name, None) for name in names if not name.startswith("_")}
        return {name: value for name, value in found.items() if _is_array(value)}

    def _call_of_fields(self, fields: dict[str, Any]) -> Call | None:
        """Match names to the parameters of forward; a name that means "the input" may stand for the first of them."""
        if len(fields) == 1:
            return tuple(fields.values()), {}
        given = {name: value for name, value in fields.items() if name in self.parameters}
        missing = [name for name, required in self.parameters.items() if required and name not in given]
        if given and not missing:
            return (), given
        first = next(iter(self.parameters), None)
        known = [name for name in fields if name.lower() in INPUTS and name not in given]
        if len(known) == 1 and missing in ([], [first]):
            return (fields[known[0]],), given
        return None


def moved(value: Any, device: torch.device) -> Any:
    """Return a value with every tensor in it on a device; numpy arrays become tensors."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        value = torch.as_tensor(value)
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=device.type == "cuda")  # to a GPU the order of work is kept
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(each, device) for each in value))
    if isinstance(value, (tuple, list)):
        return type(value)(moved(each, device) for each in value)
    if isinstance(value, dict):
        return {name: moved(each, device) for name, each in value.items()}
    return value.to(device) if callable(getattr(value, "to", None)) else value  # packed sequences, graph batches


def described(value: Any) -> str:
    """Say what a batch holds.

    >>> described((torch.zeros(2, 3), "day"))
    'a tuple of (Tensor of shape (2, 3), str)'
    >>> described({"a": torch.zeros(2)})
    "a dict with 'a' (Tensor of shape (2,))"
    """
    named = value if isinstance(value, Mapping) else value._asdict() if hasattr(value, "_asdict") else None
    if named is None and not _is_array(value) and not isinstance(value, (tuple, list)):
        named = {k: v for k, v in getattr(value, "__dict__", {}).items() if not k.startswith("_")} or None
    if named is not None:
        parts = ", ".join(f"{name!r} ({_kind(part)})" for name, part in named.items())
        return f"a {type(value).__name__} with {parts or 'nothing in it'}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of ({', '.join(_kind(part) for part in value)})"
    return f"a {_kind(value)}"


def _cure(batch: Any) -> str:
    if isinstance(batch, Mapping) and batch:
        names = [repr(name) for name in batch]
        return _CURE.format(inputs=f"b[{names[0]}]", y=f"b[{names[-1]}]")
    if isinstance(batch, (tuple, list)) and len(batch) > 1 and not hasattr(batch, "_fields"):
        return _CURE.format(inputs="b[0]", y="b[1]")
    return _CURE.format(inputs="b.x", y="b.y")


def _as_call(value: Any) -> Call:
    if isinstance(value, (tuple, list)):
        return tuple(value), {}
    if isinstance(value, Mapping):
        return (), {str(name): each for name, each in value.items()}
    return (value,), {}


def _is_array(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray))


def _kind(value: Any) -> str:
    if _is_array(value):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    return type(value).__name__

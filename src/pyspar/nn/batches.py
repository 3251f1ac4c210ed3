"""Batches of loaders: read inputs and labels by the names of their parts or with functions of the caller; shuffle."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, default_collate
from torch.utils.data.sampler import RandomSampler, SequentialSampler

from pyspar.errors import InputError

INPUT_NAMES = ("x", "input", "inputs", "image", "images", "img", "features", "data", "pixel_values")
LABEL_NAMES = ("y", "label", "labels", "target", "targets")
_FIX = "pass inputs= and labels=, functions of the batch, such as inputs=lambda b: b[0] or labels=lambda b: b['y']"

ARRAYS = Tensor, np.ndarray
Arguments = tuple[tuple[Any, ...], dict[str, Any]]  # positional and named arguments of a model's forward method
Function = Callable[[Any], Any] | None  # of a batch


def check_loader(loader: Any, name: str) -> None:
    """Raise TypeError for an object that does not yield batches."""
    got, fix = _describe_value(loader), "for tensors use DataLoader(TensorDataset(X, y), batch_size=256)"
    if isinstance(loader, Dataset) and not isinstance(loader, IterableDataset):
        got, fix = f"a {got}, which yields single samples", "use DataLoader(dataset, batch_size=256)"
    elif isinstance(loader, Iterable) and not isinstance(loader, (*ARRAYS, Mapping, str)):
        return
    raise TypeError(f"{name} must be an iterable of batches, such as a DataLoader or a list, got {got}; {fix}")


@dataclasses.dataclass(frozen=True)
class BatchReader:
    """Reads the inputs and labels of batches, with the caller's functions of a batch where they are not None."""

    parameters: Mapping[str, bool]  # of the model's forward method; True for those that are required
    inputs: Function = None
    labels: Function = None

    @classmethod
    def of(cls, model: nn.Module, **functions: Function) -> BatchReader:
        """Return the reader for a model."""
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        try:
            signature = list(inspect.signature(model.forward).parameters.values())
        except ValueError:  # a forward method that is not written in Python has no signature
            signature = []
        return cls({p.name: p.default is p.empty for p in signature if p.kind in kinds}, **functions)

    def read_arguments(self, batch: Any, where: str) -> Arguments:
        """Return the arguments with which the model is called."""
        if self.inputs is not None:
            return _as_arguments(self.inputs(batch))
        if isinstance(batch, ARRAYS):
            return (batch,), {}
        if isinstance(batch, Mapping):
            if found := self._match_fields({k: v for k, v in batch.items() if k.lower() not in LABEL_NAMES}):
                return found
        elif isinstance(batch, (tuple, list)) and len(batch) in (1, 2):
            return _as_arguments(batch[0])
        raise InputError(f"{where}: ambiguous inputs in {describe_batch(batch)}; {_FIX}")

    def read_labels(self, batch: Any, where: str) -> Tensor:
        """Return the labels of a batch as a tensor."""
        candidates: list[Any] = []
        if self.labels is not None:
            candidates = [self.labels(batch)]
        elif isinstance(batch, Mapping):
            candidates = [value for name, value in batch.items() if name.lower() in LABEL_NAMES]
        elif isinstance(batch, (tuple, list)) and len(batch) == 2:
            candidates = [batch[1]]
        if len(candidates) != 1:
            raise InputError(f"{where}: missing or ambiguous labels in {describe_batch(batch)}; {_FIX}")
        try:
            return torch.as_tensor(candidates[0]).detach()
        except (TypeError, ValueError, RuntimeError):
            got = describe_batch(candidates[0])
            raise InputError(f"{where}: labels must be numbers, got {got}; {_FIX}") from None

    def _match_fields(self, fields: dict[str, Any]) -> Arguments | None:
        """Match fields to the parameters of forward by name; a common input name may be its first parameter."""
        if len(fields) == 1:
            return tuple(fields.values()), {}
        matched = {name: value for name, value in fields.items() if name in self.parameters}
        missing = [name for name, required in self.parameters.items() if required and name not in matched]
        if matched and not missing:
            return (), matched
        first = next(iter(self.parameters), None)
        inputs = [name for name in fields if name.lower() in INPUT_NAMES and name not in matched]
        if len(inputs) == 1 and missing in ([], [first]):
            return (fields[inputs[0]],), matched
        return None


def move_to_device(value: Any, device: torch.device, dtype: torch.dtype | None = None) -> Any:
    """Return a value with its tensors on a device; numpy arrays become tensors, those of real numbers in a dtype."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        value = torch.as_tensor(value, dtype=dtype if value.dtype.kind == "f" else None)
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=device.type == "cuda")  # a GPU keeps the order of operations
    if isinstance(value, (tuple, list)):
        parts = [move_to_device(part, device, dtype) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict):
        return {name: move_to_device(part, device, dtype) for name, part in value.items()}
    return value.to(device) if callable(getattr(value, "to", None)) else value  # packed sequences, graph batches


def split_batch(arguments: Arguments, size: int) -> Iterator[Arguments]:
    """Yield parts of a batch with at most ``size`` rows each. A batch that is not made of arrays remains whole."""
    args, kwargs = arguments
    lengths = {len(v) if isinstance(v, ARRAYS) and v.ndim else 0 for v in (*args, *kwargs.values())}
    n = lengths.pop() if len(lengths) == 1 else 0
    if n <= size:
        yield arguments
        return
    for rows in np.array_split(np.arange(n), -(-n // size)):
        part = slice(rows[0], rows[-1] + 1)
        yield tuple(v[part] for v in args), {name: v[part] for name, v in kwargs.items()}


def shuffle_batches(loader: Any, size: int, rows: int | None, generator: torch.Generator) -> Any:
    """Return a loader of shuffled batches of equal size and at most this number of rows, if its order is free."""
    sampler = loader.sampler if type(loader) is DataLoader and loader.batch_size is not None else None
    if type(sampler) not in (SequentialSampler, RandomSampler):
        return loader
    order = torch.randperm(len(loader.dataset), generator=generator)[:rows]
    size = max(-(-len(order) // max(-(-len(order) // size), 1)), 1)
    options = {name: getattr(loader, name) for name in ("num_workers", "collate_fn", "worker_init_fn")}
    if type(loader.dataset) is TensorDataset and loader.collate_fn is default_collate:  # without a loop over rows
        return ([part[batch] for part in loader.dataset.tensors] for batch in torch.split(order, size))
    return DataLoader(Subset(loader.dataset, order.tolist()), size, **options)


def describe_batch(batch: Any) -> str:
    """Return the type of a batch, and the types and shapes of its parts."""
    if isinstance(batch, Mapping):
        inside = ", ".join(f"{name!r} ({_describe_value(part)})" for name, part in batch.items())
        return f"a {type(batch).__name__} with {inside}"
    if not isinstance(batch, (tuple, list)):
        return f"a {_describe_value(batch)}"
    kinds = [_describe_value(part) for part in batch]
    inside = f"{len(kinds)} {kinds[0]}" if len(kinds) > 4 and len(set(kinds)) == 1 else f"({', '.join(kinds)})"
    return f"a {type(batch).__name__} of {inside}"


def _as_arguments(value: Any) -> Arguments:
    if isinstance(value, (tuple, list)):
        return tuple(value), {}
    if isinstance(value, Mapping):
        return (), {str(name): part for name, part in value.items()}
    return (value,), {}


def _describe_value(value: Any) -> str:
    return type(value).__name__ + (f" of shape {tuple(value.shape)}" if isinstance(value, ARRAYS) else "")

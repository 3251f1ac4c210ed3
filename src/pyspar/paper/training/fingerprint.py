"""Fingerprint: what makes a training run the one it is, as short texts that are equal in another process.

Settings, objective, seeds, data, the layers of every model and the weights they start from. Code counts where it is the
caller's: a model's ``forward`` and functions given to an objective. Modules' names do not, because the same script has
another one when it is imported.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pyspar.paper.training.config import TrainConfig

_HASHED = 2**26  # bytes; of larger arrays, and of rows that are read as needed, only some rows are looked at
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_DEEP = 8  # levels of objects within objects


def fingerprint(
    config: TrainConfig, objective: Any, seeds: Sequence[int], task: Any, models: Sequence[nn.Module]
) -> dict[str, str]:
    """Return what makes a run the one it is; a file with another one of these is another run's."""
    parts = [task.train.X, task.train.y, task.val.X, task.val.y, task.val.group]
    parts += [task.target_inputs] if objective.uses_target else []
    layers = repr([_layers(model) for model in models]).encode()
    return {
        "config": json.dumps(config.described(), sort_keys=True),
        "objective": f"{type(objective).__name__}({_attributes(objective)})",
        "seeds": ", ".join(map(str, seeds)),
        "model": f"{type(models[0]).__name__} with layers {digest(layers)}",
        "initial weights": _weights(models),
        "data": " ".join(_data_digest(part) for part in parts),
    }


def digest(content: bytes) -> str:
    """Return twelve digits that stand for a content."""
    return hashlib.blake2b(content, digest_size=6).hexdigest()


def _layers(model: nn.Module) -> list[Any]:
    """Return the name, kind and settings of each layer, and of each tensor its shape and whether it is trained."""
    layers = []
    for name, layer in model.named_modules(remove_duplicate=False):
        kind = type(layer)
        text = layer.extra_repr() if any(True for _ in layer.children()) else repr(layer)
        settings = {k: repr(v) for k, v in vars(layer).items() if _is_setting(k, v)}
        code = "" if kind.__module__.startswith("torch.") else _function(kind.forward)
        layers.append((name, kind.__qualname__, _ADDRESS.sub("", text), sorted(settings.items()), code))
    tensors = [
        (name, tuple(tensor.shape), str(tensor.dtype), tensor.requires_grad)
        for own in (model.named_parameters, model.named_buffers)
        for remove_duplicate in (True, False)  # together they tell tied weights from equal ones
        for name, tensor in own(remove_duplicate=remove_duplicate)
    ]
    return [layers, tensors]


def _is_setting(name: str, value: Any) -> bool:
    """Say whether a layer's attribute is a number or text of the caller's; training mode is ours to set."""
    plain = isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(isinstance(v, _PLAIN) for v in value))
    return plain and name != "training" and not name.startswith("_")


def _weights(models: Iterable[nn.Module]) -> str:
    """Return a digest of all parameters and buffers; those that a state_dict leaves out count too."""
    found = hashlib.blake2b(digest_size=6)
    for model in models:
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            found.update(name.encode())
            values = tensor.detach().cpu().contiguous().reshape(-1)
            found.update(values.view(torch.uint8).numpy())  # type: ignore[arg-type]  # bytes, whatever the dtype
    return found.hexdigest()


def _data_digest(values: Any) -> str:
    """Return shape and digest of an array; of a large one, rows at equal distances stand for all."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    if not hasattr(values, "shape"):
        values = np.asarray(values)
    if not isinstance(values, np.ndarray) or values.nbytes > _HASHED:
        values_shape = tuple(values.shape)
        values = np.asarray(values[np.unique(np.linspace(0, len(values) - 1, 8).astype(int))]) if len(values) else ""
    else:
        values_shape = values.shape
    values = np.asarray(values)
    # An array of objects holds addresses, which are others in another process.
    content = repr(values.tolist()).encode() if values.dtype.hasobject else np.ascontiguousarray(values).tobytes()
    return f"{values_shape}:{digest(content)}"


def _attributes(thing: Any, depth: int = 0) -> str:
    return ", ".join(f"{name}={_told(value, depth)}" for name, value in sorted(getattr(thing, "__dict__", {}).items()))


def _told(value: Any, depth: int = 0) -> str:
    """Return a text that is the same for the same value in another process."""
    if depth > _DEEP:
        return type(value).__qualname__
    if isinstance(value, (np.ndarray, Tensor)):
        return _data_digest(value)
    if isinstance(value, nn.Module):
        return f"{type(value).__name__}:{digest(repr(_layers(value)).encode())}:{_weights([value])}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_told(each, depth + 1) for each in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_told(each, depth + 1)}' for name, each in value.items())}}}"
    if isinstance(value, partial):
        return f"partial({_told([value.func, value.args, value.keywords], depth + 1)})"
    if isinstance(value, MethodType):
        return f"{_told(value.__self__, depth + 1)}.{_function(value.__func__, depth)}"
    if isinstance(value, FunctionType):
        return _function(value, depth)
    text = repr(value)
    if _ADDRESS.search(text) is None:
        return text
    code = _function(type(value).__call__, depth) if callable(value) else ""
    return f"{type(value).__qualname__}({_attributes(value, depth + 1)}){code}"


def _function(function: Any, depth: int = 0) -> str:
    """Return a function's name, and a digest of its code, of its defaults and of what it closes over."""
    if not isinstance(function, FunctionType):
        return getattr(function, "__qualname__", type(function).__qualname__)
    cells = [_cell(cell, depth + 1) for cell in function.__closure__ or ()]
    given = _told([function.__defaults__, function.__kwdefaults__], depth + 1)
    return f"{function.__qualname__}:{digest(repr((_code(function.__code__), given, cells)).encode())}"


def _cell(cell: Any, depth: int) -> str:
    try:
        return _told(cell.cell_contents, depth)
    except ValueError:  # not filled yet
        return "empty"


def _code(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    return code.co_code.hex(), code.co_names, code.co_varnames, constants

"""The fingerprint of a training run: short texts that identify it and are equal in another process.

It covers the settings, the objective, the seeds, the data, the layers of every model and their initial weights. It
includes the code of a model's ``forward`` and of functions that are passed to an objective. It does not include module
names, because a script has another module name when it is imported.
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

_MAX_HASHED_BYTES = 2**26  # larger arrays, and rows that are read as needed, are represented by a few rows
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None))
_MAX_DEPTH = 8  # levels of objects within objects


def fingerprint(
    config: TrainConfig, objective: Any, seeds: Sequence[int], task: Any, models: Sequence[nn.Module]
) -> dict[str, str]:
    """Return the texts that identify a run. Two runs are the same if all texts are equal."""
    parts = [task.train.X, task.train.y, task.val.X, task.val.y, task.val.group]
    parts += [task.target_inputs] if objective.uses_target else []
    layers = repr([_describe_layers(model) for model in models]).encode()
    return {
        "config": json.dumps(config.result_settings(), sort_keys=True),
        "objective": f"{type(objective).__name__}({_describe_attributes(objective)})",
        "seeds": ", ".join(map(str, seeds)),
        "model": f"{type(models[0]).__name__} with layers {digest(layers)}",
        "initial weights": _digest_weights(models),
        "data": " ".join(_digest_array(part) for part in parts),
    }


def digest(content: bytes) -> str:
    """Return a digest of twelve hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=6).hexdigest()


def _describe_layers(model: nn.Module) -> list[Any]:
    """Return the name, type and settings of each layer, and the shape, dtype and trainability of each tensor."""
    layers = []
    for name, layer in model.named_modules(remove_duplicate=False):
        layer_type = type(layer)
        text = layer.extra_repr() if any(True for _ in layer.children()) else repr(layer)
        settings = {k: repr(v) for k, v in vars(layer).items() if _is_setting(k, v)}
        code = "" if layer_type.__module__.startswith("torch.") else _describe_function(layer_type.forward)
        layers.append((name, layer_type.__qualname__, _ADDRESS.sub("", text), sorted(settings.items()), code))
    tensors = [
        (name, tuple(tensor.shape), str(tensor.dtype), tensor.requires_grad)
        for own in (model.named_parameters, model.named_buffers)
        for remove_duplicate in (True, False)  # together they distinguish tied weights from equal ones
        for name, tensor in own(remove_duplicate=remove_duplicate)
    ]
    return [layers, tensors]


def _is_setting(name: str, value: Any) -> bool:
    """Return whether an attribute of a layer is a plain public value. The training mode is not a setting."""
    plain = isinstance(value, _PLAIN_TYPES) or (
        isinstance(value, tuple) and all(isinstance(v, _PLAIN_TYPES) for v in value)
    )
    return plain and name != "training" and not name.startswith("_")


def _digest_weights(models: Iterable[nn.Module]) -> str:
    """Return a digest of all parameters and buffers, including those that are not in the state_dict."""
    hashed = hashlib.blake2b(digest_size=6)
    for model in models:
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            hashed.update(name.encode())
            values = tensor.detach().cpu().contiguous().reshape(-1)
            hashed.update(values.view(torch.uint8).numpy())  # type: ignore[arg-type]  # the bytes of any dtype
    return hashed.hexdigest()


def _digest_array(values: Any) -> str:
    """Return the shape and digest of an array. Only eight rows of a large array are hashed."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    if not hasattr(values, "shape"):
        values = np.asarray(values)
    if not isinstance(values, np.ndarray) or values.nbytes > _MAX_HASHED_BYTES:
        values_shape = tuple(values.shape)
        values = np.asarray(values[np.unique(np.linspace(0, len(values) - 1, 8).astype(int))]) if len(values) else ""
    else:
        values_shape = values.shape
    values = np.asarray(values)
    # The bytes of an object array are addresses, which differ between processes.
    content = repr(values.tolist()).encode() if values.dtype.hasobject else np.ascontiguousarray(values).tobytes()
    return f"{values_shape}:{digest(content)}"


def _describe_attributes(instance: Any, depth: int = 0) -> str:
    return ", ".join(
        f"{name}={_describe(value, depth)}" for name, value in sorted(getattr(instance, "__dict__", {}).items())
    )


def _describe(value: Any, depth: int = 0) -> str:
    """Return a text that is equal for equal values, also in another process."""
    if depth > _MAX_DEPTH:
        return type(value).__qualname__
    if isinstance(value, (np.ndarray, Tensor)):
        return _digest_array(value)
    if isinstance(value, nn.Module):
        return f"{type(value).__name__}:{digest(repr(_describe_layers(value)).encode())}:{_digest_weights([value])}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_describe(item, depth + 1) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_describe(item, depth + 1)}' for name, item in value.items())}}}"
    if isinstance(value, partial):
        return f"partial({_describe([value.func, value.args, value.keywords], depth + 1)})"
    if isinstance(value, MethodType):
        return f"{_describe(value.__self__, depth + 1)}.{_describe_function(value.__func__, depth)}"
    if isinstance(value, FunctionType):
        return _describe_function(value, depth)
    text = repr(value)
    if _ADDRESS.search(text) is None:
        return text
    code = _describe_function(type(value).__call__, depth) if callable(value) else ""
    return f"{type(value).__qualname__}({_describe_attributes(value, depth + 1)}){code}"


def _describe_function(function: Any, depth: int = 0) -> str:
    """Return the name of a function with a digest of its code, its defaults and its closure."""
    if not isinstance(function, FunctionType):
        return getattr(function, "__qualname__", type(function).__qualname__)
    cells = [_describe_cell(cell, depth + 1) for cell in function.__closure__ or ()]
    defaults = _describe([function.__defaults__, function.__kwdefaults__], depth + 1)
    return f"{function.__qualname__}:{digest(repr((_describe_code(function.__code__), defaults, cells)).encode())}"


def _describe_cell(cell: Any, depth: int) -> str:
    try:
        return _describe(cell.cell_contents, depth)
    except ValueError:  # the cell has no value yet
        return "empty"


def _describe_code(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(_describe_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts)
    return code.co_code.hex(), code.co_names, code.co_varnames, constants

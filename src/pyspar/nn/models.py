"""A model: refuse one whose head cannot be read or replaced, unwrap it, copy it, and run it on batches.

Libraries that shard or offload a model are recognised by names of classes and attributes, and never imported.
"""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from pyspar.core.moments import EPS64
from pyspar.errors import InputError
from pyspar.nn.batches import Arguments, describe_batch, move_to_device

_STANCE_LOCK = threading.RLock()  # of torch's compiler, whose stance is a setting of the whole process


def check_network(model: Any, name: str) -> None:
    """Raise an error for an object that is not a model, and for a sharded or offloaded model."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"{name} must be a torch.nn.Module, got {type(model).__name__}")
    parts = [*model.modules(), *(parameter.data for parameter in model.parameters())]
    classes = {c.__name__ for kind in set(map(type, parts)) for c in kind.__mro__}
    is_sharded = classes & {"FullyShardedDataParallel", "FSDPModule", "DTensor"}
    is_offloaded = any(getattr(getattr(m, "_hf_hook", None), "offload", False) for m in model.modules())
    if is_sharded or is_offloaded or any(p.is_meta for p in model.parameters()):
        fix = "pass a model on one device that loaded its full_state_dict, without device_map= or cpu_offload"
        raise InputError(f"{type(model).__name__} is sharded by FSDP or offloaded, so weights cannot be read; {fix}")


def unwrap(model: nn.Module) -> nn.Module:
    """Return the module inside the wrappers of torch.compile and of parallel training."""
    is_parallel = isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel))
    inner = model.module if is_parallel else getattr(model, "_orig_mod", None)
    return unwrap(inner) if isinstance(inner, nn.Module) else model


def copy_model(model: nn.Module, name: str = "model") -> nn.Module:
    """Return a copy of the module inside the wrappers of a model. All further steps change only the copy."""
    check_network(model, name)
    model = unwrap(model)
    if any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()):
        raise InputError(f"{type(model).__name__} has uninitialised lazy layers; train it first")
    try:
        return copy.deepcopy(model)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError) as error:
        raise TypeError(f"copy.deepcopy cannot copy {type(model).__name__}; make it copyable: {error}") from error


@contextmanager
def keep_random_state(model: nn.Module, *loaders: Any) -> Iterator[None]:
    """Restore the random state of torch, numpy, the standard library and loaders."""
    samplers = [getattr(loader, name, None) for loader in loaders for name in ("sampler", "batch_sampler")]
    owners = *loaders, *samplers, *(getattr(sampler, "sampler", None) for sampler in samplers)
    generators = (getattr(owner, "generator", None) for owner in owners)
    with torch.random.fork_rng({p.device for p in model.parameters() if p.is_cuda}), ExitStack() as stack:
        stack.callback(np.random.set_state, np.random.get_state())
        stack.callback(random.setstate, random.getstate())
        for generator in (g for g in generators if isinstance(g, torch.Generator)):
            stack.callback(generator.set_state, generator.get_state())
        yield


@dataclass(frozen=True)
class ModelRunner:
    """Runs a model on one batch at a time."""

    model: nn.Module
    device: torch.device
    dtype: torch.dtype | None = None  # of all floating-point weights, and therefore of such inputs
    is_compiled: bool = False
    needs_grad: bool = False

    @property
    def eps(self) -> float:
        """The machine epsilon of mixed precision, which limits the features even if they are cast to a wider dtype."""
        kind = self.device.type
        return float(torch.finfo(torch.get_autocast_dtype(kind)).eps) if torch.is_autocast_enabled(kind) else EPS64

    def __call__(self, arguments: Arguments, where: str) -> Any:
        """Return the output of the model. ``where`` names the batch in error messages."""
        args, kwargs = (move_to_device(part, self.device, self.dtype) for part in arguments)
        try:
            # These contexts apply to the model only. A loader may also use torch and must not be affected.
            with torch.set_grad_enabled(self.needs_grad), ExitStack() as stack:
                if self.is_compiled and hasattr(torch.compiler, "set_stance"):  # ignores hooks that are added later
                    stack.enter_context(_STANCE_LOCK)
                    stack.enter_context(torch.compiler.set_stance("force_eager"))
                return self.model(*args, **kwargs)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:
            named = (f"{name}={describe_batch(value)}" for name, value in kwargs.items())
            inputs = ", ".join([*map(describe_batch, args), *named])
            fix = "If these are the wrong inputs, pass inputs=, a function of the batch."
            raise InputError(f"{where}: the model failed on {inputs or 'an empty input'}: {error}\n{fix}") from error


@contextmanager
def prepare_runner(model: nn.Module) -> Iterator[ModelRunner]:
    """Yield a runner for a model in evaluation mode; the training flag of each module is restored afterwards."""
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    flags = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        marks = (hasattr(m, "_orig_mod") or hasattr(m.forward, "_torchdynamo_orig_callable") for m in model.modules())
        dtypes = {p.dtype for p in model.parameters() if p.is_floating_point()}
        yield ModelRunner(model, device, dtypes.pop() if len(dtypes) == 1 else None, any(marks))
    finally:
        for module, training in flags:
            module.training = training

"""Unwrap and copy a model, and refuse models whose head cannot be read or replaced, with the way to convert them.

Libraries that shard or offload a model, or add adapters to it, are recognised by the names of their classes and
attributes. They are never imported.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from pyspar.errors import InputError
from pyspar.nn.find_head import describe_layer


def check_model(model: Any, autocast: Any) -> None:
    """Raise an error for an object that is not a model, a sharded or offloaded model, and an invalid ``autocast``."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    if autocast not in (None, torch.bfloat16, torch.float16):
        raise TypeError(f"autocast must be torch.bfloat16, torch.float16 or None, got {autocast!r}")
    name = type(model).__name__
    classes = {c.__name__ for module in model.modules() for c in type(module).__mro__}
    if classes & {"FullyShardedDataParallel", "FSDPModule"} or any(_is_distributed(p) for p in model.parameters()):
        raise InputError(
            f"{name} is sharded by FSDP, so no process has all weights of its head; load the full state dict "
            "(torch.distributed.checkpoint.state_dict.get_model_state_dict with StateDictOptions(full_state_dict=True))"
            " into a model that is not sharded, and pass that model"
        )
    hooks = [getattr(module, "_hf_hook", None) for module in model.modules()]
    if any(p.is_meta for p in model.parameters()) or any(getattr(hook, "offload", False) for hook in hooks):
        raise InputError(
            f"{name} has weights that are offloaded or not loaded (on the device 'meta'), so it cannot be copied; load "
            "the whole model on one device, without device_map= or cpu_offload, or call "
            "accelerate.hooks.remove_hook_from_module(model, recurse=True)"
        )


def _is_distributed(parameter: Any) -> bool:
    return any(c.__name__ == "DTensor" for c in type(parameter.data).__mro__)


def unwrap(model: nn.Module) -> nn.Module:
    """Return the module inside the wrappers of torch.compile and of parallel training."""
    while True:
        if isinstance(getattr(model, "_orig_mod", None), nn.Module):
            model = model._orig_mod  # type: ignore[assignment]
        elif isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            model = model.module
        else:
            return model


def copy_model(model: nn.Module) -> nn.Module:
    """Copy a model. All further steps change only the copy, so an interruption cannot change the model."""
    if any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()):
        raise InputError(f"{type(model).__name__} has uninitialised lazy layers; train it first")
    try:
        return copy.deepcopy(model)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError) as error:
        raise TypeError(
            f"copy.deepcopy cannot copy {type(model).__name__}, and adapt_head only changes a copy of the model: "
            f"{error}"
        ) from error


def strip_wrapper_prefix(head: Any, model: nn.Module) -> str | None:
    """Return the name of a layer without the prefix that torch.compile or DataParallel adds."""
    if head is None:
        return None
    if not isinstance(head, str):
        raise TypeError(f"head must be the name of a layer, such as 'fc', got {type(head).__name__}")
    bare = re.sub(r"^((_orig_mod|module)\.)+", "", head)
    return head if head in dict(model.named_modules()) else bare


def check_not_tied(model: nn.Module, name: str) -> None:
    """Raise InputError if the head shares its weight with another layer, whose output would change too."""
    head = model.get_submodule(name)
    own = {p.data_ptr() for p in head.parameters(recurse=False)}
    for other, module in model.named_modules():
        for kind, parameter in module.named_parameters(recurse=False):
            if module is not head and parameter.data_ptr() in own and parameter.numel():
                raise InputError(
                    f"{type(model).__name__}: {describe_layer(name)} shares its weight with '{other}.{kind}', which "
                    "must not change; give the head its own weight first"
                )

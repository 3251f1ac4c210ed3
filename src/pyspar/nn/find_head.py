"""Find the linear layer whose output is the prediction of a model.

One batch is run several times. Each time the output of a candidate layer is replaced by known numbers, and the model
must return these numbers. The values of a single batch are not sufficient: a ReLU changes nothing if all outputs are
positive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from pyspar.errors import InputError
from pyspar.nn.batches import Arguments
from pyspar.nn.models import ModelRunner
from pyspar.text import list_some

Forward = Callable[[], list[Tensor]]
"""Runs the model on the batch and returns its floating-point tensors."""

Trace = list[torch.Size]
"""The shapes of a linear layer's outputs in one forward pass, one for each time that it ran."""

_PROBE_RANGE = 1000.0
"""The numbers that replace an output are between -1000 and 1000, outside the range of common activations."""


def find_head(run: ModelRunner, arguments: Arguments, head: str | None, where: str) -> str:
    """Return the name of the linear layer whose output the model returns, or raise InputError.

    A layer that is named by ``head`` is only checked.
    """
    model = type(run.model).__name__
    layers = find_linear_layers(run.model, head)

    def forward() -> list[Tensor]:
        return _collect_tensors(run(arguments, where))

    traces, outputs = _trace_layers(forward, layers)
    if not outputs:
        raise InputError(f"{where}: {model} must return a floating-point tensor, or a structure that contains one")
    if head is None:
        if not traces:
            raise InputError(
                f"{where}: {model} ran none of its linear layers: {list_some(reversed(layers))}; if its functions are "
                "compiled, pass the model before compilation, or the result of torch.compile(model)"
            )
        head = _select_layer(model, forward, layers, traces, outputs)
    reason = _explain_refusal(forward, layers[head], traces.get(head), outputs)
    if reason:
        raise InputError(
            f"{model}: {describe_layer(head)} cannot be adapted: {reason}. "
            + _suggest_conversion(run.model, head, traces.get(head), outputs)
        )
    return head


def find_linear_layers(model: nn.Module, head: str | None) -> dict[str, nn.Linear]:
    """Return the linear layers of a model by name; raise InputError if there are none, or none named ``head``."""
    name = type(model).__name__
    layers = {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    if not layers:
        raise InputError(f"{name} has no linear layer (torch.nn.Linear) whose weights can be replaced")
    if head is not None and head not in layers:
        kind = "linear layer" if head in dict(model.named_modules()) else "layer"
        raise InputError(
            f"{name} has no {kind} named {head!r}; pass one of its linear layers, last first: "
            f"{list_some(reversed(layers))}"
        )
    return layers


def _suggest_conversion(model: nn.Module, head: str, trace: Trace | None, outputs: list[Tensor]) -> str:
    """Return what to do about a model whose layer cannot be the head."""
    path = head.split(".")
    parents = [".".join(path[:i]) for i in range(1, len(path) + 1)]
    if any(hasattr(model.get_submodule(name), "lora_A") for name in parents):
        return "It has a LoRA adapter that is not merged; call model.merge_and_unload(), and pass the model it returns"
    shapes = [tuple(output.shape) for output in outputs]
    if trace is not None and len(trace[-1]) == 3 and (trace[-1][0], trace[-1][2]) in shapes:
        return (
            "The layer runs on every token and the model selects one token of each sequence, as language models for "
            "sequence classification do; pass a wrapper whose forward selects the token before the layer: "
            "layer(hidden_states[torch.arange(n), last_token])"
        )
    return (
        "The prediction must be a linear function of the features; adapt the part of the model that ends with the "
        "linear layer, and apply the rest afterwards"
    )


def _select_layer(
    model: str, forward: Forward, layers: dict[str, nn.Linear], traces: dict[str, Trace], outputs: list[Tensor]
) -> str:
    """Return the only layer whose output the model returns, or the most likely one. Late layers are tried first."""
    sizes = {output.numel() for output in outputs}
    last_first = list(traces)[::-1]
    candidates = [name for name in last_first if traces[name][-1].numel() in sizes]
    heads: list[str] = []
    for name in candidates:
        if _is_returned(forward, layers[name]):
            heads.append(name)
            if len(outputs) == 1:  # one output comes from one layer
                break
    if len(heads) > 1:
        raise InputError(
            f"{model} returns {len(outputs)} tensors, and several come directly from linear layers: "
            f"{list_some(heads[::-1])}; pass head= with one of these names"
        )
    return (heads or candidates or last_first)[0]


def _explain_refusal(forward: Forward, layer: nn.Linear, trace: Trace | None, outputs: list[Tensor]) -> str | None:
    """Return the reason why a layer cannot be the head, or None if it can."""
    if trace is None:
        return "the model does not run it"
    if trace[-1].numel() not in {output.numel() for output in outputs}:
        returned = " and ".join(str(tuple(output.shape)) for output in outputs)
        return f"its output has shape {tuple(trace[-1])}, but the model returns {returned}"
    if not _is_returned(forward, layer):
        return "the model changes its output, for example by an activation, a scaling, a selection or an added term"
    if len(trace) > 1:
        return f"the model runs it {len(trace)} times per batch, so there is more than one input row per label"
    if parametrize.is_parametrized(layer) or not isinstance(layer._parameters.get("weight"), nn.Parameter):
        return "its weight is computed from other parameters, as weight_norm and spectral_norm do; remove them first"
    if not _is_linear(forward, layer):
        return f"{type(layer).__name__} computes something other than input times weight plus bias"
    return None


def _is_returned(forward: Forward, layer: nn.Linear) -> bool:
    """Return whether the model returns the output of a layer unchanged.

    The output of the layer is replaced three times: by probe numbers, by their negation, and by zeros. One of the
    tensors that the model returns, in the same order each time, must contain all three.
    """
    places: set[int] | None = None
    for scale in (_PROBE_RANGE, -_PROBE_RANGE, 0.0):
        probe, returned = _replace_output(forward, layer, scale)
        close = {
            place
            for place, output in enumerate(returned)
            # Zero must remain exactly zero: in large numbers a small offset would be lost to rounding.
            if _are_close(output, probe, rtol=4 * max(torch.finfo(t.dtype).eps for t in (output, probe)))
        }
        places = close if places is None else places & close
    return bool(places)


def _replace_output(forward: Forward, layer: nn.Linear, scale: float) -> tuple[Tensor, list[Tensor]]:
    """Replace the output of a layer by probe numbers; return these and the tensors that the model returns."""
    probes: list[Tensor] = []

    def replace(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        numbers = _draw_probe(output.numel(), scale).to(device=output.device, dtype=output.dtype)
        probes.append(numbers.clone())  # the model may change its tensor in place
        return numbers.reshape(output.shape)

    with layer.register_forward_hook(replace):
        returned = forward()
    return probes[0], returned


def _draw_probe(count: int, scale: float) -> Tensor:
    """Return unordered numbers of many magnitudes and both signs with a nonzero mean, to detect any nonlinearity."""
    generator = torch.Generator().manual_seed(0)
    sizes = 10.0 ** (-6.0 * torch.rand(count, generator=generator))
    sizes[:1] = 1.0
    signs = torch.where(torch.rand(count, generator=generator) < 0.3, -1.0, 1.0)
    return scale * sizes * signs


def _is_linear(forward: Forward, layer: nn.Linear) -> bool:
    """Return whether a layer computes input times weight plus bias. A subclass or a hook may compute something else."""
    matches: list[bool] = []

    def compare(module: nn.Module, args: Any, kwargs: Any, output: Tensor) -> None:
        linear = F.linear(args[0] if args else kwargs["input"], layer.weight, layer.bias)
        if not bool(torch.isfinite(linear).all()):
            return  # the check of the features reports NaN and infinity
        largest = float(linear.abs().max()) if linear.numel() else 0.0
        eps = torch.finfo(linear.dtype).eps
        close = linear.shape == output.shape and _are_close(linear, output, rtol=64 * eps, atol=64 * eps * largest)
        matches.append(close)

    with layer.register_forward_hook(compare, with_kwargs=True):
        forward()
    return all(matches)


def _trace_layers(forward: Forward, layers: dict[str, nn.Linear]) -> tuple[dict[str, Trace], list[Tensor]]:
    """Run a batch; return the traces of the layers in the order of their last run, and the model's outputs."""
    traces: dict[str, Trace] = {}
    names: dict[nn.Module, str] = {layer: name for name, layer in layers.items()}

    def record(module: nn.Module, args: Any, output: Tensor) -> None:
        earlier = traces.pop(names[module], [])  # removed and added again, so that the last run is the last entry
        traces[names[module]] = [*earlier, output.shape]

    with ExitStack() as hooks:
        for layer in layers.values():
            hooks.enter_context(layer.register_forward_hook(record))
        return traces, forward()


def _collect_tensors(value: Any) -> list[Tensor]:
    """Return the floating-point tensors in a model's output, which may be a nested structure."""
    if isinstance(value, Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, Mapping):
        value = list(value.values())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in _collect_tensors(part)]
    parts = getattr(value, "__dict__", {}).values()  # of any other object, its tensors but not the objects inside it
    return [part for part in parts if isinstance(part, Tensor) and part.is_floating_point()]


def _are_close(a: Tensor, b: Tensor, *, rtol: float, atol: float = 0.0) -> bool:
    a, b = (tensor.detach().cpu().double().reshape(-1) for tensor in (a, b))
    return len(a) == len(b) and torch.allclose(a, b, rtol=rtol, atol=atol)


def describe_layer(name: str) -> str:
    """Return a layer's name for a message. The name is empty if the model itself is the layer."""
    return f"layer {name!r}" if name else "the model itself"


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

"""Find the linear layer whose output is the prediction of a model.

One batch is run several times. Each time the output of a candidate layer is replaced by known numbers, and the model
must return these numbers. The values of one run are not sufficient: a ReLU changes no positive output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from pyspar.errors import InputError
from pyspar.nn.batches import Arguments, describe_batch
from pyspar.nn.models import ModelRunner
from pyspar.text import list_some

Forward = Callable[[], list[Tensor]]  # runs the model on the batch and returns its floating-point tensors
Trace = list[torch.Size]  # the shapes of a linear layer's outputs in one forward pass
PROBE_RANGE = 1000.0  # of the numbers that replace an output, outside that of common activations
FIX = (
    "The prediction must be a linear function of the features: merge adapters first (merge_and_unload), select one "
    "token of a sequence before the layer, or adapt the part of the model that ends with the linear layer"
)


def find_head(run: ModelRunner, arguments: Arguments, head: str | None, where: str) -> str:
    """Return the name of the linear layer whose output the model returns: ``head``, or the last of all."""
    model = type(run.model).__name__
    layers = {name: m for name, m in run.model.named_modules() if isinstance(m, nn.Linear)}
    listed = list_some(reversed(layers))
    if not layers:
        raise InputError(f"{model} has no linear layer (torch.nn.Linear) whose weights can be replaced")
    if head is not None and head not in layers:
        raise InputError(f"{model} has no linear layer named {head!r}; pass one of these, last first: {listed}")

    def forward() -> list[Tensor]:
        return _collect_tensors(run(arguments, where))

    traces, outputs = _trace_layers(forward, layers)  # last first
    if not outputs:
        got, fix = describe_batch(run(arguments, where)), "wrap the model, and return the tensor of its predictions"
        raise InputError(f"{where}: {model} must return real numbers, or a tuple, list or mapping, got {got}; {fix}")
    if not traces:
        fix = "if its functions are compiled, pass the model before compilation, or the result of torch.compile(model)"
        raise InputError(f"{where}: {model} ran none of its linear layers: {listed}; {fix}")
    sizes = {output.numel() for output in outputs}
    candidates = [name for name in traces if traces[name][-1].numel() in sizes] or list(traces)[:1]
    reasons: dict[str, str | None] = {}
    for name in candidates if head is None else [head]:
        reasons[name] = _explain_refusal(forward, layers[name], traces.get(name), outputs)
        if reasons[name] is None and len(outputs) == 1:  # one output comes from one layer
            return name
    heads = [name for name, reason in reasons.items() if reason is None]
    if len(heads) > 1:
        got = f"{model} returns {len(outputs)} tensors, and several come directly from linear layers"
        raise InputError(f"{got}: {list_some(heads[::-1])}; pass head= with one of these names")
    if not heads:
        name, reason = next(iter(reasons.items()))
        raise InputError(f"{model}: {describe_layer(name)} cannot be adapted: {reason}. {FIX}")
    return heads[0]


def _explain_refusal(forward: Forward, layer: nn.Linear, trace: Trace | None, outputs: list[Tensor]) -> str | None:
    """Return the reason why a layer cannot be the head, or None if it can."""
    if trace is None:
        return "the model does not run it"
    if trace[-1].numel() not in {output.numel() for output in outputs}:
        returned = " and ".join(str(tuple(output.shape)) for output in outputs)
        return f"its output has shape {tuple(trace[-1])}, but the model returns {returned}"
    is_returned, is_linear = _probe_layer(forward, layer)
    if not is_returned:
        return "the model changes its output, for example by an activation, a scaling, a selection or an added term"
    if len(trace) > 1:
        return f"the model runs it {len(trace)} times per batch, so there is more than one input row per label"
    if parametrize.is_parametrized(layer) or not isinstance(layer._parameters.get("weight"), nn.Parameter):
        return "its weight is computed from other parameters, as weight_norm and spectral_norm do; remove them first"
    return None if is_linear else f"{type(layer).__name__} computes no input times weight plus bias"


def _probe_layer(forward: Forward, layer: nn.Linear) -> tuple[bool, bool]:
    """Return whether the model returns the output of a layer unchanged, and whether the layer is linear.

    The output is replaced by probe numbers, by their negation, and by zeros, and one of the returned tensors must
    contain all three. A subclass or a hook may compute something that is not linear.
    """
    places: set[int] | None = None
    is_linear, probes = True, list[Tensor]()

    def replace(scale: float, module: nn.Module, args: Any, kwargs: Any, output: Tensor) -> Tensor:
        nonlocal is_linear
        linear = F.linear(args[0] if args else kwargs["input"], layer.weight, layer.bias)
        if linear.numel() and bool(linear.isfinite().all()):  # the check of the features reports NaN and infinity
            eps = 64 * torch.finfo(linear.dtype).eps
            is_linear &= _are_close(linear, output, rtol=eps, atol=eps * float(linear.abs().max()))
        numbers = (scale * _draw_probe(output.numel())).to(output)
        probes.append(numbers.clone())  # the model may change its tensor in place
        return numbers.reshape(output.shape)

    for scale in (PROBE_RANGE, -PROBE_RANGE, 0.0):
        probes.clear()
        with layer.register_forward_hook(partial(replace, scale), with_kwargs=True):
            returned = forward()
        # Zero must remain exactly zero: in large numbers a small offset would be lost to rounding.
        eps = [max(torch.finfo(tensor.dtype).eps for tensor in (output, probes[0])) for output in returned]
        close = {i for i, output in enumerate(returned) if _are_close(output, probes[0], rtol=4 * eps[i])}
        places = close if places is None else places & close
    return bool(places), is_linear


def _draw_probe(count: int) -> Tensor:
    """Return unordered numbers of many magnitudes and both signs with a nonzero mean, to detect any nonlinearity."""
    generator = torch.Generator().manual_seed(0)
    sizes = 10.0 ** (-6.0 * torch.rand(count, generator=generator))
    sizes[:1] = 1.0
    return sizes * torch.where(torch.rand(count, generator=generator) < 0.3, -1.0, 1.0)


def _trace_layers(forward: Forward, layers: dict[str, nn.Linear]) -> tuple[dict[str, Trace], list[Tensor]]:
    """Run a batch; return the traces of the layers, from that which ran last to the first, and the model's outputs."""
    runs: list[tuple[Any, torch.Size]] = []
    with ExitStack() as hooks:
        for layer in layers.values():
            hooks.enter_context(layer.register_forward_hook(lambda layer, args, out: runs.append((layer, out.shape))))
        outputs = forward()
    names = {layer: name for name, layer in layers.items()}
    return {names[last]: [shape for layer, shape in runs if layer is last] for last, _ in reversed(runs)}, outputs


def _collect_tensors(value: Any) -> list[Tensor]:
    """Return the floating-point tensors in a model's output: a tensor, a mapping, a tuple or a list of outputs."""
    if isinstance(value, Tensor):
        return [value] if value.is_floating_point() else []
    parts = list(value.values()) if isinstance(value, Mapping) else value
    return [tensor for part in parts for tensor in _collect_tensors(part)] if isinstance(parts, (tuple, list)) else []


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
                what = f"{describe_layer(name)} shares its weight with '{other}.{kind}', which must not change"
                raise InputError(f"{type(model).__name__}: {what}; give the head its own weight first")

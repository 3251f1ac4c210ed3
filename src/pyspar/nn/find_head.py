"""Find: which linear layer is the head. One batch is run, and what leaves the layer must be what the model returns.

That is not read off the values of one batch, in which a ReLU may have had nothing to do. Other numbers are put in place
of the layer's output, and the model must return those.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from pyspar.errors import InputError
from pyspar.nn.batches import Call
from pyspar.nn.running import Runner

_REACH = 1000.0  # the numbers put in place of an output run from -1000 to 1000, beyond what activations let through


@dataclasses.dataclass
class Seen:
    """What one forward pass showed of a linear layer."""

    calls: int
    shape: torch.Size


def find_head(run: Runner, call: Call, head: str | None, where: str) -> str:
    """Return the name of the linear layer that the prediction leaves, or say why there is none."""
    model = type(run.model).__name__
    layers = {name: m for name, m in run.model.named_modules() if isinstance(m, nn.Linear)}
    if not layers:
        script = " TorchScript hides its layers; pass the module that it was made from."
        raise InputError(
            f"{model} has no linear layer (torch.nn.Linear), and SpAR replaces the weights of one."
            + (script if isinstance(run.model, torch.jit.ScriptModule) else "")
        )
    if head is not None and head not in layers:
        what = "has no layer named" if head not in dict(run.model.named_modules()) else "has no linear layer named"
        raise InputError(f"{model} {what} {head!r}. Its linear layers are {few(layers)}; pass head='<one of them>'.")
    seen, outputs = _traced(run, layers, call, where)
    if not outputs:
        raise InputError(f"{where}: {model} must return a floating-point tensor, or a structure that holds one.")
    if head is not None:
        reason = _reason(run, layers[head], seen.get(head), outputs, call, where)
        if reason:
            raise InputError(_refusal(model, head, reason))
        return head
    return _only(run, layers, seen, outputs, call, where)


def _only(
    run: Runner, layers: dict[str, nn.Linear], seen: dict[str, Seen], outputs: list[Tensor], call: Call, where: str
) -> str:
    """Return the one layer that the prediction leaves; the later in the pass, the likelier, so the last comes first."""
    model = type(run.model).__name__
    if not seen:
        raise InputError(f"{where}: {model} ran none of its linear layers ({few(layers)}), so none is its head.")
    sizes = {output.numel() for output in outputs}
    last_first = list(seen)[::-1]
    candidates = [name for name in last_first if seen[name].shape.numel() in sizes]
    leaving: list[str] = []
    for name in candidates:
        if _what_follows(run, layers[name], call, where) is None:
            leaving.append(name)
            if len(outputs) == 1:  # one output leaves one layer
                break
    if len(leaving) > 1:
        raise InputError(
            f"{model} returns {len(outputs)} tensors, and {few(leaving[::-1])} each give one of them; say which is "
            "to be adapted: head='<one of them>'."
        )
    name = leaving[0] if leaving else (candidates or last_first)[0]
    reason = _reason(run, layers[name], seen[name], outputs, call, where)
    if reason:
        raise InputError(_refusal(model, name, reason))
    return name


def _refusal(model: str, name: str, reason: str) -> str:
    return (
        f"{model}: {shown(name)} is not a head that can be replaced: {reason}. SpAR needs a prediction that is a "
        "linear function of features; adapt a model that ends in its linear layer, and apply what follows afterwards."
    )


def _reason(
    run: Runner, layer: nn.Linear, seen: Seen | None, outputs: list[Tensor], call: Call, where: str
) -> str | None:
    """Return why a layer cannot be the head, or None."""
    if seen is None:
        return "the model does not run it"
    if seen.shape.numel() not in {output.numel() for output in outputs}:
        returned = " and ".join(str(tuple(output.shape)) for output in outputs)
        return f"it gives shape {tuple(seen.shape)} and the model returns {returned}, so other layers follow it"
    follows = _what_follows(run, layer, call, where)
    if follows is not None:
        return follows
    if seen.calls > 1:
        return f"the model runs it {seen.calls} times on one batch, so its inputs are not one row for each label"
    if parametrize.is_parametrized(layer) or not isinstance(layer._parameters.get("weight"), nn.Parameter):
        return "its weight is computed from other parameters (weight_norm, spectral_norm?); remove that first"
    if not _is_linear(run, layer, call, where):
        return f"{type(layer).__name__} computes something else than input times weight plus bias"
    return None


def _what_follows(run: Runner, layer: nn.Linear, call: Call, where: str) -> str | None:
    """Return what happens to the output of a layer before the model returns it, or None if nothing does."""
    probe, reached = _replaced(run, layer, call, where, _REACH)
    mirror, mirrored = _replaced(run, layer, call, where, -_REACH)
    zero, at_zero = _replaced(run, layer, call, where, 0.0)
    pairs = [(a, b) for a, b in zip(reached, at_zero) if a.numel() == probe.numel() == b.numel()]
    others = [c for c in mirrored if c.numel() == probe.numel()]
    for a, b in pairs:
        eps = max(torch.finfo(a.dtype).eps, torch.finfo(probe.dtype).eps)
        # Zero must stay zero exactly, or a small offset would hide in the rounding of large numbers.
        mirrors = any(_close(c, mirror, rtol=4 * eps) for c in others)
        if mirrors and _close(a, probe, rtol=4 * eps) and _close(b, zero, rtol=0.0):
            return None
    # Rounding may be coarse where what is added is large; a word in a message does not need more digits.
    if any(_close(a.cpu().double() - b.cpu().double(), probe, rtol=1e-2, atol=_REACH / 100) for a, b in pairs):
        return "something is added to what leaves it: a skip connection around it, another layer, or an offset"
    return "what leaves it is changed before it is returned: by an activation, a rescaling, or a choice among outputs"


def _replaced(run: Runner, layer: nn.Linear, call: Call, where: str, reach: float) -> tuple[Tensor, list[Tensor]]:
    """Return the numbers put in place of a layer's output, and what the model made of them."""
    put: list[Tensor] = []

    def replace(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        numbers = _probe(output.numel(), reach).to(device=output.device, dtype=output.dtype)
        put.append(numbers.clone())  # what follows may work in place
        return numbers.reshape(output.shape)

    with layer.register_forward_hook(replace):
        returned = tensors_in(run(call, where))
    return put[0], returned


def _probe(count: int, reach: float) -> Tensor:
    """Return numbers of many sizes and both signs, in no order and with a mean: what is bent anywhere shows."""
    generator = torch.Generator().manual_seed(0)
    sizes = 10.0 ** (-6.0 * torch.rand(count, generator=generator))
    sizes[:1] = 1.0
    signs = torch.where(torch.rand(count, generator=generator) < 0.3, -1.0, 1.0)
    return reach * sizes * signs


def _is_linear(run: Runner, layer: nn.Linear, call: Call, where: str) -> bool:
    """Tell whether a layer does what its name says: a subclass or a hook may not."""
    same: list[bool] = []

    def compare(module: nn.Module, args: Any, kwargs: Any, output: Tensor) -> None:
        plain = F.linear(args[0] if args else kwargs["input"], layer.weight, layer.bias)
        size = float(plain.abs().max()) if plain.numel() else 0.0
        eps = torch.finfo(plain.dtype).eps
        same.append(plain.shape == output.shape and _close(plain, output, rtol=64 * eps, atol=64 * eps * size))

    with layer.register_forward_hook(compare, with_kwargs=True):
        run(call, where)
    return all(same)


def _traced(run: Runner, layers: dict[str, nn.Linear], call: Call, where: str) -> tuple[dict[str, Seen], list[Tensor]]:
    """Run a batch; return the layers in the order they were run in, and the model's outputs."""
    seen: dict[str, Seen] = {}
    names: dict[nn.Module, str] = {layer: name for name, layer in layers.items()}

    def note(module: nn.Module, args: Any, output: Tensor) -> None:
        before = seen.pop(names[module], None)  # taken out and put back, so that the last run comes last
        seen[names[module]] = Seen(1 if before is None else before.calls + 1, output.shape)

    handles = [layer.register_forward_hook(note) for layer in layers.values()]
    try:
        return seen, tensors_in(run(call, where))
    finally:
        for handle in handles:
            handle.remove()


def tensors_in(value: Any) -> list[Tensor]:
    """Return the floating-point tensors of a model's output, whatever structure holds them."""
    if isinstance(value, Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, Mapping):
        value = list(value.values())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, (tuple, list)):
        return [tensor for each in value for tensor in tensors_in(each)]
    return [each for each in getattr(value, "__dict__", {}).values() if isinstance(each, Tensor)]


def _close(a: Tensor, b: Tensor, *, rtol: float, atol: float = 0.0) -> bool:
    a, b = (each.detach().cpu().double().reshape(-1) for each in (a, b))
    return torch.allclose(a, b, rtol=rtol, atol=atol)


def shown(name: str) -> str:
    """Return a layer's name for a message; the model itself has none."""
    return f"the layer {name!r}" if name else "the model itself, a linear layer,"


def few(names: Any, limit: int = 8) -> str:
    """List names, the last ones where there are many: heads come last."""
    names = [repr(name) for name in names]
    return ", ".join(names) if len(names) <= limit else f"{', '.join(names[-limit:])} and {len(names) - limit} before"

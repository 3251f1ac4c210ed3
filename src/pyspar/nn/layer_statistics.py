"""Normalisation layers: find them, and give their outputs on a target the mean and spread that they had on a source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

NORMS = nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm
MATRICES = nn.Linear, nn.modules.conv._ConvNd
NAME = re.compile(r"(?i)norm(?!al(?!i[sz]))")  # not of NormalHead
MAX_ROUNDING = 0.05  # of an output in bfloat16


def find_layers(model: nn.Module) -> list[nn.Module]:
    """Return the normalisation layers with weights or statistics: those of torch, and classes named so."""
    layers = [layer for layer in model.modules() if isinstance(layer, NORMS) or NAME.search(type(layer).__name__)]
    return [layer for layer in layers if affine(layer) or has_statistics(layer)]


def affine(layer: nn.Module) -> list[nn.Parameter]:
    """Return scale and offset of a normalisation layer; nothing if a layer has other weights, such as a matrix."""
    own = list(layer.parameters(recurse=False))
    is_scale = all(p.is_floating_point() and p.numel() == max(p.shape, default=1) for p in own)
    return own if isinstance(layer, nn.LayerNorm) or (is_scale and not isinstance(layer, MATRICES)) else []


def has_statistics(layer: nn.Module) -> bool:
    """Return whether a layer has the statistics of its training rows. Frozen ones are no subclass of torch's."""
    is_batch = isinstance(layer, nn.modules.batchnorm._NormBase) or "batchnorm" in type(layer).__name__.lower()
    return is_batch and {"running_mean", "running_var"} <= dict(layer.named_buffers(recurse=False)).keys()


class ChannelSums(dict[Any, tuple[float, Tensor, Tensor]]):
    """Number, mean and variance of each channel, by layer: of the inputs of batch normalisation, else of the outputs,
    which are to have ``wanted`` means and spreads on a target.
    """

    def __init__(self, layers: list[Any], wanted: NDArray[np.float32] | None) -> None:
        self._layers, self._wanted = layers, dict[Any, Tensor]()
        if wanted is not None:
            parts = torch.from_numpy(wanted).split_with_sizes([layer.weight.numel() for layer in layers], 1)
            self._wanted = {layer: part for layer, part in zip(layers, parts, strict=True) if part[1].any()}
        self._places: dict[Any, int | None] = {}  # the dimension of the channels
        self._runs: dict[Any, int] = {}

    def add(self, layer: Any, args: Any, kwargs: dict[str, Any], output: Any) -> Any:
        """Add the values of a batch; return the output with the statistics of the batch, or mean and spread of the
        source. A layer that includes an activation but has no statistics is ignored.
        """
        if layer not in self._places:
            self._places[layer] = 1 if has_statistics(layer) else _find_channels(layer, args, kwargs, output)
        if (place := self._places[layer]) is None:
            return output
        self._runs[layer] = self._runs.get(layer, 0) + 1
        x = next(iter((*args, *kwargs.values()))) if has_statistics(layer) else output
        by_row = isinstance(layer, nn.modules.instancenorm._InstanceNorm) and has_statistics(layer)
        values = x.detach().movedim(place, 0).flatten(1 + by_row).float()
        n, mean = float(values[0].numel()), values.mean(dim=-1, keepdim=True)  # several times as fast as values.var
        variance, mean = (values - mean).square_().flatten(1).mean(dim=1), mean.flatten(1).mean(dim=1)
        m, before, earlier = self.get(layer, (0.0, mean, variance))
        step, share = mean - before, n / (m + n)
        between = 0.0 if by_row else share * (1.0 - share) * step.square()
        self[layer] = m + n, before + share * step, earlier + share * (variance - earlier) + between
        if has_statistics(layer) and n > 1.0:  # one value has no spread
            own = layer.running_mean, layer.running_var
            layer.running_mean, layer.running_var = mean.to(own[0]), variance.to(own[1])
            output = layer.forward(*args, **kwargs)  # may include an activation
            layer.running_mean, layer.running_var = own
        if layer not in self._wanted:
            return output
        shape = [-1 if i == place else 1 for i in range(output.ndim)]
        factor, offset = (part.view(shape).to(output) for part in self._change(layer, mean, variance))
        return output * factor + offset

    def joined(self, batches: int) -> Tensor:
        """Return means and spreads of the outputs; spreads of zero for a layer that does not run once per batch."""
        parts = [torch.zeros(2, 0)]
        for layer in self._layers:
            other = 0.0, layer.bias.detach().float(), torch.zeros_like(layer.bias, dtype=torch.float32)
            _, mean, variance = self[layer] if self._runs.get(layer) == batches else other
            parts.append(torch.stack([mean, variance.sqrt()]).cpu())
        return torch.cat(parts, dim=1)

    @torch.no_grad()
    def write(self) -> None:
        """Change statistics, or scales and offsets, so that the outputs have the mean and spread of the source."""
        for layer, (n, mean, variance) in self.items():
            if has_statistics(layer):
                layer.running_mean.copy_(mean)
                layer.running_var.copy_(variance * n / max(n - 1.0, 1.0))
            elif layer in self._wanted:
                factor, offset = self._change(layer, mean, variance)
                layer.weight.mul_(factor)
                layer.bias.copy_(layer.bias * factor + offset)

    def _change(self, layer: nn.Module, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Return the factor and the offset that give a layer's output its wanted mean and spread."""
        wanted, spreads = self._wanted[layer].to(mean.device)
        spread = variance.sqrt()
        factor = torch.where(spread > 1e-6 * spreads, spreads / spread.clamp_min(1e-30), 1.0)
        return factor, wanted - factor * mean


@contextmanager
def collect_channels(layers: list[nn.Module], *, wanted: NDArray[np.float32] | None = None) -> Iterator[ChannelSums]:
    """Collect the outputs of layers with scale and offset but without statistics; with ``wanted``, also the inputs of
    batch normalisation. Each batch then leaves a layer with the mean and spread of the source.
    """
    with_both = [x for x in layers if [p.ndim for p in affine(x)] == [1, 1] and hasattr(x, "weight")]
    chosen: list[Any] = [layer for layer in with_both if not has_statistics(layer)]
    sums = ChannelSums(chosen, wanted)
    others = [x for x in layers if has_statistics(x)] if wanted is not None else []
    with ExitStack() as stack:
        for layer in chosen + others:
            stack.enter_context(layer.register_forward_hook(sums.add, with_kwargs=True))
        yield sums


@torch.no_grad()
def _find_channels(layer: Any, args: Any, kwargs: dict[str, Any], output: Any) -> int | None:
    """Return the dimension of an output along which the offsets are added, or None."""
    if not isinstance(output, Tensor):
        return None
    before = layer.bias.clone()
    steps = torch.linspace(0.5, 1.0, len(before)).to(before)
    layer.bias += steps
    change = layer.forward(*args, **kwargs) - output
    layer.bias.copy_(before)
    places = [i for i, n in enumerate(output.shape) if n == len(steps)]
    return next((i for i in places if (change.movedim(i, -1) - steps).abs().mean() < MAX_ROUNDING), None)

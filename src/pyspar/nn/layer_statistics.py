"""Normalisation layers: find them, and give their outputs on a target the mean and spread that they had on a source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Layers = dict[str, nn.Module]


def find_layers(model: nn.Module) -> Layers:
    """Return the normalisation layers with weights or statistics. Those of other libraries are recognised by name."""
    layers = {name: layer for name, layer in model.named_modules() if "norm" in type(layer).__name__.lower()}
    return {name: layer for name, layer in layers.items() if affine(layer) or has_statistics(layer)}


def affine(layer: nn.Module) -> list[nn.Parameter]:
    """Return scale and offset of a normalisation layer."""
    own = [p for p in layer.parameters(recurse=False) if p.is_floating_point()]
    return [p for p in own if isinstance(layer, nn.LayerNorm) or p.numel() == max(p.shape)]


def has_statistics(layer: nn.Module) -> bool:
    """Return whether a layer has the statistics of its training rows."""
    return isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.running_mean is not None


class ChannelSums(dict[Any, tuple[float, Tensor, Tensor]]):
    """Number, mean and variance of each channel, by layer; ``wanted`` are mean and spread of outputs on the source."""

    wanted: dict[Any, Any]

    def add(self, layer: nn.Module, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add values of shape (channels, any number); return their mean and variance."""
        n, mean = float(values.shape[1]), values.mean(dim=1)
        variance = (values - mean[:, None]).square_().mean(dim=1)  # several times as fast as values.var
        m, before, earlier = self.get(layer, (0.0, mean, variance))
        step, share = mean - before, n / (m + n)
        between = share * (1.0 - share) * step.square()
        self[layer] = m + n, before + share * step, earlier + share * (variance - earlier) + between
        return mean, variance

    def joined(self) -> NDArray[np.float32]:
        """Return means and spreads of the channels of all layers."""
        parts = [torch.stack([mean, variance.sqrt()]).cpu() for _, mean, variance in self.values()]
        return torch.cat([torch.zeros(2, 0), *parts], dim=1).numpy()

    def change(self, layer: nn.Module, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Return the factor and the offset that give a layer's output its wanted mean and spread."""
        wanted, spreads = self.wanted[layer].to(mean.device)
        spread = variance.sqrt()
        factor = torch.where(spread > 1e-6 * spreads, spreads / spread.clamp_min(1e-30), 1.0)
        return factor, wanted - factor * mean

    def write_statistics(self) -> None:
        """Set the statistics of batch normalisation to those of its inputs."""
        for layer, (n, mean, variance) in self.items():
            layer.running_mean.copy_(mean)
            layer.running_var.copy_(variance * n / max(n - 1.0, 1.0))

    @torch.no_grad()
    def write_weights(self) -> None:
        """Change scales and offsets so that the outputs have the wanted mean and spread."""
        for layer, (_, mean, variance) in self.items():
            factor, offset = self.change(layer, mean, variance)
            layer.weight.mul_(factor)
            layer.bias.copy_(layer.bias * factor + offset)


@contextmanager
def collect_outputs(layers: Layers, wanted: NDArray[np.float32] | None = None) -> Iterator[ChannelSums]:
    """Collect the outputs of layers with scale and offset that do not have statistics themselves.

    With ``wanted``, the outputs of each batch get the source's mean and spread, so that later layers see these.
    """
    chosen: list[Any] = [layer for layer in layers.values() if _has_both(layer) and not has_statistics(layer)]
    sizes = [layer.weight.numel() for layer in chosen]
    fits = wanted is not None and wanted.shape[1] == sum(sizes)
    sums, places = ChannelSums(), cast(dict[Any, int], {})
    sums.wanted = dict(zip(chosen, torch.from_numpy(wanted).split_with_sizes(sizes, 1), strict=True)) if fits else {}

    def collect(layer: Any, args: Any, output: Tensor) -> Tensor | None:
        place = places.setdefault(layer, _find_channels(layer, args, output))
        values = output.detach().movedim(place, 0).flatten(1).float()
        mean, variance = sums.add(layer, values)
        if layer not in sums.wanted:
            return None
        factor, offset = sums.change(layer, mean, variance)
        shape = [-1 if i == place else 1 for i in range(output.ndim)]
        return output * factor.view(shape).to(output) + offset.view(shape).to(output)

    with ExitStack() as stack:
        for layer in chosen:
            stack.enter_context(layer.register_forward_hook(collect))
        yield sums


@contextmanager
def collect_inputs(layers: Layers) -> Iterator[ChannelSums]:
    """Collect the inputs of batch normalisation, which normalises with the statistics of each batch meanwhile."""
    sums = ChannelSums()

    def collect(layer: nn.Module, args: Any) -> None:
        values = args[0].detach().transpose(0, 1).flatten(1).float()
        sums.add(layer, values)
        layer.training = values.shape[1] > 1 and not isinstance(layer, nn.SyncBatchNorm)

    with ExitStack() as stack:
        for layer in filter(has_statistics, cast(dict[str, Any], layers).values()):
            stack.enter_context(layer.register_forward_pre_hook(collect))
            stack.callback(vars(layer).update, training=False, momentum=layer.momentum)
            stack.callback(layer.num_batches_tracked.copy_, layer.num_batches_tracked.clone())
            layer.momentum = 0.0  # a batch does not change the statistics
        yield sums


def _has_both(layer: Any) -> bool:
    shapes = [p.shape for p in affine(layer)]
    named = isinstance(getattr(layer, "weight", None), Tensor) and isinstance(getattr(layer, "bias", None), Tensor)
    return named and len(shapes) == 2 and shapes[0] == shapes[1] and len(shapes[0]) == 1


@torch.no_grad()
def _find_channels(layer: Any, args: Any, output: Tensor) -> int:
    """Return the dimension of an output along which the offsets are added: the one where only one entry changes."""
    before = layer.bias.clone()
    layer.bias[0] += 1.0
    changed = layer.forward(*args) != output
    layer.bias.copy_(before)
    sizes = [i for i, n in enumerate(output.shape) if n == len(before)]
    return next((i for i in sizes if not bool(changed.narrow(i, 1, len(before) - 1).any())), sizes[0])

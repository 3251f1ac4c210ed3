"""Stacks of networks: several networks of one architecture as one, with a leading axis on every parameter.

For the small networks for tables, the time of a step is mostly call overhead, so ten networks in one call take little
longer than one. Only linear layers and elementwise functions can be stacked, because they process rows independently
and draw no random numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from pyspar.errors import InputError
from pyspar.paper.networks.mlp import MLP

ELEMENTWISE = (
    nn.LeakyReLU, nn.ReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softplus, nn.LogSigmoid, nn.Identity,
)  # fmt: skip
CONTAINERS = (MLP, nn.Sequential, nn.ModuleList)


class StackedLinear(nn.Module):
    """S linear layers: weight (S, out, in), bias (S, out) or None. The input is (S, B, in), or (B, in) for all."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.in_features, self.out_features = layers[0].in_features, layers[0].out_features
        # In memory the input axis comes before the output axis, as in the gradient, so that no step transposes it.
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().mT for layer in layers]).mT)
        has_bias = layers[0].bias is not None
        self.bias = nn.Parameter(torch.stack([layer.bias.detach() for layer in layers])) if has_bias else None
        for own, original in ((self.weight, layers[0].weight), (self.bias, layers[0].bias)):
            if own is not None:
                own.requires_grad_(original.requires_grad)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 2:
            x = x.expand(len(self.weight), *x.shape)
        if self.bias is None:
            return torch.bmm(x, self.weight.mT)
        return torch.baddbmm(self.bias.unsqueeze(1), x, self.weight.mT)

    def extract(self, number: int) -> nn.Linear:
        """Return a copy of one of the layers."""
        like = {"device": self.weight.device, "dtype": self.weight.dtype}
        layer: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
            nn.Linear, self.in_features, self.out_features, bias=self.bias is not None, **like
        )
        with torch.no_grad():
            for own, stacked in ((layer.weight, self.weight), (layer.bias, self.bias)):
                if stacked is not None:
                    own.copy_(stacked[number]).requires_grad_(stacked.requires_grad)
        return layer


def can_stack(networks: Sequence[nn.Module]) -> bool:
    """Return whether networks have one architecture and contain only layers that can be stacked."""
    first = networks[0]
    for _, layer in first.named_modules():
        if type(layer) not in (*CONTAINERS, nn.Linear, *ELEMENTWISE):
            return False
    if any(_has_tied_weights(network) or _has_hooks(network) for network in networks):
        return False
    return len({describe_network(network) for network in networks}) == 1


def stack(networks: Sequence[nn.Module]) -> nn.Module:
    """Return one network that computes all S networks. Parameters have a leading axis, and batches are (S, B, D).

    >>> two = stack([MLP(3), MLP(3)])
    >>> two(torch.zeros(2, 5, 3)).shape, two.features(torch.zeros(2, 5, 3)).shape
    (torch.Size([2, 5, 1]), torch.Size([2, 5, 128]))
    """
    if not networks or not can_stack(networks):
        raise InputError(
            "networks must have one architecture of linear layers and elementwise functions, without tied weights and "
            f"hooks, got {', '.join(sorted({repr(n) for n in networks})) or 'none'}"
        )
    names = [name for name, layer in networks[0].named_modules() if isinstance(layer, nn.Linear)]
    stacked = {name: StackedLinear([n.get_submodule(name) for n in networks]) for name in names}  # type: ignore[misc]
    return _replace_layers(networks[0], stacked)


def unstack(network: nn.Module) -> list[nn.Module]:
    """Return the separate networks of a stack, with their current weights."""
    layers = {name: layer for name, layer in network.named_modules() if isinstance(layer, StackedLinear)}
    if not layers:
        raise InputError(f"network must be the result of stack(), got {network!r} without a stacked layer")
    count = len(next(iter(layers.values())).weight)
    return [_replace_layers(network, {name: layer.extract(i) for name, layer in layers.items()}) for i in range(count)]


def _replace_layers(network: nn.Module, layers: Mapping[str, nn.Module]) -> nn.Module:
    """Return a copy of a network with the layers of these names replaced."""
    if "" in layers:  # the network itself is one layer
        return layers[""]
    # deepcopy uses the layers in memo instead of copies.
    memo = {id(network.get_submodule(name)): layer for name, layer in layers.items()}
    return copy.deepcopy(network, memo)


def _has_tied_weights(network: nn.Module) -> bool:
    """Return whether a layer or parameter is used twice. Stacking would separate the two uses."""
    return any(
        len(list(own())) != len(list(own(remove_duplicate=False)))
        for own in (network.named_modules, network.named_parameters)
    )


def _has_hooks(network: nn.Module) -> bool:
    """Return whether a layer has hooks or a patched ``forward``, which a stacked layer would not have."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    hooked = any(getattr(layer, kind, None) for layer in network.modules() for kind in kinds)
    patched = any("forward" in vars(layer) for layer in network.modules())
    return hooked or patched or any(parameter._backward_hooks for parameter in network.parameters())


def describe_network(network: nn.Module) -> tuple[str, ...]:
    """Return texts with the layers of a network, and the shape, dtype and trainability of its parameters."""
    layers = tuple(f"{name}: {layer!r}" for name, layer in network.named_modules() if not list(layer.children()))
    tensors = tuple(f"{name}: {tuple(t.shape)} {t.dtype} {t.requires_grad}" for name, t in network.named_parameters())
    return (type(network).__name__, *layers, *tensors)

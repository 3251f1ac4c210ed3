"""Stacked: several networks of one shape as one, with a leading axis of seeds on every parameter.

The tabular networks are so small that a step costs mostly the calls it makes; ten networks in one call cost little more
than one. Only layers that treat each row alone and draw nothing can be stacked: linear ones and elementwise functions.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pyspar.errors import InputError
from pyspar.paper.networks.mlp import MLP

ELEMENTWISE = (
    nn.LeakyReLU, nn.ReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softplus, nn.LogSigmoid, nn.Identity,
)  # fmt: skip
CONTAINERS = (MLP, nn.Sequential, nn.ModuleList)


class StackedLinear(nn.Module):
    """Linear layers of one shape: weight (S, out, in), bias (S, out) or None; takes (S, B, in), or (B, in) for all."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.in_features, self.out_features = layers[0].in_features, layers[0].out_features
        # In memory the inputs come first, as the gradient below has them: else each step would transpose it.
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().mT for layer in layers]).mT)
        biased = layers[0].bias is not None
        self.bias = nn.Parameter(torch.stack([layer.bias.detach() for layer in layers])) if biased else None
        for own, theirs in ((self.weight, layers[0].weight), (self.bias, layers[0].bias)):
            if own is not None:
                own.requires_grad_(theirs.requires_grad)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 2:
            x = x.expand(len(self.weight), *x.shape)
        if self.bias is None:
            return torch.bmm(x, self.weight.mT)
        return torch.baddbmm(self.bias.unsqueeze(1), x, self.weight.mT)

    def lane(self, number: int) -> nn.Linear:
        """Return one of the layers, with weights of its own."""
        like = {"device": self.weight.device, "dtype": self.weight.dtype}
        layer: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
            nn.Linear, self.in_features, self.out_features, bias=self.bias is not None, **like
        )
        with torch.no_grad():
            for own, all_lanes in ((layer.weight, self.weight), (layer.bias, self.bias)):
                if all_lanes is not None:
                    own.copy_(all_lanes[number]).requires_grad_(all_lanes.requires_grad)
        return layer


def can_stack(networks: Sequence[nn.Module]) -> bool:
    """Say whether networks are of one shape and made only of layers that can carry an axis of seeds."""
    first = networks[0]
    for _, layer in first.named_modules():
        if type(layer) not in (*CONTAINERS, nn.Linear, *ELEMENTWISE):
            return False
    if any(_shares_weights(network) or _is_hooked(network) for network in networks):
        return False
    return len({_shape(network) for network in networks}) == 1


def stack(networks: Sequence[nn.Module]) -> nn.Module:
    """Return one network that is all of them: parameters carry a leading axis of lanes, batches are (S, B, D).

    >>> two = stack([MLP(3), MLP(3)])
    >>> two(torch.zeros(2, 5, 3)).shape, two.features(torch.zeros(2, 5, 3)).shape
    (torch.Size([2, 5, 1]), torch.Size([2, 5, 128]))
    """
    if not networks or not can_stack(networks):
        raise InputError(
            "stack needs networks of one shape, made of linear layers and elementwise functions, without tied weights "
            "and hooks. "
            f"Got {', '.join(sorted({repr(n) for n in networks})) or 'none'}; train these one by one."
        )
    return _replaced(networks[0], {name: _stacked_layer(networks, name) for name in _linear_names(networks[0])})


def unstack(network: nn.Module) -> list[nn.Module]:
    """Return the networks that were stacked, with the weights they have now."""
    layers = {name: layer for name, layer in network.named_modules() if isinstance(layer, StackedLinear)}
    if not layers:
        raise InputError(f"unstack needs what stack() returned. Got {network!r}, which has no stacked layer.")
    lanes = len(next(iter(layers.values())).weight)
    return [_replaced(network, {name: layer.lane(i) for name, layer in layers.items()}) for i in range(lanes)]


def _stacked_layer(networks: Sequence[nn.Module], name: str) -> nn.Module:
    return StackedLinear([network.get_submodule(name) for network in networks])  # type: ignore[misc]


def _replaced(network: nn.Module, layers: dict[str, nn.Module]) -> nn.Module:
    """Return a copy of a network with other layers in some places."""
    if "" in layers:  # the network is itself a layer
        return layers[""]
    memo = {id(network.get_submodule(name)): layer for name, layer in layers.items()}  # deepcopy takes these instead
    return copy.deepcopy(network, memo)


def _linear_names(network: nn.Module) -> list[str]:
    return [name for name, layer in network.named_modules() if isinstance(layer, nn.Linear)]


def _shares_weights(network: nn.Module) -> bool:
    """Say whether a layer, or a parameter of two layers, stands in two places: stacked, they would come apart."""
    return any(
        len(list(own())) != len(list(own(remove_duplicate=False)))
        for own in (network.named_modules, network.named_parameters)
    )


def _is_hooked(network: nn.Module) -> bool:
    """Say whether something was hung onto a layer that a stacked one in its place would not have."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    hooked = any(getattr(layer, kind, None) for layer in network.modules() for kind in kinds)
    patched = any("forward" in vars(layer) for layer in network.modules())
    return hooked or patched or any(parameter._backward_hooks for parameter in network.parameters())


def _shape(network: nn.Module) -> tuple[str, ...]:
    layers = tuple(f"{name}: {layer!r}" for name, layer in network.named_modules() if not list(layer.children()))
    tensors = tuple(f"{name}: {tuple(t.shape)} {t.dtype} {t.requires_grad}" for name, t in network.named_parameters())
    return (type(network).__name__, *layers, *tensors)

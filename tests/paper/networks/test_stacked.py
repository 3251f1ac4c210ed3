"""Stacks of networks compute the same as the separate networks."""

import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import MLP, stack, unstack  # noqa: E402
from pyspar.paper.networks.stacked import can_stack  # noqa: E402


def build_networks(outputs=1):
    networks = []
    for seed in (0, 3, 11):
        torch.manual_seed(seed)
        networks.append(MLP(5, hidden=16, outputs=outputs).double())
    return networks


def test_a_stack_computes_its_networks_and_unstack_returns_them():
    networks = build_networks(outputs=2)
    stacked = stack(networks)
    x = torch.randn(3, 7, 5, dtype=torch.float64)
    expected = torch.stack([net(rows) for net, rows in zip(networks, x, strict=True)])
    torch.testing.assert_close(stacked(x), expected)
    torch.testing.assert_close(stacked(x[0]), torch.stack([net(x[0]) for net in networks]))  # one batch for all
    assert stacked.features(x).shape == (3, 7, 16)
    assert {p.shape[0] for p in stacked.parameters()} == {3}
    for one, other in zip(unstack(stacked), networks, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
        assert one.head.weight.data_ptr() != other.head.weight.data_ptr()
        assert one.state_dict().keys() == other.state_dict().keys()
        assert all(p.is_contiguous() for p in one.parameters())


def test_the_gradients_of_a_stack_equal_those_of_its_networks():
    networks = build_networks()
    stacked, x = stack(networks), torch.randn(3, 7, 5, dtype=torch.float64)
    stacked(x).square().mean(dim=(-2, -1)).sum().backward()
    for number, (net, rows) in enumerate(zip(networks, x, strict=True)):
        net(rows).square().mean().backward()
        for own, stacked_parameter in zip(net.parameters(), stacked.parameters(), strict=True):
            torch.testing.assert_close(own.grad, stacked_parameter.grad[number])


def test_only_networks_of_one_architecture_and_known_layers_are_stacked():
    assert can_stack([MLP(3), MLP(3)])
    assert not can_stack([MLP(3), MLP(4)])
    assert not can_stack([nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1))] * 2)
    assert not can_stack([nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))] * 2)
    shared = nn.Linear(2, 2)
    assert not can_stack([nn.Sequential(shared, nn.ReLU(), shared)] * 2)
    slopes = [nn.Sequential(nn.Linear(2, 2), nn.LeakyReLU(slope)) for slope in (0.1, 0.2)]
    assert not can_stack(slopes)
    with pytest.raises(InputError, match=r"MLP\(3.*MLP\(4"):
        stack([MLP(3), MLP(4)])
    with pytest.raises(InputError, match=r"MLP\(3"):
        unstack(MLP(3))


def add_hook(kind):
    network = MLP(3)
    calls = {
        "forward": lambda: network.stem[0].register_forward_hook(lambda m, x, y: 2 * y),
        "before": lambda: network.trunk[1].register_forward_pre_hook(lambda m, x: None),
        "backward": lambda: network.head.register_full_backward_hook(lambda m, a, b: None),
        "gradient": lambda: network.head.weight.register_hook(lambda g: 2 * g),
        "patched": lambda: setattr(network.head, "forward", lambda x: x),
    }
    calls[kind]()
    return network


@pytest.mark.parametrize("kind", ["forward", "before", "backward", "gradient", "patched"])
def test_networks_with_hooks_are_not_stacked(kind):
    assert not can_stack([MLP(3), add_hook(kind)])
    assert not can_stack([add_hook(kind), MLP(3)])

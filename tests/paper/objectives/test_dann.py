"""DANN: its phases, the signs of its gradients, and its effect on a critic trained afterwards."""

import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar import InputError  # noqa: E402
from pyspar.paper.networks.mlp import MLP  # noqa: E402
from pyspar.paper.networks.stacked import stack  # noqa: E402
from pyspar.paper.objectives.base import Batch  # noqa: E402
from pyspar.paper.objectives.dann import (  # noqa: E402
    DANN,
    domain_cross_entropy,
)


@pytest.fixture
def batch():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(128, 4, generator=draw)
    z = torch.randn(128, 4, generator=draw) + torch.tensor([0.0, 0.0, 2.0, 0.0])
    return Batch(x, x[:, :1], target=z)


@pytest.fixture
def net():
    torch.manual_seed(0)
    return MLP(4, hidden=16)


def test_alternation_trains_the_model_in_even_epochs_and_the_critic_in_odd_ones():
    objective = DANN()
    assert [objective.phase(epoch) for epoch in range(4)] == ["model", "critic", "model", "critic"]
    assert objective.updates("model") == {"model"}
    assert objective.updates("critic") == {"module"}
    assert objective.module_lr(0.5) == 1e-3


def test_reversal_trains_both_in_every_epoch():
    objective = DANN(by="reversal", critic_lr=0.01)
    assert {objective.phase(epoch) for epoch in range(4)} == {"train"}
    assert objective.updates("train") == {"model", "module"}
    assert objective.module_lr(0.5) == 0.01


def test_the_critic_has_one_hidden_layer_of_512():
    critic = DANN().module(16)
    assert [type(layer) for layer in critic] == [nn.Linear, nn.LeakyReLU, nn.Linear]
    assert critic[0].out_features == 512
    assert critic[1].negative_slope == 0.1
    assert critic(torch.zeros(3, 16)).shape == (3, 1)


def test_an_epoch_of_the_critic_has_no_gradient_for_the_model(batch, net):
    critic = DANN().module(16)
    (part,) = DANN().loss(net, batch, critic, "critic").values()
    part.backward()
    assert all(p.grad is None for p in net.parameters())
    assert all(p.grad is not None for p in critic.parameters())


def test_the_model_maximises_the_loss_of_the_critic(batch, net):
    objective, critic = DANN(0.3), DANN().module(16)
    parts = objective.loss(net, batch, critic, "model")
    entropy = domain_cross_entropy(critic(net.features(batch.x)), critic(net.features(batch.target)))
    torch.testing.assert_close(parts["confusion"], -0.3 * entropy)


def test_reversal_gives_the_gradients_of_both_phases_of_alternation(batch, net):
    critic = DANN().module(16)
    parameters, own = list(net.parameters()), list(critic.parameters())

    def slopes(objective, phase, wanted):
        total = sum(objective.loss(net, batch, critic, phase).values())
        return torch.autograd.grad(total, wanted)

    reversed_ = DANN(0.3, by="reversal")
    for one, other in zip(slopes(reversed_, "train", parameters), slopes(DANN(0.3), "model", parameters)):
        torch.testing.assert_close(one, other)
    for one, other in zip(slopes(reversed_, "train", own), slopes(DANN(0.3), "critic", own)):
        torch.testing.assert_close(one, other)


def take_steps(objective, net, critic, batch, phases, lr=5e-3):
    adams = {
        "model": torch.optim.Adam(net.parameters(), lr=lr),
        "module": torch.optim.Adam(critic.parameters(), lr=objective.module_lr(lr)),
    }
    for phase in phases:
        net.zero_grad()
        critic.zero_grad()
        sum(objective.loss(net, batch, critic, phase).values()).backward()
        for part in objective.updates(phase):
            adams[part].step()


def test_reversal_raises_the_cross_entropy_of_the_critic(batch):
    entropies, errors = {}, {}
    for weight in (0.0, 1.0):
        torch.manual_seed(2)
        net, objective = MLP(4, hidden=16), DANN(weight, by="reversal", hidden=32, critic_lr=0.02)
        critic = objective.module(16)
        take_steps(objective, net, critic, batch, ["train"] * 200)
        late = []
        for _ in range(20):  # both oscillate, so the mean is compared
            take_steps(objective, net, critic, batch, ["train"] * 5)
            parts = objective.loss(net, batch, critic, "train")
            late.append(float(parts["critic"].detach()))
        entropies[weight], errors[weight] = sum(late) / len(late), float(parts["mse"].detach())
    assert entropies[1.0] > entropies[0.0] + 0.1
    assert errors[1.0] < 0.2  # the variance of the labels is 1


def test_alternation_first_lowers_and_then_raises_the_loss_of_the_critic(batch, net):
    objective = DANN(1.0, hidden=32, critic_lr=0.02)
    torch.manual_seed(2)
    critic = objective.module(16)

    def entropy():
        with torch.no_grad():
            return float(objective.loss(net, batch, critic, "critic")["critic"])

    start = entropy()
    take_steps(objective, net, critic, batch, ["critic"] * 60)
    learned = entropy()
    take_steps(objective, net, critic, batch, ["model"] * 60)
    assert learned < start - 0.2
    assert entropy() > learned + 0.2


def test_stacked_seeds_have_the_losses_of_each_alone(batch):
    torch.manual_seed(0)
    nets, critics = [MLP(4, hidden=8) for _ in range(3)], [DANN(hidden=5).module(8) for _ in range(3)]
    x, y, z = (torch.stack([t, 2 * t, t - 1]) for t in (batch.x, batch.y, batch.target))
    for objective, phase in ((DANN(0.5), "model"), (DANN(0.5), "critic"), (DANN(0.5, by="reversal"), "train")):
        together = objective.loss(stack(nets), Batch(x, y, target=z), stack(critics), phase)
        for seed, (net, critic) in enumerate(zip(nets, critics)):
            alone = objective.loss(net, Batch(x[seed], y[seed], target=z[seed]), critic, phase)
            for name, value in alone.items():
                torch.testing.assert_close(together[name][seed], value)


def test_invalid_settings_raise():
    with pytest.raises(InputError, match=r"by .*'turns'"):
        DANN(by="turns")
    with pytest.raises(InputError, match=r"hidden .*0"):
        DANN(hidden=0)
    with pytest.raises(InputError, match=r"weight .*-0\.1"):
        DANN(-0.1)

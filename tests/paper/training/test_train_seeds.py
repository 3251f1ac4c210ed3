"""Several seeds as one computation: each is what it would be alone."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import ERM, MLP, Objective, TrainConfig, stack, train, train_seeds, unstack  # noqa: E402
from pyspar.paper.networks.stacked import can_stack  # noqa: E402
from pyspar.paper.objectives.base import mean_squared_error  # noqa: E402

SEEDS = (0, 3, 11)


def config(**changes):
    return TrainConfig(**{"epochs": 5, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


def models(dtype=torch.float64, outputs=1):
    found = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        found.append(MLP(5, hidden=16, outputs=outputs).to(dtype))
    return found


class Mixes(Objective):
    """Partners, a weight for each batch, a target, and a critic of its own."""

    name = "Mixes"
    uses_target = True

    def plan(self, plan):
        rows = plan.rng.integers(0, len(plan.y), plan.order.shape)
        return {"partner": rows, "mix": plan.rng.beta(2, 2, len(plan.order))}

    def module(self, n_features):
        return nn.Sequential(nn.Linear(n_features, 6), nn.LeakyReLU(0.1), nn.Linear(6, 1))

    def loss(self, net, batch, module, phase):
        mix = batch.draws["mix"][..., None, None]
        x, y = mix * batch.x + (1 - mix) * batch.partner_x, mix * batch.y + (1 - mix) * batch.partner_y
        told = module(net.features(batch.target)).square().mean(dim=(-2, -1))
        return {"mse": mean_squared_error(net(x), y), "told": 0.1 * told}


@pytest.mark.parametrize("objective", [ERM(), Mixes()], ids=lambda o: o.name)
@pytest.mark.parametrize("settings", [{}, {"select": "worst-group-r", "shuffle": "epoch"}, {"select": "last"}], ids=str)
def test_seeds_trained_as_one_equal_each_trained_alone(objective, settings, table_task):
    task, chosen = table_task(), config(**settings)
    together = train_seeds(models(), objective, task, chosen, SEEDS)
    for model, seed, one in zip(models(), SEEDS, together, strict=True):
        alone = train(model, objective, task, chosen, seed)
        assert (one.seed, one.best_epoch) == (seed, alone.best_epoch)
        assert type(one.model) is MLP
        for a, b in zip(one.model.parameters(), alone.model.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-9)  # float64 sums in another order, five epochs long
        for ours, theirs in zip(one.history, alone.history, strict=True):
            assert ours.losses == pytest.approx(theirs.losses, rel=1e-8)
            assert ours.validation == pytest.approx(theirs.validation, rel=1e-8)


def test_they_are_equal_in_float32_to_its_rounding(table_task):
    task = table_task(outputs=2)
    together = train_seeds(models(torch.float32, 2), ERM(), task, config(), SEEDS)
    for model, seed, one in zip(models(torch.float32, 2), SEEDS, together, strict=True):
        alone = train(model, ERM(), task, config(), seed)
        for a, b in zip(one.model.parameters(), alone.model.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-4)  # 40 steps of Adam, which divides by small gradients


def test_best_weights_are_kept_for_each_seed_by_itself(table_task):
    found = train_seeds(models(), ERM(), table_task(n=16), config(lr=0.1, epochs=12), SEEDS)
    assert len({one.best_epoch for one in found}) > 1
    for one in found:
        assert one.validation == min(record.validation for record in one.history)


def test_a_function_of_the_seed_builds_the_models_under_that_seed(table_task):
    task = table_task()
    state = torch.get_rng_state()
    built = train_seeds(lambda seed: MLP(5, hidden=16).double(), ERM(), task, config(), SEEDS)
    assert torch.equal(state, torch.get_rng_state())
    given = train_seeds(models(), ERM(), task, config(), SEEDS)
    for a, b in zip(built, given, strict=True):
        assert torch.equal(a.model.head.weight, b.model.head.weight)


@pytest.mark.parametrize("kind", ["dropout", "objective"])
def test_what_cannot_be_stacked_takes_turns_with_the_same_result(kind, table_task):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1))

        def forward(self, x):
            return self.layers(x)

    class Alone(ERM):
        stackable = False

        def loss(self, net, batch, module, phase):
            assert batch.x.ndim == 2
            return super().loss(net, batch, module, phase)

    def built(seed):
        torch.manual_seed(seed)
        return Net() if kind == "dropout" else MLP(5, hidden=8)

    task, objective = table_task(), ERM() if kind == "dropout" else Alone()
    together = train_seeds(built, objective, task, config(), SEEDS)
    for seed, one in zip(SEEDS, together, strict=True):
        alone = train(built(seed), objective, task, config(), seed)
        for a, b in zip(one.model.state_dict().values(), alone.model.state_dict().values(), strict=True):
            assert torch.equal(a, b)


def test_a_stack_computes_what_its_networks_compute_and_gives_them_back():
    networks = models(outputs=2)
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


def test_gradients_of_a_stack_are_those_of_its_networks():
    networks = models()
    stacked, x = stack(networks), torch.randn(3, 7, 5, dtype=torch.float64)
    stacked(x).square().mean(dim=(-2, -1)).sum().backward()
    for number, (net, rows) in enumerate(zip(networks, x, strict=True)):
        net(rows).square().mean().backward()
        for own, theirs in zip(net.parameters(), stacked.parameters(), strict=True):
            torch.testing.assert_close(own.grad, theirs.grad[number])


def test_only_networks_of_one_shape_and_known_layers_are_stacked():
    assert can_stack([MLP(3), MLP(3)])
    assert not can_stack([MLP(3), MLP(4)])
    assert not can_stack([nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1))] * 2)
    assert not can_stack([nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))] * 2)
    shared = nn.Linear(2, 2)
    assert not can_stack([nn.Sequential(shared, nn.ReLU(), shared)] * 2)
    slopes = [nn.Sequential(nn.Linear(2, 2), nn.LeakyReLU(slope)) for slope in (0.1, 0.2)]
    assert not can_stack(slopes)
    with pytest.raises(InputError, match="one shape"):
        stack([MLP(3), MLP(4)])
    with pytest.raises(InputError, match="no stacked layer"):
        unstack(MLP(3))


def hooked(kind):
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
    assert not can_stack([MLP(3), hooked(kind)])
    assert not can_stack([hooked(kind), MLP(3)])


def test_tied_weights_stay_tied_and_hooks_stay_hung_with_several_seeds(table_task):
    sequences = [nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5), nn.Linear(5, 1)) for _ in SEEDS]
    for one in sequences:
        one[2].weight = one[0].weight
    assert not can_stack(sequences)
    for one in train_seeds(sequences, ERM(), table_task(), config(), SEEDS):
        assert one.model[0].weight is one.model[2].weight
    calls = []
    networks = models(torch.float32)
    for network in networks:
        network.head.register_forward_hook(lambda module, x, y: calls.append(len(y)))
    train_seeds(networks, ERM(), table_task(), config(epochs=1), SEEDS)
    assert calls


def test_the_seed_that_diverges_is_named(table_task):
    task = table_task()
    broken = models()
    with torch.no_grad():
        broken[1].head.weight.fill_(np.nan)
    with pytest.raises(InputError, match=r"epoch 0, step 0 of 8.*seed 3"):
        train_seeds(broken, ERM(), task, config(), SEEDS)


@pytest.mark.parametrize("seeds", [[], [0, 0], [-1], [0.5], [True]])
def test_seeds_that_cannot_seed_are_refused(seeds, table_task):
    with pytest.raises(InputError, match="seeds must be whole numbers"):
        train_seeds(lambda seed: MLP(5), ERM(), table_task(), config(), seeds)


def test_models_must_be_one_for_each_seed_and_different(table_task):
    with pytest.raises(InputError, match=r"one for each of 3 seeds. Got 2"):
        train_seeds(models()[:2], ERM(), table_task(), config(), SEEDS)
    with pytest.raises(InputError, match="different objects"):
        train_seeds([models()[0]] * 3, ERM(), table_task(), config(), SEEDS)

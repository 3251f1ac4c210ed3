"""Several seeds trained as one computation equal each seed trained alone."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import ERM, MLP, Objective, TrainConfig, train, train_seeds  # noqa: E402
from pyspar.paper.networks.stacked import can_stack  # noqa: E402
from pyspar.paper.objectives.base import mean_squared_error  # noqa: E402

SEEDS = (0, 3, 11)


def config(**changes):
    return TrainConfig(**{"epochs": 5, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


def build_models(dtype=torch.float64, outputs=1):
    networks = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        networks.append(MLP(5, hidden=16, outputs=outputs).to(dtype))
    return networks


class Mixes(Objective):
    """Partners, a weight per batch, target rows and a critic."""

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
        penalty = module(net.features(batch.target)).square().mean(dim=(-2, -1))
        return {"mse": mean_squared_error(net(x), y), "penalty": 0.1 * penalty}


@pytest.mark.parametrize("objective", [ERM(), Mixes()], ids=lambda o: o.name)
@pytest.mark.parametrize("settings", [{}, {"select": "worst-group-r", "shuffle": "epoch"}, {"select": "last"}], ids=str)
def test_seeds_trained_together_equal_each_trained_alone(objective, settings, table_task):
    task, chosen = table_task(), config(**settings)
    together = train_seeds(build_models(), objective, task, chosen, SEEDS)
    for model, seed, one in zip(build_models(), SEEDS, together, strict=True):
        alone = train(model, objective, task, chosen, seed)
        assert (one.seed, one.best_epoch) == (seed, alone.best_epoch)
        assert type(one.model) is MLP
        for a, b in zip(one.model.parameters(), alone.model.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-9)  # five epochs of float64 sums in another order
        for ours, theirs in zip(one.history, alone.history, strict=True):
            assert ours.losses == pytest.approx(theirs.losses, rel=1e-8)
            assert ours.validation == pytest.approx(theirs.validation, rel=1e-8)


def test_float32_seeds_trained_together_equal_each_up_to_rounding(table_task):
    task = table_task(outputs=2)
    together = train_seeds(build_models(torch.float32, 2), ERM(), task, config(), SEEDS)
    for model, seed, one in zip(build_models(torch.float32, 2), SEEDS, together, strict=True):
        alone = train(model, ERM(), task, config(), seed)
        for a, b in zip(one.model.parameters(), alone.model.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-4)  # 40 steps of Adam, which divides by small gradients


def test_the_best_weights_are_selected_for_each_seed(table_task):
    trained = train_seeds(build_models(), ERM(), table_task(n=16), config(lr=0.1, epochs=12), SEEDS)
    assert len({one.best_epoch for one in trained}) > 1
    for one in trained:
        assert one.validation == min(record.validation for record in one.history)


def test_a_function_of_the_seed_builds_the_models_under_that_seed(table_task):
    task = table_task()
    state = torch.get_rng_state()
    by_function = train_seeds(lambda seed: MLP(5, hidden=16).double(), ERM(), task, config(), SEEDS)
    assert torch.equal(state, torch.get_rng_state())
    by_list = train_seeds(build_models(), ERM(), task, config(), SEEDS)
    for a, b in zip(by_function, by_list, strict=True):
        assert torch.equal(a.model.head.weight, b.model.head.weight)


@pytest.mark.parametrize("kind", ["dropout", "objective"])
def test_networks_that_cannot_be_stacked_are_trained_in_turn_with_the_same_result(kind, table_task):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1))

        def forward(self, x):
            return self.layers(x)

    class NotStackable(ERM):
        stackable = False

        def loss(self, net, batch, module, phase):
            assert batch.x.ndim == 2
            return super().loss(net, batch, module, phase)

    def build(seed):
        torch.manual_seed(seed)
        return Net() if kind == "dropout" else MLP(5, hidden=8)

    task, objective = table_task(), ERM() if kind == "dropout" else NotStackable()
    together = train_seeds(build, objective, task, config(), SEEDS)
    for seed, one in zip(SEEDS, together, strict=True):
        alone = train(build(seed), objective, task, config(), seed)
        for a, b in zip(one.model.state_dict().values(), alone.model.state_dict().values(), strict=True):
            assert torch.equal(a, b)


def test_tied_weights_and_hooks_are_kept_with_several_seeds(table_task):
    sequences = [nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5), nn.Linear(5, 1)) for _ in SEEDS]
    for one in sequences:
        one[2].weight = one[0].weight
    assert not can_stack(sequences)
    for one in train_seeds(sequences, ERM(), table_task(), config(), SEEDS):
        assert one.model[0].weight is one.model[2].weight
    calls = []
    networks = build_models(torch.float32)
    for network in networks:
        network.head.register_forward_hook(lambda module, x, y: calls.append(len(y)))
    train_seeds(networks, ERM(), table_task(), config(epochs=1), SEEDS)
    assert calls


def test_the_error_names_the_seed_that_diverges(table_task):
    task = table_task()
    broken = build_models()
    with torch.no_grad():
        broken[1].head.weight.fill_(np.nan)
    with pytest.raises(InputError, match=r"epoch 0, step 0 of 8.*seed 3"):
        train_seeds(broken, ERM(), task, config(), SEEDS)


@pytest.mark.parametrize("seeds", [[], [0, 0], [-1], [0.5], [True]])
def test_invalid_seeds_raise(seeds, table_task):
    with pytest.raises(InputError, match=r"^seeds .*got \["):
        train_seeds(lambda seed: MLP(5), ERM(), table_task(), config(), seeds)


def test_each_seed_requires_its_own_model(table_task):
    with pytest.raises(InputError, match=r"3 seeds, got 2"):
        train_seeds(build_models()[:2], ERM(), table_task(), config(), SEEDS)

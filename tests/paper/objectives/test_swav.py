"""SwAV: Sinkhorn's assignments against a plain loop, the swapped prediction, and the two phases."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar import InputError  # noqa: E402
from pyspar.paper.networks.mlp import MLP  # noqa: E402
from pyspar.paper.networks.stacked import stack  # noqa: E402
from pyspar.paper.objectives.base import Batch, EpochPlan  # noqa: E402
from pyspar.paper.objectives.swav import SwAV, prototype_scores, sinkhorn_assignments, swapped_prediction  # noqa: E402


@pytest.fixture
def scores():
    return torch.randn(12, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 3


@pytest.fixture
def batch():
    draw = torch.Generator().manual_seed(0)
    x, z = torch.randn(20, 6, generator=draw), torch.randn(20, 6, generator=draw) + 2
    return Batch(x, x[:, :1], target=z, draws={"views": torch.tensor(3)})


def test_sinkhorn_equals_a_plain_loop(scores):
    Q = np.exp(scores.numpy() / 0.05)
    for _ in range(3):
        Q /= Q.sum(axis=0, keepdims=True)
        Q /= Q.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(sinkhorn_assignments(scores).numpy(), Q, rtol=1e-9)


def test_after_many_iterations_every_prototype_has_the_same_share(scores):
    assignments = sinkhorn_assignments(scores, iterations=2000)
    torch.testing.assert_close(assignments.sum(dim=-1), torch.ones(12, dtype=torch.float64))
    torch.testing.assert_close(
        assignments.sum(dim=-2), torch.full((5,), 12 / 5, dtype=torch.float64), rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("factor", [0.0, 1e4, 1e30])
def test_assignments_are_finite_for_scores_of_any_size(factor, scores):
    assignments = sinkhorn_assignments(scores.float() * factor)
    assert torch.isfinite(assignments).all()
    torch.testing.assert_close(assignments.sum(dim=-1), torch.ones(12))


def test_shifting_a_prototypes_scores_does_not_change_the_balanced_assignments(scores):
    moved = scores + torch.tensor([0.3, -0.2, 0.0, 0.1, 0.5])
    one, other = (sinkhorn_assignments(s, iterations=2000) for s in (scores, moved))
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-8)


def test_the_swapped_prediction_is_symmetric_and_at_least_the_entropy(scores):
    other = scores.roll(1, dims=0)
    forward, backward = swapped_prediction(scores, other), swapped_prediction(other, scores)
    torch.testing.assert_close(forward, backward)
    q = sinkhorn_assignments(scores)
    entropy = -(q * q.clamp(min=1e-300).log()).sum(dim=-1).mean()
    assert forward >= entropy  # Gibbs' inequality; both views have equal assignments in another order of rows
    uniform = torch.zeros(12, 5)
    assert float(swapped_prediction(uniform, uniform)) == pytest.approx(math.log(5))


def test_the_assignments_have_no_gradient(scores):
    first, second = scores.clone().requires_grad_(), scores.roll(1, dims=0).requires_grad_()
    (slope,) = torch.autograd.grad(swapped_prediction(first, second), first)
    q, p = sinkhorn_assignments(second.detach()), torch.softmax(first.detach() / 0.1, dim=-1)
    torch.testing.assert_close(slope, (p - q) / (2 * 0.1 * 12))


def test_scores_are_cosines(batch):
    module = SwAV(1, prototypes=7, projection=4).module(6)
    scores = prototype_scores(module, 1e3 * batch.x)
    assert scores.shape == (20, 7)
    assert (scores.abs() <= 1 + 1e-6).all()


def test_pretraining_trains_both_parts_and_finetuning_only_the_model():
    objective = SwAV(2)
    assert [objective.phase(epoch) for epoch in range(4)] == ["pretrain", "pretrain", "finetune", "finetune"]
    assert objective.updates("pretrain") == {"model", "module"}
    assert objective.updates("finetune") == {"model"}
    order = np.zeros((3, 4), dtype=int)
    plan = objective.plan(EpochPlan(np.random.default_rng(0), order, np.zeros((4, 1)), 1))
    assert plan["views"].shape == (3,)
    assert objective.plan(EpochPlan(np.random.default_rng(0), order, np.zeros((4, 1)), 2)) == {}


def test_pretraining_lowers_its_loss_without_labels_and_finetuning_is_erm(batch):
    torch.manual_seed(0)
    net, objective = MLP(6, hidden=32), SwAV(1, prototypes=8, projection=16)
    module = objective.module(32)
    head = net.head.weight.detach().clone()
    adam = torch.optim.Adam([*net.parameters(), *module.parameters()], lr=3e-3)
    losses = []
    for step in range(120):
        views = Batch(batch.x, batch.y * math.nan, target=batch.target, draws={"views": torch.tensor(step)})
        adam.zero_grad()
        (loss,) = objective.loss(net, views, module, "pretrain").values()
        loss.backward()
        adam.step()
        losses.append(float(loss.detach()))
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:10])
    assert torch.equal(net.head.weight, head)
    (mse,) = objective.loss(net, batch, module, "finetune").values()
    torch.testing.assert_close(mse, (net(batch.x) - batch.y).square().mean())


def test_stacked_seeds_have_the_losses_of_each_alone(batch):
    torch.manual_seed(0)
    objective = SwAV(1, prototypes=4, projection=5)
    nets, modules = [MLP(6, hidden=8) for _ in range(3)], [objective.module(8) for _ in range(3)]
    x, y, z = (torch.stack([t, 2 * t, t - 1]) for t in (batch.x, batch.y, batch.target))
    seeds = torch.tensor([1, 2, 3])
    together = objective.loss(stack(nets), Batch(x, y, target=z, draws={"views": seeds}), stack(modules), "pretrain")
    for seed, (net, module) in enumerate(zip(nets, modules)):
        own = Batch(x[seed], y[seed], target=z[seed], draws={"views": seeds[seed]})
        alone = objective.loss(net, own, module, "pretrain")["swav"]
        torch.testing.assert_close(together["swav"][seed], alone)


def test_invalid_settings_raise():
    with pytest.raises(InputError, match=r"pretrain .*1\.5"):
        SwAV(1.5)
    with pytest.raises(InputError, match=r"^prototypes "):
        SwAV(1, prototypes=1)
    with pytest.raises(InputError, match=r"^epsilon "):
        SwAV(1, epsilon=0)

"""Mixup and C-Mixup: the loss against a plain formula, limiting cases, stacked seeds and plans."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper.objectives.base import ERM, Batch, EpochPlan  # noqa: E402
from pyspar.paper.objectives.mixup import CMixup, Mixup, mix_rows  # noqa: E402


class Net(nn.Module):
    """A small float64 network. ``shape`` is that of one input."""

    def __init__(self, shape=(5,), outputs=2, linear_stem=False, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        d = int(np.prod(shape))
        first = nn.Linear(d, 7, dtype=torch.float64)
        flat = nn.Flatten() if len(shape) > 1 else nn.Identity()
        self.stem = nn.Sequential(flat, first) if linear_stem else nn.Sequential(flat, first, nn.Tanh())
        self.trunk = nn.Sequential(nn.Tanh(), nn.Linear(7, 6, dtype=torch.float64), nn.Tanh())
        self.head = nn.Linear(6, outputs, bias=False, dtype=torch.float64)

    def features(self, x):
        return self.trunk(self.stem(x))

    def forward(self, x):
        return self.head(self.features(x))


def batch_of(objective, n=40, shape=(5,), outputs=2, seed=0, mix=None, steps=3, size=8):
    """Return a training set, and its first batch according to the objective's plan."""
    rng = np.random.default_rng(seed)
    x, y = torch.tensor(rng.normal(size=(n, *shape))), torch.tensor(rng.normal(size=(n, outputs)))
    order = rng.permutation(n)[: steps * size].reshape(steps, size)
    plan = EpochPlan(rng, order, y.numpy(), 0, objective.prepare(y.numpy()))
    drawn = objective.plan(plan)
    mix = torch.as_tensor(drawn["mix"][0] if mix is None else mix, dtype=torch.float64)
    i, j = order[0], drawn["partner"][0]
    return Batch(x[i], y[i], x[j], y[j], draws={"mix": mix})


def loss(objective, net, batch):
    parts = objective.loss(net, batch, None, "train")
    assert set(parts) == {"mse"}
    return parts["mse"]


OBJECTIVES = [
    Mixup(),
    Mixup(mix="sample", where="manifold"),
    CMixup(0.5),
    CMixup(0.5, where="manifold"),
    CMixup(0.5, mix="sample", mix_alpha=0.5, include_self=False),
    CMixup(0.5, partners="within-batch", mix="sample", where="manifold"),
]


@pytest.mark.parametrize("shape", [(5,), (2, 3, 3)])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_the_loss_equals_the_formula(objective, shape):
    """The formula is evaluated row by row in float64, so only the order of sums differs."""
    net = Net(shape)
    batch = batch_of(objective, shape=shape)
    total = 0.0
    for row in range(8):
        lam = float(batch.draws["mix"][row] if objective.mix == "sample" else batch.draws["mix"])
        ends = [v[row : row + 1] for v in (batch.x, batch.partner_x)]
        if objective.where == "input":
            out = net(lam * ends[0] + (1 - lam) * ends[1])
        else:
            out = net.head(net.trunk(lam * net.stem(ends[0]) + (1 - lam) * net.stem(ends[1])))
        want = lam * batch.y[row] + (1 - lam) * batch.partner_y[row]
        total += ((out - want) ** 2).sum().item()
    assert loss(objective, net, batch).item() == pytest.approx(total / (8 * 2), rel=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_a_mixing_weight_of_one_equals_erm_bit_for_bit(objective):
    net = Net()
    mix = np.ones(8) if objective.mix == "sample" else 1.0
    batch = batch_of(objective, mix=mix)
    assert loss(objective, net, batch) == loss(ERM(), net, batch)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_a_mixing_weight_of_zero_equals_erm_on_the_partners(objective):
    net = Net()
    mix = np.zeros(8) if objective.mix == "sample" else 0.0
    batch = batch_of(objective, mix=mix)
    assert loss(objective, net, batch) == loss(ERM(), net, Batch(batch.partner_x, batch.partner_y))


@pytest.mark.parametrize("mix", ["batch", "sample"])
def test_mixing_after_a_linear_stem_equals_mixing_inputs(mix):
    net = Net(linear_stem=True)
    batch = batch_of(Mixup(mix=mix))
    inputs, manifold = (loss(Mixup(mix=mix, where=where), net, batch) for where in ("input", "manifold"))
    assert inputs.item() == pytest.approx(manifold.item(), rel=1e-12)  # float64, a few sums in another order


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_stacked_seeds_have_the_losses_and_gradients_of_each_alone(objective):
    nets = [Net(seed=s) for s in range(3)]
    batches = [batch_of(objective, seed=s) for s in range(3)]
    alone = [loss(objective, net, batch) for net, batch in zip(nets, batches)]
    for one in alone:
        one.backward()

    parts = SimpleNamespace(
        stem=lambda x: torch.stack([net.stem(v) for net, v in zip(nets, x)]),
        trunk=lambda h: torch.stack([net.trunk(v) for net, v in zip(nets, h)]),
        head=lambda h: torch.stack([net.head(v) for net, v in zip(nets, h)]),
    )

    class StackedNet(SimpleNamespace):
        def __call__(self, x):
            return self.head(self.trunk(self.stem(x)))

    gradients = [[p.grad.clone() for p in net.parameters()] for net in nets]
    for net in nets:
        net.zero_grad()
    stacked = Batch(
        *(torch.stack([getattr(b, name) for b in batches]) for name in ("x", "y", "partner_x", "partner_y")),
        draws={"mix": torch.stack([b.draws["mix"] for b in batches])},
    )
    together = loss(objective, StackedNet(**vars(parts)), stacked)
    together.sum().backward()
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-12, atol=0)
    for net, wanted in zip(nets, gradients):
        for parameter, gradient in zip(net.parameters(), wanted):
            torch.testing.assert_close(parameter.grad, gradient, rtol=1e-10, atol=1e-14)


def test_plans_have_the_shapes_of_the_epoch_and_contain_training_rows():
    y = np.random.default_rng(0).normal(size=(50, 1))
    order = np.random.default_rng(0).permutation(50)[:48].reshape(6, 8)
    for objective in OBJECTIVES:
        drawn = objective.plan(EpochPlan(np.random.default_rng(1), order, y, 0, objective.prepare(y)))
        assert set(drawn) == {"partner", "mix"}
        assert drawn["partner"].shape == (6, 8)
        assert drawn["partner"].min() >= 0
        assert drawn["partner"].max() < 50
        assert drawn["mix"].shape == ((6, 8) if objective.mix == "sample" else (6,))
        assert ((drawn["mix"] > 0) & (drawn["mix"] < 1)).all()


def test_partners_within_the_batch_are_other_rows_of_the_batch_unless_include_self():
    y = np.random.default_rng(0).normal(size=(48, 1))
    order = np.random.default_rng(0).permutation(48).reshape(6, 8)
    objective = CMixup(0.3, partners="within-batch", include_self=False)
    partner = objective.plan(EpochPlan(np.random.default_rng(1), order, y, 0, objective.prepare(y)))["partner"]
    assert all(set(p) <= set(o) for p, o in zip(partner, order))
    assert (partner != order).all()


def test_mixing_weights_are_beta_distributed():
    """Mean 1/2 and variance 1 / (8 a + 4), to five standard errors."""
    order = np.zeros((500, 200), dtype=np.int64)
    for a in (0.5, 2.0):
        mix = Mixup(mix_alpha=a, mix="sample").plan(EpochPlan(np.random.default_rng(0), order, np.zeros((3, 1)), 0))
        variance = 1 / (8 * a + 4)
        assert mix["mix"].mean() == pytest.approx(0.5, abs=5 * np.sqrt(variance / mix["mix"].size))
        assert mix["mix"].var() == pytest.approx(variance, rel=0.02)


def test_c_mixup_with_a_wide_kernel_draws_like_mixup():
    """The mean label distance between a row and its partner, to five standard errors of 40,000 draws."""
    y = np.random.default_rng(0).normal(size=(400, 1))
    order = np.tile(np.arange(400), (100, 1))

    def distance(objective):
        drawn = objective.plan(EpochPlan(np.random.default_rng(2), order, y, 0, objective.prepare(y)))
        return float(np.abs(y[drawn["partner"]] - y[order]).mean())

    assert distance(CMixup(1e6)) == pytest.approx(distance(Mixup()), abs=5 * np.sqrt(2) * 0.9 / 200)
    assert distance(CMixup(0.01)) < 0.02


def test_two_plans_of_one_seed_are_equal_and_the_objective_is_not_changed():
    objective = CMixup(0.3)
    y = np.random.default_rng(0).normal(size=(50, 1))
    state, before = objective.prepare(y), copy.deepcopy(objective)
    order = np.arange(48).reshape(6, 8)
    one, other = (objective.plan(EpochPlan(np.random.default_rng(4), order, y, 0, state)) for _ in range(2))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert objective == before


def test_half_precision_activations_are_mixed_with_a_single_precision_weight():
    ones, zeros = torch.ones(2, 3, dtype=torch.bfloat16), torch.zeros(2, 3, dtype=torch.bfloat16)
    rows = mix_rows(ones, zeros, torch.tensor(0.5))
    assert rows.dtype == torch.bfloat16
    assert (rows == 0.5).all()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: CMixup(0.0), r"bandwidth .*0\.0"),
        (lambda: CMixup(float("nan")), "bandwidth .*nan"),
        (lambda: Mixup(mix_alpha=-1), "mix_alpha .*-1"),
        (lambda: CMixup(1.0, where="output"), "where .*'output'"),
        (lambda: CMixup(1.0, partners="all"), "partners .*'all'"),
        (lambda: CMixup(1.0, mix="epoch"), "mix .*'epoch'"),
    ],
)
def test_invalid_settings_raise(make, match):
    with pytest.raises(InputError, match=match):
        make()

"""Noisy Student: the pseudo-labels of the teacher and the noise of the student."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar import InputError  # noqa: E402
from pyspar.paper.networks.mlp import MLP  # noqa: E402
from pyspar.paper.networks.stacked import stack  # noqa: E402
from pyspar.paper.objectives.base import Batch, EpochPlan  # noqa: E402
from pyspar.paper.objectives.noisy_student import NoisyStudent  # noqa: E402


class Teacher(nn.Module):
    """Predict twice the first feature. It has dropout, which must be off."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 1, bias=False)
        self.drop = nn.Dropout(0.5)
        with torch.no_grad():
            self.head.weight.copy_(torch.tensor([[2.0, 0.0, 0.0]]))

    def forward(self, x):
        return self.drop(self.head(x))


def clean(x, seed, stream):
    return x


@pytest.fixture
def batch():
    draw = torch.Generator().manual_seed(0)
    x, z = torch.randn(16, 3, generator=draw), torch.randn(16, 3, generator=draw) + 1
    return Batch(x, x[:, :1], target=z, draws={"noise": torch.tensor(7)})


def test_without_noise_the_loss_has_two_squared_errors(batch):
    torch.manual_seed(0)
    net = MLP(3, hidden=8)
    parts = NoisyStudent(Teacher(), weight=0.5, dropout=0.0, augment=clean).loss(net, batch, None, "train")
    torch.testing.assert_close(parts["mse"], (net(batch.x) - batch.y).square().mean())
    torch.testing.assert_close(parts["pseudo"], 0.5 * (net(batch.target) - 2 * batch.target[:, :1]).square().mean())


def test_the_teacher_is_a_copy_that_predicts_clean_inputs_and_is_not_trained(batch):
    teacher = Teacher().train()
    objective = NoisyStudent(teacher)
    with torch.no_grad():
        teacher.head.weight.zero_()
    labels = objective.pseudo_labels(batch.target, batch.y)
    torch.testing.assert_close(labels, 2 * batch.target[:, :1])
    assert teacher.training
    assert not objective.teacher.training
    assert not any(p.requires_grad for p in objective.teacher.parameters())


def test_the_student_learns_from_the_teacher(batch):
    """The teacher's labels are twice those of the source, so the student ends between the two."""
    torch.manual_seed(0)
    net = MLP(3, hidden=32)
    start = copy.deepcopy(net)
    objective = NoisyStudent(Teacher(), dropout=0.1)
    adam = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(150):
        noisy = Batch(batch.x, batch.y, target=batch.target, draws={"noise": torch.tensor(step)})
        adam.zero_grad()
        sum(objective.loss(net, noisy, None, "train").values()).backward()
        adam.step()
    wanted = 2 * batch.target[:, :1]
    with torch.no_grad():
        before, after = ((model(batch.target) - wanted).square().mean() for model in (start, net))
    assert after < 0.3 * before


def test_the_plan_draws_the_noise_that_determines_the_loss(batch):
    torch.manual_seed(0)
    net, objective = MLP(3, hidden=8), NoisyStudent(Teacher())
    order = np.arange(12).reshape(3, 4)
    plans = [objective.plan(EpochPlan(np.random.default_rng(s), order, np.zeros((12, 1)), 0)) for s in (0, 0, 1)]
    assert plans[0]["noise"].shape == (3,)
    assert (plans[0]["noise"] == plans[1]["noise"]).all()
    assert (plans[0]["noise"] != plans[2]["noise"]).any()
    draws = [{"noise": torch.tensor(seed)} for seed in (5, 5, 6)]
    losses = [objective.loss(net, Batch(batch.x, batch.y, target=batch.target, draws=d), None, "train") for d in draws]
    assert losses[0]["mse"] == losses[1]["mse"] != losses[2]["mse"]


def test_stacked_seeds_have_the_losses_of_each_alone(batch):
    torch.manual_seed(0)
    nets, objective = [MLP(3, hidden=8) for _ in range(3)], NoisyStudent(Teacher())
    x, y, z = (torch.stack([t, 2 * t, t - 1]) for t in (batch.x, batch.y, batch.target))
    seeds = torch.tensor([3, 4, 5])
    together = objective.loss(stack(nets), Batch(x, y, target=z, draws={"noise": seeds}), None, "train")
    for seed, net in enumerate(nets):
        own = Batch(x[seed], y[seed], target=z[seed], draws={"noise": seeds[seed]})
        for name, value in objective.loss(net, own, None, "train").items():
            torch.testing.assert_close(together[name][seed], value)


def test_unsuitable_teachers_and_settings_raise(batch):
    with pytest.raises(InputError, match=r"dropout .*1"):
        NoisyStudent(Teacher(), dropout=1.0)
    objective = NoisyStudent(nn.Linear(3, 2), augment=clean)
    with pytest.raises(InputError, match=r"teacher .*1 outputs.*\(16, 2\) for 16 rows"):
        objective.loss(MLP(3), batch, None, "train")

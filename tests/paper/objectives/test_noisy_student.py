"""Noisy Student: whose labels, which noise; and the augmentations it draws on."""

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar import InputError  # noqa: E402
from pyspar.paper.networks.mlp import MLP  # noqa: E402
from pyspar.paper.networks.stacked import stack  # noqa: E402
from pyspar.paper.objectives.augment import ImageNoise, TableNoise, normals, uniforms, view_for  # noqa: E402
from pyspar.paper.objectives.base import Batch, EpochPlan  # noqa: E402
from pyspar.paper.objectives.noisy_student import NoisyStudent  # noqa: E402


class Teacher(nn.Module):
    """Twice the first feature; with dropout, which must be off."""

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


def test_without_noise_the_loss_is_two_squared_errors(batch):
    torch.manual_seed(0)
    net = MLP(3, hidden=8)
    parts = NoisyStudent(Teacher(), weight=0.5, dropout=0.0, augment=clean).loss(net, batch, None, "train")
    torch.testing.assert_close(parts["mse"], (net(batch.x) - batch.y).square().mean())
    torch.testing.assert_close(parts["pseudo"], 0.5 * (net(batch.target) - 2 * batch.target[:, :1]).square().mean())


def test_the_teacher_is_a_copy_that_sees_clean_inputs_and_is_never_trained(batch):
    teacher = Teacher().train()
    objective = NoisyStudent(teacher)
    with torch.no_grad():
        teacher.head.weight.zero_()
    labels = objective.pseudo_labels(batch.target, batch.y)
    torch.testing.assert_close(labels, 2 * batch.target[:, :1])
    assert teacher.training
    assert not objective.teacher.training
    assert not any(p.requires_grad for p in objective.teacher.parameters())


def test_the_student_learns_what_only_the_teacher_knows(batch):
    """On the target the labels are twice the source's: a student that believes the teacher ends between the two."""
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


def test_the_noise_is_drawn_by_the_plan_and_decides_the_loss(batch):
    torch.manual_seed(0)
    net, objective = MLP(3, hidden=8), NoisyStudent(Teacher())
    order = np.arange(12).reshape(3, 4)
    plans = [objective.plan(EpochPlan(np.random.default_rng(s), order, np.zeros((12, 1)), 0)) for s in (0, 0, 1)]
    assert plans[0]["noise"].shape == (3,)
    assert (plans[0]["noise"] == plans[1]["noise"]).all()
    assert (plans[0]["noise"] != plans[2]["noise"]).any()
    draws = [{"noise": torch.tensor(seed)} for seed in (5, 5, 6)]
    found = [objective.loss(net, Batch(batch.x, batch.y, target=batch.target, draws=d), None, "train") for d in draws]
    assert found[0]["mse"] == found[1]["mse"] != found[2]["mse"]


def test_lanes_are_students_side_by_side(batch):
    torch.manual_seed(0)
    nets, objective = [MLP(3, hidden=8) for _ in range(3)], NoisyStudent(Teacher())
    x, y, z = (torch.stack([t, 2 * t, t - 1]) for t in (batch.x, batch.y, batch.target))
    seeds = torch.tensor([3, 4, 5])
    together = objective.loss(stack(nets), Batch(x, y, target=z, draws={"noise": seeds}), None, "train")
    for lane, net in enumerate(nets):
        own = Batch(x[lane], y[lane], target=z[lane], draws={"noise": seeds[lane]})
        for name, value in objective.loss(net, own, None, "train").items():
            torch.testing.assert_close(together[name][lane], value)


def test_what_cannot_teach_is_refused(batch):
    with pytest.raises(TypeError, match=r"teacher must be a trained torch.nn.Module. Got str instead"):
        NoisyStudent("model.pt")
    with pytest.raises(InputError, match="dropout must be"):
        NoisyStudent(Teacher(), dropout=1.0)
    objective = NoisyStudent(nn.Linear(3, 2), augment=clean)
    with pytest.raises(InputError, match=r"teacher must predict 1 outputs .* Got the shape \(16, 2\) for 16 rows"):
        objective.loss(MLP(3), batch, None, "train")
    with pytest.raises(InputError, match="Noisy Student compares source and target"):
        objective.loss(MLP(3), Batch(batch.x, batch.y), None, "train")


def test_hashed_numbers_are_uniform_normal_and_uncorrelated():
    """20,000 draws: means within five standard errors, and no lag or neighbouring seed shows."""
    n = 20_000
    u, v = uniforms(torch.tensor([1, 2]), (n,)).double()
    assert ((u > 0) & (u < 1)).all()
    assert abs(float(u.mean()) - 0.5) < 5 / math.sqrt(12 * n)
    counts = torch.histc(u, bins=20, min=0, max=1)
    assert float(((counts - n / 20) ** 2 / (n / 20)).sum()) < 50  # chi-squared with 19 degrees: 50 is beyond 0.9999
    for other in (v, u.roll(1), uniforms(torch.tensor(1), (n,), 1).double()):
        assert abs(float(torch.corrcoef(torch.stack([u, other]))[0, 1])) < 5 / math.sqrt(n)
    z = normals(torch.tensor(1), (n,)).double()
    assert abs(float(z.mean())) < 5 / math.sqrt(n)
    assert abs(float(z.var()) - 1) < 5 * math.sqrt(2 / n)


def test_a_seed_draws_the_same_in_a_lane_as_alone_and_after_a_trip_through_float32():
    seeds = torch.tensor([2**24 - 1, 5])
    together = uniforms(seeds, (4, 3), 2)
    assert torch.equal(together[0], uniforms(seeds[0], (4, 3), 2))
    assert torch.equal(together, uniforms(seeds.float(), (4, 3), 2))


def test_table_noise_is_a_share_of_each_features_spread():
    x = torch.randn(4000, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1e-3, 1.0, 1e3])
    x[:, 1] = 5.0  # a constant stays what it is
    seed = torch.tensor(1)
    change = TableNoise(noise=0.2, mask=0.0)(x, seed) - x
    torch.testing.assert_close(change[:, [0, 2]].std(dim=0), 0.2 * x[:, [0, 2]].std(dim=0), rtol=0.06, atol=0)
    assert (change[:, 1] == 0).all()
    masked = TableNoise(noise=0.0, mask=0.3)(x, seed)
    share = (masked[:, 0] != x[:, 0]).float().mean()
    assert abs(float(share) - 0.3) < 5 * math.sqrt(0.21 / 4000)
    assert torch.equal(TableNoise(0.0, 0.0)(x, seed), x)


def test_image_noise_of_zero_is_the_image():
    x = torch.rand(5, 2, 12, 9, generator=torch.Generator().manual_seed(0))
    view = ImageNoise(crop=1.0, shift=0.0, jitter=0.0)
    torch.testing.assert_close(view(x, torch.tensor(3)), x, rtol=0, atol=1e-5)
    pixels = (x * 255).to(torch.uint8)
    assert torch.equal(view(pixels, torch.tensor(3)), pixels)


def test_image_noise_shifts_mirrors_and_stays_in_range():
    x = torch.rand(40, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    mirrored = ImageNoise(crop=1.0, shift=0.0, flip=True, jitter=0.0)(x, torch.tensor(0))
    same = [torch.allclose(a, b, atol=1e-5) for a, b in zip(mirrored, x)]
    turned = [torch.allclose(a, b.flip(-1), atol=1e-5) for a, b in zip(mirrored, x)]
    assert all(s != t for s, t in zip(same, turned))
    assert 8 < sum(turned) < 32  # of 40, five standard deviations would be 16
    pixels = (x * 255).to(torch.uint8)
    noisy = ImageNoise(jitter=2.0)(pixels, torch.tensor(0))
    assert noisy.dtype == torch.uint8
    assert noisy.shape == pixels.shape
    assert not torch.equal(noisy, pixels)


def test_images_in_lanes_are_images_alone():
    x = torch.rand(2, 4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    seeds, view = torch.tensor([1, 2]), ImageNoise(flip=True)
    torch.testing.assert_close(view(x, seeds, 1)[1], view(x[1], seeds[1], 1))


def test_the_default_view_follows_the_inputs():
    assert view_for(torch.zeros(4, 3), 0) == TableNoise()
    assert view_for(torch.zeros(2, 4, 3), 1) == TableNoise()
    assert view_for(torch.zeros(4, 3, 8, 8), 0) == ImageNoise()
    assert view_for(torch.zeros(4, 3), 0, clean) is clean
    with pytest.raises(InputError, match=r"Got the shape \(4, 3, 2\) instead; pass augment="):
        view_for(torch.zeros(4, 3, 2), 0)
    with pytest.raises(InputError, match="crop must be"):
        ImageNoise(crop=0.0)
    with pytest.raises(InputError, match="mask must be"):
        TableNoise(mask=2.0)

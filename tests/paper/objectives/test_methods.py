"""DANN, Noisy Student and SwAV, the noisy views, and every method in the training loop."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch._subclasses.fake_tensor import (  # noqa: E402
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)

from pyspar import InputError  # noqa: E402
from pyspar.paper import DANN, ERM, MLP, ImageNoise, NoisyStudent, SwAV, TableNoise, TrainConfig, resnet, train  # noqa: E402
from pyspar.paper.data.task import Part, ShiftTask  # noqa: E402
from pyspar.paper.objectives.alignment import AFN, RSD, DAREGram, DeepCORAL  # noqa: E402
from pyspar.paper.objectives.base import Batch, EpochPlan  # noqa: E402
from pyspar.paper.objectives.dann import domain_cross_entropy, reverse_gradient  # noqa: E402
from pyspar.paper.objectives.mixup import CMixup, Mixup  # noqa: E402
from pyspar.paper.objectives.unlabeled import (  # noqa: E402
    choose_view,
    prototype_scores,
    sinkhorn_assignments,
    swapped_prediction,
)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def batch():
    x, z = (
        torch.randn(64, 4, generator=rng()),
        torch.randn(64, 4, generator=rng(1)) + torch.tensor([0.0, 0.0, 2.0, 0.0]),
    )
    return Batch(x, x[:, :1], target=z, draws={"noise": torch.tensor(3), "views": torch.tensor(3)})


@pytest.fixture
def net():
    torch.manual_seed(0)
    return MLP(4, hidden=16)


def test_dann_makes_a_pass_of_the_model_and_a_pass_of_the_critic_in_every_epoch():
    objective = DANN()
    assert [objective.phases(epoch) for epoch in range(3)] == [("model", "critic")] * 3
    assert (objective.updates("model"), objective.updates("critic")) == ({"model"}, {"module"})
    assert objective.module_lr(0.5) == 1e-3
    reversal = DANN(by="reversal")
    assert reversal.phases(0) == ("train",)
    assert reversal.updates("train") == {"model", "module"}
    critic = objective.module(16)
    assert (critic[0].out_features, critic[1].negative_slope) == (512, 0.1)


def test_the_cross_entropy_equals_torchs_and_is_finite_for_large_logits():
    source, target = torch.randn(6, 1, generator=rng()).double(), torch.randn(6, 1, generator=rng(1)).double()
    labels = torch.cat([torch.zeros(6, 1), torch.ones(6, 1)]).double()
    theirs = torch.nn.functional.binary_cross_entropy_with_logits(torch.cat([source, target]), labels)
    torch.testing.assert_close(domain_cross_entropy(source, target), theirs)
    assert float(domain_cross_entropy(source * 0, torch.zeros(9, 1))) == pytest.approx(math.log(2))
    assert float(domain_cross_entropy(source * 0 - 1e4, target * 0 + 1e4)) == 0
    x = source.clone().requires_grad_()
    (plain,) = torch.autograd.grad((x**3).sum(), x)
    (turned,) = torch.autograd.grad((reverse_gradient(x, 0.3) ** 3).sum(), x)
    torch.testing.assert_close(turned, -0.3 * plain)


def test_reversal_gives_the_gradients_of_both_passes(batch, net):
    critic = DANN().module(16)
    parameters, own = list(net.parameters()), list(critic.parameters())

    def slopes(objective, phase, wanted):
        return torch.autograd.grad(sum(objective.loss(net, batch, critic, phase).values()), wanted)

    reversal = DANN(0.3, by="reversal")
    for wanted, phase in ((parameters, "model"), (own, "critic")):
        for one, other in zip(slopes(reversal, "train", wanted), slopes(DANN(0.3), phase, wanted)):
            torch.testing.assert_close(one, other)
    (loss,) = DANN().loss(net, batch, critic, "critic").values()
    loss.backward()
    assert all(p.grad is None for p in net.parameters())


def test_a_pass_of_the_critic_lowers_its_loss_and_a_pass_of_the_model_raises_it(batch, net):
    objective = DANN(1.0, hidden=32, critic_lr=0.02)
    torch.manual_seed(2)
    critic = objective.module(16)
    entropies = []
    for phase, part in (("critic", critic), ("model", net)):
        adam = torch.optim.Adam(part.parameters(), lr=5e-3)
        for _ in range(60):
            adam.zero_grad()
            sum(objective.loss(net, batch, critic, phase).values()).backward()
            adam.step()
        entropies.append(float(objective.loss(net, batch, critic, "critic")["critic"].detach()))
    assert entropies[0] < math.log(2) - 0.1
    assert entropies[1] > entropies[0] + 0.2


def test_the_student_fits_labels_and_the_teachers_labels_of_clean_target_rows(batch, net):
    torch.manual_seed(1)
    teacher = MLP(4, hidden=8)
    objective = NoisyStudent(teacher, weight=2.0, dropout=0.0, augment=lambda x, generator: x)
    parts = objective.loss(net, batch, None, "train")
    torch.testing.assert_close(parts["mse"], (net(batch.x) - batch.y).square().mean())
    torch.testing.assert_close(parts["pseudo"], 2 * (net(batch.target) - teacher(batch.target)).square().mean())
    noisy = NoisyStudent(teacher)
    one, other = (noisy.loss(net, batch, None, "train")["mse"] for _ in range(2))
    assert one == other != parts["mse"]  # the noise depends on the seed of the step only
    with torch.no_grad():
        teacher.head.weight.zero_()  # a copy is kept
    torch.testing.assert_close(objective.loss(net, batch, None, "train")["pseudo"], parts["pseudo"])
    with pytest.raises(InputError, match="teacher must predict 1 outputs"):
        NoisyStudent(MLP(4, outputs=2)).loss(net, batch, None, "train")


@pytest.fixture
def scores():
    return torch.randn(12, 5, generator=rng(), dtype=torch.float64) / 3


def test_sinkhorn_equals_a_plain_loop_and_is_finite_for_scores_of_any_size(scores):
    Q = np.exp(scores.numpy() / 0.05)
    for _ in range(3):
        Q /= Q.sum(axis=0, keepdims=True)
        Q /= Q.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(sinkhorn_assignments(scores).numpy(), Q, rtol=1e-9)
    balanced = sinkhorn_assignments(scores, iterations=2000).sum(dim=0)
    torch.testing.assert_close(balanced, torch.full((5,), 12 / 5, dtype=torch.float64), rtol=1e-6, atol=0)
    for factor in (0.0, 1e30):
        torch.testing.assert_close(sinkhorn_assignments(scores.float() * factor).sum(dim=-1), torch.ones(12))


def test_the_swapped_prediction_is_symmetric_and_its_assignments_have_no_gradient(scores):
    first, second = scores.clone().requires_grad_(), scores.roll(1, dims=0).requires_grad_()
    torch.testing.assert_close(swapped_prediction(first, second), swapped_prediction(second, first))
    (slope,) = torch.autograd.grad(swapped_prediction(first, second), first)
    q, p = sinkhorn_assignments(second.detach()), torch.softmax(first.detach() / 0.1, dim=-1)
    torch.testing.assert_close(slope, (p - q) / (2 * 0.1 * 12))


def test_pretraining_needs_no_labels_and_finetuning_is_erm(batch, net):
    objective = SwAV(1, prototypes=8, projection=16)
    assert [objective.phases(epoch) for epoch in range(2)] == [("pretrain",), ("finetune",)]
    module = objective.module(16)
    assert (prototype_scores(module, 1e3 * torch.randn(5, 16)).abs() <= 1 + 1e-6).all()
    adam = torch.optim.Adam([*net.parameters(), *module.parameters()], lr=3e-3)
    losses = []
    for step in range(100):
        views = Batch(batch.x, batch.y * math.nan, target=batch.target, draws={"views": torch.tensor(step)})
        adam.zero_grad()
        (loss,) = objective.loss(net, views, module, "pretrain").values()
        loss.backward()
        adam.step()
        losses.append(float(loss.detach()))
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:10])
    (mse,) = objective.loss(net, batch, module, "finetune").values()
    torch.testing.assert_close(mse, (net(batch.x) - batch.y).square().mean())
    order = np.zeros((3, 4), dtype=int)
    plans = [objective.plan(EpochPlan(np.random.default_rng(0), order, np.zeros((4, 1)), e)) for e in (0, 1)]
    assert (plans[0]["views"].shape, plans[1]) == ((3,), {})


def test_table_noise_is_proportional_to_the_spread_of_each_feature():
    x = torch.randn(4000, 3, generator=rng()) * torch.tensor([1e-3, 1.0, 1e3])
    x[:, 1] = 5.0  # a constant feature must not change
    change = TableNoise(noise=0.2, mask=0.0)(x, rng(1)) - x
    torch.testing.assert_close(change[:, [0, 2]].std(dim=0), 0.2 * x[:, [0, 2]].std(dim=0), rtol=0.06, atol=0)
    assert (change[:, 1] == 0).all()
    share = (TableNoise(noise=0.0, mask=0.3)(x, rng(1))[:, 0] != x[:, 0]).float().mean()
    assert abs(float(share) - 0.3) < 5 * math.sqrt(0.21 / 4000)


def test_image_noise_shifts_and_mirrors_and_keeps_the_range():
    x = torch.rand(40, 1, 16, 16, generator=rng())
    pixels = (x * 255).to(torch.uint8)
    assert torch.equal(ImageNoise(crop=1.0, shift=0.0, jitter=0.0)(pixels, rng()), pixels)
    mirrored = ImageNoise(crop=1.0, shift=0.0, flip=True, jitter=0.0)(x, rng())
    flipped = [torch.allclose(a, b.flip(-1), atol=1e-5) for a, b in zip(mirrored, x)]
    assert all(f != torch.allclose(a, b, atol=1e-5) for f, a, b in zip(flipped, mirrored, x))
    assert 8 < sum(flipped) < 32  # 20 of 40 are expected; five standard deviations are 16
    noisy = ImageNoise(jitter=2.0)(pixels, rng())
    assert (noisy.dtype, noisy.shape) == (torch.uint8, pixels.shape)
    assert not torch.equal(noisy, pixels)
    assert choose_view(torch.zeros(4, 3)) == TableNoise()
    assert choose_view(torch.zeros(4, 3, 8, 8)) == ImageNoise()
    with pytest.raises(InputError, match=r"\(4, 3, 2\).*augment="):
        choose_view(torch.zeros(4, 3, 2))


def make_task(shape, n=48):
    draw = np.random.default_rng(0)

    def part(shift, n):
        X = draw.normal(size=(n, *shape)) + shift
        if len(shape) > 1:
            X = np.clip(60 * X + 128, 0, 255).astype(np.uint8)
        return Part(X, X.reshape(n, -1)[:, :3].mean(axis=1) / X.std(), np.zeros(n, dtype=np.int64))

    return ShiftTask("toy", part(0.0, n), part(0.0, n // 2), part(1.0, n), "none", "made here", "none")


METHODS = {
    "ERM": lambda net: ERM(),
    "Mixup": lambda net: Mixup(),
    "C-Mixup": lambda net: CMixup(0.5, both_ways=True),
    "Deep CORAL": lambda net: DeepCORAL(0.5),
    "DANN": lambda net: DANN(0.1, hidden=8),
    "AFN": lambda net: AFN(),
    "RSD": lambda net: RSD(0.01),
    "DARE-GRAM": lambda net: DAREGram(),
    "Noisy Student": NoisyStudent,
    "SwAV": lambda net: SwAV(1, prototypes=4, projection=6),
}


@pytest.mark.parametrize("shape", [(5,), (1, 8, 8)])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_on_tables_and_on_images_and_is_reproducible(name, shape):
    task = make_task(shape, n=48 if len(shape) == 1 else 12)
    config = TrainConfig(epochs=3, batch_size=6, lr=1e-3, device="cpu", select="last")
    torch.manual_seed(0)
    net = MLP(5, hidden=16) if len(shape) == 1 else resnet(channels=1)
    trained = train(net, METHODS[name](net), task, config, 0).model
    assert all(torch.isfinite(p).all() for p in trained.parameters())
    assert not torch.equal(trained.head.weight, net.head.weight)
    again = train(net, METHODS[name](net), task, config, 0).model
    assert all(torch.equal(a, b) for a, b in zip(trained.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_capturable_if_its_loss_needs_no_value_of_a_tensor(name, monkeypatch):
    """Fake tensors have shapes and no values: a cutoff of singular values or a seed that is read raises."""
    monkeypatch.setattr(NoisyStudent, "pseudo_labels", lambda self, target, like: like)  # the teacher is not fake
    objective = METHODS[name](MLP(5, hidden=16))
    with FakeTensorMode():
        net = MLP(5, hidden=16)
        draws = {"mix": torch.rand(()), "noise": torch.empty((), dtype=torch.int64)}
        batch = Batch(*(torch.randn(6, n) for n in (5, 1, 5, 1, 5)), {**draws, "views": draws["noise"]})
        module = objective.module(16)
        dynamic = 0
        for phase in objective.phases(0):
            try:
                sum(objective.loss(net, batch, module, phase).values()).backward()
            except (DataDependentOutputException, DynamicOutputShapeException):
                dynamic += 1
    assert objective.capturable == (dynamic == 0)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: DANN(by="turns"), "by .*'turns'"),
        (lambda: DANN(hidden=0), "hidden .*0"),
        (lambda: SwAV(-1), "pretrain .*-1"),
        (lambda: NoisyStudent(MLP(3), dropout=1.0), "dropout .*1"),
        (lambda: ImageNoise(crop=0.0), "crop .*0"),
        (lambda: TableNoise(mask=2.0), "mask "),
    ],
)
def test_invalid_settings_raise(make, match):
    with pytest.raises(InputError, match=match):
        make()

"""On a GPU, a captured graph of the step of all seeds gives the same results as calls."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.paper import ERM, MLP, Objective, TrainConfig, train, train_seeds  # noqa: E402
from pyspar.paper.data.task import Part, ShiftTask  # noqa: E402
from pyspar.paper.objectives.base import mean_squared_error  # noqa: E402
from pyspar.paper.training.epochs import GraphEpochs  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can see")
SEEDS = (0, 4, 9)


class Conv(nn.Module):
    """Two convolutions with batch norm, with the parts that objectives require."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.trunk = nn.Sequential(
            nn.Conv2d(8, 16, 3, stride=2, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(16, 1, bias=False)

    def features(self, x):
        return self.trunk(self.stem(x))

    def forward(self, x):
        return self.head(self.features(x))


class Everything(Objective):
    """Partners, draws, a target, and a critic that is trained in odd epochs."""

    name = "Everything"
    uses_target = True

    def plan(self, plan):
        rows = plan.rng.integers(0, len(plan.y), plan.order.shape)
        return {"partner": rows, "mix": plan.rng.beta(2, 2, len(plan.order))}

    def module(self, n_features):
        return nn.Sequential(nn.Linear(n_features, 6), nn.LeakyReLU(0.1), nn.Linear(6, 1))

    def phase(self, epoch):
        return "critic" if epoch % 2 else "model"

    def updates(self, phase):
        return frozenset({"module" if phase == "critic" else "model"})

    def loss(self, net, batch, module, phase):
        critic = module(net.features(batch.target)).square().mean(dim=(-2, -1))
        if phase == "critic":
            return {"critic": critic}
        mix = batch.draws["mix"]
        x, y = torch.lerp(batch.partner_x, batch.x, mix), torch.lerp(batch.partner_y, batch.y, mix)
        return {"mse": mean_squared_error(net(x), y), "critic": -0.1 * critic}


def image_task(n=52, m=19):
    rng = np.random.default_rng(0)

    def part(rows):
        X = rng.integers(0, 256, size=(rows, 3, 8, 8), dtype=np.uint8)
        return Part(X, X[:, 0].mean(axis=(1, 2)) / 64, np.arange(rows) % 2)

    return ShiftTask("noise", part(n), part(m), part(m), "half", "made here", "none")


def build_networks():
    networks = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        networks.append(Conv())
    return networks


def config(**changes):
    return TrainConfig(**{"epochs": 4, "batch_size": 8, "lr": 1e-2, "device": "cuda", "schedule": "step", **changes})


def assert_close(one, other, atol):
    assert one.best_epoch == other.best_epoch
    for a, b in zip(one.model.state_dict().values(), other.model.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=atol)


@pytest.fixture
def captured(monkeypatch):
    """The phases of the epochs that GraphEpochs ran."""
    runs = []
    original = GraphEpochs.run
    monkeypatch.setattr(GraphEpochs, "run", lambda self, *a: runs.append(a[1]) or original(self, *a))
    return runs


@pytest.mark.parametrize("objective", [ERM(), Everything()], ids=lambda o: o.name)
@pytest.mark.parametrize("select", ["mse", "worst-group-r"])
def test_a_captured_step_gives_the_results_of_a_plain_step(objective, select, captured):
    task = image_task()
    graphed = train_seeds(build_networks(), objective, task, config(select=select), SEEDS)
    assert captured == [objective.phase(epoch) for epoch in range(4)]
    plain = train_seeds(build_networks(), objective, task, config(select=select, graph="never"), SEEDS)
    assert len(captured) == 4
    for one, other in zip(graphed, plain, strict=True):
        assert_close(one, other, 1e-5)  # the same kernels in the same order for each replica
        for captured_record, record in zip(one.history, other.history, strict=True):
            assert captured_record.losses == pytest.approx(record.losses, rel=1e-4)
            assert captured_record.lr == record.lr


def test_replicas_in_one_graph_equal_each_trained_alone(captured):
    task = image_task()
    together = train_seeds(build_networks(), ERM(), task, config(), SEEDS)
    for model, seed, one in zip(build_networks(), SEEDS, together, strict=True):
        assert_close(one, train(model, ERM(), task, config(), seed), 1e-5)
    assert len(captured) == 16


def test_the_same_graph_twice_gives_the_same_bits():
    runs = [train_seeds(build_networks(), Everything(), image_task(), config(), SEEDS) for _ in range(2)]
    for one, other in zip(*runs, strict=True):
        for a, b in zip(one.model.state_dict().values(), other.model.state_dict().values(), strict=True):
            assert torch.equal(a, b)


def test_a_captured_run_resumes_where_it_stopped(tmp_path, monkeypatch):
    from pyspar.paper.training import checkpoint

    monkeypatch.setattr(checkpoint, "_MAX_WRITING_SHARE", float("inf"))
    task, path = image_task(), tmp_path / "run.pt"

    class Interrupted(Everything):
        at = 3

        def plan(self, plan):
            if plan.epoch == Interrupted.at:
                raise KeyboardInterrupt
            return super().plan(plan)

    with pytest.raises(KeyboardInterrupt):
        train_seeds(build_networks(), Interrupted(), task, config(epochs=5), SEEDS, checkpoint=path)
    Interrupted.at = None
    resumed = train_seeds(build_networks(), Interrupted(), task, config(epochs=5), SEEDS, checkpoint=path)
    unbroken = train_seeds(build_networks(), Interrupted(), task, config(epochs=5), SEEDS)
    for one, other in zip(resumed, unbroken, strict=True):
        for a, b in zip(one.model.state_dict().values(), other.model.state_dict().values(), strict=True):
            assert torch.equal(a, b)


def test_a_gpu_and_a_cpu_agree_on_a_table_of_stacked_seeds(table_task):
    networks = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        networks.append(MLP(5, hidden=16).double())
    task = table_task()
    on_cpu, on_gpu = (
        train_seeds(copy.deepcopy(networks), ERM(), task, config(device=device), SEEDS) for device in ("cpu", "cuda")
    )
    for one, other in zip(on_cpu, on_gpu, strict=True):
        assert one.best_epoch == other.best_epoch
        for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
            torch.testing.assert_close(a, b.cpu(), rtol=0, atol=1e-6)  # the GPU's rate is a float32


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_lowers_the_loss(precision):
    trained = train_seeds(build_networks(), ERM(), image_task(), config(autocast=precision, epochs=6), SEEDS)
    for one in trained:
        assert all(p.dtype == torch.float32 for p in one.model.parameters())
        assert one.history[-1].losses["mse"] < one.history[0].losses["mse"]


def test_random_steps_and_objectives_that_wait_for_the_device_are_not_captured(captured):
    class Synchronises(ERM):
        capturable = False

        def loss(self, net, batch, module, phase):
            parts = super().loss(net, batch, module, phase)
            assert float(parts["mse"]) >= 0  # waits for the device
            return parts

    with_dropout = [nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(192, 1)) for _ in SEEDS]
    assert train_seeds(build_networks(), Synchronises(), image_task(), config(), SEEDS)
    assert train_seeds(with_dropout, ERM(), image_task(), config(), SEEDS)
    assert captured == []


class Functional(nn.Module):
    """Dropout without a dropout layer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(192, 1)

    def forward(self, x):
        return self.layer(nn.functional.dropout(x.flatten(1), 0.2, self.training))


def test_a_step_with_functional_dropout_runs_call_by_call_and_depends_on_its_seed(captured):
    def networks():
        torch.manual_seed(0)
        return [Functional() for _ in SEEDS]

    runs = [
        train_seeds(networks(), ERM(), image_task(), config(graph=graph), SEEDS) for graph in ("auto", "auto", "never")
    ]
    assert len(captured) == 8
    for one, *others in zip(*runs, strict=True):
        assert all(torch.equal(one.model.layer.weight, other.model.layer.weight) for other in others)

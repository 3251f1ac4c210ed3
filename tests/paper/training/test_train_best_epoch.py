"""The selection of the best epoch, its running statistics, and the precision of the validation metric."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import DANN, ERM, MLP, Objective, SwAV, TrainConfig, predict, train  # noqa: E402
from pyspar.paper.data.task import Part, ShiftTask  # noqa: E402


def config(**changes):
    return TrainConfig(**{"epochs": 4, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


class Normed(MLP):
    """An MLP with batch norm, whose running statistics change with every batch in training mode."""

    def __init__(self):
        super().__init__(5, hidden=8)
        self.stem = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU())


@pytest.mark.parametrize("pretrain", [4, 9])
def test_swav_without_an_epoch_for_the_labels_raises(pretrain, table_task):
    with pytest.raises(InputError, match=rf"pretrain={pretrain} and epochs=4"):
        train(MLP(5), SwAV(pretrain), table_task(), config(), 0)


@pytest.mark.parametrize("select", ["mse", "worst-group-r", "last"])
def test_a_pretraining_epoch_is_never_the_best(select, table_task):
    """With this learning rate every fitted epoch is worse than the pre-training epochs."""
    torch.manual_seed(0)
    model = MLP(5)
    with torch.no_grad():
        model.head.weight.zero_()
    trained = train(model, SwAV(2), table_task(), config(lr=1.0, select=select), 0)
    fitted = [record.validation for record in trained.history[2:]]
    if select == "mse":
        assert min(record.validation for record in trained.history[:2]) < min(fitted)
    assert trained.best_epoch >= 2


def test_before_the_first_eligible_epoch_the_latest_weights_are_kept(tmp_path, table_task):
    class Interrupted(SwAV):
        def plan(self, plan):
            if plan.epoch == 2:
                raise KeyboardInterrupt
            return super().plan(plan)

    torch.manual_seed(0)
    model, path = MLP(5), tmp_path / "run.pt"
    with pytest.raises(KeyboardInterrupt):
        train(model, Interrupted(3), table_task(), config(), 0, checkpoint=path)
    replica = torch.load(path, weights_only=True)["replicas"][0]
    for name, tensor in replica["best"].items():
        assert torch.equal(tensor, replica["tensors"]["model"][name])
    assert not torch.equal(replica["best"]["stem.0.weight"], model.stem[0].weight)


def test_an_epoch_of_the_critic_does_not_change_the_model(table_task):
    torch.manual_seed(0)
    model = Normed()
    states = [
        train(model, DANN(hidden=8), table_task(), config(epochs=epochs, select="last"), 0).model.state_dict()
        for epochs in (1, 2)
    ]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_the_model_is_in_training_mode_in_the_epochs_of_the_critic(table_task):
    """Features are normalised by their batch. Running statistics would increase the distance between the domains."""
    modes = []

    class Recorded(DANN):
        def loss(self, net, batch, module, phase):
            modes.append((phase, net.training))
            return super().loss(net, batch, module, phase)

    train(Normed(), Recorded(hidden=8), table_task(), config(epochs=2), 0)
    assert set(modes) == {("model", True), ("critic", True)}


def test_validation_labels_are_compared_in_float64():
    """The labels are far from zero, where float32 has a spacing of 16."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(32, 2))
    y = 2.0**28 + np.arange(32.0)
    part = Part(X, y, np.zeros(32, dtype=np.int64))
    task = ShiftTask("far", part, part, part, "none", "made here", "none")

    class ZeroLoss(Objective):
        def loss(self, net, batch, module, phase):
            return {"none": (net.weight * 0).sum()}

    class Far(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return torch.full((len(x), 1), 2.0**28) + self.weight

    trained = train(Far(), ZeroLoss(), task, config(epochs=1), 0)
    assert trained.validation == np.mean(np.arange(32.0) ** 2)


def test_uint8_images_are_scaled_and_uint8_tables_are_not(table_task):
    rng = np.random.default_rng(0)

    def make_task(shape, dtype):
        X = rng.integers(0, 256, size=(24, *shape), dtype=np.uint8)
        part = Part(X.astype(dtype), X.reshape(24, -1)[:, 0] / 64.0, np.zeros(24, dtype=np.int64))
        return ShiftTask("bytes", part, part, part, "none", "made here", "none")

    def train_linear(task):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(task.train.X.shape[1:])), 1))
        return train(model, ERM(), task, config(epochs=2), 0)

    for shape, scale in (((5,), 1.0), ((1, 2, 2), 255.0)):
        rng = np.random.default_rng(0)
        as_bytes = train_linear(make_task(shape, np.uint8))
        rng = np.random.default_rng(0)
        floats = make_task(shape, np.float32)
        floats.train.X[...] /= scale  # all three parts are one object
        as_floats = train_linear(floats)
        assert as_bytes.validation == pytest.approx(as_floats.validation, rel=1e-5)
        np.testing.assert_allclose(
            predict(as_bytes.model, (floats.train.X * scale).round().astype(np.uint8)),
            predict(as_bytes.model, floats.train.X),
            rtol=1e-5,
        )

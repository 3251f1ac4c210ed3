"""Which epochs may be the best, which statistics they leave, and in which numbers they are judged."""

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
    """With batch norm, whose statistics follow every batch it meets in training mode."""

    def __init__(self):
        super().__init__(5, hidden=8)
        self.stem = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU())


@pytest.mark.parametrize("pretrain", [4, 9])
def test_swav_without_an_epoch_for_the_labels_is_refused(pretrain, table_task):
    with pytest.raises(InputError, match=rf"pretrain={pretrain} and epochs=4: no label would be seen; raise epochs"):
        train(MLP(5), SwAV(pretrain), table_task(), config(), 0)


@pytest.mark.parametrize("select", ["mse", "worst-group-r", "last"])
def test_an_epoch_of_pretraining_is_never_the_best(select, table_task):
    """A rate so high that every fitted epoch is worse than what pre-training leaves."""
    torch.manual_seed(0)
    model = MLP(5)
    with torch.no_grad():
        model.head.weight.zero_()
    found = train(model, SwAV(2), table_task(), config(lr=1.0, select=select), 0)
    fitted = [record.validation for record in found.history[2:]]
    if select == "mse":
        assert min(record.validation for record in found.history[:2]) < min(fitted)
    assert found.best_epoch >= 2


def test_while_nothing_counts_the_latest_weights_are_kept(tmp_path, table_task):
    class Stops(SwAV):
        def plan(self, plan):
            if plan.epoch == 2:
                raise KeyboardInterrupt
            return super().plan(plan)

    torch.manual_seed(0)
    model, path = MLP(5), tmp_path / "run.pt"
    with pytest.raises(KeyboardInterrupt):
        train(model, Stops(3), table_task(), config(), 0, checkpoint=path)
    lane = torch.load(path, weights_only=True)["lanes"][0]
    for name, tensor in lane["best"].items():
        assert torch.equal(tensor, lane["tensors"]["model"][name])
    assert not torch.equal(lane["best"]["stem.0.weight"], model.stem[0].weight)


def test_an_epoch_of_the_critic_changes_nothing_of_the_model(table_task):
    torch.manual_seed(0)
    model = Normed()
    states = [
        train(model, DANN(hidden=8), table_task(), config(epochs=epochs, select="last"), 0).model.state_dict()
        for epochs in (1, 2)
    ]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_the_critic_sees_features_as_the_model_has_them_in_its_own_epochs(table_task):
    """Normalised by their batch: by running statistics the two domains would be further apart."""
    modes = []

    class Watched(DANN):
        def loss(self, net, batch, module, phase):
            modes.append((phase, net.training))
            return super().loss(net, batch, module, phase)

    train(Normed(), Watched(hidden=8), table_task(), config(epochs=2), 0)
    assert set(modes) == {("model", True), ("critic", True)}


def test_validation_labels_keep_their_digits():
    """Labels far from zero: in float32 they are 16 apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(32, 2))
    y = 2.0**28 + np.arange(32.0)
    part = Part(X, y, np.zeros(32, dtype=np.int64))
    task = ShiftTask("far", part, part, part, "none", "made here", "none")

    class Still(Objective):
        def loss(self, net, batch, module, phase):
            return {"none": (net.weight * 0).sum()}

    class Far(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return torch.full((len(x), 1), 2.0**28) + self.weight

    found = train(Far(), Still(), task, config(epochs=1), 0)
    assert found.validation == np.mean(np.arange(32.0) ** 2)


def test_a_table_of_uint8_is_a_table_of_numbers_and_images_are_pixels(table_task):
    rng = np.random.default_rng(0)

    def task(shape, dtype):
        X = rng.integers(0, 256, size=(24, *shape), dtype=np.uint8)
        part = Part(X.astype(dtype), X.reshape(24, -1)[:, 0] / 64.0, np.zeros(24, dtype=np.int64))
        return ShiftTask("bytes", part, part, part, "none", "made here", "none")

    def trained(given):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(given.train.X.shape[1:])), 1))
        return train(model, ERM(), given, config(epochs=2), 0)

    for shape, scale in (((5,), 1.0), ((1, 2, 2), 255.0)):
        rng = np.random.default_rng(0)
        as_bytes = trained(task(shape, np.uint8))
        rng = np.random.default_rng(0)
        floats = task(shape, np.float32)
        floats.train.X[...] /= scale  # one part is all three
        as_floats = trained(floats)
        assert as_bytes.validation == pytest.approx(as_floats.validation, rel=1e-5)
        np.testing.assert_allclose(
            predict(as_bytes.model, (floats.train.X * scale).round().astype(np.uint8)),
            predict(as_bytes.model, floats.train.X),
            rtol=1e-5,
        )

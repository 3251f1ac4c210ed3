"""The training loop, compared with a loop in plain torch, and the effect of its settings."""

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import (  # noqa: E402
    AFN,
    DANN,
    ERM,
    MLP,
    CMixup,
    DeepCORAL,
    Objective,
    SwAV,
    TrainConfig,
    TrainingError,
    predict,
    train,
)
from pyspar.paper.data.task import Part, ShiftTask  # noqa: E402
from pyspar.paper.objectives.base import mean_squared_error  # noqa: E402
from pyspar.paper.training import train as loop  # noqa: E402
from pyspar.paper.training.batches import draw_target_order, draw_train_order, replay_steps  # noqa: E402


def config(**changes):
    return TrainConfig(**{"epochs": 4, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


def make_model(outputs=1, dtype=torch.float32):
    torch.manual_seed(0)
    return MLP(5, hidden=16, outputs=outputs).to(dtype)


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


def train_with_torch(model, task, seed, *, lr_at=lambda e: 1.0, shuffle="once"):
    """Train with Adam on the mean squared error. Return the weights, number and validation error of the best epoch."""
    model = copy.deepcopy(model)
    dtype = next(model.parameters()).dtype
    X, V = (torch.tensor(part.X, dtype=dtype) for part in (task.train, task.val))
    y, v = (torch.tensor(part.y, dtype=dtype).reshape(len(part.X), -1) for part in (task.train, task.val))
    adam = torch.optim.Adam(model.parameters(), lr=1e-2)
    best, kept, kept_epoch = math.inf, None, None
    for epoch in range(4):
        adam.param_groups[0]["lr"] = 1e-2 * lr_at(epoch)
        for rows in draw_train_order(seed, epoch, len(X), 8, shuffle):
            adam.zero_grad()
            nn.functional.mse_loss(model(X[rows]), y[rows]).backward()
            adam.step()
        with torch.no_grad():
            error = float(nn.functional.mse_loss(model(V).double(), v.double()))
        if error < best:
            best, kept, kept_epoch = error, weights(model), epoch
    return kept, kept_epoch, best


@pytest.mark.skipif(not torch.cuda.is_available(), reason="a CUDA graph needs a GPU")
@pytest.mark.parametrize(
    "objective", [ERM(), CMixup(0.5), DeepCORAL(0.5), AFN(), DANN(0.1, hidden=8)], ids=lambda objective: objective.name
)
def test_a_captured_step_gives_the_numbers_of_an_eager_one(objective, table_task, monkeypatch):
    task, settings, phases = table_task(), config(device="cuda", schedule="step", shuffle="epoch"), []
    monkeypatch.setattr(loop, "replay_steps", lambda *a: phases.append(a) or replay_steps(*a))
    captured = train(make_model(), objective, task, settings, 0)
    assert len(phases) == settings.epochs * len(objective.phases(0))
    assert min(len(tables["order"]) for _, _, tables, _ in phases) > 5  # some steps are replayed
    monkeypatch.setattr(type(objective), "capturable", False)
    eager = train(make_model(), objective, task, settings, 0)
    assert [record.losses for record in captured.history] == [record.losses for record in eager.history]
    assert equal(captured.model, eager.model)


@pytest.mark.parametrize(
    ("outputs", "settings", "options"),
    [
        (None, {}, {}),
        (3, {}, {}),
        (None, {"schedule": "step", "gamma": 0.5}, {"lr_at": lambda e: 0.5**e}),
        (None, {"shuffle": "epoch"}, {"shuffle": "epoch"}),
    ],
)
def test_training_equals_a_loop_in_plain_torch(outputs, settings, options, table_task):
    task, model = table_task(outputs=outputs), make_model(outputs or 1, torch.float64)
    trained = train(model, ERM(), task, config(**settings), 4)
    expected, epoch, error = train_with_torch(model, task, 4, **options)
    assert trained.best_epoch == epoch
    assert trained.validation == pytest.approx(error, rel=1e-10)
    for ours, theirs in zip(trained.model.parameters(), expected, strict=True):
        torch.testing.assert_close(ours.detach(), theirs, rtol=0, atol=1e-11)  # float64; another Adam kernel


def test_equal_seeds_give_equal_bits_and_different_seeds_do_not(table_task):
    first, again, other = (train(make_model(), ERM(), table_task(), config(), seed).model for seed in (3, 3, 4))
    assert equal(first, again)
    assert not equal(first, other)


def test_the_original_model_and_the_random_state_do_not_change(table_task):
    model, twin, state = make_model(), make_model(), torch.get_rng_state()
    trained = train(model, ERM(), table_task(), config(), 0)
    assert (model.training, trained.model.training) == (True, False)
    assert equal(model, twin)
    assert all(p.grad is None for p in [*model.parameters(), *trained.model.parameters()])
    assert torch.equal(state, torch.get_rng_state())


class NormAndDropout(nn.Module):
    """A network with running statistics and random draws."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.4), nn.Linear(12, 1))

    def forward(self, x):
        return self.layers(x)


def test_a_network_with_batch_norm_and_dropout_trains_and_is_deterministic(table_task):
    torch.manual_seed(0)
    model = NormAndDropout()
    first = train(model, ERM(), table_task(), config(epochs=6), 2)
    torch.manual_seed(99)  # the global generator must not matter
    assert equal(first.model, train(model, ERM(), table_task(), config(epochs=6), 2).model)
    # 70 rows are 8 batches of 8; the statistics are those of the best epoch
    assert int(first.model.layers[1].num_batches_tracked) == 8 * (first.best_epoch + 1)
    assert first.history[-1].losses["mse"] < first.history[0].losses["mse"]
    X = table_task().train.X
    prediction = predict(model, X, batch_size=7)  # in evaluation mode, which is restored
    assert model.training
    np.testing.assert_allclose(prediction, model.eval()(torch.tensor(X).float()).detach().numpy(), atol=1e-6)


def test_the_epoch_with_the_highest_worst_group_r_is_selected(table_task):
    task = table_task(groups=3)
    trained = train(make_model(), ERM(), task, config(select="worst-group-r", epochs=6), 0)
    guess = predict(trained.model, task.val.X)[:, 0]
    r = [np.corrcoef(guess[task.val.group == g], task.val.y[task.val.group == g])[0, 1] for g in range(3)]
    assert trained.validation == pytest.approx(min(r), rel=1e-6)
    assert trained.validation == max(record.validation for record in trained.history)


class Recorder(Objective):
    """Record the batch of each step."""

    uses_target = True

    def __init__(self):
        self.batches = []

    def plan(self, plan):
        rng = plan.rng
        return {"partner": rng.integers(0, len(plan.y), plan.order.shape), "mix": rng.random(len(plan.order))}

    def loss(self, net, batch, module, phase):
        self.batches.append(batch)
        return {**super().loss(net, batch, module, phase), "constant": batch.y.new_tensor(2.5)}


def test_a_batch_has_its_rows_partners_draws_and_target_rows(table_task):
    task, objective = table_task(n=30, m=7), Recorder()
    trained = train(make_model(dtype=torch.float64), objective, task, config(epochs=2), 5)
    assert [record.losses["constant"] for record in trained.history] == [2.5, 2.5]
    assert len(objective.batches) == 6
    order = draw_train_order(5, 0, 30, 8, "once")
    for number, batch in enumerate(objective.batches):
        epoch, step = divmod(number, 3)
        np.testing.assert_array_equal(batch.x.numpy(), task.train.X[order[step]])
        np.testing.assert_array_equal(batch.y.numpy(), task.train.y[order[step], None])
        np.testing.assert_array_equal(batch.target.numpy(), task.test.X[draw_target_order(5, epoch, 7, 3, 8)[step]])
        partner = [np.flatnonzero((row == task.train.X).all(axis=1))[0] for row in batch.partner_x.numpy()]
        np.testing.assert_array_equal(batch.partner_y.numpy(), task.train.y[partner, None])
    assert len({float(batch.draws["mix"]) for batch in objective.batches}) == 6


class Lazy:
    """Rows that are read when they are indexed."""

    def __init__(self, X):
        self.X, self.shape, self.sizes = X, X.shape, []

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        self.sizes.append(np.size(rows))
        return self.X[rows]


def test_rows_that_are_read_as_needed_give_the_same_network(table_task):
    task = table_task()
    lazy = Lazy(task.train.X)
    val = Part(Lazy(task.val.X), task.val.y, task.val.group)
    parts = {"train": Part(lazy, task.train.y, task.train.group), "val": val}
    trained = train(make_model(), ERM(), type(task)(**{**vars(task), **parts}), config(), 0)
    assert max(lazy.sizes) == 8
    assert equal(trained.model, train(make_model(), ERM(), task, config(), 0).model)


@pytest.mark.parametrize(("shape", "scale"), [((5,), 1.0), ((1, 2, 2), 255.0)])
def test_uint8_images_are_scaled_and_uint8_tables_are_not(shape, scale):
    X = np.random.default_rng(0).integers(0, 256, size=(24, *shape), dtype=np.uint8)

    def train_linear(X):
        part = Part(X, np.arange(24) / 64.0, np.zeros(24, dtype=np.int64))
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 1))
        task = ShiftTask("bytes", part, part, part, "none", "made here", "none")
        return train(model, ERM(), task, config(epochs=2), 0)

    expected = train_linear((X / scale).astype(np.float32)).validation
    assert train_linear(X).validation == pytest.approx(expected, rel=1e-5)


class TwoPasses(Objective):
    """A critic is trained in the second pass of every epoch, the model in the first."""

    def module(self, n_features):
        return nn.Linear(n_features, 1)

    def phases(self, epoch):
        return ("model", "module")

    def updates(self, phase):
        return frozenset({phase})

    def loss(self, net, batch, module, phase):
        return {phase: mean_squared_error(module(net.features(batch.x)), batch.y)}


def test_a_pass_trains_only_the_parts_of_its_phase_and_every_epoch_has_all_passes(table_task):
    seen = []

    class Recorded(TwoPasses):
        def loss(self, net, batch, module, phase):
            seen.append((phase, net.stem[0].weight.clone(), module.weight.clone()))
            return super().loss(net, batch, module, phase)

    trained = train(make_model(), Recorded(), table_task(), config(epochs=2, select="last"), 0)
    assert [phase for phase, _, _ in seen] == (["model"] * 8 + ["module"] * 8) * 2
    for start in (0, 16):
        stems, critics = ([seen[start + k][part] for k in (0, 7, 8, 15)] for part in (1, 2))
        assert not torch.equal(stems[0], stems[1])
        assert torch.equal(stems[2], stems[3])
        assert torch.equal(critics[0], critics[1])
        assert not torch.equal(critics[2], critics[3])
    assert set(trained.history[0].losses) == {"model", "module"}


def test_the_pass_of_a_critic_does_not_change_the_running_statistics_of_the_model(table_task):
    class Normed(MLP):
        def __init__(self):
            super().__init__(5, hidden=8)
            self.stem = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU())

    class OnlyModel(DANN):
        def phases(self, epoch):
            return ("model",)

    torch.manual_seed(0)
    model = Normed()
    one, two = (
        train(model, objective, table_task(), config(epochs=1), 0).model.state_dict()
        for objective in (OnlyModel(hidden=8), DANN(hidden=8))
    )
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("select", ["mse", "worst-group-r", "last"])
def test_a_pretraining_epoch_is_never_the_best(select, table_task):
    """With this learning rate every fitted epoch is worse than the pre-training epochs."""
    model = make_model()
    with torch.no_grad():
        model.head.weight.zero_()
    assert train(model, SwAV(2), table_task(), config(lr=1.0, select=select), 0).best_epoch >= 2
    with pytest.raises(InputError, match="pretrain=4 and epochs=4"):
        train(model, SwAV(4), table_task(), config(), 0)


def test_divergence_raises_with_its_epoch_and_learning_rate(table_task):
    class Exploding(Objective):
        """The loss overflows in epoch 2, step 3."""

        def plan(self, plan):
            factor = np.ones(len(plan.order))
            factor[3:] = 1e30 if plan.epoch == 2 else 1.0
            return {"factor": factor}

        def loss(self, net, batch, module, phase):
            return {"mse": super().loss(net, batch, module, phase)["mse"] * batch.draws["factor"] ** 2}

    with pytest.raises(TrainingError, match=r"\(mse\) .*epoch 2, step 3 of 8 .*seed 7, lr 0.01"):
        train(make_model(), Exploding(), table_task(), config(), 7)
    with pytest.raises(TrainingError, match=r"seed 0, lr 1e\+30"):
        train(make_model(), ERM(), table_task(), config(lr=1e30), 0)

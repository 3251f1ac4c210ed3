"""The training loop, compared with a loop in plain torch, and the effect of its settings."""

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.paper import ERM, MLP, Objective, TrainConfig, TrainingError, predict, train  # noqa: E402
from pyspar.paper.data.task import Part  # noqa: E402
from pyspar.paper.objectives.base import mean_squared_error  # noqa: E402
from pyspar.paper.training.epoch_data import draw_target_order, draw_train_order  # noqa: E402

CONFIG = TrainConfig(epochs=4, batch_size=8, lr=1e-2, device="cpu")


def config(**changes):
    return TrainConfig(**{"epochs": 4, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


def make_model(outputs=1, dtype=torch.float32):
    torch.manual_seed(0)
    return MLP(5, hidden=16, outputs=outputs).to(dtype)


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


def train_with_torch(model, task, seed, *, epochs=4, lr=1e-2, batch=8, wd=0.0, lr_at=lambda e: 1.0, shuffle="once"):
    """Train with Adam on the mean squared error. Return the weights, number and validation error of the best epoch."""
    model = copy.deepcopy(model)
    dtype = next(model.parameters()).dtype
    X, V = (torch.tensor(part.X, dtype=dtype) for part in (task.train, task.val))
    y, v = (torch.tensor(part.y, dtype=dtype).reshape(len(part.X), -1) for part in (task.train, task.val))
    adam = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=wd)
    best, kept, kept_epoch = math.inf, None, None
    for epoch in range(epochs):
        for group in adam.param_groups:
            group["lr"] = lr * lr_at(epoch)
        for rows in draw_train_order(seed, epoch, len(X), batch, shuffle):
            adam.zero_grad()
            nn.functional.mse_loss(model(X[rows]), y[rows]).backward()
            adam.step()
        with torch.no_grad():
            error = float(nn.functional.mse_loss(model(V).double(), v.double()))
        if error < best:
            best, kept, kept_epoch = error, weights(model), epoch
    return kept, kept_epoch, best


@pytest.mark.parametrize("outputs", [None, 3])
def test_training_equals_a_loop_in_plain_torch(outputs, table_task):
    task, model = table_task(outputs=outputs), make_model(outputs or 1, torch.float64)
    trained = train(model, ERM(), task, CONFIG, 4)
    expected, epoch, error = train_with_torch(model, task, 4)
    assert trained.best_epoch == epoch
    assert trained.validation == pytest.approx(error, rel=1e-10)
    for ours, theirs in zip(trained.model.parameters(), expected, strict=True):
        torch.testing.assert_close(ours.detach(), theirs, rtol=0, atol=1e-11)  # float64; another Adam kernel


def test_training_equals_a_loop_in_plain_torch_in_float32(table_task):
    task, model = table_task(), make_model()
    expected, _, _ = train_with_torch(model, task, 1)
    for ours, theirs in zip(train(model, ERM(), task, CONFIG, 1).model.parameters(), expected, strict=True):
        torch.testing.assert_close(ours.detach(), theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "lr_at"),
    [
        ({"schedule": "step", "gamma": 0.5}, lambda e: 0.5**e),
        ({"schedule": "cosine"}, lambda e: (1 + math.cos(math.pi * e / 4)) / 2),
    ],
)
def test_schedules_set_the_learning_rate_of_each_epoch(settings, lr_at, table_task):
    task, model = table_task(), make_model(dtype=torch.float64)
    trained = train(model, ERM(), task, config(**settings), 0)
    expected, _, _ = train_with_torch(model, task, 0, lr_at=lr_at)
    assert [record.lr for record in trained.history] == pytest.approx([1e-2 * lr_at(e) for e in range(4)])
    for ours, theirs in zip(trained.model.parameters(), expected, strict=True):
        torch.testing.assert_close(ours.detach(), theirs, rtol=0, atol=1e-11)


def test_weight_decay_and_reshuffling_are_as_train_with_torch(table_task):
    task, model = table_task(), make_model(dtype=torch.float64)
    trained = train(model, ERM(), task, config(weight_decay=0.1, shuffle="epoch"), 0)
    expected, _, _ = train_with_torch(model, task, 0, wd=0.1, shuffle="epoch")
    for ours, theirs in zip(trained.model.parameters(), expected, strict=True):
        torch.testing.assert_close(ours.detach(), theirs, rtol=0, atol=1e-11)


def test_equal_seeds_give_equal_bits_and_different_seeds_do_not(table_task):
    task = table_task()
    first, again, other = (weights(train(make_model(), ERM(), task, CONFIG, seed).model) for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_the_original_model_and_the_random_state_do_not_change(table_task):
    task, model = table_task(), make_model()
    before, state, threads = weights(model), torch.get_rng_state(), torch.get_num_threads()
    trained = train(model, ERM(), task, CONFIG, 0)
    assert trained.model is not model
    assert model.training
    assert not trained.model.training
    assert all(torch.equal(a, b) for a, b in zip(before, weights(model), strict=True))
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(state, torch.get_rng_state())
    assert threads == torch.get_num_threads()


class NormAndDropout(nn.Module):
    """A network with running statistics and random draws."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.4), nn.Linear(12, 1))

    def forward(self, x):
        return self.layers(x)


def test_a_network_with_batch_norm_and_dropout_trains_and_is_deterministic(table_task):
    task = table_task()
    torch.manual_seed(0)
    model = NormAndDropout()
    first = train(model, ERM(), task, config(epochs=6), 2)
    torch.manual_seed(99)  # the global generator must not matter
    again = train(model, ERM(), task, config(epochs=6), 2)
    assert all(torch.equal(a, b) for a, b in zip(weights(first.model), weights(again.model), strict=True))
    # 70 rows are 8 batches of 8; the statistics are those of the best epoch
    assert int(first.model.layers[1].num_batches_tracked) == 8 * (first.best_epoch + 1)
    assert first.history[-1].losses["mse"] < first.history[0].losses["mse"]


def test_selecting_the_last_epoch_requires_no_validation_rows(table_task):
    task = table_task()
    no_val = Part(task.val.X[:0], task.val.y[:0], task.val.group[:0])
    task = type(task)(**{**vars(task), "val": no_val})
    trained = train(make_model(), ERM(), task, config(select="last"), 0)
    assert trained.best_epoch == 3
    assert math.isnan(trained.validation)


def test_the_epoch_with_the_highest_worst_group_r_is_selected(table_task):
    task = table_task(groups=3)
    trained = train(make_model(), ERM(), task, config(select="worst-group-r", epochs=6), 0)
    guess = predict(trained.model, task.val.X)[:, 0]
    r = [np.corrcoef(guess[task.val.group == g], task.val.y[task.val.group == g])[0, 1] for g in range(3)]
    assert trained.validation == pytest.approx(min(r), rel=1e-6)
    assert trained.validation == max(record.validation for record in trained.history)


def test_the_history_has_the_mean_of_each_loss_term(table_task):
    class TwoTerms(Objective):
        def loss(self, net, batch, module, phase):
            return {"mse": mean_squared_error(net(batch.x), batch.y), "constant": batch.y.new_tensor(2.5)}

    trained = train(make_model(), TwoTerms(), table_task(), CONFIG, 0)
    assert len(trained.history) == 4
    for record in trained.history:
        assert set(record.losses) == {"mse", "constant"}
        assert record.losses["constant"] == 2.5
        assert record.seconds > 0
    assert trained.seconds == pytest.approx(sum(record.seconds for record in trained.history))


class Recorder(Objective):
    """Record the batch of each step."""

    name = "Recorder"
    uses_target = True

    def __init__(self):
        self.batches = []

    def plan(self, plan):
        rng = plan.rng
        return {"partner": rng.integers(0, len(plan.y), plan.order.shape), "mix": rng.random(len(plan.order))}

    def loss(self, net, batch, module, phase):
        self.batches.append(batch)
        return super().loss(net, batch, module, phase)


def test_a_batch_has_its_rows_partners_draws_and_target_rows(table_task):
    task, objective = table_task(n=30, m=7), Recorder()
    train(make_model(dtype=torch.float64), objective, task, config(epochs=2), 5)
    batches = objective.batches
    assert len(batches) == 6
    order = draw_train_order(5, 0, 30, 8, "once")
    for epoch in range(2):
        target = draw_target_order(5, epoch, 7, 3, 8)
        for step in range(3):
            batch = batches[3 * epoch + step]
            np.testing.assert_array_equal(batch.x.numpy(), task.train.X[order[step]])
            np.testing.assert_array_equal(batch.y.numpy(), task.train.y[order[step], None])
            np.testing.assert_array_equal(batch.target.numpy(), task.test.X[target[step]])
            partner = [np.flatnonzero((row == task.train.X).all(axis=1))[0] for row in batch.partner_x.numpy()]
            np.testing.assert_array_equal(batch.partner_y.numpy(), task.train.y[partner, None])
            assert 0 <= float(batch.draws["mix"]) < 1
    assert len({float(batch.draws["mix"]) for batch in batches}) == 6


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
    parts = {
        "train": Part(lazy, task.train.y, task.train.group),
        "val": Part(Lazy(task.val.X), task.val.y, task.val.group),
    }
    trained = train(make_model(), ERM(), type(task)(**{**vars(task), **parts}), CONFIG, 0)
    expected = train(make_model(), ERM(), task, CONFIG, 0)
    assert max(lazy.sizes) == 8
    assert all(torch.equal(a, b) for a, b in zip(weights(trained.model), weights(expected.model), strict=True))


def test_uint8_images_are_scaled_by_the_model_or_by_1_over_255(table_task):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(40, 3, 4, 4), dtype=np.uint8)
    y = X.mean(axis=(1, 2, 3)) / 255
    task = table_task()
    parts = {name: Part(X, y, np.zeros(40, int)) for name in ("train", "val", "test")}
    images = type(task)(**{**vars(task), **parts})
    floats = type(task)(**{**vars(task), **{k: Part(X / 255, y, p.group) for k, p in parts.items()}})

    class Flat(nn.Sequential):
        pass

    class Centred(Flat):
        def normalise(self, x):
            return x.float() / 255 - 0.5

    torch.manual_seed(0)
    plain = Flat(nn.Flatten(), nn.Linear(48, 1))
    as_bytes, as_floats = (train(plain, ERM(), t, CONFIG, 0).model for t in (images, floats))
    for a, b in zip(weights(as_bytes), weights(as_floats), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)
    centred = Centred(*copy.deepcopy(list(plain)))
    shifted = type(task)(**{**vars(task), **{k: Part(X / 255 - 0.5, y, p.group) for k, p in parts.items()}})
    a, b = (
        weights(train(centred, ERM(), images, CONFIG, 0).model),
        weights(train(plain, ERM(), shifted, CONFIG, 0).model),
    )
    for ours, theirs in zip(a, b, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


def test_mixed_precision_changes_the_loss_only_a_little(table_task):
    task = table_task()
    exact, coarse = (
        train(make_model(), ERM(), task, CONFIG, 0),
        train(make_model(), ERM(), task, config(autocast="bfloat16"), 0),
    )
    assert all(p.dtype == torch.float32 for p in coarse.model.parameters())
    assert coarse.history[-1].losses["mse"] != exact.history[-1].losses["mse"]
    assert coarse.history[-1].losses["mse"] == pytest.approx(exact.history[-1].losses["mse"], rel=0.1)


class Alternates(Objective):
    """A critic is trained in odd epochs, the model in even epochs."""

    name = "Alternates"

    def module(self, n_features):
        return nn.Linear(n_features, 1)

    def module_lr(self, lr):
        return 0.1

    def phase(self, epoch):
        return "module" if epoch % 2 else "model"

    def updates(self, phase):
        return frozenset({phase})

    def loss(self, net, batch, module, phase):
        return {"sum": mean_squared_error(module(net.features(batch.x)), batch.y)}


def test_an_epoch_trains_only_the_parts_of_its_phase(table_task):
    weights_by_phase = {}

    class Recorded(Alternates):
        def loss(self, net, batch, module, phase):
            weights_by_phase.setdefault(phase, []).append(
                (net.head.weight.clone(), net.stem[0].weight.clone(), module.weight.clone())
            )
            return super().loss(net, batch, module, phase)

    train(make_model(), Recorded(), table_task(), config(select="last"), 0)
    (_, stem, critic), (_, stem2, critic2) = weights_by_phase["model"][0], weights_by_phase["model"][7]
    assert not torch.equal(stem, stem2)
    assert torch.equal(critic, critic2)
    (_, stem, critic), (_, stem2, critic2) = weights_by_phase["module"][0], weights_by_phase["module"][7]
    assert torch.equal(stem, stem2)
    assert not torch.equal(critic, critic2)


def test_frozen_parameters_do_not_change_and_remain_frozen(table_task):
    model = make_model()
    model.stem.requires_grad_(False)
    trained = train(model, Alternates(), table_task(), CONFIG, 0).model
    assert torch.equal(trained.stem[0].weight, model.stem[0].weight)
    assert [p.requires_grad for p in trained.parameters()] == [False, False, True, True, True]


def test_divergence_raises_with_its_epoch_and_keeps_the_last_good_checkpoint(tmp_path, table_task):
    path = tmp_path / "run.pt"

    class Exploding(Objective):
        """The loss overflows in epoch 2, step 3."""

        def plan(self, plan):
            factor = np.ones(len(plan.order))
            factor[3:] = 1e30 if plan.epoch == 2 else 1.0
            return {"factor": factor}

        def loss(self, net, batch, module, phase):
            return {"mse": super().loss(net, batch, module, phase)["mse"] * batch.draws["factor"] ** 2}

    with pytest.raises(TrainingError, match=r"\(mse\) .*epoch 2, step 3 of 8 .*seed 7, lr 0.01.*run\.pt"):
        train(make_model(), Exploding(), table_task(), CONFIG, 7, checkpoint=path)
    saved = torch.load(path, weights_only=True)
    assert saved["epoch"] in (1, 2)
    assert all(torch.isfinite(t).all() for t in saved["replicas"][0]["tensors"]["model"].values())


def test_divergence_without_a_checkpoint_raises_with_the_learning_rate(table_task):
    with pytest.raises(TrainingError, match=r"seed 0, lr 1e\+30"):
        train(make_model(), ERM(), table_task(), config(lr=1e30), 0)


def test_a_progress_bar_is_shown_only_on_request(capsys, table_task):
    train(make_model(), ERM(), table_task(), CONFIG, 0)
    assert capsys.readouterr().err == ""
    pytest.importorskip("rich")
    trained = train(make_model(), ERM(), table_task(), CONFIG, 0, progress=True)
    shown = " ".join(capsys.readouterr().err.split())
    assert "training ERM" in shown
    assert "4 of 4 epochs" in shown
    assert f"loss {trained.history[-1].losses['mse']:.4g}" in shown


def test_on_epoch_is_called_with_the_number_of_finished_epochs_also_after_resuming(tmp_path, table_task):
    done, path = [], tmp_path / "run.pt"

    def stop(epochs):
        done.append(epochs)
        if epochs == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(make_model(), ERM(), table_task(), CONFIG, 0, checkpoint=path, on_epoch=stop)
    assert torch.load(path, weights_only=True)["epoch"] == 1  # written before the call
    train(make_model(), ERM(), table_task(), CONFIG, 0, checkpoint=path, on_epoch=stop)
    assert done == [1, 2, 3, 4]


def test_predictions_are_made_in_evaluation_mode_and_the_mode_is_restored(table_task):
    torch.manual_seed(0)
    model, X = NormAndDropout(), table_task().train.X
    prediction = predict(model, X, batch_size=7)
    assert model.training
    with torch.no_grad():
        expected = model.eval()(torch.tensor(X, dtype=torch.float32))
    np.testing.assert_allclose(prediction, expected.numpy(), atol=1e-6)

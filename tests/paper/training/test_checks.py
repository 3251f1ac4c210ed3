"""Errors that are raised before training starts."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import ERM, MLP, Objective, TrainConfig, train, train_seeds  # noqa: E402
from pyspar.paper.data.task import Part  # noqa: E402


def config(**changes):
    return TrainConfig(**{"epochs": 2, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


class UsesTarget(Objective):
    name = "UsesTarget"
    uses_target = True


class UsesFeatures(Objective):
    name = "UsesFeatures"

    def loss(self, net, batch, module, phase):
        return {"mse": (net.head(net.features(batch.x)) - batch.y).square().mean(dim=(-2, -1))}


class Critic(UsesFeatures):
    name = "Critic"

    def module(self, n_features):
        return nn.Linear(n_features, 1)


def change_part(task, name, change):
    """Return the task after ``change`` modified one of its parts."""
    part = getattr(task, name)
    fields = {"X": part.X.copy(), "y": part.y.copy(), "group": part.group}
    change(fields)
    return type(task)(**{**vars(task), name: Part(**fields)})


def set_rows(name, rows, value):
    def change(part):
        part[name][rows] = value

    return change


def select(name, index):
    def change(part):
        part[name] = part[name][index]

    return change


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("train", set_rows("y", [4, 9], np.nan), r"train\.y .*2 rows: 4, 9;"),
        ("train", set_rows("X", [5], np.inf), r"train\.X .*1 rows: 5;"),
        ("val", set_rows("y", [0], np.nan), r"val\.y .*1 rows: 0;"),
        ("test", set_rows("X", [1], np.nan), r"target_inputs .*1 rows: 1;"),
        ("test", select("X", np.s_[:, :3]), r"target_inputs .*\(5,\).*\(3,\)"),
        ("val", select("X", np.s_[:, :3]), r"val\.X .*\(5,\).*\(3,\)"),
        ("test", select("X", np.s_[:0]), "UsesTarget .*target_inputs.*ERM"),
        ("train", select("y", np.s_[:9]), "train .*70 rows and 9 labels"),
        ("val", select("y", np.s_[:, None, None]), r"val\.y .*\(24, 1, 1\)"),
        ("val", lambda part: part.update(y=np.stack([part["y"]] * 2, axis=1)), r"val\.y .*outputs.*1, got 2"),
        ("val", lambda part: part.update(X=part["X"].astype(np.uint8)), r"uint8 only in val\.X"),
    ],
)
def test_unusable_data_raises_and_no_checkpoint_is_written(name, change, match, table_task, tmp_path):
    path = tmp_path / "run.pt"
    with pytest.raises(InputError, match=match):
        train(MLP(5), UsesTarget(), change_part(table_task(), name, change), config(), 0, checkpoint=path)
    assert not path.exists()


def test_the_target_is_not_checked_if_the_objective_does_not_use_it(table_task):
    task = change_part(table_task(), "test", set_rows("X", [1], np.nan))
    assert train(MLP(5), ERM(), task, config(), 0).history


def test_a_batch_size_above_the_number_of_rows_raises(table_task):
    with pytest.raises(InputError, match=r"batch_size .*70 .*71"):
        train(MLP(5), ERM(), table_task(), config(batch_size=71), 0)
    assert len(train(MLP(5), ERM(), table_task(), config(batch_size=70), 0).history) == 2


@pytest.mark.parametrize("select", ["mse", "worst-group-r"])
def test_selection_by_a_metric_requires_validation_rows(select, table_task):
    def empty(part):
        for name in part:
            part[name] = part[name][:0]

    with pytest.raises(InputError, match=f"{select}.*select='last'"):
        train(MLP(5), ERM(), change_part(table_task(), "val", empty), config(select=select), 0)


def test_a_group_with_constant_labels_raises(table_task):
    task = table_task()
    task = change_part(task, "val", set_rows("y", task.val.group == 1, 2.0))
    with pytest.raises(InputError, match="12 rows of group 1 in val"):
        train(MLP(5), ERM(), task, config(select="worst-group-r"), 0)


class Squeezes(nn.Linear):
    def forward(self, x):
        return super().forward(x).squeeze(-1)


@pytest.mark.parametrize(
    ("outputs", "model"), [(2, lambda: MLP(5)), (None, lambda: MLP(5, outputs=2)), (None, lambda: Squeezes(5, 1))]
)
def test_a_model_with_the_wrong_number_of_outputs_raises(outputs, model, table_task):
    with pytest.raises(InputError, match=r"(MLP|Squeezes) .*\(2, \d\).*got \(2"):
        train(model(), ERM(), table_task(outputs=outputs), config(), 0)


def test_every_model_is_tried_before_training(table_task):
    class NeverTrained(ERM):
        def loss(self, net, batch, module, phase):
            raise AssertionError("training started")

    with pytest.raises(InputError, match=r"got \(2, 2\)"):
        train_seeds([MLP(5), MLP(5, outputs=2)], NeverTrained(), table_task(), config(), [0, 1])


def test_the_module_of_an_objective_fits_the_width_of_each_model(table_task):
    trained = train_seeds([MLP(5, hidden=8), MLP(5, hidden=9)], Critic(), table_task(), config(), [0, 1])
    assert [one.model.head.in_features for one in trained] == [8, 9]


@pytest.mark.parametrize("group", [None, np.zeros(3)], ids=str)
def test_selection_by_group_requires_a_group_for_each_row(group, table_task):
    task = change_part(table_task(), "val", lambda part: part.update(group=group))
    with pytest.raises(InputError, match=r"val\.group .*select='mse'"):
        train(MLP(5), ERM(), task, config(select="worst-group-r"), 0)
    assert train(MLP(5), ERM(), task, config(), 0).history


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_training_enables_gradients(context, table_task):
    torch.manual_seed(0)
    model = MLP(5)
    expected = train(model, ERM(), table_task(), config(), 0).model
    with context():
        trained = train(model, ERM(), table_task(), config(), 0).model
        assert not torch.is_grad_enabled()
    assert torch.equal(trained.head.weight, expected.head.weight)


def test_a_model_without_trainable_parameters_raises(table_task):
    with pytest.raises(InputError, match="no trainable parameter"):
        train(MLP(5).requires_grad_(False), ERM(), table_task(), config(), 0)


def test_mixed_precision_of_convolutions_raises_on_a_cpu(table_task):
    net = torch.nn.Sequential(torch.nn.Unflatten(1, (1, -1)), torch.nn.Conv1d(1, 2, 3), torch.nn.Flatten())
    config = TrainConfig(epochs=1, batch_size=4, lr=0.1, device="cpu", autocast="bfloat16")
    with pytest.raises(InputError, match="autocast='bfloat16'"):
        train(net, ERM(), table_task(), config, 0)

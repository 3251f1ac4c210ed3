"""Errors that are raised before training starts."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import ERM, MLP, Objective, TrainConfig, train  # noqa: E402
from pyspar.paper.data.task import Part  # noqa: E402


def config(**changes):
    return TrainConfig(**{"epochs": 2, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


class UsesTarget(Objective):
    name = "UsesTarget"
    uses_target = True


def change_part(task, name, change):
    """Return the task after ``change`` modified one of its parts."""
    part = getattr(task, name)
    fields = {"X": part.X.copy(), "y": part.y.copy(), "group": part.group}
    change(fields)
    return type(task)(**{**vars(task), name: Part(**fields)})


def set_rows(name, rows, value):
    return lambda part: part[name].__setitem__(rows, value)


def select(name, index):
    return lambda part: part.update({name: part[name][index]})


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("train", set_rows("y", [4, 9], np.nan), r"train\.y .*2 rows: '4', '9';"),
        ("train", set_rows("X", [5], np.inf), r"train\.X .*1 rows: '5';"),
        ("val", set_rows("y", [0], np.nan), r"val\.y .*1 rows: '0';"),
        ("test", set_rows("X", [1], np.nan), r"target_inputs .*1 rows: '1';"),
        ("test", select("X", np.s_[:, :3]), r"target_inputs .*\(5,\).*\(3,\)"),
        ("val", select("X", np.s_[:, :3]), r"val\.X .*\(5,\).*\(3,\)"),
        ("test", select("X", np.s_[:0]), "UsesTarget .*target_inputs.*ERM"),
        ("train", select("y", np.s_[:9]), r"train .*70 rows, got \(9,\)"),
        ("val", select("y", np.s_[:, None, None]), r"val .*\(24, 1, 1\)"),
        ("val", lambda part: part.update(y=np.stack([part["y"]] * 2, axis=1)), r"val\.y .*outputs.*1, got 2"),
        ("val", lambda part: part.update(X=part["X"].astype(np.uint8)), r"uint8 only in val\.X"),
    ],
)
def test_unusable_data_raises_and_no_checkpoint_is_written(name, change, match, table_task, tmp_path):
    path = tmp_path / "run.pt"
    with pytest.raises(InputError, match=match):
        train(MLP(5), UsesTarget(), change_part(table_task(), name, change), config(), 0, checkpoint=path)
    assert not path.exists()


def test_a_batch_size_above_the_number_of_rows_and_a_wrong_seed_raise(table_task):
    with pytest.raises(InputError, match=r"batch_size .*70 .*71"):
        train(MLP(5), ERM(), table_task(), config(batch_size=71), 0)
    for seed in (-1, 0.5, True):
        with pytest.raises(InputError, match="seed must be"):
            train(MLP(5), ERM(), table_task(), config(), seed)


@pytest.mark.parametrize(
    "change", [set_rows("y", slice(0, None, 2), 2.0), lambda p: p.update(group=None), select("group", np.s_[:3])]
)
def test_selection_by_group_requires_groups_with_varying_labels(change, table_task):
    task = change_part(table_task(), "val", change)
    with pytest.raises(InputError, match=r"24 rows in val\.group.*select='mse'"):
        train(MLP(5), ERM(), task, config(select="worst-group-r"), 0)
    assert train(MLP(5), ERM(), task, config(), 0).history


class Squeezes(nn.Linear):
    def forward(self, x):
        return super().forward(x).squeeze(-1)


@pytest.mark.parametrize(
    ("outputs", "model"), [(2, lambda: MLP(5)), (None, lambda: MLP(5, outputs=2)), (None, lambda: Squeezes(5, 1))]
)
def test_a_model_with_the_wrong_number_of_outputs_raises(outputs, model, table_task):
    with pytest.raises(InputError, match=r"(MLP|Squeezes) .*\(2, \d\).*got \(2"):
        train(model(), ERM(), table_task(outputs=outputs), config(), 0)


def test_a_model_without_trainable_parameters_and_half_precision_of_convolutions_raise(table_task):
    with pytest.raises(InputError, match="no trainable parameter"):
        train(MLP(5).requires_grad_(False), ERM(), table_task(), config(), 0)
    net = nn.Sequential(nn.Unflatten(1, (1, -1)), nn.Conv1d(1, 2, 3), nn.Flatten())
    with pytest.raises(InputError, match="autocast='bfloat16'"):
        train(net, ERM(), table_task(), config(autocast="bfloat16"), 0)

"""What training refuses before it starts, each with what was expected, what came, and the cure."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.data.task import Part  # noqa: E402
from pyspar.errors import InputError  # noqa: E402
from pyspar.nn import ERM, MLP, Objective, TrainConfig, train  # noqa: E402


def config(**changes):
    return TrainConfig(**{"epochs": 2, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


class Uses(Objective):
    name = "Uses"
    uses_target = True


class Features(Objective):
    name = "Features"

    def loss(self, net, batch, module, phase):
        return {"mse": (net.head(net.features(batch.x)) - batch.y).square().mean(dim=(-2, -1))}


class Critic(Features):
    name = "Critic"

    def module(self, n_features):
        return nn.Linear(n_features, 1)


def spoilt(task, where, what):
    """The task with something of it replaced."""
    part = getattr(task, where)
    new = {"X": part.X.copy(), "y": part.y.copy(), "group": part.group}
    what(new)
    return type(task)(**{**vars(task), where: Part(**new)})


def put(name, rows, value):
    def change(part):
        part[name][rows] = value

    return change


def cut(name, index):
    def change(part):
        part[name] = part[name][index]

    return change


@pytest.mark.parametrize(
    ("where", "what", "said"),
    [
        ("train", put("y", [4, 9], np.nan), r"labels of train must be finite. Got NaN or infinity in 2 rows: 4, 9"),
        ("train", put("X", [5], np.inf), r"inputs of train must be finite. Got NaN or infinity in 1 rows: 5"),
        ("val", put("y", [0], np.nan), r"labels of val must be finite"),
        ("test", put("X", [1], np.nan), r"target_inputs must be finite"),
        (
            "test",
            cut("X", np.s_[:, :3]),
            r"target_inputs must have rows of .* shape \(5,\). Got \(3,\)",
        ),
        ("val", cut("X", np.s_[:, :3]), r"val must have rows of the training inputs' shape \(5,\). Got \(3,\)"),
        ("test", cut("X", np.s_[:0]), "Uses needs target inputs. Got none"),
        ("train", cut("y", np.s_[:9]), "train must have a label for each row. Got 70 rows and 9 labels"),
    ],
)
def test_data_that_cannot_be_learned_from_is_refused(where, what, said, table_task, tmp_path):
    path = tmp_path / "run.pt"
    with pytest.raises(InputError, match=said):
        train(MLP(5), Uses(), spoilt(table_task(), where, what), config(), 0, checkpoint=path)
    assert not path.exists()


def test_a_target_that_the_objective_does_not_use_is_not_looked_at(table_task):
    task = spoilt(table_task(), "test", put("X", [1], np.nan))
    assert train(MLP(5), ERM(), task, config(), 0).history


def test_a_batch_larger_than_the_data_is_refused(table_task):
    with pytest.raises(InputError, match=r"must not exceed the 70 training rows. Got 71"):
        train(MLP(5), ERM(), table_task(), config(batch_size=71), 0)
    assert len(train(MLP(5), ERM(), table_task(), config(batch_size=70), 0).history) == 2


@pytest.mark.parametrize("select", ["mse", "worst-group-r"])
def test_no_validation_rows_are_refused_where_they_choose_the_epoch(select, table_task):
    def empty(part):
        for name in part:
            part[name] = part[name][:0]

    with pytest.raises(InputError, match=r"needs validation rows. Got none; use select='last'"):
        train(MLP(5), ERM(), spoilt(table_task(), "val", empty), config(select=select), 0)


def test_a_group_with_one_label_has_no_correlation(table_task):
    task = table_task()
    task = spoilt(task, "val", put("y", task.val.group == 1, 2.0))
    with pytest.raises(InputError, match="Got one value in group 1 of val"):
        train(MLP(5), ERM(), task, config(select="worst-group-r"), 0)


class Squeezes(nn.Linear):
    def forward(self, x):
        return super().forward(x).squeeze(-1)


@pytest.mark.parametrize(
    ("outputs", "model"), [(2, lambda: MLP(5)), (None, lambda: MLP(5, outputs=2)), (None, lambda: Squeezes(5, 1))]
)
def test_another_number_of_outputs_than_the_labels_have_is_refused(outputs, model, table_task):
    with pytest.raises(InputError, match="must predict as many outputs as the labels have"):
        train(model(), ERM(), table_task(outputs=outputs), config(), 0)


def test_an_objective_that_needs_parts_of_the_network_says_which_are_missing(table_task):
    plain = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 1))
    for objective in (Features(), Critic()):
        with pytest.raises(InputError, match=r"needs a network with stem, .* has no stem, trunk, features, head"):
            train(plain, objective, table_task(), config(), 0)
    assert train(plain, ERM(), table_task(), config(), 0).history


def test_a_network_for_other_inputs_is_refused_with_torchs_words(table_task):
    with pytest.raises(InputError, match=r"ERM cannot take a step with MLP: .*shapes cannot be multiplied"):
        train(MLP(6), ERM(), table_task(), config(), 0)


def test_an_error_in_the_objective_is_not_taken_for_a_missing_part(table_task):
    class Wrong(Objective):
        def loss(self, net, batch, module, phase):
            return {"mse": batch.nothing}

    with pytest.raises(AttributeError, match="nothing"):
        train(MLP(5), Wrong(), table_task(), config(), 0)


def test_a_loss_that_is_no_number_is_refused(table_task):
    class Rows(Objective):
        name = "Rows"

        def loss(self, net, batch, module, phase):
            return {"mse": (net(batch.x) - batch.y).square()}

    with pytest.raises(ValueError, match="one number for each lane"):
        train(MLP(5), Rows(), table_task(), config(), 0)


def test_a_plan_of_another_length_is_refused(table_task):
    class Short(Objective):
        name = "Short"

        def plan(self, plan):
            return {"mix": np.ones(3)}

    with pytest.raises(ValueError, match=r"8 of them, .* Got 'mix' of shape \(3,\)"):
        train(MLP(5), Short(), table_task(), config(), 0)


def test_what_is_no_network_is_refused(table_task):
    with pytest.raises(TypeError, match=r"must be a torch.nn.Module. Got str"):
        train("MLP", ERM(), table_task(), config(), 0)
    with pytest.raises(InputError, match="Got no parameter to train"):
        train(MLP(5).requires_grad_(False), ERM(), table_task(), config(), 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("epochs", 1.5),
        ("epochs", True),
        ("batch_size", -1),
        ("eval_batch_size", 0),
        ("lr", 0),
        ("lr", float("nan")),
        ("lr", "1e-3"),
        ("weight_decay", -1e-3),
        ("gamma", 0),
        ("gamma", 1.5),
        ("schedule", "linear"),
        ("shuffle", "never"),
        ("select", "rmse"),
        ("device", "tpu"),
        ("autocast", "float32"),
        ("graph", True),
        ("kernels", "slow"),
    ],
)
def test_a_setting_that_means_nothing_is_refused_with_what_it_may_be(name, value):
    with pytest.raises(InputError, match=rf"{name} must be .* Got {value!r} instead"):
        config(**{name: value})


def test_float16_and_a_gpu_are_refused_where_there_is_none():
    with pytest.raises(InputError, match="'bfloat16' works there too"):
        config(autocast="float16")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="Got none; use device='auto' or 'cpu'"):
            config(device="cuda")

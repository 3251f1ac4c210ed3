"""What training refuses before it starts, each with what was expected, what came, and the cure."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import ERM, MLP, Objective, TrainConfig, train, train_seeds  # noqa: E402
from pyspar.paper.data.task import Part  # noqa: E402


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
        ("val", cut("y", np.s_[:, None, None]), r"labels of val must have shape \(n,\)"),
        ("val", lambda part: part.update(y=np.stack([part["y"]] * 2, axis=1)), "as many outputs .* train, 1. Got 2"),
        ("val", lambda part: part.update(X=part["X"].astype(np.uint8)), r"uint8 in val\.X only; bring all parts"),
        (
            "train",
            lambda part: part.update(X=part["X"].astype(object)),
            r"train\.X must hold numbers. Got the dtype obj",
        ),
        (
            "train",
            lambda part: part.update(X=part["X"][:, 0]),
            r"train\.X must have rows and columns. Got the shape \(70",
        ),
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
    said = r"(?s)ERM cannot take a step with MLP: .*shapes cannot be multiplied.*takes 6 columns, and the inputs have 5"
    with pytest.raises(InputError, match=said):
        train(MLP(6), ERM(), table_task(), config(), 0)
    with pytest.raises(InputError, match="takes 6 columns, and the inputs have 5"):
        train_seeds([MLP(6), MLP(6)], ERM(), table_task(), config(), [0, 1])
    with pytest.raises(InputError, match="takes 6 columns, and the inputs have 5"):
        train(MLP(6), Critic(), table_task(), config(), 0)


@pytest.mark.parametrize("wrong", [lambda: MLP(4), lambda: MLP(5, outputs=2)])
def test_every_model_of_a_list_is_tried_before_training(wrong, table_task):
    class Never(ERM):
        def plan(self, plan):
            assert plan.epoch == 0
            return {}

    with pytest.raises(InputError, match=r"takes 4 columns|must predict as many outputs"):
        train_seeds([MLP(5), wrong()], Never(), table_task(), config(), [0, 1])


def test_models_of_different_widths_have_parts_of_the_objective_that_fit(table_task):
    found = train_seeds([MLP(5, hidden=8), MLP(5, hidden=9)], Critic(), table_task(), config(), [0, 1])
    assert [one.model.head.in_features for one in found] == [8, 9]


@pytest.mark.parametrize(
    ("argument", "value", "said"),
    [
        (1, ERM, r"objective must be an object such as ERM\(\). Got the class ERM instead; call it"),
        (1, "ERM", r"objective must be an object such as ERM\(\). Got 'ERM' instead; for squared error pass ERM\(\)"),
        (2, None, "task must be a ShiftTask, with train, val and test. Got NoneType"),
        (3, None, "config must be a TrainConfig. Got NoneType instead"),
        (3, {"epochs": 2}, "config must be a TrainConfig. Got dict instead"),
    ],
)
def test_an_argument_of_another_kind_is_refused_with_the_cure(argument, value, said, table_task):
    given = [MLP(5), ERM(), table_task(), config(), 0]
    given[argument] = value
    with pytest.raises(TypeError, match=said):
        train(*given)


def test_frames_and_lists_of_rows_are_refused_with_the_cure(table_task):
    task, frames = table_task(), pytest.importorskip("pandas")
    for X, said in ((frames.DataFrame(task.train.X), "Got a DataFrame.*to_numpy"), (task.train.X.tolist(), "Got list")):
        with pytest.raises(TypeError, match=said):
            train(MLP(5), ERM(), spoilt(task, "train", lambda part, X=X: part.update(X=X)), config(), 0)


@pytest.mark.parametrize("group", [None, np.full(24, np.nan), np.array([None, "a"] * 12), np.zeros(3)], ids=str)
def test_rows_without_a_group_are_refused_where_groups_choose_the_epoch(group, table_task):
    task = spoilt(table_task(), "val", lambda part: part.update(group=group))
    with pytest.raises(InputError, match=r"group for each .*row.*use select='mse'"):
        train(MLP(5), ERM(), task, config(select="worst-group-r"), 0)
    assert train(MLP(5), ERM(), task, config(), 0).history


def test_batch_norm_on_single_rows_is_refused_in_our_words(table_task):
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    with pytest.raises(InputError, match="Batch norm needs a batch_size of at least 2"):
        train(model, ERM(), table_task(), config(batch_size=1), 0)


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode])
def test_training_computes_its_gradients_whatever_is_around_it(around, table_task):
    torch.manual_seed(0)
    model = MLP(5)
    expected = train(model, ERM(), table_task(), config(), 0).model
    with around():
        found = train(model, ERM(), table_task(), config(), 0).model
        assert not torch.is_grad_enabled()
    assert torch.equal(found.head.weight, expected.head.weight)


def test_numbers_of_numpy_are_numbers():
    found = config(
        epochs=np.int64(3), batch_size=np.int32(4), lr=np.float32(0.5), weight_decay=np.float64(0.25), gamma=1
    )
    assert found == config(epochs=3, batch_size=4, lr=0.5, weight_decay=0.25, gamma=1.0)
    assert {type(found.epochs), type(found.batch_size)} == {int}
    assert {type(found.lr), type(found.weight_decay), type(found.gamma)} == {float}


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


def test_mixed_precision_of_convolutions_is_refused_on_a_cpu(table_task):
    net = torch.nn.Sequential(torch.nn.Unflatten(1, (1, -1)), torch.nn.Conv1d(1, 2, 3), torch.nn.Flatten())
    config = TrainConfig(epochs=1, batch_size=4, lr=0.1, device="cpu", autocast="bfloat16")
    with pytest.raises(InputError, match="needs a GPU"):
        train(net, ERM(), table_task(), config, 0)

"""The fingerprint of a run: equal for equal runs, different for different ones."""

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.paper import ERM, MLP, TrainConfig  # noqa: E402
from pyspar.paper.training.fingerprint import fingerprint  # noqa: E402

CONFIG = TrainConfig(epochs=2, batch_size=8, lr=1e-2, device="cpu")


class WithAttribute(ERM):
    def __init__(self, value):
        self.value = value


class Net(nn.Module):
    """A buffer that is not in the state_dict, a setting that is not in the repr, and weights that may be tied."""

    def __init__(self, scale=1.0, tied=False, mask=1.0):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(5, 5), nn.Linear(5, 5)
        self.b.load_state_dict(self.a.state_dict())
        if tied:
            self.b.weight = self.a.weight
        self.head = nn.Linear(5, 1)
        self.scale = scale
        self.register_buffer("mask", torch.full((5,), mask), persistent=False)

    def forward(self, x):
        return self.head(self.b(self.a(x * self.mask))) * self.scale


class OtherForward(Net):
    def forward(self, x):
        return self.head(self.a(x))


OtherForward.__qualname__ = "Net"


@pytest.fixture
def make_fingerprint(table_task):
    task = table_task()
    return lambda value=None, models=(): fingerprint(CONFIG, WithAttribute(value), [0], task, models or [MLP(5)])


@pytest.mark.parametrize(
    "other",
    [lambda: Net(2.0), lambda: Net(tied=True), lambda: Net().requires_grad_(False), lambda: OtherForward()],
    ids=["scale", "tied", "frozen", "forward"],
)
def test_models_with_equal_tensors_and_different_computations_differ(other, make_fingerprint):
    base, changed = make_fingerprint(models=[Net()]), make_fingerprint(models=[other()])
    assert {name for name in base if base[name] != changed[name]} - {"initial weights"} == {"model"}
    assert base == make_fingerprint(models=[Net()])


def test_every_model_and_every_buffer_is_included(make_fingerprint):
    base = make_fingerprint(models=[Net(), Net()])
    assert make_fingerprint(models=[Net(), Net(2.0)])["model"] != base["model"]
    assert make_fingerprint(models=[Net(), Net(mask=0.5)])["initial weights"] != base["initial weights"]


def scaled(factor):
    return lambda x, seed, stream: factor * x


class Callable:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * x


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (lambda x: x + 1, None, lambda x: x + 2),
        (scaled(1.0), scaled(1.0), scaled(2.0)),
        (Callable(1.0), Callable(1.0), Callable(2.0)),
        (Callable(1.0).__call__, Callable(1.0).__call__, Callable(2.0).__call__),
        (functools.partial(scaled, 1), functools.partial(scaled, 1), functools.partial(scaled, 2)),
        ([np.arange(3)], [np.arange(3)], [np.arange(3) + 1]),
    ],
    ids=["code", "closure", "object", "method", "partial", "array"],
)
def test_functions_of_an_objective_are_identified_by_their_code_and_values(one, same, other, make_fingerprint):
    assert (
        make_fingerprint(one)["objective"]
        == make_fingerprint(same or one)["objective"]
        != make_fingerprint(other)["objective"]
    )
    assert " at 0x" not in make_fingerprint(one)["objective"]


def test_groups_of_strings_are_identified_by_their_text(table_task):
    task = table_task()
    digests = []
    for letters in ("ab", "ab", "ac"):
        group = np.array(["".join([letters[i % 2], "x"]) for i in range(24)], dtype=object)
        val = type(task.val)(task.val.X, task.val.y, group)
        digests.append(fingerprint(CONFIG, ERM(), [0], type(task)(**{**vars(task), "val": val}), [MLP(5)])["data"])
        torch.manual_seed(0)
    assert digests[0] == digests[1] != digests[2]

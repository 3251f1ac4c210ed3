"""What a loader yields is understood where it can mean one thing, and refused by name where it can mean two."""

from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, IterableDataset, TensorDataset  # noqa: E402

Pair = namedtuple("Pair", ["input", "label"])
Strange = namedtuple("Strange", ["a", "b"])


@dataclass
class Sample:
    x: torch.Tensor
    y: torch.Tensor
    station: torch.Tensor


class Slots:
    __slots__ = ("X", "target")

    def __init__(self, X, target):
        self.X, self.target = X, target


class Forward(torch.nn.Module):
    """Keeps what it was called with."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(6, 1)

    def forward(self, values, mask=None):
        return self.fc(values if mask is None else values * mask)


@pytest.fixture
def expected(mlp, world):
    return adapt_head(mlp(), [(world.X, world.y)], [world.Z]).model.fc.weight


@pytest.mark.parametrize(
    "pack",
    [
        lambda x, y: (x, y),
        lambda x, y: [x, y],
        lambda x, y: {"x": x, "y": y},
        lambda x, y: {"input": x, "label": y},
        lambda x, y: {"image": x, "target": y, "id": torch.arange(len(x)), "name": ["a"] * len(x)},
        lambda x, y: {"anything": x, "labels": y},
        lambda x, y: Pair(x, y),
        lambda x, y: Sample(x, y, torch.zeros(len(x))),
        lambda x, y: SimpleNamespace(X=x, Y=y),
        lambda x, y: Slots(x, y),
        lambda x, y: (x.numpy(), y.numpy()),
        lambda x, y: ((x,), y.tolist()),
    ],
)
def test_a_batch_of_any_usual_form_is_understood(mlp, world, expected, pack):
    adapted = adapt_head(mlp(), [pack(world.X, world.y)], [pack(world.Z, torch.zeros(150))])
    torch.testing.assert_close(adapted.model.fc.weight, expected, rtol=1e-6, atol=1e-6)


def test_target_batches_may_be_bare_or_come_with_labels(mlp, world, expected):
    for target in ([world.Z], [(world.Z,)], [(world.Z, None)], DataLoader(TensorDataset(world.Z), batch_size=150)):
        adapted = adapt_head(mlp(), [(world.X, world.y)], target)
        torch.testing.assert_close(adapted.model.fc.weight, expected)


def test_functions_of_the_batch_take_the_place_of_guessing(mlp, world, expected):
    source = [(0, world.y, {"deep": world.X})]
    target = [(0, None, {"deep": world.Z})]
    adapted = adapt_head(mlp(), source, target, inputs=lambda b: b[2]["deep"], labels=lambda b: b[1])
    torch.testing.assert_close(adapted.model.fc.weight, expected)


def test_names_are_matched_to_what_forward_takes(world):
    mask = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    source = [{"x": world.X, "mask": mask, "y": world.y, "id": world.y}]
    target = [{"x": world.Z, "mask": mask}]
    model = Forward()
    masked = adapt_head(model, source, target)
    plain = adapt_head(model, [(world.X * mask, world.y)], [world.Z * mask])
    torch.testing.assert_close(masked.model.fc.weight, plain.model.fc.weight)


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (lambda w: (w.X, w.y, w.y), r"a tuple of \(Tensor of shape \(400, 6\), Tensor of shape \(400,\), Tensor"),
        (lambda w: {"a": w.X, "b": w.X, "y": w.y}, r"a dict with 'a' \(Tensor of shape \(400, 6\)\), 'b'"),
        (lambda w: Strange(w.X, w.y), r"a Strange with 'a' \(Tensor of shape \(400, 6\)\)"),
        (lambda w: SimpleNamespace(a=w.X, b=w.X, y=w.y), r"a SimpleNamespace with 'a' \(Tensor"),
        (lambda w: (), r"a tuple of \(\)"),
    ],
)
def test_a_batch_that_cannot_be_guessed_is_described(mlp, world, batch, words):
    with pytest.raises(ValueError, match=rf"batch 0 of source_loader: cannot tell what.*Got {words}.*pass inputs="):
        adapt_head(mlp(), [batch(world)], [world.Z])


@pytest.mark.parametrize("batch", [lambda w: w.X, lambda w: (w.X,), lambda w: {"x": w.X}])
def test_a_source_without_labels_is_refused(mlp, world, batch):
    with pytest.raises(ValueError, match=r"batch 0 of source_loader: cannot tell which are the labels. Got a"):
        adapt_head(mlp(), [batch(world)], [world.Z])
    with pytest.raises(ValueError, match=r"cannot tell which are the labels"):
        adapt_head(mlp(), [{"x": world.X, "y": world.y, "target": world.y}], [world.Z])
    with pytest.raises(ValueError, match=r"the labels must be a tensor. Got a dict"):
        adapt_head(mlp(), [(world.X, {"a": world.y})], [world.Z])


def test_what_is_not_a_loader_is_refused(mlp, world):
    with pytest.raises(TypeError, match=r"source_loader must be.*Tensor of shape \(400, 6\).*TensorDataset"):
        adapt_head(mlp(), world.X, world.target)
    with pytest.raises(TypeError, match=r"target_loader must be.*Got int"):
        adapt_head(mlp(), world.source, 3)
    with pytest.raises(TypeError, match=r"single samples"):
        adapt_head(mlp(), TensorDataset(world.X, world.y), world.target)
    with pytest.raises(TypeError, match=r"inputs must be a function"):
        adapt_head(mlp(), world.source, world.target, inputs="x")


def test_an_empty_or_used_up_loader_is_named(mlp, world):
    with pytest.raises(ValueError, match=r"source_loader must yield at least one batch"):
        adapt_head(mlp(), [], world.target)
    used = iter(world.target)
    list(used)
    with pytest.raises(ValueError, match=r"target_loader must yield.*used up"):
        adapt_head(mlp(), world.source, used)
    with pytest.raises(ValueError, match=r"target_loader must yield at least one row"):
        adapt_head(mlp(), world.source, [world.Z[:0]])


def test_one_iterator_cannot_be_both_source_and_target(mlp, world):
    both = iter(world.source)
    with pytest.raises(ValueError, match=r"read only once"):
        adapt_head(mlp(), both, both)
    again = adapt_head(mlp(), world.source, world.source)
    assert again.adaptation.n_source == again.adaptation.n_target == 400


def test_a_generator_loses_no_batch_to_the_search_for_the_head(mlp, world):
    pulls = []

    def batches():
        for rows in zip(world.X.split(100), world.y.split(100)):
            pulls.append(1)
            yield rows

    adapted = adapt_head(mlp(), batches(), (rows for rows in world.Z.split(50)))
    assert len(pulls) == 4
    assert (adapted.adaptation.n_source, adapted.adaptation.n_target) == (400, 150)


def test_an_iterable_data_set_and_a_loader_with_workers_are_loaders(mlp, world, expected):
    class Stream(IterableDataset):
        def __iter__(self):
            yield from zip(world.X.split(100), world.y.split(100))

    workers = DataLoader(TensorDataset(world.X, world.y), batch_size=200, num_workers=1)
    for source in (Stream(), workers):
        adapted = adapt_head(mlp(), source, [world.Z])
        np.testing.assert_allclose(adapted.model.fc.weight.detach(), expected.detach(), rtol=1e-3, atol=1e-3)


def test_empty_batches_between_others_do_no_harm(mlp, world, expected):
    source = [(world.X, world.y), (world.X[:0], world.y[:0])]
    adapted = adapt_head(mlp(), source, [world.Z[:0], world.Z])
    torch.testing.assert_close(adapted.model.fc.weight, expected)

"""Inputs and labels are read from batches of common forms; test_messages.py has the refusal of others."""

from collections import namedtuple

import numpy as np
import pytest

from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, IterableDataset, TensorDataset  # noqa: E402

from pyspar.nn.batches import move_to_device  # noqa: E402

Pair = namedtuple("Pair", ["input", "label"])


class MaskedModel(torch.nn.Module):
    """A model whose forward method has a required and an optional parameter."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(6, 1)

    def forward(self, values, mask=None):
        return self.fc(values if mask is None else values * mask)


@pytest.fixture
def expected(mlp, problem):
    return adapt_head(mlp(), [(problem.X, problem.y)], [problem.Z]).model.fc.weight


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
        lambda x, y: (x.numpy(), y.numpy()),
        lambda x, y: ((x,), y.tolist()),
    ],
)
def test_a_batch_of_a_common_form_is_read(mlp, problem, expected, pack):
    adapted = adapt_head(mlp(), [pack(problem.X, problem.y)], [pack(problem.Z, torch.zeros(150))])
    torch.testing.assert_close(adapted.model.fc.weight, expected, rtol=1e-6, atol=1e-6)


def test_names_are_matched_to_the_parameters_of_forward(problem):
    mask = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    X, y, Z, model = problem.X, problem.y, problem.Z, MaskedModel()
    plain = adapt_head(model, [(X * mask, y)], [Z * mask])
    functions = {"inputs": lambda batch: {"mask": mask, "values": batch[0]}, "labels": lambda batch: batch[1]}
    for source, target, options in (
        ({"x": X, "mask": mask, "y": y, "id": y}, {"x": Z, "mask": mask}, {}),
        ({"values": X, "mask": mask, "y": y}, {"values": Z, "mask": mask}, {}),
        ({"values": X * mask, "mask": None, "y": y}, {"values": Z * mask, "mask": None}, {}),
        ((X, y, "unused"), (Z,), functions),
    ):
        masked = adapt_head(model, [source], [target], **options)
        torch.testing.assert_close(masked.model.fc.weight, plain.model.fc.weight)


def test_the_search_for_the_head_does_not_drop_a_batch_of_a_generator(mlp, problem):
    pulls = []

    def batches():
        for rows in zip(problem.X.split(100), problem.y.split(100)):
            pulls.append(1)
            yield rows

    adapted = adapt_head(mlp(), batches(), (rows for rows in problem.Z.split(50)))
    assert len(pulls) == 4
    assert (adapted.adaptation.n_source, adapted.adaptation.n_target) == (400, 150)


def test_iterable_data_sets_and_loaders_with_workers_are_supported(mlp, problem, expected):
    class Stream(IterableDataset):
        def __iter__(self):
            yield from zip(problem.X.split(100), problem.y.split(100))

    workers = DataLoader(TensorDataset(problem.X, problem.y), batch_size=200, num_workers=1)
    for source in (Stream(), workers):
        adapted = adapt_head(mlp(), source, [problem.Z])
        np.testing.assert_allclose(adapted.model.fc.weight.detach(), expected.detach(), rtol=1e-3, atol=1e-3)


def test_only_numpy_numbers_are_cast_to_the_dtype_of_the_weights():
    for rows, dtype in (
        (np.ones(2), torch.float32),
        (torch.ones(2).double(), torch.float64),
        (np.ones(2, int), torch.int64),
    ):
        assert move_to_device(rows, torch.device("cpu"), torch.float32).dtype == dtype


def test_batches_with_labels_of_different_dtypes_lose_no_digits():
    model, X = torch.nn.Linear(2, 1), torch.randn(8, 2)
    whole = torch.full((4,), 2**25 + 1)  # float32 has no such number
    for labels in ([whole, torch.ones(4)], [torch.ones(4), whole], [whole, torch.ones(4, dtype=torch.bfloat16)]):
        source = list(zip(X.split(4), labels, strict=True))
        adapted = adapt_head(model, source, [X], labels_scale="ignore", method="ols")
        assert adapted.source.moments.mean[-1] == pytest.approx(2**24 + 1, abs=1e-6)

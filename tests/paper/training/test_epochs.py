"""A phase that cannot be captured runs call by call. The test needs no GPU."""

import sys

import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.paper import ERM, TrainConfig, train_seeds  # noqa: E402
from pyspar.paper.training import epochs  # noqa: E402
from pyspar.paper.training.epochs import RandomStepError  # noqa: E402


def networks():
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.3), nn.Linear(8, 1)) for _ in range(2)]


def test_a_random_phase_is_trained_without_graphs(table_task, monkeypatch):
    loop = sys.modules["pyspar.paper.training.train"]
    tried = []

    def refuse(replicas, data, phase):
        tried.append(phase)
        raise RandomStepError

    config = TrainConfig(epochs=3, batch_size=8, lr=1e-2, device="cpu")
    plain = train_seeds(networks(), ERM(), table_task(), config, [0, 1])
    monkeypatch.setattr(epochs, "CapturedStep", refuse)
    monkeypatch.setattr(loop, "can_capture", lambda *a: True)
    trained = train_seeds(networks(), ERM(), table_task(), config, [0, 1])
    assert tried == ["train"]
    for one, other in zip(trained, plain, strict=True):
        assert torch.equal(one.model[0].weight, other.model[0].weight)

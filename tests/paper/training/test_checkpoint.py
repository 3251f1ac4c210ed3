"""The checkpoint file: names, damage, write errors, and reading the best weights."""

import errno
import os
from contextlib import contextmanager

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.io.atomic import whole_file  # noqa: E402
from pyspar.paper import ERM, MLP, Objective, TrainConfig, TrainingError, load_checkpoint, train, train_seeds  # noqa: E402
from pyspar.paper.training import checkpoint as checkpoint_module  # noqa: E402
from pyspar.paper.training.replica import copy_tensors  # noqa: E402


def config(**changes):
    return TrainConfig(**{"epochs": 2, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


def make_model(seed=0):
    torch.manual_seed(seed)
    return MLP(5, hidden=8)


@pytest.mark.parametrize("name", ["run", ".run", "run.pt", "a run.of mine"])
def test_a_checkpoint_may_have_any_name(name, tmp_path, table_task):
    first = train(make_model(), ERM(), table_task(), config(), 0, checkpoint=tmp_path / name)
    again = train(make_model(), ERM(), table_task(), config(), 0, checkpoint=tmp_path / name)
    assert first.history == again.history
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_every_flipped_bit_and_every_truncation_is_detected(tmp_path, table_task):
    """Torch's reader does not detect one in fifteen of these flips."""
    path = tmp_path / "run.pt"
    train(make_model(), ERM(), table_task(), config(), 0, checkpoint=path)
    written = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in [0, len(written) - 1, *rng.integers(0, len(written), 60).tolist()]:
        broken = bytearray(written)
        broken[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        with pytest.raises(InputError, match=r"run\.pt' .*digest"):
            load_checkpoint(path, make_model())
    for length in [0, 10, len(written) // 2, len(written) - 1]:
        path.write_bytes(written[:length])
        with pytest.raises(InputError, match=r"run\.pt' .*no digest"):
            train(make_model(), ERM(), table_task(), config(), 0, checkpoint=path)
    path.write_bytes(written)
    assert train(make_model(), ERM(), table_task(), config(), 0, checkpoint=path).history


def test_a_full_disk_raises_with_the_path_and_leaves_no_partial_file(tmp_path, table_task, monkeypatch):
    path = tmp_path / "run.pt"

    @contextmanager
    def full_disk(path):
        with whole_file(path) as temporary:
            yield temporary
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint_module, "whole_file", full_disk)
    with pytest.raises(OSError, match="No space left") as raised:
        train(make_model(), ERM(), table_task(), config(epochs=30), 0, checkpoint=path)
    assert raised.value.errno == errno.ENOSPC
    assert raised.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_a_checkpoint(tmp_path, table_task):
    with pytest.raises(InputError, match="folder"):
        train(make_model(), ERM(), table_task(), config(), 0, checkpoint=tmp_path)


def test_tensors_with_other_names_or_shapes_are_not_copied():
    into = {"a": torch.zeros(2, 3), "b": torch.zeros(3)}
    with pytest.raises(ValueError, match=r"'b' .*\(1,\).*\(3,\)"):
        copy_tensors(into, {"a": torch.ones(2, 3), "b": torch.ones(1)})
    with pytest.raises(ValueError, match=r"unexpected.*'c'"):
        copy_tensors(into, {"a": torch.ones(2, 3), "b": torch.ones(3), "c": torch.ones(1)})
    with pytest.raises(ValueError, match="'b' is missing"):
        copy_tensors(into, {"a": torch.ones(2, 3)})
    assert not into["a"].any()


@pytest.mark.parametrize("kind", [MLP, nn.Linear], ids=["stacked", "in turn"])
def test_load_checkpoint_returns_the_best_weights(kind, tmp_path, table_task):
    path = tmp_path / "run.pt"

    class MaybeStackable(ERM):
        stackable = kind is MLP

    build = (lambda seed: MLP(5, hidden=8)) if kind is MLP else (lambda seed: nn.Linear(5, 1))
    trained = train_seeds(build, MaybeStackable(), table_task(), config(epochs=5, lr=0.1), [3, 8], checkpoint=path)
    original = build(0)
    before = [p.clone() for p in original.parameters()]
    for one in trained:
        loaded = load_checkpoint(path, original, seed=one.seed)
        assert not loaded.training
        assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), one.model.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(original.parameters(), before, strict=True))
    with pytest.raises(InputError, match=r"seed .*\[3, 8\].*None"):
        load_checkpoint(path, original)
    with pytest.raises(InputError, match=r"(MLP|Linear) .*run\.pt.* has shape"):
        load_checkpoint(path, MLP(5, hidden=9) if kind is MLP else nn.Linear(4, 1), seed=3)
    with pytest.raises(InputError, match=r"not found: .*other"):
        load_checkpoint(tmp_path / "other", original)


class Poisoned(Objective):
    """Its module becomes NaN after epoch 1, while the losses and the model remain finite."""

    name = "Poisoned"

    def module(self, n_features):
        self.part = nn.Linear(n_features, 1)
        return self.part

    def phase(self, epoch):
        if epoch == 2:
            with torch.no_grad():
                self.part.weight.fill_(np.nan)
        return "train"

    def loss(self, net, batch, module, phase):
        penalty = torch.nan_to_num(module.weight).square().sum()
        return {**super().loss(net, batch, module, phase), "penalty": penalty}


def test_a_module_that_is_not_finite_raises_before_it_is_written(tmp_path, table_task, monkeypatch):
    monkeypatch.setattr(checkpoint_module, "_MAX_WRITING_SHARE", float("inf"))  # write after every epoch
    path = tmp_path / "run.pt"
    with pytest.raises(TrainingError, match=r"after epoch 2 .*run\.pt"):
        train(make_model(), Poisoned(), table_task(), config(epochs=5), 0, checkpoint=path)
    state = torch.load(path, weights_only=True)
    assert state["epoch"] == 2
    assert all(torch.isfinite(t).all() for t in state["replicas"][0]["tensors"]["module"].values())
    again = train(
        load_checkpoint(path, make_model()), ERM(), table_task(), config(lr=1e-3), 0, checkpoint=tmp_path / "b.pt"
    )
    assert np.isfinite(again.validation)

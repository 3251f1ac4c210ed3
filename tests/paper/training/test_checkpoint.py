"""The file of a checkpoint: any name, every bit of it checked, errors that name it, and weights read from it alone."""

import errno
import os

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import ERM, MLP, Objective, TrainConfig, TrainingError, load_checkpoint, train, train_seeds  # noqa: E402
from pyspar.paper.training import checkpoint as checkpoint_module  # noqa: E402
from pyspar.paper.training.replica import put  # noqa: E402


def config(**changes):
    return TrainConfig(**{"epochs": 2, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


def fresh(seed=0):
    torch.manual_seed(seed)
    return MLP(5, hidden=8)


@pytest.mark.parametrize("name", ["run", ".run", "run.pt", "a run.of mine"])
def test_a_checkpoint_may_have_any_name(name, tmp_path, table_task):
    first = train(fresh(), ERM(), table_task(), config(), 0, checkpoint=tmp_path / name)
    again = train(fresh(), ERM(), table_task(), config(), 0, checkpoint=tmp_path / name)
    assert first.history == again.history
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_no_flipped_bit_and_no_missing_end_goes_unnoticed(tmp_path, table_task):
    """torch's own reader takes one in fifteen such flips for weights."""
    path = tmp_path / "run.pt"
    train(fresh(), ERM(), table_task(), config(), 0, checkpoint=path)
    written = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in [0, len(written) - 1, *rng.integers(0, len(written), 60).tolist()]:
        broken = bytearray(written)
        broken[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        with pytest.raises(InputError, match=r"run\.pt', which cannot be read .*digest.*delete it to start over"):
            load_checkpoint(path, fresh())
    for length in [0, 10, len(written) // 2, len(written) - 1]:
        path.write_bytes(written[:length])
        with pytest.raises(InputError, match=r"no digest at its end: it is cut off.*delete it to start over"):
            train(fresh(), ERM(), table_task(), config(), 0, checkpoint=path)
    path.write_bytes(written)
    assert train(fresh(), ERM(), table_task(), config(), 0, checkpoint=path).history


def test_a_full_disk_is_told_with_the_path_and_the_epoch_and_leaves_the_file_before(tmp_path, table_task, monkeypatch):
    monkeypatch.setattr(checkpoint_module, "_SHARE", float("inf"))  # write after every epoch
    path, writes = tmp_path / "run.pt", []

    class Full:
        def __init__(self, file):
            self.file = file

        def write(self, content):
            writes.append(len(content))
            if len(writes) > 60:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.file.write(content)

    plain = checkpoint_module._write
    monkeypatch.setattr(checkpoint_module, "_write", lambda state, file: plain(state, Full(file)))
    with pytest.raises(OSError, match=r"could not be written after epoch \d+: No space left.*make room") as told:
        train(fresh(), ERM(), table_task(), config(epochs=30), 0, checkpoint=path)
    assert told.value.errno == errno.ENOSPC
    assert told.value.filename == str(path)
    assert [found.name for found in tmp_path.iterdir()] in ([], ["run.pt"])


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_first_epoch(tmp_path, table_task, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    class Never(ERM):
        def phase(self, epoch):
            assert not trained
            return "train"

        def plan(self, plan):
            trained.extend([plan.epoch] * (plan.epoch > 0))
            return {}

    trained = []
    monkeypatch.setattr(checkpoint_module.tempfile, "TemporaryFile", refuse)
    with pytest.raises(PermissionError, match=r"could not be written before training.*another folder"):
        train(fresh(), Never(), table_task(), config(), 0, checkpoint=tmp_path / "run.pt")
    with pytest.raises(InputError, match="must be the path of a file"):
        train(fresh(), Never(), table_task(), config(), 0, checkpoint=tmp_path)


def test_tensors_of_other_shapes_or_names_are_never_spread_over_ours():
    into = {"a": torch.zeros(2, 3), "b": torch.zeros(3)}
    with pytest.raises(ValueError, match=r"'b' has shape \(1,\) there and \(3,\) here"):
        put(into, {"a": torch.ones(2, 3), "b": torch.ones(1)})
    with pytest.raises(ValueError, match="'c' is in one of them"):
        put(into, {"a": torch.ones(2, 3), "b": torch.ones(3), "c": torch.ones(1)})
    assert not into["a"].any()


@pytest.mark.parametrize("kind", [MLP, nn.Linear], ids=["stacked", "in turn"])
def test_the_best_weights_are_read_from_the_file_alone(kind, tmp_path, table_task):
    path = tmp_path / "run.pt"

    class Alone(ERM):
        stackable = kind is MLP

    build = (lambda seed: MLP(5, hidden=8)) if kind is MLP else (lambda seed: nn.Linear(5, 1))
    trained = train_seeds(build, Alone(), table_task(), config(epochs=5, lr=0.1), [3, 8], checkpoint=path)
    given = build(0)
    before = [p.clone() for p in given.parameters()]
    for one in trained:
        found = load_checkpoint(path, given, seed=one.seed)
        assert not found.training
        assert all(torch.equal(a, b) for a, b in zip(found.parameters(), one.model.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(given.parameters(), before, strict=True))
    with pytest.raises(InputError, match=r"seed must be one of \[3, 8\].*Got None; pass seed="):
        load_checkpoint(path, given)
    with pytest.raises(InputError, match=r"is not the model of .* has shape .* there and .* here"):
        load_checkpoint(path, MLP(5, hidden=9) if kind is MLP else nn.Linear(4, 1), seed=3)
    with pytest.raises(InputError, match="which is no file"):
        load_checkpoint(tmp_path / "other", given)
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.Module"):
        load_checkpoint(path, "MLP")


class Poisoned(Objective):
    """Its own part is NaN after epoch 1, while losses and the model stay fine."""

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
        told = torch.nan_to_num(module.weight).square().sum()
        return {**super().loss(net, batch, module, phase), "told": told}


def test_a_part_of_the_objective_that_is_lost_ends_the_run_before_it_is_written(tmp_path, table_task, monkeypatch):
    monkeypatch.setattr(checkpoint_module, "_SHARE", float("inf"))  # write after every epoch
    path = tmp_path / "run.pt"
    with pytest.raises(TrainingError, match=r"the objective's part, after epoch 2.*load_checkpoint\(path, model\)"):
        train(fresh(), Poisoned(), table_task(), config(epochs=5), 0, checkpoint=path)
    state = torch.load(path, weights_only=True)
    assert state["epoch"] == 2
    assert all(torch.isfinite(t).all() for t in state["lanes"][0]["tensors"]["module"].values())
    again = train(load_checkpoint(path, fresh()), ERM(), table_task(), config(lr=1e-3), 0, checkpoint=tmp_path / "b.pt")
    assert np.isfinite(again.validation)

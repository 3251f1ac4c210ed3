"""Checkpoints: a resumed run ends with the same bits, and unusable files raise an error."""

import os
import signal
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import DANN, ERM, MLP, TrainConfig, train  # noqa: E402
from pyspar.paper.training import train as _  # noqa: E402, F401

module = sys.modules["pyspar.paper.training.train"]

# Dropout, batch norm, target rows, draws and a module: everything that a checkpoint has to contain or reproduce.
SCRIPT = """
import time
import numpy as np, torch
from torch import nn
from pyspar.paper.data.task import Part, ShiftTask
from pyspar.paper import Objective, TrainConfig, train

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.trunk = nn.Sequential(nn.Dropout(0.2), nn.Linear(8, 8))
        self.head = nn.Linear(8, 1, bias=False)
    def features(self, x):
        return self.trunk(self.stem(x))
    def forward(self, x):
        return self.head(self.features(x))

class Everything(Objective):
    uses_target = True
    def plan(self, plan):
        if {stop!r} and plan.epoch == 3:  # a plan is drawn after the previous epoch is written
            self.calls = -1
        return {{"mix": plan.rng.random(len(plan.order))}}
    def module(self, n_features):
        return nn.Linear(n_features, 1)
    def loss(self, net, batch, module, phase):
        if hasattr(self, "calls"):
            self.calls += 1
            if self.calls == 2:
                print("in the middle of an epoch", flush=True)
                time.sleep(120)
        parts = super().loss(net, batch, module, phase)
        return {{**parts, "penalty": batch.draws["mix"] * module(net.features(batch.target)).square().mean()}}

rng = np.random.default_rng(0)
def part(n):
    X = rng.normal(size=(n, 4))
    return Part(X, X.sum(axis=1), np.zeros(n, int))
task = ShiftTask("toy", part(40), part(20), part(15), "none", "here", "none")
config = TrainConfig(epochs=6, batch_size=8, lr=1e-2, shuffle="epoch", schedule="step", device="cpu")
torch.manual_seed(0)
trained = train(Net(), Everything(), task, config, 1, checkpoint={path!r})
torch.save(list(trained.model.state_dict().values()), {out!r})
"""


def make_script(*, stop, path, out):
    return SCRIPT.format(stop=stop, path=str(path), out=str(out))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_run_killed_in_the_middle_of_an_epoch_and_resumed_ends_with_the_same_bits(tmp_path):
    path, out = tmp_path / "run.pt", [tmp_path / f"{name}.pt" for name in ("never", "resumed", "unbroken")]
    command = [sys.executable, "-c", make_script(stop=True, path=path, out=out[0])]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert killed.stdout.readline() == "in the middle of an epoch\n"
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not out[0].exists()
    assert 1 <= torch.load(path, weights_only=True)["progress"][0] <= 3
    exec(make_script(stop=False, path=path, out=out[1]), {})
    path.unlink()
    exec(make_script(stop=False, path=path, out=out[2]), {})
    a, b = (torch.load(file, weights_only=True) for file in out[1:])
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["resumed.pt", "run.pt", "unbroken.pt"]  # no temporary files


def config(**changes):
    return TrainConfig(**{"epochs": 4, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


def make_model():
    torch.manual_seed(0)
    return MLP(5, hidden=8)


def test_a_run_resumes_after_ctrl_c_with_its_history(tmp_path, table_task, monkeypatch):
    monkeypatch.setattr(module, "_MAX_WRITING_SHARE", float("inf"))  # write after every epoch
    task, path, done = table_task(), tmp_path / "run.pt", []

    def stop(epochs):
        done.append(epochs)
        if epochs == 2 and len(done) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(make_model(), DANN(hidden=8), task, config(), 0, checkpoint=path, on_epoch=stop)
    assert torch.load(path, weights_only=True)["progress"][0] == 2  # written before the call
    resumed = train(make_model(), DANN(hidden=8), task, config(), 0, checkpoint=path, on_epoch=stop)
    assert done == [1, 2, 3, 4]
    unbroken = train(make_model(), DANN(hidden=8), task, config(), 0)
    assert [r.losses for r in resumed.history] == [r.losses for r in unbroken.history]
    assert resumed.best_epoch == unbroken.best_epoch
    best = unbroken.model.state_dict()
    for name, tensor in resumed.model.state_dict().items():
        assert torch.equal(tensor, best[name])


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"objective": DANN()}, {"config": config(lr=0.1)}, {"model": MLP(5, hidden=9)}]
)
def test_the_checkpoint_of_another_run_raises(change, tmp_path, table_task):
    path = tmp_path / "run.pt"
    arguments = {"model": make_model(), "objective": ERM(), "task": table_task(), "config": config(), "seed": 0}
    train(**arguments, checkpoint=path)
    with pytest.raises(InputError, match="checkpoint of another run"):
        train(**{**arguments, **change}, checkpoint=path)


@pytest.mark.parametrize("damage", ["truncate", "flip", "other"])
def test_a_damaged_checkpoint_raises(damage, tmp_path, table_task):
    path = tmp_path / "run.pt"
    train(make_model(), ERM(), table_task(), config(), 0, checkpoint=path)
    content = bytearray(path.read_bytes())
    if damage == "truncate":
        content = content[: len(content) // 2]
    elif damage == "flip":
        weight = torch.load(path, weights_only=True)["best"]["stem.0.weight"].numpy().tobytes()
        content[content.find(weight) + 7] ^= 1
    else:
        content = b"not a checkpoint"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot read the checkpoint"):
        train(make_model(), ERM(), table_task(), config(), 0, checkpoint=path)


def test_a_full_disk_keeps_the_last_checkpoint(tmp_path, table_task, monkeypatch):
    path = tmp_path / "run.pt"
    train(make_model(), ERM(), table_task(), config(epochs=1), 0, checkpoint=path)
    before = path.read_bytes()

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    path2 = tmp_path / "other.pt"
    with pytest.raises(OSError, match="No space left"):
        train(make_model(), ERM(), table_task(), config(), 0, checkpoint=path2)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.pt"]


def test_a_checkpoint_needs_an_existing_folder(tmp_path, table_task):
    for path in (tmp_path, tmp_path / "missing" / "run.pt"):
        with pytest.raises(InputError, match="checkpoint must be a file in an existing folder"):
            train(make_model(), ERM(), table_task(), config(), 0, checkpoint=path)

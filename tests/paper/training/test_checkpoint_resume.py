"""Resuming from checkpoints: the result is bit-identical, and the checkpoint of another run raises an error."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import ERM, MLP, Objective, TrainConfig, train, train_seeds  # noqa: E402
from pyspar.paper.training import checkpoint as checkpoint_module  # noqa: E402
from pyspar.paper.training.checkpoint import fingerprint  # noqa: E402

# Dropout, batch norm, target rows, draws and a module: everything that a checkpoint has to contain or reproduce.
SCRIPT = """
import sys, time
import numpy as np, torch
from torch import nn
from pyspar.paper.data.task import Part, ShiftTask
from pyspar.paper import Objective, TrainConfig, train_seeds

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
        penalty = module(net.features(batch.target)).square().mean(dim=(-2, -1))
        return {{**parts, "penalty": batch.draws["mix"] * penalty}}

rng = np.random.default_rng(0)
def part(n):
    X = rng.normal(size=(n, 4))
    return Part(X, X.sum(axis=1), np.zeros(n, int))
task = ShiftTask("toy", part(40), part(20), part(15), "none", "here", "none")
config = TrainConfig(epochs=6, batch_size=8, lr=1e-2, shuffle="epoch", schedule="cosine", device="cpu")
trained = train_seeds(lambda seed: Net(), Everything(), task, config, [1, 2], checkpoint={path!r})
torch.save([list(one.model.state_dict().values()) for one in trained], {out!r})
"""


def make_script(*, stop, path, out):
    return SCRIPT.format(stop=stop, path=str(path), out=str(out))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.slow
def test_a_run_killed_in_the_middle_of_an_epoch_and_resumed_ends_with_the_same_bits(tmp_path):
    path, out = tmp_path / "run.pt", [tmp_path / f"{name}.pt" for name in ("never", "resumed", "unbroken")]
    command = [sys.executable, "-c", make_script(stop=True, path=path, out=out[0])]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert killed.stdout.readline() == "in the middle of an epoch\n"
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not out[0].exists()
    assert 1 <= torch.load(path, weights_only=True)["epoch"] <= 3
    exec(make_script(stop=False, path=path, out=out[1]), {})
    path.unlink()
    exec(make_script(stop=False, path=path, out=out[2]), {})
    a, b = (torch.load(file, weights_only=True) for file in out[1:])
    assert all(torch.equal(x, y) for ones, others in zip(a, b, strict=True) for x, y in zip(ones, others, strict=True))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["resumed.pt", "run.pt", "unbroken.pt"]  # no temporary files


def config(**changes):
    return TrainConfig(**{"epochs": 4, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


def make_model():
    torch.manual_seed(0)
    return MLP(5, hidden=8)


class Interrupted(ERM):
    """Raise KeyboardInterrupt at the start of epoch ``at``."""

    def plan(self, plan):
        if plan.epoch == Interrupted.at:
            raise KeyboardInterrupt
        return {}


@pytest.mark.parametrize("seeds", [[0], [0, 5]], ids=["alone", "stacked"])
def test_a_run_resumes_after_ctrl_c_with_its_history(tmp_path, table_task, monkeypatch, seeds):
    monkeypatch.setattr(checkpoint_module, "_MAX_WRITING_SHARE", float("inf"))  # write after every epoch
    task, path = table_task(), tmp_path / "run.pt"

    def build(seed):
        return MLP(5, hidden=8)

    Interrupted.at = 2
    with pytest.raises(KeyboardInterrupt):
        train_seeds(build, Interrupted(), task, config(), seeds, checkpoint=path)
    assert torch.load(path, weights_only=True)["epoch"] == 2
    Interrupted.at = None
    resumed = train_seeds(build, Interrupted(), task, config(), seeds, checkpoint=path)
    unbroken = train_seeds(build, Interrupted(), task, config(), seeds)
    for one, other in zip(resumed, unbroken, strict=True):
        assert [r.epoch for r in one.history] == [0, 1, 2, 3]
        assert [r.losses for r in one.history] == [r.losses for r in other.history]
        assert one.best_epoch == other.best_epoch
        for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
            assert torch.equal(a, b)


def test_a_finished_run_is_read_and_not_repeated(tmp_path, table_task):
    task, path = table_task(), tmp_path / "run.pt"
    first = train_seeds(lambda seed: MLP(5, hidden=8), ERM(), task, config(), [0, 1], checkpoint=path)
    written = path.read_bytes()
    again = train_seeds(lambda seed: MLP(5, hidden=8), ERM(), task, config(), [0, 1], checkpoint=path)
    assert path.read_bytes() == written
    for a, b in zip(first, again, strict=True):
        assert torch.equal(a.model.head.weight, b.model.head.weight)
        assert (a.history, a.best_epoch) == (b.history, b.best_epoch)


def with_slope(slope):
    """A model with the same tensors and another setting, which is not in the state_dict."""
    model = make_model()
    model.trunk[1].negative_slope = slope
    return model


def partly_frozen():
    model = make_model()
    model.stem.requires_grad_(False)
    return model


class Weighted(ERM):
    def __init__(self, weight):
        self.weight = weight


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("config", lambda run: {**run, "config": config(lr=2e-2)}),
        ("objective", lambda run: {**run, "objective": Weighted(2.0)}),
        ("seeds", lambda run: {**run, "seed": 1}),
        ("model", lambda run: {**run, "model": MLP(5, hidden=9)}),
        ("model", lambda run: {**run, "model": with_slope(0.3)}),
        ("model", lambda run: {**run, "model": partly_frozen()}),
        ("initial weights", lambda run: {**run, "model": MLP(5, hidden=8)}),
        ("data", lambda run: {**run, "task": run["make"](seed=4)}),
    ],
)
def test_the_checkpoint_of_another_run_raises_and_is_not_changed(tmp_path, table_task, what, change):
    path = tmp_path / "run.pt"
    run = {"model": make_model(), "objective": Weighted(1.0), "task": table_task(), "config": config(), "seed": 0}
    train(*run.values(), checkpoint=path)
    written = path.read_bytes()
    other = change({**run, "make": table_task})
    other.pop("make")
    with pytest.raises(InputError, match=rf"run\.pt.*Different: {what}[.,]"):
        train(*other.values(), checkpoint=path)
    assert path.read_bytes() == written


def test_settings_without_effect_on_the_result_may_change(tmp_path, table_task):
    path, task = tmp_path / "run.pt", table_task()
    first = train(make_model(), ERM(), task, config(), 0, checkpoint=path)
    again = train(make_model(), ERM(), task, config(eval_batch_size=7, graph="never"), 0, checkpoint=path)
    assert first.history == again.history


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"not a checkpoint"])
def test_a_file_that_is_not_a_checkpoint_raises_and_is_not_changed(tmp_path, table_task, content):
    path = tmp_path / "run.pt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot read .*run\.pt"):
        train(make_model(), ERM(), table_task(), config(), 0, checkpoint=path)
    assert path.read_bytes() == content


def test_another_file_of_torch_raises(tmp_path, table_task):
    path = tmp_path / "weights.pt"
    torch.save(make_model().state_dict(), path)
    with pytest.raises(InputError, match=r"cannot read .*weights\.pt"):
        train(make_model(), ERM(), table_task(), config(), 0, checkpoint=path)


def test_a_missing_folder_raises_before_training(tmp_path, table_task):
    class NeverTrained(Objective):
        def loss(self, net, batch, module, phase):
            raise AssertionError("training started")

    with pytest.raises(InputError, match=r"no.run\.pt"):
        train(make_model(), NeverTrained(), table_task(), config(), 0, checkpoint=tmp_path / "no" / "run.pt")


def test_the_fingerprint_includes_the_weights_of_an_objectives_model(table_task):
    class Teacher(ERM):
        def __init__(self, model):
            self.model, self.call = model, lambda x: x

    task, model = table_task(), make_model()
    texts = [
        fingerprint(config(), Teacher(m), [0], task, [model])["objective"]
        for m in (make_model(), make_model(), nn.Linear(5, 1))
    ]
    assert texts[0] == texts[1] != texts[2]
    assert " at 0x" not in texts[0]


def test_the_fingerprint_includes_every_model_and_every_buffer(table_task):
    def make_net(mask):
        net = make_model()
        net.register_buffer("mask", torch.full((5,), mask), persistent=False)
        return net

    def identify(*models):
        return fingerprint(config(), ERM(), [0], table_task(), models)

    base = identify(make_net(1.0), make_net(1.0))
    assert identify(make_net(1.0), make_net(0.5))["initial weights"] != base["initial weights"]
    assert identify(make_net(1.0), MLP(5, hidden=9))["model"] != base["model"]
    assert identify(make_net(1.0), make_net(1.0)) == base


def test_groups_of_strings_are_identified_by_their_text(table_task):
    task = table_task()
    digests = []
    for letters in ("ab", "ab", "ac"):
        group = np.array(["".join([letters[i % 2], "x"]) for i in range(24)], dtype=object)
        val = type(task.val)(task.val.X, task.val.y, group)
        digests.append(fingerprint(config(), ERM(), [0], type(task)(**{**vars(task), "val": val}), [MLP(5)])["data"])
    assert digests[0] == digests[1] != digests[2]

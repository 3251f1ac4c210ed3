"""The model that is given stays as it was, whatever happens, and the features are never held all at once."""

import io
import subprocess
import sys

import pytest

from pyspar.nn import adapt_head, progress

torch = pytest.importorskip("torch")
nn = torch.nn


def state(model):
    tensors = {name: value.numpy().tobytes() for name, value in model.state_dict().items()}
    flags = [module.training for module in model.modules()]
    hooks = [
        len(module._forward_hooks) + len(module._forward_pre_hooks) + len(module._backward_hooks)
        for module in model.modules()
    ]
    return tensors, flags, hooks


@pytest.fixture
def model(mlp):
    """A model in training mode with a part that is frozen in evaluation mode."""
    made = mlp(bias=True)
    made.train()
    made.body[1].eval()
    made.fc.weight.requires_grad_(False)
    return made


def test_the_model_its_statistics_flags_and_gradients_are_untouched(model, world):
    model.body[0](world.X).sum().backward()
    before, grad = state(model), model.body[0].weight.grad.clone()
    adapted = adapt_head(model, world.source, world.target, method="spar")  # which fits a bias anew
    assert state(model) == before
    assert torch.equal(model.body[0].weight.grad, grad)
    tensors, flags, hooks = state(adapted.model)
    assert (flags, hooks) == before[1:]
    changed = {name for name, value in tensors.items() if value != before[0][name]}
    assert changed == {"fc.weight", "fc.bias"}
    assert not adapted.model.fc.weight.requires_grad
    assert adapted.model.body[0].weight.requires_grad


def test_dropout_is_off_and_the_random_state_is_not_used_up(model, world):
    torch.manual_seed(3)
    first = adapt_head(model, world.source, world.target)
    after = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(1), after)
    second = adapt_head(model, world.source, world.target)
    assert torch.equal(first.model.fc.weight, second.model.fc.weight)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("which", ["source_loader", "target_loader"])
def test_an_error_in_a_loader_passes_through_and_leaves_the_model_as_it_was(model, world, error, which):
    def breaking(batches):
        yield batches[0]
        raise error("the disk is gone")

    loaders = {"source_loader": [(world.X, world.y)], "target_loader": [world.Z]}
    loaders[which] = breaking(loaders[which])
    before = state(model)
    with pytest.raises(error, match="the disk is gone"):
        adapt_head(model, **loaders)
    assert state(model) == before
    assert torch.is_grad_enabled()


def test_the_model_runs_without_gradients_and_in_evaluation_mode(world):
    seen = []

    class Noting(nn.Module):
        def forward(self, x):
            seen.append((torch.is_grad_enabled(), self.training))
            return x

    adapt_head(nn.Sequential(Noting(), nn.Linear(6, 1)), world.source, world.target)
    assert set(seen) == {(False, False)}


def test_a_loader_that_computes_does_so_as_the_caller_left_it(model, world):
    seen = []

    def batches():
        for rows in zip(world.X.split(100), world.y.split(100)):
            seen.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")))
            yield rows

    adapt_head(model, batches(), world.target, autocast=torch.bfloat16)
    assert set(seen) == {(True, False)}


MEMORY = """
import resource, sys, torch
from pyspar.nn import adapt_head
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
def run(rows):
    X, y = torch.randn(rows, 16), torch.randn(rows)
    adapt_head(model, zip(X.split(500), y.split(500)), X.split(500))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
small = run(2000)
print((run(100_000) - small) / 1e6)
"""


def test_features_of_many_rows_are_never_held_at_once():
    pytest.importorskip("resource", reason="the peak of a process is read with it")
    shown = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True).stdout
    assert float(shown) < 60.0  # MB; the rows themselves take 7, the features of the source alone would take 205


def test_a_bar_is_shown_when_asked_for_and_never_else(model, world, capfd):
    pytest.importorskip("rich")
    adapt_head(model, world.source, world.target)
    assert capfd.readouterr() == ("", "")
    adapt_head(model, world.source, iter(world.target), progress=True)
    assert "target" in capfd.readouterr().err


def test_on_a_terminal_a_bar_is_shown_when_it_takes_long(model, world, monkeypatch):
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    for patience, shown in ((60.0, False), (-1.0, True)):
        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setattr(progress, "_PATIENCE", patience)
        adapt_head(model, world.source, world.target)
        assert ("target" in sys.stderr.getvalue()) == shown
        assert (sys.stderr.getvalue() != "") == shown


def test_a_missing_torch_or_rich_is_reported_with_what_brings_it(model, world, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    adapt_head(model, world.source, world.target)
    with pytest.raises(ImportError, match=r"pip install 'pyspar\[cli\]'"):
        adapt_head(model, world.source, world.target, progress=True)
    code = "import sys; sys.modules['torch'] = None; import pyspar.nn"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'pyspar[torch]'" in failed.stderr

"""The model runs in evaluation mode without gradients, and the given model and the random state are not changed."""

import pytest

from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn

from pyspar.nn.running import evaluation_mode  # noqa: E402


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
    """A model in training mode with one module in evaluation mode."""
    network = mlp(bias=True)
    network.train()
    network.body[1].eval()
    network.fc.weight.requires_grad_(False)
    return network


def test_evaluation_mode_restores_each_flag_also_after_an_error(model):
    flags = [module.training for module in model.modules()]
    with evaluation_mode(model):
        assert not any(module.training for module in model.modules())
    assert [module.training for module in model.modules()] == flags
    with pytest.raises(KeyboardInterrupt), evaluation_mode(model):
        raise KeyboardInterrupt
    assert [module.training for module in model.modules()] == flags


def test_the_given_model_with_its_statistics_flags_and_gradients_is_not_changed(model, problem):
    model.body[0](problem.X).sum().backward()
    before, grad = state(model), model.body[0].weight.grad.clone()
    adapted = adapt_head(model, problem.source, problem.target, method="spar")  # "spar" also fits a new bias
    assert state(model) == before
    assert torch.equal(model.body[0].weight.grad, grad)
    tensors, flags, hooks = state(adapted.model)
    assert (flags, hooks) == before[1:]
    changed = {name for name, value in tensors.items() if value != before[0][name]}
    assert changed == {"fc.weight", "fc.bias"}
    assert not adapted.model.fc.weight.requires_grad
    assert adapted.model.body[0].weight.requires_grad


def test_dropout_is_off_and_the_random_state_is_restored(model, problem):
    torch.manual_seed(3)
    first = adapt_head(model, problem.source, problem.target)
    after = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(1), after)
    second = adapt_head(model, problem.source, problem.target)
    assert torch.equal(first.model.fc.weight, second.model.fc.weight)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("name", ["source_loader", "target_loader"])
def test_an_error_in_a_loader_is_raised_and_the_model_is_not_changed(model, problem, error, name):
    def failing(batches):
        yield batches[0]
        raise error("disk error")

    loaders = {"source_loader": [(problem.X, problem.y)], "target_loader": [problem.Z]}
    loaders[name] = failing(loaders[name])
    before = state(model)
    with pytest.raises(error, match="disk error"):
        adapt_head(model, **loaders)
    assert state(model) == before
    assert torch.is_grad_enabled()


def test_the_model_runs_without_gradients_and_in_evaluation_mode(problem):
    modes = []

    class Recorder(nn.Module):
        def forward(self, x):
            modes.append((torch.is_grad_enabled(), self.training))
            return x

    adapt_head(nn.Sequential(Recorder(), nn.Linear(6, 1)), problem.source, problem.target)
    assert set(modes) == {(False, False)}


def test_gradients_and_mixed_precision_of_a_loader_are_not_changed(model, problem):
    modes = []

    def batches():
        for rows in zip(problem.X.split(100), problem.y.split(100)):
            modes.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")))
            yield rows

    adapt_head(model, batches(), problem.target, autocast=torch.bfloat16)
    assert set(modes) == {(True, False)}

"""A model runs in evaluation mode and is not changed; one that cannot be copied is refused with the fix."""

import threading
import warnings

import pytest

from pyspar import InputError
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn


class LoraLinear(nn.Module):
    """A linear layer with an adapter, as in peft."""

    def __init__(self, base):
        super().__init__()
        self.base_layer = base
        self.lora_A = nn.ModuleDict({"default": nn.Linear(base.in_features, 2, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(2, base.out_features, bias=False)})

    def forward(self, x):
        return self.base_layer(x) + self.lora_B["default"](self.lora_A["default"](x))


def test_an_adapter_on_the_head_must_be_merged_but_not_one_on_the_body(problem):
    head = nn.Sequential(nn.Linear(6, 5), LoraLinear(nn.Linear(5, 1)))
    with pytest.raises(InputError, match=r"merge_and_unload"):
        adapt_head(head, problem.source, problem.target)
    body = nn.Sequential(LoraLinear(nn.Linear(6, 5)), nn.Linear(5, 1))
    assert adapt_head(body, problem.source, problem.target, labels_scale="ignore").head_name == "1"


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


def test_dropout_is_off_and_no_random_numbers_are_drawn(model, problem):
    batches = [(problem.X, problem.y)], [problem.Z]
    torch.manual_seed(3)
    first = adapt_head(model, *batches)
    after = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(1), after)
    second = adapt_head(model, *batches)
    assert torch.equal(first.model.fc.weight, second.model.fc.weight)


def test_numbers_that_another_thread_draws_are_never_repeated(model, problem):
    drawn, stop = [], threading.Event()

    def draw():
        while not stop.is_set():
            drawn.append(float(torch.rand((), dtype=torch.float64)))

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        for _ in range(5):
            adapt_head(model, problem.source, problem.target)  # a DataLoader draws a seed at the start of each pass
    finally:
        stop.set()
        thread.join()
    assert len(drawn) > 100
    assert len(set(drawn)) == len(drawn)


def test_threads_get_the_results_of_serial_calls_and_no_setting_of_the_process_changes(model, mlp, problem):
    compiled = torch.compile(mlp(), backend="eager")
    models = [model, nn.Sequential(compiled)] * 2
    batches = [(problem.X, problem.y)], [problem.Z]
    serial = [adapt_head(one, *batches).weights[0] for one in models]
    filters, results = list(warnings.filters), [None] * len(models)

    def adapt(number):
        for _ in range(2):
            results[number] = adapt_head(models[number], *batches).weights[0]

    threads = [threading.Thread(target=adapt, args=[number]) for number in range(len(models))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((one == other).all() for one, other in zip(serial, results, strict=True))
    assert warnings.filters == filters
    assert torch.compiler.is_compiling() is False
    graphs = []
    torch.compile(nn.Linear(6, 1), backend=lambda graph, inputs: graphs.append(graph) or graph.forward)(problem.X)
    assert graphs  # torch.compile still compiles


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


def test_gradients_of_a_loader_are_not_disabled(model, problem):
    modes = []

    def batches():
        for rows in zip(problem.X.split(100), problem.y.split(100)):
            modes.append(torch.is_grad_enabled())
            yield rows

    adapt_head(model, batches(), problem.target)
    assert set(modes) == {True}

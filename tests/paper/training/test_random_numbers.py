"""Models draw from generators of a run: the numbers of torch.manual_seed, without touching torch's generator."""

import threading

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from pyspar.paper import ERM, MLP, TrainConfig, train, train_seeds  # noqa: E402
from pyspar.paper.training.random_numbers import OwnRandomNumbers  # noqa: E402

DRAWS = {
    "rand": lambda: torch.rand(3),
    "randn": lambda: torch.randn(2, 2),
    "randint": lambda: torch.randint(10, (4,)),
    "randint with two ends": lambda: torch.randint(5, 10, (4,)),
    "randperm": lambda: torch.randperm(9),
    "normal": lambda: torch.normal(torch.zeros(4), torch.ones(4)),
    "rand_like": lambda: torch.rand_like(torch.zeros(3)),
    "bernoulli": lambda: torch.bernoulli(torch.full((20,), 0.5)),
    "multinomial": lambda: torch.multinomial(torch.ones(9), 4),
    "dropout": lambda: nn.functional.dropout(torch.ones(20, requires_grad=True), 0.5).detach(),
    "initial weights": lambda: nn.Linear(3, 2).weight.detach(),
    "truncated normal": lambda: nn.init.trunc_normal_(torch.empty(5)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_an_operation_draws_the_numbers_of_the_seed_and_leaves_the_generator(name):
    torch.manual_seed(5)
    expected = DRAWS[name]()
    torch.manual_seed(1)
    state = torch.get_rng_state()
    with OwnRandomNumbers(5) as numbers:
        ours = DRAWS[name]()
    assert torch.equal(ours, expected)
    assert torch.equal(torch.get_rng_state(), state)
    assert numbers.drawn


def test_the_dropout_of_a_gpu_has_no_generator_and_is_replaced():
    x = torch.linspace(1.0, 2.0, 1000, requires_grad=True)
    state = torch.get_rng_state()
    results = []
    for seed in (5, 5, 6):
        with OwnRandomNumbers(seed):
            results.append(torch.native_dropout(x, 0.25, True))
    (dropped, kept), again, other = results
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(dropped, again[0])
    assert not torch.equal(dropped, other[0])
    torch.testing.assert_close(dropped, x * kept / 0.75)
    assert 0.65 < float(kept.double().mean()) < 0.85
    (gradient,) = torch.autograd.grad(dropped.sum(), x)
    torch.testing.assert_close(gradient, kept / 0.75)


def test_operations_without_random_numbers_and_own_generators_do_not_count():
    with OwnRandomNumbers(5) as numbers:
        (torch.ones(3, requires_grad=True) * 2).sum().backward()
        torch.rand(3, generator=torch.Generator().manual_seed(1))
    assert not numbers.drawn


class DropoutMLP(MLP):
    def features(self, x):
        return nn.functional.dropout(super().features(x), 0.5, self.training)


def test_training_with_dropout_repeats_no_numbers_of_another_thread_and_is_reproducible(table_task):
    task, config = table_task(), TrainConfig(epochs=2, batch_size=8, lr=1e-2, device="cpu")
    torch.manual_seed(0)
    model = DropoutMLP(5, hidden=16).double()
    quiet = train(model, ERM(), task, config, seed=3).model
    drawn, stop = [], threading.Event()

    def draw():
        while not stop.is_set():
            drawn.append(float(torch.rand((), dtype=torch.float64)))

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        busy = train(model, ERM(), task, config, seed=3).model
    finally:
        stop.set()
        thread.join()
    assert len(drawn) > 10
    assert len(set(drawn)) == len(drawn)
    for one, other in zip(quiet.parameters(), busy.parameters(), strict=True):
        assert torch.equal(one, other)
    other_seed = train(model, ERM(), task, config, seed=4).model
    assert not torch.equal(other_seed.head.weight, quiet.head.weight)


def test_the_number_of_threads_is_not_changed(table_task):
    task, config = table_task(), TrainConfig(epochs=1, batch_size=8, lr=1e-2, device="cpu")
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        train_seeds(
            lambda seed: MLP(5, hidden=4).double(), ERM(), task, config, [0],
            on_epoch=lambda done: seen.append(torch.get_num_threads()),
        )  # fmt: skip
    finally:
        torch.set_num_threads(before)
    assert seen == [2]

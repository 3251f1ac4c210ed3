"""The full text of representative error messages of adapt_head, in tests/golden/adapt-head-messages.txt."""

import pytest

from pyspar.nn import adapt_head, align

torch = pytest.importorskip("torch")
nn = torch.nn
from torch.utils.data import DataLoader  # noqa: E402


class FSDPModule(nn.Module):
    """The name of the class that ``fully_shard`` adds to a module."""


def test_error_messages(golden, mlp, make_network, problem):
    source, target, X, y = problem.source, problem.target, problem.X, problem.y
    tied = make_network(lambda s, x: s.fc(s.body(x)), decoder=nn.Linear(5, 1))
    tied.decoder.weight = tied.fc.weight
    iterator = iter(source)
    with_adapter = make_network(lambda s, x: s.fc(s.body(x)) + s.fc.lora_A(s.body(x)))
    with_adapter.fc.lora_A = nn.Linear(5, 1)

    def fail(model, x):
        raise RuntimeError("5 columns expected")

    calls = {
        "cutoff out of range": lambda: adapt_head(mlp(), source, target, cutoff=1.0),
        "a number as a source model": lambda: adapt_head(mlp(), source, target, source_model=3),
        "a data set for a loader": lambda: adapt_head(mlp(), source.dataset, target),
        "a tensor for a loader": lambda: adapt_head(mlp(), X, target),
        "an empty loader": lambda: adapt_head(mlp(), [], target),
        "one iterator twice": lambda: adapt_head(mlp(), iterator, iterator),
        "unknown output": lambda: adapt_head(mlp(), source, target, output=1),
        "a number of passes below zero": lambda: align(mlp(), source, target, passes=-1),
        "batches of one row": lambda: align(mlp(), source, list(problem.Z.split(1)), force=True),
        "unknown layer": lambda: adapt_head(mlp(), source, target, head="head"),
        "an activation": lambda: adapt_head(make_network(lambda s, x: s.fc(s.body(x)).sigmoid()), source, target),
        "an offset": lambda: adapt_head(make_network(lambda s, x: s.fc(s.body(x)) + 1), source, target),
        "another shape": lambda: adapt_head(make_network(lambda s, x: s.fc(s.body(x))[:-1]), source, target),
        "two runs": lambda: adapt_head(make_network(lambda s, x: (s.fc(s.body(x)), s.fc(s.body(-x)))), source, target),
        "a shared weight": lambda: adapt_head(tied, source, target),
        "ambiguous inputs": lambda: adapt_head(mlp(), [(X, y, y)], target),
        "ambiguous labels": lambda: adapt_head(mlp(), [{"x": X, "y": y, "target": y}], target),
        "no labels": lambda: adapt_head(mlp(), [X], target),
        "text labels": lambda: adapt_head(mlp(), [(X, ["high"] * 400)], target),
        "labels on another scale": lambda: adapt_head(mlp(), [(X, 1000 * y + 5000)], target),
        "one row": lambda: adapt_head(mlp(), [(X[:1], y[:1])], target),
        "a sharded model": lambda: adapt_head(FSDPModule(), source, target),
        "an offloaded model": lambda: adapt_head(nn.Linear(6, 1, device="meta"), source, target),
        "an adapter on the head": lambda: adapt_head(with_adapter, source, target),
        "a score of each token": lambda: adapt_head(
            make_network(lambda s, x: s.fc(s.body(x))[:, -1]), [(X.reshape(100, 4, 6), y[:100])], target
        ),
        "labels of a shuffled target": lambda: adapt_head(
            mlp(), source, DataLoader(target.dataset, shuffle=True), target_labels=y
        ),
        "labels of another shape": lambda: adapt_head(mlp(), [(X, y[:399])], target),
        "missing values": lambda: adapt_head(mlp(), [(X * float("nan"), y)], target),
        "rows that the model cannot process": lambda: adapt_head(make_network(fail), source, target),
    }
    messages = []
    for title, call in calls.items():
        with pytest.raises((ValueError, TypeError)) as error:
            call()
        messages.append(f"{title}\n  {type(error.value).__name__}: {error.value}")
    golden("adapt-head-messages", "\n".join(messages))

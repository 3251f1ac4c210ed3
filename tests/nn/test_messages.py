"""The full text of representative error messages of adapt_head, in tests/golden/adapt-head-messages.txt."""

import pytest

from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn


def test_error_messages(golden, mlp, make_network, problem):
    source, target, X, y, Z = problem.source, problem.target, problem.X, problem.y, problem.Z
    tied = make_network(lambda s, x: s.fc(s.body(x)), decoder=nn.Linear(5, 1))
    tied.decoder.weight = tied.fc.weight
    iterator = iter(source)

    def fail(model, x):
        raise RuntimeError("5 columns expected")

    calls = {
        "missing target": lambda: adapt_head(mlp(), source),
        "cutoff out of range": lambda: adapt_head(mlp(), source, target, cutoff=1.0),
        "a data set for a loader": lambda: adapt_head(mlp(), source.dataset, target),
        "a tensor for a loader": lambda: adapt_head(mlp(), X, target),
        "an empty loader": lambda: adapt_head(mlp(), [], target),
        "one iterator twice": lambda: adapt_head(mlp(), iterator, iterator),
        "unknown layer": lambda: adapt_head(mlp(), source, target, head="head"),
        "an activation": lambda: adapt_head(make_network(lambda s, x: s.fc(s.body(x)).sigmoid()), source, target),
        "an offset": lambda: adapt_head(make_network(lambda s, x: s.fc(s.body(x)) + 1), source, target),
        "another shape": lambda: adapt_head(make_network(lambda s, x: s.fc(s.body(x))[:-1]), source, target),
        "two runs": lambda: adapt_head(make_network(lambda s, x: (s.fc(s.body(x)), s.fc(s.body(-x)))), source, target),
        "a shared weight": lambda: adapt_head(tied, source, target),
        "ambiguous inputs": lambda: adapt_head(mlp(), [(X, y, y)], target),
        "ambiguous labels": lambda: adapt_head(mlp(), [{"x": X, "y": y, "target": y}], target),
        "no labels": lambda: adapt_head(mlp(), [X], target),
        "labels of another shape": lambda: adapt_head(mlp(), [(X, y[:399])], target),
        "missing values": lambda: adapt_head(mlp(), [(X * float("nan"), y)], target),
        "target rows of another shape": lambda: adapt_head(nn.Linear(6, 1), source, [Z.reshape(30, 5, 6)]),
        "rows that the model cannot process": lambda: adapt_head(make_network(fail), source, target),
    }
    messages = []
    for title, call in calls.items():
        with pytest.raises((ValueError, TypeError)) as error:
            call()
        messages.append(f"{title}\n  {type(error.value).__name__}: {error.value}")
    golden("adapt-head-messages", "\n".join(messages))

"""The full text of representative error messages of adapt_head, in tests/golden/adapt-head-messages.txt."""

from types import SimpleNamespace

import pytest

from pyspar.nn import adapt_head, align

torch = pytest.importorskip("torch")
nn = torch.nn
from torch.utils.data import DataLoader  # noqa: E402

# fully_shard adds a mixin to the class of a module
FSDPLinear = type("FSDPLinear", (type("FSDPModule", (), {}), nn.Linear), {})
FullyShardedDataParallel = type("FullyShardedDataParallel", (nn.Sequential,), {})


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_error_messages(golden, mlp, make_network, problem, never_read):
    source, target, X, y = problem.source, problem.target, problem.X, problem.y
    tied = make_network(lambda s, x: s.fc(s.body(x)), decoder=nn.Linear(5, 1))
    tied.decoder.weight = tied.fc.weight
    iterator = iter(source)
    with_adapter = make_network(lambda s, x: s.fc(s.body(x)) + s.fc.lora_A(s.body(x)))
    with_adapter.fc.lora_A = nn.Linear(5, 1)
    hooked = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 1))
    hooked[0]._hf_hook = SimpleNamespace(offload=True)
    auxiliary = make_network(lambda s, x: s.fc(s.body(x)), aux=nn.Linear(5, 1))
    sometimes = make_network(lambda s, x: s.fc(s.body(x)) if len(x) == 64 else x[:, :1])
    traced, deep = torch.jit.trace(nn.Linear(6, 1), X[:2]), nn.Sequential(*(nn.Linear(6, 6) for _ in range(12)))

    def need_six(model, x):
        if x.shape[1] != 6:
            raise RuntimeError("6 columns expected")
        return model.fc(model.body(x))

    calls = {
        "cutoff out of range": lambda: adapt_head(mlp(), source, target, cutoff=1.0),
        "a number as a source model": lambda: adapt_head(mlp(), source, target, source_model=3),
        "a data set for a loader": lambda: adapt_head(mlp(), source.dataset, target),
        "a tensor for a loader": lambda: adapt_head(mlp(), X, target),
        "a number for a loader": lambda: adapt_head(mlp(), source, 3),
        "text for a function": lambda: adapt_head(mlp(), source, target, inputs="x"),
        "a function for a model": lambda: adapt_head(lambda x: x, never_read, never_read),
        "a loader without rows": lambda: adapt_head(mlp(), source, [problem.Z[:0]]),
        "an empty loader": lambda: adapt_head(mlp(), [], target),
        "one iterator twice": lambda: adapt_head(mlp(), iterator, iterator),
        "unknown output": lambda: adapt_head(mlp(), source, target, output=1),
        "a number of passes below zero": lambda: align(mlp(), source, target, passes=-1),
        "unknown layer": lambda: adapt_head(mlp(), source, target, head="head"),
        "one of many layers": lambda: adapt_head(deep, source, target, head="x"),
        "no linear layer": lambda: adapt_head(nn.Flatten(), source, target),
        "a traced model": lambda: adapt_head(traced, source, target),
        "a layer that is not initialised": lambda: adapt_head(nn.LazyLinear(1), source, target),
        "linear layers that do not run": lambda: adapt_head(make_network(lambda s, x: x[:, :1]), source, target),
        "a layer of the body": lambda: adapt_head(mlp(), source, target, head="body.0"),
        "a layer for a name": lambda: adapt_head(mlp(), source, target, head=mlp().fc),
        "a layer that does not run": lambda: adapt_head(auxiliary, source, target, head="aux"),
        "a layer that does not always run": lambda: adapt_head(sometimes, source, target),
        "an activation": lambda: adapt_head(make_network(lambda s, x: s.fc(s.body(x)).sigmoid()), source, target),
        "an offset": lambda: adapt_head(make_network(lambda s, x: s.fc(s.body(x)) + 1), source, target),
        "another shape": lambda: adapt_head(make_network(lambda s, x: s.fc(s.body(x))[:-1]), source, target),
        "two runs": lambda: adapt_head(make_network(lambda s, x: (s.fc(s.body(x)), s.fc(s.body(-x)))), source, target),
        "a shared weight": lambda: adapt_head(tied, source, target),
        "ambiguous inputs": lambda: adapt_head(mlp(), [(X, y, y)], target),
        "ambiguous fields": lambda: adapt_head(mlp(), [{"a": X, "b": X, "y": y}], target),
        "an object for a batch": lambda: adapt_head(mlp(), [SimpleNamespace(x=X, y=y)], target),
        "an empty batch": lambda: adapt_head(mlp(), [()], target),
        "ambiguous labels": lambda: adapt_head(mlp(), [{"x": X, "y": y, "target": y}], target),
        "no labels": lambda: adapt_head(mlp(), [X], target),
        "no labels in a tuple": lambda: adapt_head(mlp(), [(X,)], target),
        "no labels in a dict": lambda: adapt_head(mlp(), [{"x": X}], target),
        "labels in a dict": lambda: adapt_head(mlp(), [(X, {"a": y})], target),
        "text labels": lambda: adapt_head(mlp(), [(X, ["high"] * 400)], target),
        "labels on another scale": lambda: adapt_head(mlp(), [(X, 1000 * y + 5000)], target),
        "one row": lambda: adapt_head(mlp(), [(X[:1], y[:1])], target),
        "a sharded layer": lambda: adapt_head(nn.Sequential(FSDPLinear(6, 1)), never_read, never_read),
        "a sharded model": lambda: adapt_head(FullyShardedDataParallel(nn.Linear(6, 1)), never_read, never_read),
        "an offloaded model": lambda: adapt_head(nn.Linear(6, 1, device="meta"), never_read, never_read),
        "an offloaded layer": lambda: adapt_head(hooked, never_read, never_read),
        "an adapter on the head": lambda: adapt_head(with_adapter, source, target),
        "a score of each token": lambda: adapt_head(
            make_network(lambda s, x: s.fc(s.body(x))[:, -1]), [(X.reshape(100, 4, 6), y[:100])], target
        ),
        "labels of a shuffled target": lambda: adapt_head(
            mlp(), source, DataLoader(target.dataset, shuffle=True), target_labels=y
        ),
        "labels of another shape": lambda: adapt_head(mlp(), [(X, y[:399])], target),
        "labels of two outputs": lambda: adapt_head(mlp(), [(X, y[:, None].repeat(1, 2))], target),
        "labels of classes": lambda: adapt_head(mlp(outputs=3), [(X, y.long())], target),
        "labels of sequences": lambda: adapt_head(nn.Linear(6, 1), [(X.reshape(100, 4, 6), y[:100])], target),
        "missing values": lambda: adapt_head(mlp(), [(X * float("nan"), y)], target),
        "rows that the model cannot process": lambda: adapt_head(
            make_network(need_six), source, [problem.Z, problem.Z[:, :5]]
        ),
    }
    messages = []
    for title, call in calls.items():
        with pytest.raises((ValueError, TypeError)) as error:
            call()
        messages.append(f"{title}\n  {type(error.value).__name__}: {error.value}")
    golden("adapt-head-messages", "\n".join(messages))

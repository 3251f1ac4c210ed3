"""Networks of other shapes: residual, attentive, compiled, wrapped, with several outputs and inputs."""

import copy

import numpy as np
import pytest

from pyspar import SpARRegressor
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn


class Block(nn.Module):
    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.short = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x):
        out = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(out + self.short(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.layers = nn.Sequential(Block(8, 16, 2), Block(16, 16, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16, 1)

    def features(self, x):
        return torch.flatten(self.pool(self.layers(self.stem(x))), 1)

    def forward(self, x):
        return self.fc(self.features(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(16, 1, bias=False)

    def features(self, x):
        return self.encoder(self.embed(x)).mean(dim=1)

    def forward(self, x):
        return self.head(self.features(x)).squeeze(-1)


@pytest.mark.parametrize(("kind", "shape"), [(ResNet, (3, 8, 8)), (Transformer, (5, 4))])
def test_residual_and_attentive_networks(kind, shape):
    torch.manual_seed(0)
    model = kind()
    X, Z = torch.randn(150, *shape), 2 * torch.randn(60, *shape)
    y = X.flatten(1).mean(dim=1) + 0.1 * torch.randn(150)
    model(X)  # gives batch norm something to remember
    before = copy.deepcopy(model.state_dict())
    adapted = adapt_head(model, [(X[:100], y[:100]), (X[100:], y[100:])], [Z], method="spar")
    assert adapted.head_name in ("fc", "head")
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    model.eval()
    # Without torch's fused attention, as hooks anywhere in a network switch it off: the two differ by rounding.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            features = [model.features(rows).numpy() for rows in (X, Z)]
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    head = adapted.model.get_submodule(adapted.head_name)
    byhand = SpARRegressor(fit_intercept=head.bias is not None).fit(features[0], y.double().numpy()).adapt(features[1])
    # float32 features of another order of batches differ by rounding, which least squares magnifies.
    np.testing.assert_allclose(head.weight.detach()[0], byhand.coef_, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(adapted.adaptation.removed, byhand.adaptation_.removed)


def test_a_compiled_model_gives_the_plain_module(mlp, world):
    model = mlp()
    compiled = torch.compile(model, backend="eager")
    compiled.eval()(world.X[:5])
    ours = adapt_head(compiled, world.source, world.target, head="_orig_mod.fc")
    assert type(ours.model) is type(model)
    assert ours.head_name == "fc"
    plain = adapt_head(model, world.source, world.target)
    torch.testing.assert_close(ours.model.fc.weight, plain.model.fc.weight)


def test_a_compiled_part_and_a_module_compiled_in_place_are_seen_through(mlp, world):
    model = mlp()
    plain = adapt_head(model, world.source, world.target)
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph.forward

    inside = nn.Sequential(torch.compile(mlp(), backend=backend))
    inside.eval()(world.X[:5])  # compiled before the hooks come
    before = len(compiled)
    ours = adapt_head(inside, world.source, world.target)
    assert len(compiled) == before > 0  # nothing is compiled for a search that takes three batches
    torch.testing.assert_close(ours.model[0].fc.weight, plain.model.fc.weight)
    model.compile(backend="eager")
    model.eval()(world.X[:5])
    ours = adapt_head(model, world.source, world.target)
    torch.testing.assert_close(ours.model.fc.weight, plain.model.fc.weight)


def test_a_data_parallel_model_gives_the_plain_module(mlp, world):
    ours = adapt_head(nn.DataParallel(mlp()), world.source, world.target, head="module.fc")
    assert ours.head_name == "fc"
    assert not isinstance(ours.model, nn.DataParallel)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 5)
        self.price, self.size = nn.Linear(5, 1), nn.Linear(5, 1)

    def forward(self, x):
        h = torch.tanh(self.body(x))
        return {"price": self.price(h), "size": self.size(h), "rank": h.argmax(dim=1)}


def test_of_several_heads_one_is_named(world):
    with pytest.raises(ValueError, match="'price', 'size' each give one"):
        adapt_head(TwoHeads(), world.source, world.target)
    model = TwoHeads()
    adapted = adapt_head(model, world.source, world.target, head="size")
    assert not torch.equal(adapted.model.size.weight, model.size.weight)
    assert torch.equal(adapted.model.price.weight, model.price.weight)


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.head = nn.Linear(3, 5), nn.Linear(3, 5), nn.Linear(5, 1)

    def forward(self, a, b, *, scale=1.0):
        return (self.head(input=torch.tanh(self.left(a) + scale * self.right(b))), None)


def test_a_model_may_take_several_inputs(world):
    torch.manual_seed(0)
    model = TwoInputs()
    (a, b), (za, zb) = world.X.split(3, dim=1), world.Z.split(3, dim=1)
    as_tuple = adapt_head(model, [((a, b), world.y)], [((za, zb),)])
    as_dict = adapt_head(model, [({"a": a, "b": b}, world.y)], [({"a": za, "b": zb},)])
    by_name = adapt_head(model, [{"a": a, "b": b, "y": world.y, "id": world.y}], [{"a": za, "b": zb}])
    by_function = adapt_head(model, [(a, b, world.y)], [(za, zb)], inputs=lambda p: p[:2], labels=lambda p: p[2])
    for other in (as_dict, by_name, by_function):
        torch.testing.assert_close(other.model.head.weight, as_tuple.model.head.weight)

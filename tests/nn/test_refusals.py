"""A head that SpAR cannot replace is refused, with the reason; so are rows that do not fit it."""

import numpy as np
import pytest

from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn
F = torch.nn.functional


def ending(forward, **layers):
    """Return a network with a body, a head named fc, and a forward of its own."""

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.fc = nn.Linear(6, 5), nn.Linear(5, 1)
            for name, layer in layers.items():
                setattr(self, name, layer)

        def forward(self, x):
            return forward(self, x)

    torch.manual_seed(0)
    return Network()


@pytest.mark.parametrize("head", [None, "fc"])
@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (lambda s, x: s.fc(s.body(x)) + x[:, :1], "something is added .* skip connection"),
        (lambda s, x: s.fc(s.body(x)) + x.mean(), "something is added"),
        (lambda s, x: s.fc(s.body(x)) + 1e-6, "something is added"),
        (lambda s, x: s.fc(s.body(x)) + s.fc2(x), "something is added"),
        (lambda s, x: torch.sigmoid(s.fc(s.body(x))), "changed .* activation"),
        (lambda s, x: F.relu(100 + s.fc(s.body(x))) - 100, "changed|added"),
        (lambda s, x: s.fc(s.body(x)).clamp(-50, 50), "changed"),
        (lambda s, x: s.fc(s.body(x)).relu_(), "changed"),
        (lambda s, x: 2 * s.fc(s.body(x)), "changed .* rescaling"),
        (lambda s, x: s.fc(s.body(x)).flip(0), "changed"),
        (lambda s, x: s.norm(s.fc(s.body(x))), "changed|added"),
        (lambda s, x: s.fc(s.body(x))[:-1], r"it gives shape \(64, 1\) and the model returns \(63, 1\)"),
    ],
)
def test_a_prediction_that_does_not_leave_the_layer_is_refused_with_the_reason(world, after, reason, head):
    model = ending(after, fc2=nn.Linear(6, 1), norm=nn.BatchNorm1d(1))
    with pytest.raises(ValueError, match=rf"(?s)Network: the layer '\w+' is not a head.*({reason}).*SpAR needs"):
        adapt_head(model, world.source, world.target, head=head)


def test_a_relu_with_nothing_to_do_in_the_first_batch_is_still_seen(world):
    model = ending(lambda s, x: torch.relu(s.fc(s.body(x))))
    nn.init.constant_(model.fc.bias, 1e4)
    with pytest.raises(ValueError, match=r"changed"):
        adapt_head(model, world.source, world.target)


@pytest.mark.parametrize(
    "after",
    [
        lambda s, x: s.fc(s.body(x)).squeeze(-1),
        lambda s, x: s.fc(s.body(x)).flatten(),
        lambda s, x: s.fc(s.body(x)).view(1, -1),
        lambda s, x: s.fc(s.body(x)).double(),
        lambda s, x: (s.fc(s.body(x)), s.body(x)),
        lambda s, x: F.dropout(s.fc(s.body(x)), training=s.training),
        lambda s, x: {"prediction": s.fc(s.body(x)), "loss": None},
    ],
)
def test_a_change_of_shape_or_dtype_is_no_change(world, after):
    adapted = adapt_head(ending(after), world.source, world.target, head="fc")
    assert adapted.head_name == "fc"


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_no_linear_layer(world):
    with pytest.raises(ValueError, match=r"Flatten has no linear layer \(torch.nn.Linear\)"):
        adapt_head(nn.Flatten(), world.source, world.target)
    with pytest.raises(ValueError, match=r"TorchScript hides"):
        adapt_head(torch.jit.trace(nn.Linear(6, 1), world.X[:2]), world.source, world.target)
    with pytest.raises(ValueError, match=r"ran none of its linear layers"):
        adapt_head(ending(lambda s, x: x @ x.new_ones(6, 1)), world.source, world.target)


def test_a_head_that_is_named_wrongly_is_answered_with_the_names(mlp, world):
    with pytest.raises(
        ValueError, match=r"MLP has no layer named 'head'. Its linear layers are 'body.0', .*'fc'; pass"
    ):
        adapt_head(mlp(), world.source, world.target, head="head")
    with pytest.raises(ValueError, match=r"MLP has no linear layer named 'body.1'. Its linear layers"):
        adapt_head(mlp(), world.source, world.target, head="body.1")
    with pytest.raises(ValueError, match=r"'body.0' is not a head.*it gives shape \(64, 12\)"):
        adapt_head(mlp(), world.source, world.target, head="body.0")
    with pytest.raises(TypeError, match=r"head must be the name of a layer, such as 'fc'. Got Linear"):
        adapt_head(mlp(), world.source, world.target, head=mlp().fc)
    with pytest.raises(ValueError, match=r"the model does not run it"):
        adapt_head(ending(lambda s, x: s.fc(s.body(x)), aux=nn.Linear(5, 1)), world.source, world.target, head="aux")
    deep = nn.Sequential(*[nn.Linear(6, 6) for _ in range(12)], nn.ReLU())
    with pytest.raises(ValueError, match=r"'4', .*'11' and 4 before"):
        adapt_head(deep, world.source, world.target, head="x")


def test_a_tied_weight_is_refused(world):
    model = ending(lambda s, x: s.fc(s.body(x)), decoder=nn.Linear(5, 1))
    model.decoder.weight = model.fc.weight
    with pytest.raises(ValueError, match=r"'fc' shares its weight with 'decoder.weight'"):
        adapt_head(model, world.source, world.target)
    model = ending(lambda s, x: s.fc(s.body(x)), decoder=nn.Linear(5, 1))
    model.decoder.weight.data = model.fc.weight.data
    with pytest.raises(ValueError, match=r"shares its weight"):
        adapt_head(model, world.source, world.target)
    twice = ending(lambda s, x: s.fc(s.body(x)))
    twice.again = twice.fc  # one layer under two names is not tied to another
    assert adapt_head(twice, world.source, world.target).model.again is not twice.fc


def test_a_weight_made_of_others_and_a_layer_that_is_not_linear_are_refused(world):
    normed = ending(lambda s, x: s.fc(s.body(x)))
    nn.utils.parametrizations.weight_norm(normed.fc)
    with pytest.raises(ValueError, match=r"its weight is computed from other parameters"):
        adapt_head(normed, world.source, world.target)

    class Cosine(nn.Linear):
        def forward(self, x):
            return F.linear(F.normalize(x, dim=1), self.weight, self.bias)

    with pytest.raises(ValueError, match=r"Cosine computes something else"):
        adapt_head(nn.Sequential(nn.Linear(6, 5), Cosine(5, 1)), world.source, world.target)


def test_a_head_that_runs_twice_or_not_in_every_batch_is_refused(world):
    with pytest.raises(ValueError, match=r"runs it 2 times"):
        adapt_head(ending(lambda s, x: (s.fc(s.body(x)), s.fc(s.body(-x)))), world.source, world.target)
    model = ending(lambda s, x: s.fc(s.body(x)) if len(x) == 64 else x[:, :1])
    with pytest.raises(ValueError, match=r"batch 6 of source_loader: the model ran its head 0 times"):
        adapt_head(model, world.source, world.target)


def test_rows_that_the_model_cannot_run_are_named(mlp, world):
    with pytest.raises(ValueError, match=r"(?s)batch 1 of target_loader: .* Tensor of shape \(150, 5\).*pass inputs="):
        adapt_head(mlp(), world.source, [world.Z, world.Z[:, :5]])
    with pytest.raises(ValueError, match=r"batch 0 of source_loader: the model could not run on"):
        adapt_head(mlp(), [(world.X.double(), world.y)], world.target)
    with pytest.raises(ValueError, match=r"batch 0 of target_loader: .*shape \(30, 5, 6\), and before it had 2 dim"):
        adapt_head(nn.Linear(6, 1), [(world.X, world.y)], [world.Z.reshape(30, 5, 6)])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_features_and_labels_that_are_not_finite_are_named(mlp, world, bad):
    X, y, Z = world.X.clone(), world.y.clone(), world.Z.clone()
    X[250, 1] = y[390] = Z[149, 0] = bad
    with pytest.raises(ValueError, match=r"batch 2 of source_loader: the features that enter the layer 'fc' must be"):
        adapt_head(mlp(), zip(X.split(100), world.y.split(100)), [world.Z])
    with pytest.raises(ValueError, match=r"batch 3 of source_loader: the labels must be finite"):
        adapt_head(mlp(), zip(world.X.split(100), y.split(100)), [world.Z])
    with pytest.raises(ValueError, match=r"batch 1 of target_loader: the features"):
        adapt_head(mlp(), world.source, Z.split(100))


def test_labels_that_do_not_fit_the_head_are_refused_with_both_shapes(mlp, world):
    with pytest.raises(ValueError, match=r"must have shape \(400, 1\). Got \(400, 2\)"):
        adapt_head(mlp(), [(world.X, torch.zeros(400, 2))], [world.Z])
    with pytest.raises(ValueError, match=r"must have shape \(400, 3\). Got \(400,\) instead; these look like class"):
        adapt_head(mlp(outputs=3), [(world.X, torch.zeros(400, dtype=torch.int64))], [world.Z])
    with pytest.raises(ValueError, match=r"must have shape \(400, 1\). Got \(399,\) instead; pass labels="):
        adapt_head(mlp(), [(world.X, world.y[:399])], [world.Z])
    with pytest.raises(ValueError, match=r"must have shape \(100, 4, 1\). Got \(100,\) instead; pool the features"):
        adapt_head(nn.Linear(6, 1), [(world.X.reshape(100, 4, 6), world.y[:100])], [world.Z])


def test_choices_are_checked_before_anything_is_run(mlp, world):
    def never():
        raise AssertionError("read")
        yield

    for options, kind, words in [
        ({"alpha": 2}, ValueError, "alpha is a confidence level"),
        ({"noise": "none"}, ValueError, "noise must be one of"),
        ({"method": "ridge"}, ValueError, "method must be 'bayes', 'spar' or 'ols', got 'ridge'"),
        ({"autocast": "bf16"}, TypeError, "autocast must be"),
    ]:
        with pytest.raises(kind, match=words):
            adapt_head(mlp(), never(), never(), **options)
    with pytest.raises(ValueError, match=r"target_loader is missing; pass it, or use method='ols'"):
        adapt_head(mlp(), never())
    with pytest.raises(TypeError, match=r"model must be a torch.nn.Module. Got function"):
        adapt_head(never, never(), never())


def test_models_that_cannot_be_copied_or_have_seen_nothing_are_refused(mlp, world):
    with pytest.raises(ValueError, match=r"lazy layers"):
        adapt_head(nn.LazyLinear(1), world.source, world.target)
    model = mlp()
    model.cache = model(world.X)  # not a leaf of the graph
    with pytest.raises(TypeError, match=r"MLP must be a module that copy.deepcopy can copy"):
        adapt_head(model, world.source, world.target)


def test_weights_beyond_the_dtype_of_the_head_are_refused(world):
    model = nn.Linear(6, 1, bias=False).half()
    labels = 1e6 * world.y.double()
    with pytest.raises(ValueError, match=r"too large for its dtype torch.float16"):
        adapt_head(model, [(world.X.half(), labels)], [world.Z.half()], method="ols")
    assert np.isfinite(model.weight.detach().numpy()).all()

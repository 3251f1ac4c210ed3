"""adapt_head: the paper's methods equal a fit on features in memory; wrappers, invalid options and progress."""

import sys
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from pyspar import InputError, SpARRegressor
from pyspar.nn import AdaptedHead, adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn
spar_head = partial(adapt_head, method="spar")


def weights(adapted):
    layer = adapted.model.get_submodule(adapted.head_name)
    return layer.weight.detach().double().numpy(), None if layer.bias is None else layer.bias.detach().double().numpy()


@pytest.mark.parametrize("alpha", [0.0, 0.999, 1.0])
@pytest.mark.parametrize("bias", [False, True])
def test_the_weights_equal_those_of_features_in_memory(mlp, problem, features_of, bias, alpha):
    model = mlp(bias=bias)
    adapted = spar_head(model, problem.source, problem.target, alpha=alpha)
    features = features_of(model.body, problem.X).astype(np.float32)
    expected = SpARRegressor(alpha=alpha, fit_intercept=bias).fit(features, problem.y.double().numpy())
    expected.adapt(features_of(model.body, problem.Z).astype(np.float32))
    assert adapted.adaptation.removed.any() == (alpha > 0.0)
    assert adapted.adaptation.removed.all() == (alpha == 1.0)
    weight, intercept = weights(adapted)
    np.testing.assert_allclose(weight[0], expected.coef_, rtol=1e-6, atol=1e-6)
    if bias:
        np.testing.assert_allclose(intercept, expected.intercept_, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(adapted.adaptation.removed, expected.adaptation_.removed)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_adapted_model_predicts_with_the_weights_of_the_result(mlp, make_problem, features_of, bias, dtype):
    problem = make_problem(dtype=dtype)
    model = mlp(bias=bias).to(problem.X.dtype)
    adapted = spar_head(model, problem.source, problem.target)
    features = features_of(adapted.model.body, problem.Z)
    with torch.no_grad():
        predicted = adapted.model.eval()(problem.Z)
    assert predicted.dtype == problem.Z.dtype
    # The weights are rounded to the head's dtype, and so is each product that the head sums.
    rounding = 8 * np.finfo(dtype).eps * (np.abs(features) @ np.abs(adapted.weights[0][0]) + 1.0)
    assert (np.abs(predicted.numpy()[:, 0] - features @ adapted.weights[0][0] - adapted.weights[1]) <= rounding).all()
    assert isinstance(adapted, AdaptedHead)
    assert adapted.head_name == "fc"


def test_each_of_several_outputs_has_its_own_directions(mlp, make_problem, features_of):
    problem = make_problem(outputs=3, dtype="float64")
    model = mlp(outputs=3, bias=True).double()
    adapted = spar_head(model, problem.source, problem.target, labels_scale="ignore")
    expected = SpARRegressor().fit(features_of(model.body, problem.X), problem.y.numpy())
    expected.adapt(features_of(model.body, problem.Z))
    np.testing.assert_allclose(weights(adapted)[0], expected.coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(weights(adapted)[1], expected.intercept_, rtol=1e-6, atol=1e-6)
    assert adapted.adaptation.removed.shape[1] == 3


@pytest.mark.parametrize("bias", [False, True])
def test_ols_equals_linear_regression(mlp, problem, features_of, bias):
    model = mlp(bias=bias)
    adapted = spar_head(model, problem.source, problem.target, method="ols")
    plain = LinearRegression(fit_intercept=bias).fit(features_of(model.body, problem.X), problem.y.double().numpy())
    np.testing.assert_allclose(weights(adapted)[0][0], plain.coef_, rtol=1e-3, atol=1e-4)
    assert adapted.adaptation is None
    assert adapted.changed == (12, 12)


def test_the_source_of_a_result_replaces_another_pass(mlp, problem):
    model = mlp(bias=True)
    ols = spar_head(model, problem.source, problem.target, method="ols")
    again = spar_head(model, ols.source, problem.target)
    spar = spar_head(model, problem.source, problem.target)
    np.testing.assert_array_equal(again.weights[0], spar.weights[0])
    with pytest.raises(InputError, match="12 features"):
        adapt_head(mlp(width=5), ols.source, problem.target)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("bias", [False, True])
def test_a_gpu_gives_the_same_weights(mlp, make_problem, bias):
    problem = make_problem(dtype="float64")
    on_cpu = spar_head(mlp(bias=bias).double(), problem.source, problem.target)
    on_gpu = spar_head(mlp(bias=bias).double().cuda(), problem.source, problem.target)
    assert on_gpu.model.fc.weight.is_cuda
    np.testing.assert_allclose(on_gpu.model.fc.weight.detach().cpu(), on_cpu.model.fc.weight.detach(), atol=1e-8)


@pytest.mark.parametrize(("method", "alpha"), [("bayes", 0.999), ("bayes", 1.0), ("spar", 0.999), ("ols", 0.999)])
def test_the_representation_states_how_much_was_changed(mlp, problem, method, alpha):
    adapted = adapt_head(mlp(), problem.source, problem.target, method=method, alpha=alpha)
    text = repr(adapted)
    for part in ("MLP", "'fc'", repr(method), f"{adapted.changed.directions} of {adapted.changed.total} directions"):
        assert part in text
    for rmse in (adapted.summary.trained, adapted.summary.least_squares, adapted.summary.adapted):
        assert f"{rmse[0]:.3g}" in text


def test_a_head_that_shares_its_weight_is_refused(make_network, problem):
    model = make_network(lambda s, x: s.fc(s.body(x)), decoder=nn.Linear(5, 1))
    model.decoder.weight.data = model.fc.weight.data
    with pytest.raises(ValueError, match=r"'fc' .*'decoder.weight'"):
        adapt_head(model, problem.source, problem.target)
    aliased = make_network(lambda s, x: s.fc(s.body(x)))
    aliased.alias = aliased.fc  # one layer with two names does not share its weight with another layer
    assert adapt_head(aliased, problem.source, problem.target).model.alias is not aliased.fc


class NeverRun(nn.Module):
    """A model that fails when it is run."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 1)

    def forward(self, x):
        raise AssertionError("a forward pass")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 2}, "alpha.* 2"),
        ({"alpha": float("nan")}, "alpha.* nan"),
        ({"alpha": "high"}, "alpha.* 'high'"),
        ({"method": "ridge"}, "method.* 'bayes', 'spar', 'ols'.* 'ridge'"),
        ({"cutoff": 1.0}, "cutoff.* 1.0"),
        ({"cutoff": "small"}, "cutoff.* 'small'"),
        ({"labels_scale": "any"}, "labels_scale.* 'check', 'ignore'.* 'any'"),
    ],
)
def test_options_are_checked_before_a_batch_is_read_or_the_model_is_run(never_read, options, words):
    with pytest.raises(ValueError, match=words):
        adapt_head(NeverRun(), never_read, never_read, **options)


def test_models_that_cannot_be_copied_are_refused(mlp, problem):
    model = mlp()
    model.cache = model(problem.X)  # deepcopy only supports leaves of the graph
    with pytest.raises(TypeError, match=r"copy.deepcopy.* MLP"):
        adapt_head(model, problem.source, problem.target)


def test_weights_that_overflow_the_dtype_of_the_head_are_refused(problem):
    model = nn.Linear(6, 1, bias=False).half()
    labels = 1e6 * problem.y.double()
    with pytest.raises(ValueError, match=r"overflow torch.float16"):
        adapt_head(model, [(problem.X.half(), labels)], [problem.Z.half()], method="ols", labels_scale="ignore")
    assert np.isfinite(model.weight.detach().numpy()).all()


def test_a_compiled_forward_method_is_refused_with_its_cause(mlp, problem):
    model = mlp()
    model.forward = torch.compile(model.forward, backend="eager")  # bound to the given model, not to a copy
    with pytest.raises(InputError, match=r"torch\.compile"):
        adapt_head(model, problem.source, problem.target)


def test_compiled_submodules_and_modules_compiled_in_place_are_supported(mlp, problem):
    model = mlp()
    expected = adapt_head(model, problem.source, problem.target)
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph.forward

    outer = nn.Sequential(torch.compile(mlp(), backend=backend))
    outer.eval()(problem.X[:5])  # compiled before the hooks are added
    before = len(compiled)
    adapted = adapt_head(outer, problem.source, problem.target)
    assert len(compiled) == before > 0  # the search for the head does not compile the model again
    torch.testing.assert_close(adapted.model[0].fc.weight, expected.model.fc.weight)
    model.compile(backend="eager")
    model.eval()(problem.X[:5])
    adapted = adapt_head(model, problem.source, problem.target)
    torch.testing.assert_close(adapted.model.fc.weight, expected.model.fc.weight)


def test_progress_is_shown_on_request_and_not_without_a_terminal(mlp, problem, capfd, monkeypatch):
    pytest.importorskip("rich")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", None)  # as in a program without a console
        adapt_head(mlp(), problem.source, problem.target)
    adapt_head(mlp(), problem.source, problem.target)
    assert capfd.readouterr() == ("", "")
    adapt_head(mlp(), problem.source, iter(problem.target), progress=True)
    assert "target" in capfd.readouterr().err

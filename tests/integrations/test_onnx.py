"""Exported graphs predict in onnxruntime what the models predict here."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyspar import BayesSpARRegressor, InputError, SpARRegressor, adapt_pipeline

skl2onnx = pytest.importorskip("skl2onnx", reason="needs: pip install 'pyspar[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs: pip install 'pyspar[onnx]'")

from pyspar.integrations.onnx import register_converters, to_onnx  # noqa: E402


def run(graph, rows):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {session.get_inputs()[0].name: rows})
    return output


def make_models(shift):
    """Return fitted models by name."""
    X, y, Z = shift.X, shift.y, shift.Z
    some = np.where(np.arange(len(Z)) < 15, Z @ shift.w_star + 2.0, np.nan)
    pipeline = make_pipeline(StandardScaler(), PCA(3), BayesSpARRegressor()).fit(X, y)
    return {
        "spar": SpARRegressor().fit(X, y).adapt(Z),
        "bayes": BayesSpARRegressor().fit(X, y).adapt(Z),
        "labels": BayesSpARRegressor().fit(X, y).adapt(Z, some),
        "two outputs": BayesSpARRegressor().fit(X, np.column_stack([y, -y])).adapt(Z),
        "no intercept": SpARRegressor(fit_intercept=False).fit(X, y).adapt(Z),
        "pipeline": adapt_pipeline(pipeline, Z),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_graph_predicts_what_the_model_predicts(shift, dtype):
    for name, model in make_models(shift).items():
        rows = shift.Z.astype(np.float32).astype(dtype)  # the same numbers in both precisions
        expected = np.asarray(model.predict(rows)).reshape(len(rows), -1)
        output = run(to_onnx(model, rows[:1]), rows)
        assert output.dtype == dtype, name
        assert output.shape == expected.shape, name
        assert np.abs(output - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max()), name


def test_float32_keeps_the_digits_of_columns_with_large_means(shift):
    """The products of means near 1e6 and opposite weights cancel, which costs digits unless the mean is subtracted."""
    X, Z = shift.X + 2.0**20, shift.Z + 2.0**20
    for model in (BayesSpARRegressor().fit(X, shift.y).adapt(Z), SpARRegressor(fit_intercept=False).fit(X, shift.y)):
        rows = Z.astype(np.float32)
        expected = model.predict(rows.astype(np.float64))
        assert np.abs(run(to_onnx(model, rows[:1]), rows)[:, 0] - expected).max() < 1e-5 * np.abs(expected).max()


def test_a_later_adaptation_is_not_part_of_an_exported_graph(shift):
    model = SpARRegressor().fit(shift.X, shift.y)
    before = run(to_onnx(model, shift.X), shift.Z)
    after = run(to_onnx(model.adapt(shift.Z), shift.X), shift.Z)
    assert np.abs(before - after).max() > 0.1


def test_skl2onnx_itself_converts_registered_estimators(shift):
    register_converters()
    model = SpARRegressor().fit(shift.X, shift.y)
    output = run(skl2onnx.to_onnx(model, shift.X, target_opset=18), shift.Z)
    np.testing.assert_allclose(output[:, 0], model.predict(shift.Z), rtol=1e-12)


def test_what_cannot_be_exported_is_refused(shift):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        to_onnx(SpARRegressor(), shift.X)
    with pytest.raises(InputError, match="initial_types"):
        to_onnx(SpARRegressor().fit(shift.X, shift.y))
    logs = TransformedTargetRegressor(SpARRegressor(), func=np.arcsinh, inverse_func=np.sinh).fit(shift.X, shift.y)
    with pytest.raises(skl2onnx.common.exceptions.MissingShapeCalculator):
        to_onnx(logs, shift.X)


def test_a_repaired_network_is_exported_with_torch(tmp_path):
    torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")
    pytest.importorskip("onnxscript", reason="needs: pip install 'pyspar[onnx]'")
    from pyspar.nn import adapt_head

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    X, Z = torch.randn(200, 4), 3 * torch.randn(50, 4)
    result = adapt_head(model, [(X, X.sum(dim=1))], [Z], method="spar", labels_scale="ignore")
    adapted = result.model.eval()
    for network in (result, adapted):
        with pytest.raises(InputError, match=r"torch\.onnx\.export"):
            to_onnx(network, Z.numpy())
    rows = torch.export.Dim("rows")
    graph = torch.onnx.export(adapted, (Z[:2],), dynamo=True, dynamic_shapes=[{0: rows}], verbose=False).model_proto
    with torch.no_grad():
        expected = adapted(Z).numpy()
        assert np.abs(expected - model(Z).numpy()).max() > 0.1
    np.testing.assert_allclose(run(graph, Z.numpy()), expected, rtol=1e-5, atol=1e-5)

"""The features of a loader are summed in one pass, with the precision they have; invalid rows are named."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import pyspar.nn

torch = pytest.importorskip("torch")
nn = torch.nn
adapt_head = partial(pyspar.nn.adapt_head, method="spar")


def weights(adapted):
    return adapted.model.get_submodule(adapted.head_name).weight.detach().double().numpy()


def test_a_loader_may_reuse_one_tensor_for_all_batches(problem):
    # The model is its own head, so the hook receives the tensor that the loader reuses.
    def batches():
        X, y = torch.empty(50, 6), torch.empty(50, dtype=torch.float64)
        for rows, labels in zip(problem.X.split(50), problem.y.split(50)):
            yield X.copy_(rows), y.copy_(labels)

    model = nn.Linear(6, 1)
    reused = adapt_head(model, batches(), [problem.Z])
    np.testing.assert_allclose(weights(reused), weights(adapt_head(model, problem.source, [problem.Z])), atol=1e-5)
    assert reused.head_name == ""


def test_a_head_on_sequences_treats_each_step_with_a_label_as_a_row(problem):
    adapt = partial(adapt_head, labels_scale="ignore")  # the heads are not trained
    X, Z = problem.X.reshape(100, 4, 6), problem.Z[:148].reshape(37, 4, 6)
    steps = adapt(nn.Linear(6, 1), [(X, problem.y.reshape(100, 4))], [Z])
    rows = adapt(nn.Linear(6, 1), [(problem.X, problem.y)], [problem.Z[:148]])
    np.testing.assert_allclose(weights(steps), weights(rows), rtol=1e-6, atol=1e-7)
    middle = adapt(nn.Linear(6, 1), [(problem.X[:, None], problem.y)], [problem.Z[:, None]])
    assert middle.adaptation.n_source == 400


def test_a_bfloat16_model_keeps_its_dtype_and_its_features_have_that_precision(mlp, problem):
    model = mlp().bfloat16()
    source = [(problem.X.bfloat16(), problem.y)]
    adapted = adapt_head(model, source, [problem.Z.bfloat16()])
    assert adapted.model.fc.weight.dtype == torch.bfloat16
    assert (adapted.source.moments.eps == torch.finfo(torch.bfloat16).eps).all()
    np.testing.assert_allclose(weights(adapted)[0], adapted.weights[0][0], rtol=0.01, atol=0.01)


def test_mixed_precision_limits_the_features_but_not_the_weights(mlp, problem):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        adapted = adapt_head(mlp(), problem.source, problem.target)
    assert adapted.model.fc.weight.dtype == torch.float32
    assert (adapted.source.moments.eps == torch.finfo(torch.bfloat16).eps).all()


def test_float64_features_with_directions_nine_decades_apart_are_resolved(rng):
    # A product squares the nine decades, which float64 cannot represent. QR does not square them.
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    X = rng.normal(size=(3000, 6)) @ np.diag(np.logspace(0, -9, 6)) @ rotation
    y = X @ rotation.T @ np.logspace(0, 9, 6)
    model = nn.Linear(6, 1, bias=False).double()
    batches = zip(torch.tensor(X).split(100), torch.tensor(y).split(100))
    adapted = adapt_head(model, batches, [torch.tensor(X[:10])], method="ols")
    np.testing.assert_allclose(rotation @ weights(adapted)[0], np.logspace(0, 9, 6), rtol=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_batch_with_features_or_labels_that_are_not_finite_is_named(mlp, problem, bad):
    X, y, Z = problem.X.clone(), problem.y.clone(), problem.Z.clone()
    X[250, 1] = y[390] = Z[149, 0] = bad
    with pytest.raises(ValueError, match=r"batch 2 of source_loader: NaN or infinity .* layer 'fc'"):
        adapt_head(mlp(), zip(X.split(100), problem.y.split(100)), [problem.Z])
    with pytest.raises(ValueError, match=r"batch 3 of source_loader: NaN or infinity .* labels"):
        adapt_head(mlp(), zip(problem.X.split(100), y.split(100)), [problem.Z])
    with pytest.raises(ValueError, match=r"batch 1 of target_loader: NaN or infinity .* layer 'fc'"):
        adapt_head(mlp(), problem.source, Z.split(100))


MEMORY = """
import resource, sys, torch
from pyspar.nn import adapt_head
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
def run(rows):
    X, y = torch.randn(rows, 16), torch.randn(rows)
    adapt_head(model, zip(X.split(500), y.split(500)), X.split(500))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
small = run(2000)
print((run(100_000) - small) / 1e6)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_features_of_all_rows():
    pytest.importorskip("resource", reason="measures the peak memory of a process")
    output = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True).stdout
    assert float(output) < 60.0  # MB; the rows take 7, and the features of the source would take 205

"""Tensors give the fit of arrays, on every device."""

import numpy as np
import pytest

from pyspar import Moments, SpARRegressor

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.sources.torch import eigen_on, moments_of_loader, moments_of_torch, moments_on_device  # noqa: E402


def test_tensors_give_the_fit_of_arrays(problem, in_memory, assert_same):
    X, y, Z = (torch.tensor(a) for a in (problem.X, problem.y, problem.Z))
    est = SpARRegressor().fit(X, y).adapt(Z)
    assert_same(est, in_memory)
    predicted = est.predict(Z)
    assert isinstance(predicted, torch.Tensor)
    np.testing.assert_allclose(predicted.numpy(), in_memory.predict(problem.Z), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [32, 999])
def test_a_data_loader_is_a_stream_of_batches(problem, in_memory, assert_same, size):
    data = torch.utils.data.TensorDataset(torch.tensor(problem.X), torch.tensor(problem.y))
    loader = torch.utils.data.DataLoader(data, batch_size=size, shuffle=True)
    targets = torch.utils.data.DataLoader(torch.tensor(problem.Z), batch_size=64)
    assert_same(SpARRegressor().fit(loader).adapt(targets), in_memory)


def test_narrow_tensors_are_summed_in_float64_and_keep_their_precision(problem):
    X = problem.X.astype(np.float32)
    of_tensors = SpARRegressor().fit(torch.tensor(X), torch.tensor(problem.y)).adapt(torch.tensor(problem.Z).float())
    of_arrays = SpARRegressor().fit(X, problem.y).adapt(problem.Z.astype(np.float32))
    np.testing.assert_allclose(of_tensors.coef_, of_arrays.coef_, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(of_tensors.moments_.eps, of_arrays.moments_.eps)
    half = moments_of_torch(torch.tensor(problem.X).bfloat16())
    assert (half.eps == torch.finfo(torch.bfloat16).eps).all()


def test_more_features_than_one_tile_are_supported(problem):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 700)).astype(np.float32)
    moments, exact = moments_of_torch(torch.tensor(X)), X.astype(float)
    np.testing.assert_allclose(moments.root[:, 1:].T @ moments.root[:, 1:], exact.T @ exact, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("decades", [6, 10])
def test_float64_tensors_have_the_accuracy_of_qr(decades):
    rng = np.random.default_rng(decades)
    X = rng.normal(size=(500, 6)) @ np.diag(np.logspace(0, -decades, 6)) @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    singular_values = np.linalg.svd(moments_of_torch(torch.tensor(X)).root_about(None), compute_uv=False)[:6]
    np.testing.assert_allclose(
        singular_values, np.linalg.svd(X - X.mean(axis=0), compute_uv=False), rtol=1e-4 * 10.0 ** (decades - 12) + 1e-10
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_no_more_rows_than_columns_give_a_root_with_as_few_rows(weighted):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 300)).astype(np.float32), rng.normal(size=40)
    w = rng.random(40) if weighted else None
    whole = moments_of_torch(torch.tensor(X), torch.tensor(y), None if w is None else torch.tensor(w))
    # Batches that reuse one tensor.
    buffer = torch.empty(8, 300)
    batches = (
        (buffer.copy_(torch.tensor(X[i : i + 8])), torch.tensor(y[i : i + 8]))
        + (() if w is None else (torch.tensor(w[i : i + 8]),))
        for i in range(0, 40, 8)
    )
    expected = Moments.of(X, y, w).root
    for moments in (whole, moments_of_loader(batches, labelled=True)):
        assert len(moments.root) == 40  # not 302: every later factorisation costs as little
        assert (moments.rows, moments.n_outputs) == (40, 1)
        np.testing.assert_allclose(moments.root.T @ moments.root, expected.T @ expected, rtol=1e-9, atol=1e-9)
    assert (whole.eps == np.finfo(np.float32).eps).all()


def test_rows_that_were_held_are_added_when_more_follow():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 30)).astype(np.float32), rng.normal(size=90)
    batches = [(torch.tensor(X[i : i + 9]), torch.tensor(y[i : i + 9])) for i in range(0, 90, 9)]
    moments = moments_of_loader(batches, labelled=True)
    expected = Moments.of(X, y).root
    np.testing.assert_allclose(moments.root.T @ moments.root, expected.T @ expected, rtol=1e-9, atol=1e-9)
    assert moments.rows == 90


def test_targets_of_another_width_are_refused(problem):
    X, y = torch.tensor(problem.X), torch.tensor(problem.y)
    est = SpARRegressor().fit(X, y)
    with pytest.raises(ValueError, match="12"):
        est.adapt(X[:, :3])
    with pytest.raises(ValueError, match="12"):
        est.predict(X[:, :3])


def test_eigenproblems_on_a_device_give_the_same_fit(problem, in_memory, assert_same, monkeypatch):
    # The CPU is used as the device. The test checks that the other function is used and correct.
    calls = []

    def eigen(root):
        calls.append(root.shape)
        return eigen_on(torch.device("cpu"), root)

    monkeypatch.setattr("pyspar.estimators.base.eigen_on_device_of", lambda data: eigen)
    assert_same(SpARRegressor().fit(problem.X, problem.y).adapt(problem.Z), in_memory)
    assert len(calls) == 2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("collinear", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_product_of_a_gpu_has_the_moments_of_the_rows(dtype, collinear, weighted, monkeypatch):
    """The function runs on any device. Several blocks are added; collinear columns and float64 take the exact route."""
    monkeypatch.setattr("pyspar.sources.torch._GPU_BLOCK_BYTES", 8 * 6 * 100)
    monkeypatch.setattr("pyspar.sources.torch._STRIP", 4)
    torch.manual_seed(0)
    X, Y = torch.randn(1000, 6) * torch.logspace(-2, 2, 6) + 30.0, torch.randn(1000, 2).double()
    w = torch.rand(1000).double() + 0.1 if weighted else None
    if collinear:
        X[:, 3] = 2.0 * X[:, 1]
    for rows, before in ((X, X.clone()), (X.double(), X.double())):  # float64 rows need no conversion, but a copy
        found = moments_on_device(rows, Y, w, float(np.finfo(dtype).eps)).root
        assert torch.equal(rows, before)
    expected = Moments.of(X.double().numpy(), Y.numpy(), None if w is None else w.numpy()).root
    lengths = np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(
        found.T @ found / np.outer(lengths, lengths), expected.T @ expected / np.outer(lengths, lengths), atol=1e-11
    )


def test_a_block_with_nan_is_refused_on_its_device():
    X = torch.randn(500, 3)
    X[200, 1] = torch.nan
    with pytest.raises(ValueError, match="NaN"):
        moments_on_device(X, torch.randn(500, 1).double(), None, float(np.finfo(np.float32).eps))

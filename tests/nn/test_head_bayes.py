"""The default method corrects the trained head along directions where the source labels contradict it."""

import copy

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from pyspar.core.refit import error_roots_of, refit_head
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn


def evidence_at(k, lam, c, rest, n):
    """Return the log evidence of residuals for ridge penalty k, and the noise variance that maximises it."""
    scale = 1.0 + lam**2 / k  # the variance along a direction of the source, in units of the noise variance
    sigma2 = (np.sum(c**2 / scale) + rest) / n
    return -0.5 * (n * np.log(sigma2) + np.sum(np.log(scale))), sigma2


def corrected_by_hand(features, residual, target, alpha, cutoff=0.0, trained=None):
    """Return the change of one output's weights: ridge by maximum evidence, given zero where nothing is proven.

    A head that changes also loses its ``trained`` weights below the cutoff. The whole change is scaled down if it
    changes the predictions more on the target than on the source.

    It is independent of the library: singular value decompositions, a grid over the penalty and scipy's optimiser.
    """
    U, lam, Vt = np.linalg.svd(features, full_matrices=False)
    kept = lam > cutoff * lam[0]
    U, lam, Vt = U[:, kept], lam[kept], Vt[kept]
    c = U.T @ residual
    rest, n = residual @ residual - c @ c, len(residual)
    grid = np.log(lam[0] ** 2) + np.linspace(-40, 15, 2000)
    values = [evidence_at(np.exp(log_k), lam, c, rest, n)[0] for log_k in grid]
    best = int(np.argmax(values))
    assert 0 < best < len(grid) - 1, "the maximum of the evidence lies inside the grid"
    log_k = minimize_scalar(
        lambda log_k: -evidence_at(np.exp(log_k), lam, c, rest, n)[0],
        bounds=(grid[best - 1], grid[best + 1]),
        method="bounded",
        options={"xatol": 1e-12},
    ).x
    k = np.exp(log_k)
    sigma2 = evidence_at(k, lam, c, rest, n)[1]
    mean = Vt.T @ (lam / (lam**2 + k) * c)
    covariance = (Vt.T * (sigma2 / (lam**2 + k))) @ Vt
    directions = np.linalg.svd(target @ Vt.T @ Vt)[2][: len(lam)]
    along = directions @ mean
    std2 = np.einsum("ij,jk,ik->i", directions, covariance, directions)
    # The noise of a row is proportional to its error, and its mean square over all rows is sigma^2.
    noise2 = sigma2 * residual**2 / np.mean(residual**2)
    gain = (U * (lam / (lam**2 + k))) @ Vt @ directions.T  # the correction is the sum of gain times error
    std2 = np.maximum(std2, noise2 @ gain**2)
    proven = along**2 > chi2.ppf(alpha, 1) * std2
    while proven.any():  # the refitted correction must pass the same test
        V = directions[proven].T
        inverse = np.linalg.inv(V.T @ (features.T @ features + k * np.eye(len(V))) @ V)
        refitted = inverse @ V.T @ features.T @ residual
        std2 = np.maximum(sigma2 * np.diag(inverse), noise2 @ (features @ V @ inverse) ** 2)
        passes = refitted**2 > chi2.ppf(alpha, 1) * std2
        if passes.all():
            break
        proven[proven] = passes
    zero = directions[~proven]
    mean = mean - covariance @ zero.T @ np.linalg.solve(zero @ covariance @ zero.T, zero @ mean)
    faint = trained - Vt.T @ Vt @ trained if trained is not None and proven.any() else 0.0
    change = mean - faint
    on_source, on_target = np.mean((features @ change) ** 2), np.mean((target @ change) ** 2)
    return change * min(1.0, on_source / on_target if on_target else 1.0), int(proven.sum())


def weights(model, name="fc"):
    layer = model.get_submodule(name) if name else model
    return layer.weight.detach().double().numpy(), None if layer.bias is None else layer.bias.detach().double().numpy()


def identical(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def spoiled_problem(seed=0, n=300, outputs=1, spoil=0.0, dtype=torch.float64, noise=0.3):
    """Return a linear model with a wrong weight, source rows with labels of the right weights, and target rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [3.0, 1.0, 1.0, 0.3, 0.1] + [0.0, 1.0, 0.0, 0.0, 0.0]
    Z = rng.normal(size=(120, 5)) * [1.0, 2.0, 0.5, 4.0, 3.0]
    model = nn.Linear(5, outputs)
    with torch.no_grad():
        model.weight.copy_(torch.tensor(rng.normal(size=(outputs, 5))))
        model.bias.copy_(torch.tensor(rng.normal(size=outputs)))
    model = model.to(dtype)
    X, Z = torch.tensor(X).to(dtype), torch.tensor(Z).to(dtype)
    weight, bias = model.weight.detach().double(), model.bias.detach().double()
    y = X.double() @ weight.T + bias + noise * torch.tensor(rng.normal(size=(n, outputs)))
    with torch.no_grad():
        model.weight[:, 0] += spoil
    return model, X, y, Z


@pytest.mark.parametrize("alpha", [0.0, 0.9, 0.999])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("outputs", "dtype"), [(None, "float64"), (3, "float64"), (None, "float32")])
def test_the_correction_equals_an_independent_computation(mlp, make_problem, features_of, alpha, bias, outputs, dtype):
    problem = make_problem(outputs=outputs, dtype=dtype)
    model = mlp(outputs=outputs or 1, bias=bias).to(problem.X.dtype)
    # An untrained head with three outputs does not predict on the scale of the labels.
    adapted = adapt_head(model, problem.source, problem.target, alpha=alpha, labels_scale="ignore")
    features, target = features_of(model.body, problem.X), features_of(model.body, problem.Z)
    trained, offset = weights(model)
    residual = problem.y.numpy().reshape(400, -1) - features @ trained.T - (offset if bias else 0.0)
    changed = 0
    for output, row in enumerate(trained):
        correction, proven = corrected_by_hand(features, residual[:, output], target, alpha)
        changed += proven
        # The evidence is flat at its maximum, so the penalty is found to half the digits of float64. float32 rounds the
        # weights; its features have a condition number of about 1e2, so float64 is exact for them.
        atol = 1e-6 * np.abs(correction).max() if dtype == "float64" else 1e-5
        np.testing.assert_allclose(weights(adapted.model)[0][output], row + correction, rtol=0, atol=atol)
    assert adapted.changed == (changed, 12 * len(trained))
    assert changed > 0
    if alpha == 0.0:
        assert changed == 12 * len(trained)  # the correction is the posterior mean, scaled
    assert adapted.adaptation.posterior
    assert adapted.model.fc.weight.dtype == problem.X.dtype


@pytest.mark.parametrize("given", [None, 1e-3])
@pytest.mark.parametrize("spread", [0.01, 1.0])
@pytest.mark.parametrize("is_signal", [False, True])
def test_a_change_removes_weights_below_the_cutoff_unless_the_error_on_the_source_rises(spread, given, is_signal):
    model, X, y, Z = spoiled_problem(spoil=1.0, dtype=torch.float32)
    Z = Z * spread
    X[:, 4] *= 1e-4  # 1e-5 of the longest direction
    with torch.no_grad():
        model.weight[0, 4] += 1e5
    y = y + 1e5 * X[:, 4:].double() if is_signal else y
    adapted = adapt_head(model, [(X, y)], [Z], cutoff=given)
    X, y, Z = X.double(), y.double(), Z.double()
    features, cutoff = X.numpy(), given or len(X) * np.finfo(np.float32).eps
    _, _, Vt = np.linalg.svd(features, full_matrices=False)
    projection = Vt[:4].T @ Vt[:4]
    trained, offset = weights(model, "")
    residual = (y.numpy() - features @ (trained if is_signal else trained @ projection).T - offset)[:, 0]
    removed = None if is_signal else trained[0]
    correction, proven = corrected_by_hand(features, residual, Z.numpy(), 0.999, cutoff=cutoff, trained=removed)
    assert adapted.changed == (proven, 4)
    new = adapted.weights[0][0]
    np.testing.assert_allclose(new, trained[0] + correction, rtol=0, atol=1e-6 * np.abs(correction).max())
    scale = adapted.adaptation.scale[0]
    assert (scale == 1.0) if is_signal else (0.0 < scale < 1.0)
    kept = 1.0 if is_signal else 1.0 - scale
    np.testing.assert_allclose(Vt[4] @ new, kept * (Vt[4] @ trained[0]), rtol=1e-9, atol=1e-12)
    assert adapted.summary.adapted < adapted.summary.trained


def test_least_squares_uses_the_pseudo_inverse_with_the_cutoff():
    _, X, y, Z = spoiled_problem()
    X[:, 4] *= 0.01
    model = nn.Linear(5, 1, bias=False).double()
    for cutoff in (0.0, 0.1):
        adapted = adapt_head(model, [(X, y)], [Z], method="ols", cutoff=cutoff, labels_scale="ignore")
        expected = np.linalg.pinv(X.numpy(), rcond=cutoff) @ y.numpy()
        np.testing.assert_allclose(adapted.weights[0], expected.T, rtol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_head_that_the_labels_support_is_returned_bit_for_bit(dtype):
    unchanged = 0
    for seed in range(40):
        model, X, y, Z = spoiled_problem(seed, n=200, outputs=2, dtype=dtype)
        before = copy.deepcopy(model.state_dict())
        adapted = adapt_head(model, [(X, y)], [Z])
        if adapted.changed.directions == 0:
            unchanged += 1
            assert identical(adapted.model.state_dict(), before)
            assert adapted.changed.total == 10
            assert torch.equal(adapted.model(Z), model(Z))
    # Each of 10 directions is changed by mistake with probability 0.001 at most, so 0.4 of 40 models are expected.
    assert unchanged >= 37


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_wrong_weight_is_corrected_and_the_bias_is_kept(dtype, outputs):
    model, X, y, Z = spoiled_problem(outputs=outputs, spoil=0.5, dtype=dtype)
    adapted = adapt_head(model, [(X, y)], [Z])
    assert adapted.changed.directions >= outputs
    assert adapted.changed.total == 5 * outputs
    with torch.no_grad():
        errors = [((network(X).double() - y) ** 2).mean(dim=0) for network in (model, adapted.model)]
    # The wrong weight has an error of (0.5 * 3)**2, the noise of 0.09; bfloat16 adds rounding to both.
    assert (errors[0] > 2.0).all()
    assert (errors[1] < 0.25).all()
    assert torch.equal(adapted.model.bias, model.bias)
    assert adapted.model.weight.dtype == dtype
    exact = adapted.weights[0]
    rounding = torch.finfo(dtype).eps * np.abs(exact)
    assert (np.abs(weights(adapted.model, "")[0] - exact) <= rounding).all()


@pytest.mark.parametrize("cutoff", [None, 0.1])
def test_an_output_without_a_changed_direction_keeps_its_weights_bit_for_bit(cutoff):
    model, X, y, Z = spoiled_problem(outputs=3)
    with torch.no_grad():
        model.weight[1, 0] += 0.5
    adapted = adapt_head(model, [(X, y)], [Z], cutoff=cutoff)  # the last feature is below a cutoff of 0.1
    assert (adapted.adaptation.n_kept > 0).tolist() == [False, True, False]
    assert torch.equal(adapted.model.weight[[0, 2]], model.weight[[0, 2]])
    assert not torch.equal(adapted.model.weight[1], model.weight[1])
    assert torch.equal(adapted.model.bias, model.bias)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_errors_are_summed_over_batches_and_outputs_as_over_rows(dtype):
    from pyspar.nn.features import ErrorSums

    model, X, y, _ = spoiled_problem(outputs=2, dtype=dtype)
    sums = ErrorSums(*weights(model, ""), 1e-16)
    for rows in torch.arange(300).split(70):
        sums.add(X[rows], y[rows], ((X[rows],), {}))
    coef, bias = weights(model, "")
    expected = error_roots_of(X.numpy(), y.numpy(), coef, bias)
    for root, other in zip(sums.roots(), expected, strict=True):
        np.testing.assert_allclose(root.T @ root, other.T @ other, rtol=0, atol=1e-9 * np.abs(other).max() ** 2)


@pytest.mark.parametrize("method", [None, "spar", "ols"])
def test_one_outlying_row_does_not_change_the_head(method):
    """Also if the source is the result of another method."""
    model, X, y, Z = spoiled_problem(outputs=2)
    X[0], y[0, 0] = 20.0 * X[0], y[0, 0] + 60.0
    model_without = adapt_head(model, [(X[1:], y[1:])], [Z], labels_scale="ignore").model
    source = [(X, y)]
    if method is not None:
        source = adapt_head(model, source, [Z], labels_scale="ignore", method=method).source
    adapted = adapt_head(model, source, [Z], labels_scale="ignore")
    assert adapted.changed.directions == 0
    assert identical(adapted.model.state_dict(), model_without.state_dict())
    for_equal_noise = refit_head(adapted.source.moments, adapted.target, *weights(model, ""))
    assert for_equal_noise.n_kept.sum() > 0

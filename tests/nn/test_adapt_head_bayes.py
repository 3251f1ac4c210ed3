"""``adapt_head`` by default: the trained head is corrected where the source's labels prove it wrong, not elsewhere."""

import copy

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from pyspar import BayesSpARRegressor, InputError
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn


def evidence_at(k, lam, c, rest, n):
    """Return the log evidence of residuals for ridge penalty k, at the noise variance that maximises it, and that."""
    scale = 1.0 + lam**2 / k  # the variance along a direction of the source, in units of the noise variance
    sigma2 = (np.sum(c**2 / scale) + rest) / n
    return -0.5 * (n * np.log(sigma2) + np.sum(np.log(scale))), sigma2


def corrected_by_hand(features, residual, target, alpha, cutoff=0.0):
    """Return the correction of one output's weights: ridge by maximum evidence, then the chi-squared rule.

    It uses no code of the library: singular value decompositions, a grid over the penalty and scipy's optimiser.
    """
    U, lam, Vt = np.linalg.svd(features, full_matrices=False)
    loud = lam > cutoff * lam[0]
    U, lam, Vt = U[:, loud], lam[loud], Vt[loud]
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
    proven = along**2 > chi2.ppf(alpha, 1) * std2
    return directions.T @ (proven * along), int(proven.sum())


def weights(model, name="fc"):
    layer = model.get_submodule(name) if name else model
    return layer.weight.detach().double().numpy(), None if layer.bias is None else layer.bias.detach().double().numpy()


def identical(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def spoiled_world(seed=0, n=300, outputs=1, spoil=0.0, dtype=torch.float64, noise=0.3):
    """Return a linear model, labels that its unspoiled weights made, and a target where other features are loud."""
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
@pytest.mark.parametrize("outputs", [None, 3])
def test_the_correction_is_that_of_an_independent_computation(mlp, worlds, by_hand, alpha, bias, outputs):
    world = worlds(outputs=outputs, dtype="float64")
    model = mlp(outputs=outputs or 1, bias=bias).double()
    adapted = adapt_head(model, world.source, world.target, alpha=alpha)
    features, target = by_hand(model.body, world.X), by_hand(model.body, world.Z)
    trained, offset = weights(model)
    residual = world.y.numpy().reshape(400, -1) - features @ trained.T - (offset if bias else 0.0)
    changed = 0
    for output, row in enumerate(trained):
        correction, proven = corrected_by_hand(features, residual[:, output], target, alpha)
        changed += proven
        # The evidence is flat at its maximum, so the penalty is found to half the digits of float64.
        size = np.abs(correction).max()
        np.testing.assert_allclose(weights(adapted.model)[0][output], row + correction, rtol=0, atol=1e-6 * size)
    assert adapted.changed == (changed, 12 * len(trained))
    assert changed > 0
    if alpha == 0.0:
        assert changed == 12 * len(trained)  # all of the posterior mean
    assert isinstance(adapted.estimator, BayesSpARRegressor)
    assert adapted.adaptation.posterior


def test_float32_features_give_the_correction_of_the_same_numbers_in_float64(mlp, world, by_hand):
    model = mlp(bias=True)
    adapted = adapt_head(model, world.source, world.target)
    features, target = by_hand(model.body, world.X), by_hand(model.body, world.Z)
    trained, offset = weights(model)
    residual = world.y.double().numpy() - features @ trained[0] - offset
    correction, proven = corrected_by_hand(features, residual, target, 0.999)
    assert adapted.changed == (proven, 12)
    assert proven > 0
    assert adapted.model.fc.weight.dtype == torch.float32
    # The weights are rounded to float32. The features have a condition number of about 1e2, so float64 is exact here.
    np.testing.assert_allclose(weights(adapted.model)[0][0], trained[0] + correction, rtol=1e-6, atol=1e-5)


def test_faint_directions_of_the_features_get_no_weight_in_a_changed_head():
    model, X, y, Z = spoiled_world(spoil=1.0)
    X[:, 4] *= 1e-4  # 1e-5 of the longest direction
    adapted = adapt_head(model, [(X, y)], [Z], cutoff=1e-3)
    features = X.numpy()
    _, _, Vt = np.linalg.svd(features, full_matrices=False)
    loud = Vt[:4].T @ Vt[:4]
    trained, offset = weights(model, "")
    residual = (y.numpy() - features @ loud @ trained.T - offset)[:, 0]
    correction, proven = corrected_by_hand(features, residual, Z.numpy(), 0.999, cutoff=1e-3)
    assert adapted.changed == (proven, 4)
    new = weights(adapted.model, "")[0][0]
    np.testing.assert_allclose(new, loud @ trained[0] + correction, rtol=0, atol=1e-6 * np.abs(correction).max())
    assert abs(Vt[4] @ new) < 1e-12


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_head_that_the_labels_agree_with_comes_back_bit_for_bit(dtype):
    unchanged = 0
    for seed in range(40):
        model, X, y, Z = spoiled_world(seed, n=200, outputs=2, dtype=dtype)
        before = copy.deepcopy(model.state_dict())
        adapted = adapt_head(model, [(X, y)], [Z])
        if adapted.changed.directions == 0:
            unchanged += 1
            assert identical(adapted.model.state_dict(), before)
            assert "0 of 10 directions changed: the model is unchanged" in repr(adapted)
            assert torch.equal(adapted.model(Z), model(Z))
    # Each of 10 directions is wrongly changed with probability 0.001 at most, so 0.4 of 40 models are expected to be.
    assert unchanged >= 37


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_labels_without_noise_that_the_head_predicts_change_nothing(dtype):
    model, X, _, Z = spoiled_world(dtype=dtype)
    adapted = adapt_head(model, [(X, model(X).detach())], [Z])
    assert adapted.changed.directions == 0
    assert identical(adapted.model.state_dict(), model.state_dict())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_head_spoiled_along_a_loud_direction_is_corrected_and_keeps_its_bias(dtype, outputs):
    model, X, y, Z = spoiled_world(outputs=outputs, spoil=0.5, dtype=dtype)
    adapted = adapt_head(model, [(X, y)], [Z])
    assert adapted.changed.directions >= outputs
    assert adapted.changed.total == 5 * outputs
    assert f"{adapted.changed.directions} of {adapted.changed.total} directions changed)" in repr(adapted)
    with torch.no_grad():
        errors = [((made(X).double() - y) ** 2).mean(dim=0) for made in (model, adapted.model)]
    # The spoiled part alone has an error of (0.5 * 3)**2, the noise one of 0.09; bfloat16 adds rounding to both.
    assert (errors[0] > 2.0).all()
    assert (errors[1] < 0.25).all()
    assert torch.equal(adapted.model.bias, model.bias)
    assert adapted.model.weight.dtype == dtype
    exact = adapted.estimator.coef_.reshape(outputs, 5)
    rounding = torch.finfo(dtype).eps * np.abs(exact)
    assert (np.abs(weights(adapted.model, "")[0] - exact) <= rounding).all()


@pytest.mark.parametrize("cutoff", [None, 0.1])
def test_an_output_of_which_nothing_is_changed_keeps_its_weights_bit_for_bit(cutoff):
    model, X, y, Z = spoiled_world(outputs=3)
    with torch.no_grad():
        model.weight[1, 0] += 0.5
    adapted = adapt_head(model, [(X, y)], [Z], cutoff=cutoff)  # at 0.1 the last feature is faint
    assert (adapted.adaptation.changed > 0).tolist() == [False, True, False]
    assert torch.equal(adapted.model.weight[[0, 2]], model.weight[[0, 2]])
    assert not torch.equal(adapted.model.weight[1], model.weight[1])
    assert torch.equal(adapted.model.bias, model.bias)


def test_alpha_one_changes_nothing_however_wrong_the_head_is():
    model, X, y, Z = spoiled_world(spoil=5.0)
    adapted = adapt_head(model, [(X, y)], [Z], alpha=1)
    assert adapted.changed == (0, 5)
    assert identical(adapted.model.state_dict(), model.state_dict())
    assert adapted.model is not model


def test_another_target_is_served_without_another_pass():
    model, X, y, Z = spoiled_world(spoil=0.5)
    other = torch.flip(Z, [1])
    served = adapt_head(model, [(X, y)], [Z]).estimator.adapted(other.numpy())
    expected = adapt_head(model, [(X, y)], [other])
    # Sums in the same order, but rows that are read from a tensor and from an array.
    np.testing.assert_allclose(served.coef_, weights(expected.model, "")[0][0], rtol=1e-9)


def test_wrong_choices_are_refused_before_any_forward_pass():
    class Never(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(5, 1)

        def forward(self, x):
            raise AssertionError("a forward pass")

    def never():
        raise AssertionError("a batch was read")
        yield

    for options, words in [
        ({"method": "ridge"}, "method must be 'bayes', 'spar' or 'ols', got 'ridge'"),
        ({"method": None}, "method must be 'bayes', 'spar' or 'ols'"),
        ({"alpha": 1.5}, "alpha is a confidence level"),
        ({"alpha": float("nan")}, "alpha is a confidence level"),
        ({"alpha": "high"}, "alpha is a confidence level"),
        ({"cutoff": 1.0}, "cutoff must be in"),
    ]:
        with pytest.raises(ValueError, match=words):
            adapt_head(Never(), never(), never(), **options)
    with pytest.raises(InputError, match="target_loader is missing"):
        adapt_head(Never(), never())

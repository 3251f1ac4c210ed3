"""With the paper's method the head of a network gets the weights that features in memory would give."""

import copy
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import pyspar.nn
from pyspar import SpARRegressor
from pyspar.nn import AdaptedHead

torch = pytest.importorskip("torch")
nn = torch.nn
adapt_head = partial(pyspar.nn.adapt_head, method="spar")


def weights(adapted):
    layer = adapted.model.get_submodule(adapted.head_name)
    return layer.weight.detach().double().numpy(), None if layer.bias is None else layer.bias.detach().double().numpy()


@pytest.mark.parametrize("bias", [False, True])
def test_the_head_is_that_of_features_extracted_by_hand(mlp, world, by_hand, bias):
    model = mlp(bias=bias)
    adapted = adapt_head(model, world.source, world.target)
    features = by_hand(model.body, world.X).astype(np.float32)
    byhand = SpARRegressor(fit_intercept=bias).fit(features, world.y.double().numpy())
    byhand.adapt(by_hand(model.body, world.Z).astype(np.float32))
    assert adapted.adaptation.removed.any()
    weight, intercept = weights(adapted)
    np.testing.assert_allclose(weight[0], byhand.coef_, rtol=1e-6, atol=1e-6)
    if bias:
        np.testing.assert_allclose(intercept, byhand.intercept_, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(adapted.adaptation.removed, byhand.adaptation_.removed)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_adapted_model_predicts_what_its_estimator_does(mlp, worlds, by_hand, bias, dtype):
    world = worlds(dtype=dtype)
    model = mlp(bias=bias).to(world.X.dtype)
    adapted = adapt_head(model, world.source, world.target)
    features = by_hand(adapted.model.body, world.Z)
    with torch.no_grad():
        predicted = adapted.model.eval()(world.Z)
    assert predicted.dtype == world.Z.dtype
    # The weights are rounded to the head's dtype, and so is each product that the head sums.
    rounding = 8 * np.finfo(dtype).eps * (np.abs(features) @ np.abs(adapted.estimator.coef_) + 1.0)
    assert (np.abs(predicted.numpy()[:, 0] - adapted.estimator.predict(features)) <= rounding).all()
    assert isinstance(adapted, AdaptedHead)
    assert "head 'fc'" in repr(adapted)


def test_float64_features_keep_the_digits_of_one_fit_in_memory(mlp, worlds, by_hand):
    world = worlds(dtype="float64", n=2500)
    model = mlp(bias=True).double()
    adapted = adapt_head(model, world.source, world.target)
    byhand = SpARRegressor().fit(by_hand(model.body, world.X), world.y.numpy()).adapt(by_hand(model.body, world.Z))
    np.testing.assert_allclose(weights(adapted)[0][0], byhand.coef_, rtol=1e-9, atol=1e-10)


def test_float64_features_whose_directions_are_nine_decades_apart_are_all_seen(rng):
    # A product of such rows squares the nine decades, beyond what float64 holds; QR does not.
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    X = rng.normal(size=(3000, 6)) @ np.diag(np.logspace(0, -9, 6)) @ turn
    y = X @ turn.T @ np.logspace(0, 9, 6)
    model = nn.Linear(6, 1, bias=False).double()
    batches = zip(torch.tensor(X).split(100), torch.tensor(y).split(100))
    adapted = adapt_head(model, batches, method="ols")
    np.testing.assert_allclose(turn @ weights(adapted)[0][0], np.logspace(0, 9, 6), rtol=1e-5)


def test_several_outputs_each_have_their_own_directions(mlp, worlds, by_hand):
    world = worlds(outputs=3, dtype="float64")
    model = mlp(outputs=3, bias=True).double()
    adapted = adapt_head(model, world.source, world.target)
    byhand = SpARRegressor().fit(by_hand(model.body, world.X), world.y.numpy()).adapt(by_hand(model.body, world.Z))
    np.testing.assert_allclose(weights(adapted)[0], byhand.coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(weights(adapted)[1], byhand.intercept_, rtol=1e-6, atol=1e-6)
    assert adapted.adaptation.removed.shape[1] == 3


@pytest.mark.parametrize("squeeze", [False, True])
def test_labels_may_have_one_dimension_or_two(mlp, world, squeeze):
    model = mlp(squeeze=squeeze)
    flat = adapt_head(model, world.source, world.target)
    column = adapt_head(model, [(world.X, world.y[:, None])], [world.Z])
    np.testing.assert_allclose(weights(flat)[0], weights(column)[0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("bias", [False, True])
def test_ols_is_linear_regression_and_needs_no_target(mlp, world, by_hand, bias):
    model = mlp(bias=bias)
    adapted = adapt_head(model, world.source, method="ols")
    plain = LinearRegression(fit_intercept=bias).fit(by_hand(model.body, world.X), world.y.double().numpy())
    np.testing.assert_allclose(weights(adapted)[0][0], plain.coef_, rtol=1e-3, atol=1e-4)
    assert adapted.adaptation is None
    assert "12 of 12 directions changed, refitted on the source" in repr(adapted)


def test_a_bias_is_fitted_anew_where_the_weights_are_right_already(mlp, worlds):
    world = worlds(dtype="float64")
    refitted = adapt_head(mlp(bias=True).double(), world.source, method="ols").model
    spoiled = copy.deepcopy(refitted)
    with torch.no_grad():
        spoiled.fc.bias += 1.0
    again = adapt_head(spoiled, world.source, method="ols")
    assert torch.equal(again.model.fc.bias, refitted.fc.bias)
    assert "unchanged" not in repr(again)


def test_alpha_one_removes_every_direction_of_the_target(mlp, world, by_hand):
    model = mlp()
    adapted = adapt_head(model, world.source, world.target, alpha=1)
    assert adapted.adaptation.removed.all()
    np.testing.assert_allclose(by_hand(adapted.model, world.Z), 0.0, atol=1e-4)


def test_alpha_zero_is_least_squares_and_the_noise_estimate_is_passed_on(mlp, world):
    ols = adapt_head(mlp(), world.source, method="ols", noise="unbiased")
    kept = adapt_head(mlp(), world.source, world.target, alpha=0, noise="unbiased")
    np.testing.assert_array_equal(weights(ols)[0], weights(kept)[0])
    mle = adapt_head(mlp(), world.source, method="ols")
    assert ols.estimator.sigma2_ > mle.estimator.sigma2_


def test_a_bfloat16_model_stays_one_and_its_features_count_as_coarse(mlp, world):
    model = mlp().bfloat16()
    source = [(world.X.bfloat16(), world.y)]
    adapted = adapt_head(model, source, [world.Z.bfloat16()])
    assert adapted.model.fc.weight.dtype == torch.bfloat16
    assert (adapted.estimator.moments_.eps == torch.finfo(torch.bfloat16).eps).all()
    np.testing.assert_allclose(weights(adapted)[0][0], adapted.estimator.coef_, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("outer", [False, True])
def test_mixed_precision_gives_coarse_features_and_leaves_the_weights_wide(mlp, world, outer):
    if outer:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            adapted = adapt_head(mlp(), world.source, world.target)
    else:
        adapted = adapt_head(mlp(), world.source, world.target, autocast=torch.bfloat16)
    assert adapted.model.fc.weight.dtype == torch.float32
    assert (adapted.estimator.moments_.eps == torch.finfo(torch.bfloat16).eps).all()


def test_features_of_mixed_precision_stay_coarse_when_they_are_handed_on_as_float32(world):
    class Widening(nn.Module):
        def forward(self, x):
            return x.float()

    model = nn.Sequential(nn.Linear(6, 5), Widening(), nn.Linear(5, 1))
    adapted = adapt_head(model, world.source, world.target, autocast=torch.bfloat16)
    assert (adapted.estimator.moments_.eps == torch.finfo(torch.bfloat16).eps).all()


def test_small_batches_and_large_ones_give_the_same(mlp, world):
    one = adapt_head(mlp(), [(world.X, world.y)], [world.Z])
    many = adapt_head(mlp(), list(zip(world.X.split(7), world.y.split(7))), iter(world.Z.split(3)))
    assert many.adaptation.n_source == 400
    assert many.adaptation.n_target == 150
    np.testing.assert_allclose(weights(many)[0], weights(one)[0], rtol=1e-4, atol=1e-5)


def test_a_loader_that_fills_one_buffer_again_and_again_is_read_rightly(world):
    # The model is its own head, so what the hook sees is the buffer itself.
    def buffered():
        X, y = torch.empty(50, 6), torch.empty(50, dtype=torch.float64)
        for rows, labels in zip(world.X.split(50), world.y.split(50)):
            yield X.copy_(rows), y.copy_(labels)

    model = nn.Linear(6, 1)
    ours = adapt_head(model, buffered(), [world.Z])
    np.testing.assert_allclose(weights(ours)[0], weights(adapt_head(model, world.source, [world.Z]))[0], atol=1e-5)
    assert ours.head_name == ""


def test_a_sequence_head_with_a_label_for_each_step_is_a_head_on_the_steps(world):
    X, Z = world.X.reshape(100, 4, 6), world.Z[:148].reshape(37, 4, 6)
    steps = adapt_head(nn.Linear(6, 1), [(X, world.y.reshape(100, 4))], [Z])
    rows = adapt_head(nn.Linear(6, 1), [(world.X, world.y)], [world.Z[:148]])
    np.testing.assert_allclose(weights(steps)[0], weights(rows)[0], rtol=1e-6, atol=1e-7)
    middle = adapt_head(nn.Linear(6, 1), [(world.X[:, None], world.y)], [world.Z[:, None]])
    assert middle.adaptation.n_source == 400


def test_the_result_serves_other_targets_without_another_pass(mlp, world, by_hand):
    model = mlp(bias=True)
    ols = adapt_head(model, world.source, method="ols")
    again = ols.estimator.adapted(by_hand(model.body, world.Z).astype("f4"))
    spar = adapt_head(model, world.source, world.target)
    np.testing.assert_allclose(again.coef_, spar.estimator.coef_, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("bias", [False, True])
def test_on_a_gpu_the_head_is_the_same(mlp, worlds, bias):
    world = worlds(dtype="float64")
    here = adapt_head(mlp(bias=bias).double(), world.source, world.target)
    there = adapt_head(mlp(bias=bias).double().cuda(), world.source, world.target)
    assert there.model.fc.weight.is_cuda
    np.testing.assert_allclose(there.model.fc.weight.detach().cpu(), here.model.fc.weight.detach(), atol=1e-8)

"""Principal component regression, compared with scikit-learn's PCA followed by LinearRegression."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from pyspar import PCRRegressor

# Two routes to the same components, whose gaps are of the order of the singular values themselves.
SAME = {"rtol": 1e-8, "atol": 1e-9}


def reference(n_components, fit_intercept=True):
    return make_pipeline(PCA(n_components, svd_solver="full"), LinearRegression(fit_intercept=fit_intercept))


@pytest.mark.parametrize("solver", ["auto", "gram", "qr"])
@pytest.mark.parametrize("outputs", [None, 1, 2])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("k", [1, 2, 4, 5])
def test_it_predicts_what_pca_and_linear_regression_predict(shifts, k, fit_intercept, outputs, solver):
    data = shifts(4, outputs=outputs, offset=3.0)
    ours = PCRRegressor(k, fit_intercept=fit_intercept, solver=solver).fit(data.X, data.y)
    theirs = reference(k, fit_intercept).fit(data.X, data.y)
    assert ours.n_components_ == k
    assert ours.predict(data.Z).shape == theirs.predict(data.Z).shape
    np.testing.assert_allclose(ours.predict(data.Z), theirs.predict(data.Z), **SAME)
    coef = theirs[1].coef_ @ theirs[0].components_
    assert ours.coef_.shape == coef.shape
    np.testing.assert_allclose(ours.coef_, coef, **SAME)


@pytest.mark.parametrize("share", [1e-9, 0.3, 0.7, 0.95, 0.999, 0.99999])
def test_a_share_holds_as_many_components_as_pca_keeps_for_it(shift, share):
    ours = PCRRegressor(share).fit(shift.X, shift.y)
    theirs = reference(share).fit(shift.X, shift.y)
    assert ours.n_components_ == theirs[0].n_components_
    np.testing.assert_allclose(ours.predict(shift.Z), theirs.predict(shift.Z), **SAME)


def test_the_whole_share_holds_all_components(shift):
    assert PCRRegressor(1.0).fit(shift.X, shift.y).n_components_ == 5


def test_a_share_that_is_met_exactly_needs_no_more_components():
    X = np.vstack([np.diag([2.0, 1.0, 1.0]), -np.diag([2.0, 1.0, 1.0])])  # shares of 4/6, 1/6 and 1/6
    y = np.arange(6.0)
    assert PCRRegressor(4 / 6).fit(X, y).n_components_ == 1
    assert PCRRegressor(5 / 6).fit(X, y).n_components_ == 2
    assert PCRRegressor(0.9).fit(X, y).n_components_ == 3


@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("seed", range(8))
def test_gcv_chooses_the_least_generalised_cross_validation_error(seed, outputs):
    rng = np.random.default_rng(seed)
    d, n = 8, 60
    X = rng.normal(size=(n, d)) * np.geomspace(3.0, 0.3, d)
    w = rng.normal(size=(d,) if outputs is None else (d, outputs))
    w[3:] *= 0.05
    y = X @ w + rng.normal(size=(n,) if outputs is None else (n, outputs))
    scores = []
    for k in range(1, d + 1):
        residual = y - reference(k).fit(X, y).predict(X)
        explained = (residual**2).sum(axis=0) / ((y - y.mean(axis=0)) ** 2).sum(axis=0)
        scores.append(np.sum(explained) / (1 - (k + 1) / n) ** 2)
    ours = PCRRegressor("gcv").fit(X, y)
    assert ours.n_components_ == 1 + int(np.argmin(scores))
    np.testing.assert_allclose(ours.predict(X), reference(ours.n_components_).fit(X, y).predict(X), **SAME)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("seed", "outputs"), [(0, None), (1, None), (2, 2)])
def test_groups_choose_the_number_with_the_least_error_on_left_out_groups(seed, outputs, fit_intercept):
    """The last columns identify the group, so a criterion across groups keeps them all."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(12), 20)
    codes = rng.normal(size=(12, 6))
    X = np.column_stack([rng.normal(size=(240, 2)) * 3.0, codes[groups] + 0.01 * rng.normal(size=(240, 6))])
    y = X[:, 0] + 2.0 * rng.normal(size=12)[groups] + 0.1 * rng.normal(size=240)
    y = y if outputs is None else np.column_stack([y, X[:, 1] + 5.0 * rng.normal(size=12)[groups]])
    folds, squares = groups % 10, []
    for k in range(1, 9):
        error = np.zeros_like(y)
        for fold in range(10):
            kept = folds != fold
            error[~kept] = y[~kept] - reference(k, fit_intercept).fit(X[kept], y[kept]).predict(X[~kept])
        squares.append(np.sum((error**2).sum(axis=0) / y.var(axis=0)))
    chosen = PCRRegressor(fit_intercept=fit_intercept).fit(X, y, groups=groups).n_components_
    assert chosen == 1 + int(np.argmin(squares))
    assert chosen < PCRRegressor(fit_intercept=fit_intercept).fit(X, y).n_components_


def test_gcv_sometimes_drops_components_of_pure_noise_and_never_the_signal():
    chosen = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 6)) * [10.0, 8.0, 6.0, 1.0, 0.8, 0.6]
        y = X[:, :3].sum(axis=1) + rng.normal(size=200)
        chosen.append(PCRRegressor().fit(X, y).n_components_)
    assert min(chosen) >= 3
    assert chosen.count(3) > 10  # a component of noise lowers the criterion in one case of six


def test_more_components_than_the_rank_use_the_rank(rng):
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 5))
    y = rng.normal(size=40)
    est = PCRRegressor(4).fit(X, y)
    assert (est.n_components_, est.rank_) == (2, 2)
    np.testing.assert_allclose(est.predict(X), reference(2).fit(X, y).predict(X), **SAME)


def test_fewer_rows_than_features(rng):
    X, y, Z = rng.normal(size=(8, 20)), rng.normal(size=8), rng.normal(size=(5, 20))
    np.testing.assert_allclose(PCRRegressor(3).fit(X, y).predict(Z), reference(3).fit(X, y).predict(Z), **SAME)
    assert 1 <= PCRRegressor().fit(X, y).n_components_ <= 7


@pytest.mark.parametrize("n_components", ["gcv", 1, 0.9, 1.0])
@pytest.mark.parametrize("value", [0.0, 2.5])
def test_a_source_that_does_not_vary_has_no_components_and_predicts_the_mean(rng, n_components, value):
    y = rng.normal(size=10)
    est = PCRRegressor(n_components).fit(np.full((10, 3), value), y)
    assert est.n_components_ == 0
    np.testing.assert_allclose(est.predict(rng.normal(size=(4, 3))), y.mean(), rtol=1e-12)


def test_rows_may_have_weights(shift, rng):
    copies = rng.integers(0, 3, size=300)
    ours = PCRRegressor(3).fit(shift.X, shift.y, copies)
    copied = PCRRegressor(3).fit(np.repeat(shift.X, copies, axis=0), np.repeat(shift.y, copies))
    np.testing.assert_allclose(ours.coef_, copied.coef_, **SAME)
    np.testing.assert_allclose(ours.intercept_, copied.intercept_, **SAME)


def test_a_perfect_fit_is_recognised(shift):
    est = PCRRegressor().fit(shift.X, shift.X @ shift.w_star)
    assert est.n_components_ == 5
    np.testing.assert_allclose(est.coef_, shift.w_star, rtol=1e-9)


def test_a_constant_label_needs_no_weights(shift):
    est = PCRRegressor().fit(shift.X, np.full(300, 4.0))
    np.testing.assert_allclose(est.predict(shift.Z), 4.0, rtol=1e-12)


@pytest.mark.parametrize(
    "bad", [0, -1, 6, 0.0, 1.5, -0.5, np.nan, np.inf, "mle", "GCV", None, True, [2], np.array([2, 3])]
)
def test_an_invalid_number_of_components_raises(shift, bad):
    with pytest.raises(ValueError, match=r"n_components.*\(5\)"):
        PCRRegressor(bad).fit(shift.X, shift.y)


@pytest.mark.parametrize("good", [np.int32(2), np.int64(2), np.float32(0.5), np.float64(0.5)])
def test_the_number_of_components_may_be_a_numpy_number(shift, good):
    assert 1 <= PCRRegressor(good).fit(shift.X, shift.y).n_components_ <= 2


def test_names_are_kept_as_for_the_other_estimator(shift):
    frame = pd.DataFrame(shift.X, columns=list("abcde"))
    est = PCRRegressor(2).fit(frame, shift.y)
    assert est.feature_names_in_.tolist() == list("abcde")

"""BayesSpARRegressor: invariances, limits and the life cycle that it shares with SpARRegressor."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyspar import BayesSpARRegressor, Moments, SpARRegressor, adapt_pipeline, inspect, load, save
from pyspar._cells import Sample

RULES = ["positive-part", "chi2", "auto"]


def test_before_adapting_it_is_ridge_with_the_penalty_of_the_evidence(shift):
    est = BayesSpARRegressor().fit(shift.X, shift.y)
    scaler = StandardScaler().fit(shift.X)
    ridge = Ridge(alpha=est.sigma2_ / est.tau2_).fit(scaler.transform(shift.X), shift.y)
    np.testing.assert_allclose(est.predict(shift.Z), ridge.predict(scaler.transform(shift.Z)), rtol=1e-8)
    np.testing.assert_allclose(est.scale_, scaler.scale_, rtol=1e-12)
    np.testing.assert_allclose(est.coef_ * est.scale_, ridge.coef_, rtol=1e-8)


@pytest.mark.parametrize("rule", RULES)
def test_the_units_of_the_features_do_not_matter(shifts, rule):
    shift = shifts(offset=2.0)
    units = np.array([1e-9, 1e6, 3.0, 1e30, 0.1])
    plain = BayesSpARRegressor(rule=rule).fit(shift.X, shift.y).adapt(shift.Z)
    other = BayesSpARRegressor(rule=rule).fit(shift.X * units, shift.y).adapt(shift.Z * units)
    np.testing.assert_allclose(other.predict(shift.Z * units), plain.predict(shift.Z), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(other.sigma2_, plain.sigma2_, rtol=1e-7)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", [1e-100, 1e-3, 1e100])
def test_the_units_of_the_labels_do_not_matter(shift, rule, size):
    plain = BayesSpARRegressor(rule=rule).fit(shift.X, shift.y).adapt(shift.Z)
    other = BayesSpARRegressor(rule=rule).fit(shift.X, size * shift.y).adapt(shift.Z)
    np.testing.assert_allclose(other.predict(shift.Z) / size, plain.predict(shift.Z), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("value", [0.0, 0.1, -1e8])
def test_a_constant_column_changes_nothing_and_gets_no_weight(shift, rule, value):
    n, m = len(shift.X), len(shift.Z)
    X = np.column_stack([shift.X, np.full(n, value)])
    Z = np.column_stack([shift.Z, np.linspace(-1e6, 1e6, m)])  # in the target it varies, more than anything
    with_it = BayesSpARRegressor(rule=rule).fit(X, shift.y).adapt(Z)
    without = BayesSpARRegressor(rule=rule).fit(shift.X, shift.y).adapt(shift.Z)
    assert with_it.coef_[-1] == 0.0
    assert with_it.scale_[-1] == 0.0
    np.testing.assert_allclose(with_it.predict(Z), without.predict(shift.Z), rtol=1e-6, atol=1e-6)


def test_turning_unscaled_features_turns_the_weights(shift, rng):
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    plain = BayesSpARRegressor(rule="positive-part", scale=False).fit(shift.X, shift.y).adapt(shift.Z)
    turned = BayesSpARRegressor(rule="positive-part", scale=False).fit(shift.X @ turn, shift.y).adapt(shift.Z @ turn)
    np.testing.assert_allclose(turned.predict(shift.Z @ turn), plain.predict(shift.Z), rtol=1e-7, atol=1e-7)


def test_strength_zero_and_alpha_zero_keep_the_posterior_mean(shift):
    for params in ({"rule": "positive-part", "c": 0.0}, {"rule": "chi2", "alpha": 0.0}):
        est = BayesSpARRegressor(**params).fit(shift.X, shift.y)
        before = est.coef_.copy()
        np.testing.assert_array_equal(est.adapt(shift.Z).coef_, before)


def test_where_the_model_is_right_the_posterior_mean_is_best_and_the_paper_is_beaten_in_any_case():
    """Average target errors over thirty draws of weights from a normal prior."""
    errors = {"ridge": [], "ours": [], "spar": []}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(60, 30)) * np.geomspace(3, 0.03, 30), rng.normal(size=(100, 30)) * 1.5
        w = 0.3 * rng.normal(size=30)
        y = X @ w + rng.normal(size=60)
        est = BayesSpARRegressor(rule="positive-part", scale=False, fit_intercept=False).fit(X, y)
        errors["ridge"].append(np.mean((est.predict(Z) - Z @ w) ** 2))
        errors["ours"].append(np.mean((est.adapt(Z).predict(Z) - Z @ w) ** 2))
        errors["spar"].append(np.mean((SpARRegressor(fit_intercept=False).fit(X, y).adapt(Z).predict(Z) - Z @ w) ** 2))
    mean = {name: np.mean(values) for name, values in errors.items()}
    assert mean["ridge"] <= mean["ours"] < mean["spar"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("outputs", [None, 1, 3])
def test_shapes_are_those_of_scikit_learn(shifts, rule, outputs):
    shift = shifts(outputs=outputs)
    est = BayesSpARRegressor(rule=rule).fit(shift.X, shift.y).adapt(shift.Z)
    assert est.predict(shift.Z).shape == (len(shift.Z),) if outputs is None else (len(shift.Z), outputs)
    assert np.shape(est.tau2_) == np.shape(est.sigma2_) == (() if outputs is None else (outputs,))
    assert len(est.evidence_.limit) == (outputs or 1)


@pytest.mark.parametrize("rule", RULES)
def test_reset_and_adapted_leave_the_source_as_it_was(shift, rule):
    est = BayesSpARRegressor(rule=rule).fit(shift.X, shift.y)
    before = est.coef_.copy()
    other = est.adapted(shift.Z)
    np.testing.assert_array_equal(est.coef_, before)
    assert not hasattr(est, "adaptation_")
    est.adapt(shift.Z)
    np.testing.assert_array_equal(est.coef_, other.coef_)
    assert hasattr(est, "strength_")
    est.reset()
    np.testing.assert_array_equal(est.coef_, before)
    assert not hasattr(est, "adaptation_")
    assert not hasattr(est, "rule_scores_")


@pytest.mark.parametrize("rule", ["positive-part", "chi2"])
def test_batches_sums_and_sparse_rows_give_what_one_fit_gives(shift, rule):
    X, y, Z = shift.X, shift.y, shift.Z
    whole = BayesSpARRegressor(rule=rule).fit(X, y).adapt(Z)
    parts = BayesSpARRegressor(rule=rule).partial_fit(X[:70], y[:70]).partial_fit(X[70:], y[70:]).adapt(Z)
    stream = BayesSpARRegressor(rule=rule).fit_batches((X[i : i + 50], y[i : i + 50]) for i in range(0, 300, 50))
    merged = BayesSpARRegressor(rule=rule).fit_moments(Moments.of(X[:9], y[:9]) + Moments.of(X[9:], y[9:]))
    sparse = BayesSpARRegressor(rule=rule).fit(sp.csr_array(X), y).adapt(sp.csr_array(Z))
    for est in (parts, stream.adapt(iter([Z[:50], Z[50:]])), merged.adapt(Moments.of(Z)), sparse):
        np.testing.assert_allclose(est.coef_, whole.coef_, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(est.tau2_, whole.tau2_, rtol=1e-7)


@pytest.mark.parametrize("rule", RULES)
def test_a_weight_of_two_counts_as_two_copies(shift, rule):
    X, y, Z = shift.X, shift.y, shift.Z
    weighted = BayesSpARRegressor(rule=rule).fit(X, y, sample_weight=np.full(len(y), 2.0))
    twice = BayesSpARRegressor(rule=rule).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    np.testing.assert_allclose(weighted.coef_, twice.coef_, rtol=1e-8)
    assert np.isfinite(weighted.adapt(Z).coef_).all()


def test_a_tensor_is_fitted_and_predicted_as_an_array_is(shift):
    torch = pytest.importorskip("torch")
    X, y, Z = (torch.tensor(part) for part in (shift.X, shift.y, shift.Z))
    ours = BayesSpARRegressor().fit(X, y).adapt(Z)
    plain = BayesSpARRegressor().fit(shift.X, shift.y).adapt(shift.Z)
    np.testing.assert_allclose(ours.rule_scores_.votes, plain.rule_scores_.votes, rtol=1e-6)
    np.testing.assert_allclose(ours.predict(Z).numpy(), plain.predict(shift.Z), rtol=1e-7, atol=1e-9)


def test_a_dask_collection_is_fitted_as_an_array_is_and_says_that_it_chose_nothing(shift):
    da = pytest.importorskip("dask.array")
    X, y, Z = (da.from_array(part, chunks=100) for part in (shift.X, shift.y, shift.Z))
    ours = BayesSpARRegressor().fit(X, y).adapt(Z)
    plain = BayesSpARRegressor().fit_moments(Moments.of(shift.X, shift.y)).adapt(shift.Z)
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-7, atol=1e-9)
    assert "not there to be held out" in ours.rule_scores_.why


@pytest.mark.parametrize("rule", RULES)
def test_a_saved_model_comes_back_whole_and_can_be_adapted_again(shift, tmp_path, rule):
    pytest.importorskip("skops")
    est = BayesSpARRegressor(rule=rule).fit(shift.X, shift.y).adapt(shift.Z)
    save(est, tmp_path / "model.skops")
    back = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(back.predict(shift.Z), est.predict(shift.Z))
    again = back.adapted(2.0 * shift.Z)
    np.testing.assert_array_equal(again.coef_, est.adapted(2.0 * shift.Z).coef_)


def test_it_ends_a_pipeline(shift):
    pipe = make_pipeline(StandardScaler(), BayesSpARRegressor()).fit(shift.X, shift.y)
    ours = adapt_pipeline(pipe, shift.Z)
    direct = BayesSpARRegressor().fit(shift.X, shift.y).adapt(shift.Z)
    np.testing.assert_allclose(ours.predict(shift.Z), direct.predict(shift.Z), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"rule": "soft"}, "rule must be one of"),
        ({"c": -1.0}, "must be a number of at least 0"),
        ({"c": float("nan")}, "must be a number of at least 0"),
        ({"alpha": 1.5}, "confidence level"),
        ({"solver": "svd"}, "solver must be one of"),
    ],
)
def test_wrong_parameters_are_refused_before_anything_changes(shift, params, text):
    est = BayesSpARRegressor(**params)
    with pytest.raises(ValueError, match=text):
        est.fit(shift.X, shift.y)
    assert not hasattr(est, "moments_")
    assert clone(est).get_params() == est.get_params() or "c" in params


def test_a_refused_batch_leaves_cells_and_moments_as_they_were(shift):
    est = BayesSpARRegressor().fit(shift.X, shift.y)
    cells, moments = est._cells, est.moments_
    bad = shift.X.copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        est.partial_fit(bad, shift.y)
    assert est._cells is cells
    assert est.moments_ is moments
    with pytest.raises(ValueError, match="batch 1"):
        est.fit_batches(iter([(shift.X, shift.y), (bad, shift.y)]))
    assert est._cells is cells


@pytest.mark.parametrize("before", [True, False])
def test_a_parameter_that_is_changed_after_fit_waits_for_the_next_fit(rng, before):
    X = rng.normal(size=(60, 4)) + 50.0
    y = X @ [1.0, 2.0, 0.0, 0.0] + rng.normal(size=60)
    est = BayesSpARRegressor(fit_intercept=before).fit(X, y)
    expected, forecast = est.adapted(X[:30]).predict(X), est.expected_rmse(X[:30])
    est.set_params(fit_intercept=not before, scale=False)
    assert est.expected_rmse(X[:30]) == forecast
    np.testing.assert_array_equal(est.adapt(X[:30]).predict(X), expected)


def test_rows_of_weight_zero_are_absent_whatever_they_hold(rng):
    X = rng.normal(size=(200, 5))
    y, Z = X @ np.ones(5) + rng.normal(size=200), rng.normal(size=(50, 5)) * [1.0, 1.0, 3.0, 3.0, 0.1] + 1.0
    odd, weight = X.copy(), np.r_[np.zeros(20), np.ones(180)]
    odd[:20] = np.nan
    est = BayesSpARRegressor().fit(odd, y, sample_weight=weight).adapt(Z)
    plain = BayesSpARRegressor().fit(X[20:], y[20:]).adapt(Z)
    np.testing.assert_allclose(est.coef_, plain.coef_, rtol=1e-8)
    assert est.rule_scores_.why == plain.rule_scores_.why


@pytest.mark.parametrize("rows", [200, 20_000])
def test_of_a_stream_leave_one_out_asks_a_sample(rng, rows):
    X = rng.normal(size=(rows, 4)) * [1.0, 0.3, 0.1, 0.03]
    y, Z = X @ np.ones(4) + rng.normal(size=rows), rng.normal(size=(100, 4))
    batches = [(X[i : i + 1000], y[i : i + 1000]) for i in range(0, rows, 1000)]
    stream = BayesSpARRegressor().fit_batches(iter(batches)).adapt(Z)
    whole = BayesSpARRegressor().fit(X, y).adapt(Z)
    assert stream.rule_scores_.names == whole.rule_scores_.names
    if rows == 200:  # all are asked, and all are in the cells that memory has
        np.testing.assert_allclose(stream.coef_, whole.coef_, rtol=1e-6)
    assert not any(isinstance(kept, np.ndarray) and len(kept) > 100 for kept in vars(stream).values())  # none are kept


def test_a_failure_while_rows_are_asked_leaves_the_estimator_as_it_was(rng, monkeypatch):
    X = rng.normal(size=(50, 3))
    est = BayesSpARRegressor().fit(X, X[:, 0])
    before = est.coef_.copy()

    def stopped(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("pyspar.bayes.asked_of", stopped)
    with pytest.raises(KeyboardInterrupt):
        est.fit(X, X[:, 1])
    np.testing.assert_array_equal(est.coef_, before)


def test_the_sample_of_a_stream_holds_no_more_than_its_rows():
    sample = Sample()
    for _ in range(40):
        X = np.ones((5000, 3))
        sample.add(X, X[:, 0], X[:, 1])
    X, y, weight = sample.rows()
    assert len(X) == len(y) == len(weight) <= 8192
    assert all(part.base is None for kept in sample._kept for part in kept)


def test_an_adaptation_that_is_stopped_changes_nothing(rng, monkeypatch):
    X = rng.normal(size=(80, 3))
    est = BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=80)).adapt(X + 1.0)
    before, scores = est.coef_.copy(), est.rule_scores_

    def stopped(*args, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr("pyspar.bayes.average", stopped)
    with pytest.raises(KeyboardInterrupt):
        est.adapt(X - 1.0)
    assert est.rule_scores_ is scores
    np.testing.assert_array_equal(est.coef_, before)


@pytest.mark.parametrize("kind", [BayesSpARRegressor, SpARRegressor])
def test_inspection_speaks_of_the_fit_and_not_of_later_parameters(rng, kind):
    X, Z = rng.normal(size=(200, 3)), 3.0 * rng.normal(size=(50, 3))
    est = kind().fit(X, X.sum(axis=1) + 5.0 + rng.normal(size=200))
    before = inspect(est, Z).as_dict()
    after = inspect(est.set_params(fit_intercept=False), Z).as_dict()
    assert {**after, "estimator": before["estimator"]} == before


@pytest.mark.parametrize("noise", ["mle", "unbiased"])
def test_shares_of_rows_adapt_as_the_rows_do(rng, noise):
    X = rng.normal(size=(3000, 3))
    y, Z = X @ [1.0, 2.0, 3.0] + rng.normal(size=3000), rng.normal(size=(400, 3))
    plain = SpARRegressor(noise=noise).fit(X, y).adapt(Z)
    shares = SpARRegressor(noise=noise).fit(X, y, np.full(3000, 1 / 3000)).adapt(Z)
    np.testing.assert_allclose(shares.coef_, plain.coef_, rtol=1e-8)
    assert shares.sigma2_ == pytest.approx(plain.sigma2_)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"rows": ("X", "y")}, "rows must be a tuple of X, y and weights"),
        ({"rows": ("narrow", "y", None)}, r"rows must be X of shape \(n, 3\)"),
        ({"rows": ("X", "short", None)}, "Got shapes"),
        ({"rows": ("X", "y", "short")}, "Got shapes"),
        ({"rows": ("holes", "y", None)}, "rows must be finite"),
        ({"cells": "of two outputs"}, "cells must have the 3 features and 1 output"),
    ],
)
def test_what_was_gathered_of_other_rows_is_refused_and_the_fit_stays(rng, how, message):
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60)
    parts = {"X": X, "y": y, "narrow": X[:, :2], "short": y[:5], "holes": np.where(X > 2.0, np.nan, X), None: None}
    given = {}
    if "rows" in how:
        given["rows"] = tuple(parts[name] for name in how["rows"])
    else:
        given["cells"] = BayesSpARRegressor().fit(X, np.column_stack([y, y]))._cells
    est = BayesSpARRegressor().fit(X, y)
    before = est.coef_.copy()
    with pytest.raises((TypeError, ValueError), match=message):
        est.fit_moments(Moments.of(X, -y), **given)
    np.testing.assert_array_equal(est.coef_, before)

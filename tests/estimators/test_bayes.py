"""BayesSpARRegressor: its limits, its invariances, and its life cycle."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from pyspar import BayesSpARRegressor, Moments, SpARRegressor, inspect, load, save

RULES = [None, 0.999]
UNITS = ["max", "source", "equal"]


@pytest.fixture(params=[(units, rule) for units in UNITS for rule in RULES], ids=str)
def params(request):
    return dict(zip(("prior_scale", "alpha"), request.param, strict=True))


def larger_spread(X, Z):
    return np.maximum(X.std(axis=0), np.sqrt(np.mean((Z - X.mean(axis=0)) ** 2, axis=0)))


def test_before_adapting_it_is_ridge_in_source_units_with_the_penalty_of_the_evidence(shift):
    est = BayesSpARRegressor().fit(shift.X, shift.y)
    scaler = StandardScaler().fit(shift.X)
    ridge = Ridge(alpha=est.sigma2_ / est.tau2_).fit(scaler.transform(shift.X), shift.y)
    np.testing.assert_allclose(est.predict(shift.Z), ridge.predict(scaler.transform(shift.Z)), rtol=1e-8)
    np.testing.assert_allclose(est.units_, scaler.scale_, rtol=1e-12)
    np.testing.assert_allclose(est.coef_ * est.units_, ridge.coef_, rtol=1e-8)


def test_after_adapting_it_is_ridge_in_units_of_the_larger_spread(shifts):
    data = shifts(offset=2.0)
    est = BayesSpARRegressor().fit(data.X, data.y).adapt(data.Z)
    units = larger_spread(data.X, data.Z)
    np.testing.assert_allclose(est.units_, units, rtol=1e-12)
    ridge = Ridge(alpha=est.sigma2_ / est.tau2_).fit(data.X / units, data.y)
    np.testing.assert_allclose(est.predict(data.Z), ridge.predict(data.Z / units), rtol=1e-8)
    assert not est.adaptation_.removed.any()


@pytest.mark.parametrize("outputs", [None, 3])
def test_a_correction_that_noise_explains_is_not_made(shifts, outputs):
    """Labels are noise: at alpha 0.999 next to none of 20 times 5 directions is kept."""
    kept = 0
    for seed in range(20):
        data = shifts(seed, outputs=outputs)
        est = BayesSpARRegressor("equal", 0.999, fit_intercept=False).fit(data.X, data.y - data.X @ data.w_star)
        found = est.adapt(data.Z).adaptation_
        kept += int(found.n_kept.sum())
        if not found.n_kept.any():
            assert not est.coef_.any()
    assert kept <= 2


def test_directions_that_only_the_source_has_are_decided_by_the_same_rule(rng):
    """Two target rows span two of five directions; along the others a proven correction is kept, and no other."""
    X = rng.normal(size=(400, 5)) * [1.0, 1.0, 1.0, 1.0, 0.01]
    Z = np.zeros((2, 5))
    Z[0, 0], Z[1, 1] = 1.0, 2.0
    y = X @ [1.0, 0.0, 1.0, 0.0, 0.0] + 0.1 * rng.normal(size=400)
    est = BayesSpARRegressor("equal", 0.999, fit_intercept=False).fit(X, y).adapt(Z)
    assert est.adaptation_.z.rank == 5
    np.testing.assert_array_equal(est.adaptation_.z.lam[2:], 0.0)
    np.testing.assert_allclose(est.coef_[[0, 2]], 1.0, atol=0.05)
    assert abs(est.coef_[4]) < 0.1  # least squares has a standard error of 0.5 there


def test_the_units_of_the_features_do_not_matter(shifts):
    data = shifts(offset=2.0)
    factors = np.array([1e-9, 1e6, 3.0, 1e30, 0.1])
    for units in ("max", "source"):
        for rule in RULES:
            params = {"prior_scale": units, "alpha": rule}
            plain = BayesSpARRegressor(**params).fit(data.X, data.y).adapt(data.Z)
            other = BayesSpARRegressor(**params).fit(data.X * factors, data.y).adapt(data.Z * factors)
            np.testing.assert_allclose(other.predict(data.Z * factors), plain.predict(data.Z), rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(other.sigma2_, plain.sigma2_, rtol=1e-7)


@pytest.mark.parametrize("size", [1e-50, 1e-3, 1e50])
def test_the_units_of_the_labels_do_not_matter(shift, params, size):
    plain = BayesSpARRegressor(**params).fit(shift.X, shift.y).adapt(shift.Z)
    other = BayesSpARRegressor(**params).fit(shift.X, size * shift.y).adapt(shift.Z)
    np.testing.assert_allclose(other.predict(shift.Z) / size, plain.predict(shift.Z), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e8])
def test_a_constant_column_changes_nothing_and_gets_no_weight(shift, params, value):
    n, m = len(shift.X), len(shift.Z)
    X = np.column_stack([shift.X, np.full(n, value)])
    Z = np.column_stack([shift.Z, np.linspace(-1e6, 1e6, m)])  # in the target it varies, more than anything
    with_it = BayesSpARRegressor(**params).fit(X, shift.y).adapt(Z)
    without = BayesSpARRegressor(**params).fit(shift.X, shift.y).adapt(shift.Z)
    assert with_it.coef_[-1] == 0.0
    assert with_it.units_[-1] == 0.0
    np.testing.assert_allclose(with_it.predict(Z), without.predict(shift.Z), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_rotating_features_of_a_common_unit_rotates_the_weights(shift, rng, rule):
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    plain = BayesSpARRegressor("equal", alpha=rule).fit(shift.X, shift.y).adapt(shift.Z)
    turned = BayesSpARRegressor("equal", alpha=rule).fit(shift.X @ turn, shift.y).adapt(shift.Z @ turn)
    np.testing.assert_allclose(turned.predict(shift.Z @ turn), plain.predict(shift.Z), rtol=1e-7, atol=1e-7)


@pytest.mark.filterwarnings("ignore:The source has . rows for . weights")  # which fit them exactly
@given(seed=st.integers(0, 10_000), rows=st.integers(8, 60), columns=st.integers(1, 8), params=st.sampled_from(
    [("spar", None), *((units, rule) for units in UNITS for rule in RULES)]))  # fmt: skip
def test_signs_orders_and_copies_change_predictions_by_rounding_only(seed, rows, columns, params):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * np.geomspace(1.0, 0.1, columns) + rng.normal(size=columns)
    Z = rng.normal(size=(20, columns)) * np.geomspace(0.3, 1.0, columns)
    y = X @ rng.normal(size=columns) + rng.normal(size=rows)
    counts = rng.integers(1, 4, size=rows)
    make = (lambda: SpARRegressor()) if params[0] == "spar" else (lambda: BayesSpARRegressor(params[0], params[1]))

    def predicted(X, Z, y, weight=None):
        return make().fit(X, y, sample_weight=weight).adapt(Z).predict(Z)

    def close(found, expected):
        # Rounding, times the condition number of a source of few rows, on labels of size one.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * max(1.0, np.abs(expected).max()))

    if rows <= columns + 2 and params[0] == "spar":
        return  # least squares fits such a source exactly, which is a warning and has a test of its own
    plain = predicted(X, Z, y)
    sign, order, place = rng.choice([-1.0, 1.0], size=columns), rng.permutation(columns), rng.permutation(rows)
    close(predicted(X * sign, Z * sign, y), plain)
    close(predicted(X[:, order], Z[:, order], y), plain)
    close(predicted(X[place], Z, y[place]), plain)
    close(predicted(X, Z[::-1], y)[::-1], plain)
    close(predicted(X, Z, y, counts.astype(float)), predicted(np.repeat(X, counts, axis=0), Z, np.repeat(y, counts)))


def test_under_the_prior_no_other_rule_is_better_and_the_error_is_below_that_of_the_paper():
    """Average target errors over thirty draws of weights from the prior, in units of the larger spread."""
    errors = {None: [], 0.999: [], "spar": []}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(60, 30)) * np.geomspace(3, 0.03, 30), rng.normal(size=(100, 30)) * 1.5
        w = rng.normal(size=30) / larger_spread(X, Z)
        y = X @ w + rng.normal(size=60)
        for rule in RULES:
            est = BayesSpARRegressor(alpha=rule).fit(X, y).adapt(Z)
            errors[rule].append(np.mean((est.predict(Z) - Z @ w) ** 2))
        errors["spar"].append(np.mean((SpARRegressor().fit(X, y).adapt(Z).predict(Z) - Z @ w) ** 2))
    mean = {name: np.mean(values) for name, values in errors.items()}
    assert mean[None] <= min(mean[0.999], mean["spar"])


@pytest.mark.parametrize("outputs", [None, 1, 3])
def test_shapes_are_those_of_scikit_learn(shifts, params, outputs):
    data = shifts(outputs=outputs)
    est = BayesSpARRegressor(**params).fit(data.X, data.y).adapt(data.Z)
    assert est.predict(data.Z).shape == ((len(data.Z),) if outputs is None else (len(data.Z), outputs))
    assert np.shape(est.tau2_) == np.shape(est.sigma2_) == (() if outputs is None else (outputs,))
    assert len(est.evidence_.limit) == (outputs or 1)


def test_adapting_does_not_change_the_source(shift, params):
    est = BayesSpARRegressor(**params).fit(shift.X, shift.y)
    before, units, sigma2 = est.coef_.copy(), est.units_.copy(), est.sigma2_
    other = copy.copy(est).adapt(shift.Z)
    np.testing.assert_array_equal(est.coef_, before)
    assert not hasattr(est, "adaptation_")
    est.adapt(shift.Z)
    np.testing.assert_array_equal(est.coef_, other.coef_)
    np.testing.assert_array_equal(est.coef_source_, before)
    unadapted = est._before_adapting()
    np.testing.assert_array_equal(unadapted.coef_, before)
    np.testing.assert_array_equal(unadapted.units_, units)
    assert unadapted.sigma2_ == sigma2
    assert not hasattr(unadapted, "adaptation_")


def test_every_kind_of_rows_gives_the_same_weights(shift, params, tmp_path):
    """Rows, parts, streams, merged moments, sparse rows, files: nothing but moments is used."""
    X, y, Z = shift.X, shift.y, shift.Z
    make = lambda: BayesSpARRegressor(**params)  # noqa: E731
    whole = make().fit(X, y).adapt(Z)
    save(Moments.of(X, y), tmp_path / "source.npz")
    found = [
        make().partial_fit(X[:70], y[:70]).partial_fit(X[70:], y[70:]).adapt(Z),
        make().fit(X[:150], y[:150]).partial_fit(X[150:], y[150:]).adapt(Z),
        make().fit((X[i : i + 50], y[i : i + 50]) for i in range(0, 300, 50)).adapt(iter([Z[:50], Z[50:]])),
        make().fit(Moments.of(X[:9], y[:9]) + Moments.of(X[9:], y[9:])).adapt(Moments.of(Z)),
        make().fit(load(tmp_path / "source.npz")).adapt(Z),
        make().fit(sp.csr_array(X), y).adapt(sp.csr_array(Z)),
    ]
    for est in found:
        np.testing.assert_allclose(est.coef_, whole.coef_, rtol=0, atol=1e-10)
        assert est.tau2_ == pytest.approx(whole.tau2_, rel=1e-9)


@pytest.mark.parametrize("before", [True, False])
def test_a_parameter_of_the_fit_that_is_changed_takes_effect_at_the_next_fit(rng, before):
    X = rng.normal(size=(60, 4)) + 50.0
    y = X @ [1.0, 2.0, 0.0, 0.0] + rng.normal(size=60)
    est = BayesSpARRegressor(fit_intercept=before).fit(X, y)
    expected, forecast = copy.copy(est).adapt(X[:30]).predict(X), est.expected_rmse(X[:30])
    est.set_params(fit_intercept=not before, prior_scale="equal")
    assert est.expected_rmse(X[:30]) == forecast
    np.testing.assert_array_equal(est.adapt(X[:30]).predict(X), expected)


def test_an_interrupted_adaptation_changes_nothing(rng, monkeypatch):
    X = rng.normal(size=(80, 3))
    est = BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=80)).adapt(X + 1.0)
    before, found = est.coef_.copy(), est.adaptation_

    def stopped(*args, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr("pyspar.estimators.spar.adapt", stopped)
    with pytest.raises(KeyboardInterrupt):
        est.adapt(X - 1.0)
    assert est.adaptation_ is found
    np.testing.assert_array_equal(est.coef_, before)


@pytest.mark.parametrize("kind", [BayesSpARRegressor, SpARRegressor])
def test_inspection_is_of_the_fit_and_not_of_later_parameters(rng, kind):
    X, Z = rng.normal(size=(200, 3)), 3.0 * rng.normal(size=(50, 3))
    est = kind().fit(X, X.sum(axis=1) + 5.0 + rng.normal(size=200))
    before = inspect(est, Z).to_dict()
    assert inspect(est.set_params(fit_intercept=False), Z).to_dict() == before


@pytest.mark.parametrize("fill", [1e17, 1e20, 1e30, 9.97e36, 1e60])
def test_a_huge_target_cell_only_removes_the_weight_of_its_column(fill):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(60, 4)) * [1.0, 0.3, 0.1, 0.03], rng.normal(size=(40, 4))
    y = X @ [1.0, -2.0, 3.0, 4.0] + 0.3 * rng.normal(size=60)
    Z[3, 2] = fill
    est = BayesSpARRegressor().fit(X, y).adapt(Z)
    Z[3, 2] = 1e8
    expected = BayesSpARRegressor().fit(X, y).adapt(Z)
    assert abs(est.coef_[2]) < 1e-6
    np.testing.assert_allclose(est.predict(X), expected.predict(X), rtol=1e-6)
    np.testing.assert_allclose([est.sigma2_, est.tau2_], [expected.sigma2_, expected.tau2_], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:The source has 10 rows for 10 weights")  # which fit them exactly
def test_integer_weights_are_copies_with_fewer_rows_than_features(rng):
    """The fit is exact, although the residual of ill-conditioned columns is larger than rounding."""
    for _ in range(10):
        scale = 10 ** rng.uniform(-3, 3, 15)
        X = rng.normal(size=(10, 15)) * scale
        y = X @ (rng.normal(size=15) / scale) + rng.normal(size=10)
        counts = rng.integers(1, 4, 10)
        copies = np.repeat(np.arange(10), counts)
        weighted = BayesSpARRegressor(prior_scale="equal").fit(X, y, sample_weight=counts)
        repeated = BayesSpARRegressor(prior_scale="equal").fit(X[copies], y[copies])
        assert weighted.evidence_.limit == repeated.evidence_.limit
        assert weighted.predict(X) == pytest.approx(repeated.predict(X), abs=1e-8 * np.std(y))

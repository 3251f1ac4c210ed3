"""adapt(Z, y): the corrected weights are those of TargetCorrection, and later forecasts use them."""

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, InputError, SpARRegressor, TargetCorrection, TargetWatch, inspect


@pytest.fixture
def target():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(200, 4)), 2.0 * rng.normal(size=(150, 4)) + 1.0
    w = rng.normal(size=4)
    y = Z @ (w + 0.5) + 2.0 + rng.normal(size=150)
    return X, X @ w + rng.normal(size=200), Z, np.where(np.arange(150) < 15, y, np.nan), y


@pytest.mark.parametrize("kind", [BayesSpARRegressor, SpARRegressor])
def test_adapting_with_labels_is_adapting_and_correcting(target, kind):
    X, y, Z, labels, truth = target
    plain = kind().fit(X, y).adapt(Z)
    est, wrapped = plain.adapted(Z, labels), TargetCorrection(plain, smooth=False).fit(Z, labels)
    np.testing.assert_allclose(est.predict(Z), wrapped.predict(Z))
    np.testing.assert_allclose(est.predict(Z), Z @ est.coef_ + est.intercept_)
    np.testing.assert_allclose(est.predict(Z, return_std=True)[1], wrapped.predict(Z, return_std=True)[1])
    np.testing.assert_allclose(est.predict_interval(Z), wrapped.predict_interval(Z))
    assert est.expected_rmse(Z).rmse == pytest.approx(wrapped.expected_rmse().rmse)
    assert est.drift_ == wrapped.drift_
    error, before = (np.sqrt(np.mean((e.predict(Z) - truth) ** 2)) for e in (est, plain))
    assert error < 0.7 * before


def test_the_correction_ends_with_the_next_adaptation(target):
    X, y, Z, labels, _ = target
    plain = BayesSpARRegressor().fit(X, y).adapt(Z)
    est = plain.adapted(Z, labels)
    for action in (lambda: est.adapt(Z), lambda: est.reset().adapt(Z), lambda: est.fit(X, y).adapt(Z)):
        est.adapt(Z, labels)
        action()
        assert not hasattr(est, "drift_")
        np.testing.assert_array_equal(est.coef_, plain.coef_)
        assert est.expected_rmse(Z) == plain.expected_rmse(Z)


def test_two_outputs_are_corrected_separately(target):
    X, y, Z, labels, _ = target
    est = BayesSpARRegressor().fit(X, np.column_stack([y, -y])).adapt(Z, np.column_stack([labels, -labels]))
    np.testing.assert_allclose(est.predict(Z)[:, 0], -est.predict(Z)[:, 1])
    assert len(est.drift_) == len(est.expected_rmse(Z)) == 2
    assert est.predict_interval(Z)[0].shape == (150, 2)


def test_invalid_labels_leave_the_estimator_unchanged(target):
    X, y, Z, labels, _ = target
    est = SpARRegressor().fit(X, y).adapt(Z, labels)
    state = dict(est.__dict__)
    for wrong in (labels[:3], np.full(150, np.nan), np.column_stack([labels, labels])):
        with pytest.raises(ValueError):
            est.adapt(2.0 * Z, wrong)
        assert est.__dict__.keys() == state.keys()
        assert all(est.__dict__[name] is value for name, value in state.items())
    with pytest.raises(TypeError):
        est.adapt([Z[:50], Z[50:]], labels)  # batches are not rows


def test_inspect_and_watch_refuse_a_corrected_regressor(target):
    X, y, Z, labels, _ = target
    est = BayesSpARRegressor().fit(X, y).adapt(Z, labels)
    for use in (lambda: inspect(est, Z), lambda: TargetWatch(est, window=1)):
        with pytest.raises(InputError, match="drift_"):
            use()
    assert inspect(est.reset(), Z).outcome


@pytest.mark.parametrize("size", [1e-50, 1e50])
def test_the_correction_does_not_depend_on_the_unit_of_the_features(rng, size):
    X, Z = rng.normal(size=(80, 3)) * [2.0, 0.3, 0.02], rng.normal(size=(30, 3))
    y, labels = X[:, 0] + rng.normal(size=80), np.where(np.arange(30) < 9, Z[:, 0] + 2.0, np.nan)
    plain, scaled = (
        BayesSpARRegressor(units="common", fit_intercept=False).fit(factor * X, y).adapt(factor * Z, labels)
        for factor in (1.0, size)
    )
    np.testing.assert_allclose(scaled.coef_ * size, plain.coef_, rtol=1e-9)
    assert scaled.drift_.p_value == plain.drift_.p_value


@pytest.mark.parametrize("rows", [6, 15, 21])
def test_a_source_that_does_not_determine_its_noise_gives_no_p_value(rng, rows):
    """With 20 features the test would otherwise reject in 40 % of all cases without a drift."""
    X, w = rng.normal(size=(rows, 20)), rng.normal(size=20)
    Z = rng.normal(size=(60, 20))
    y = np.where(np.arange(60) < 20, Z @ w + rng.normal(size=60), np.nan)
    est = BayesSpARRegressor().fit(X, X @ w + rng.normal(size=rows)).adapt(Z, y)
    assert np.isnan([est.drift_.p_value, est.drift_.offset.p_value, est.drift_.weights.p_value]).all()
    assert "unknown" in repr(est.drift_)

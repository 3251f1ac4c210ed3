"""Invalid input raises an error that names the cause, and leaves a fitted estimator unchanged."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import pyspar
from pyspar import BayesSpARRegressor, InputError, Moments, SpARRegressor, SparWarning, TargetCorrection, theory
from pyspar.core.spectrum import Spectrum

NAMES = list("abcde")


@pytest.fixture
def fitted(shift):
    X, Z = (pd.DataFrame(rows, columns=NAMES) for rows in (shift.X, shift.Z))
    return SpARRegressor().fit(X, shift.y).adapt(Z)


def spoilt(array, value, at=(3, 2)):
    array = np.array(array, dtype=float)
    array[at] = value
    return array


def is_unchanged(est, state):
    return est.__dict__.keys() == state.keys() and all(est.__dict__[name] is value for name, value in state.items())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_error_for_a_value_that_is_not_finite_states_its_row_and_column(shift, fitted, value):
    with pytest.raises(ValueError, match=r"X .*-?(nan|inf) in row 3, column 2"):
        SpARRegressor().fit(spoilt(shift.X, value), shift.y)
    with pytest.raises(ValueError, match=r"(NaN|infinity|-?nan|-?inf)"):
        SpARRegressor().fit(shift.X, spoilt(shift.y, value, 5))
    with pytest.raises(ValueError, match=r"-?(nan|inf) in row 3, column 2"):
        fitted.adapt(pd.DataFrame(spoilt(shift.Z, value), columns=NAMES))
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        fitted.predict(pd.DataFrame(spoilt(shift.Z, value), columns=NAMES))


BAD_SOURCES = {
    "NaN in X": lambda X, y: (spoilt(X, np.nan), y, None),
    "NaN in y": lambda X, y: (X, spoilt(y, np.nan, 4), None),
    "infinity in X": lambda X, y: (spoilt(X, np.inf), y, None),
    "other columns and NaN": lambda X, y: (spoilt(X[:, :4], np.nan), y, None),
    "too few labels": lambda X, y: (X, y[:-1], None),
    "one row": lambda X, y: (X[:1], y[:1], None),
    "no rows": lambda X, y: (X[:0], y[:0], None),
    "one dimension": lambda X, y: (X[:, 0], y, None),
    "complex": lambda X, y: (X + 1j, y, None),
    "words": lambda X, y: ([["a"] * 5] * 300, y, None),
    "negative weight": lambda X, y: (X, y, spoilt(np.ones(300), -1.0, 0)),
    "weight that is NaN": lambda X, y: (X, y, spoilt(np.ones(300), np.nan, 0)),
    "weights of zero": lambda X, y: (X, y, np.zeros(300)),
    "too few weights": lambda X, y: (X, y, np.ones(299)),
    "no labels": lambda X, y: (X, None, None),
}


@pytest.mark.parametrize("kind", list(BAD_SOURCES))
def test_an_invalid_fit_leaves_the_estimator_unchanged(shift, kind):
    est = SpARRegressor().fit(shift.X, shift.y).adapt(shift.Z)
    predictions, state = est.predict(shift.Z), dict(est.__dict__)
    X, y, weight = BAD_SOURCES[kind](shift.X, shift.y)
    with pytest.raises((ValueError, TypeError)):
        est.fit(X, y, weight)
    np.testing.assert_array_equal(est.predict(shift.Z), predictions)
    assert is_unchanged(est, state)


@pytest.mark.parametrize("model", [SpARRegressor, BayesSpARRegressor])
def test_an_interrupted_fit_leaves_the_estimator_unchanged(shift, monkeypatch, model):
    frame = pd.DataFrame(shift.X, columns=NAMES)
    est = model().fit(frame, shift.y)
    state = dict(est.__dict__)

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(model, "_solve", interrupt)
    for fit in (est.fit, est.partial_fit, lambda X, y: est.fit(Moments.of(X, y))):
        with pytest.raises(KeyboardInterrupt):
            fit(2.0 * frame, shift.y)
        assert is_unchanged(est, state)


BAD_TARGETS = {
    "NaN": lambda Z: (spoilt(Z, np.nan), None),
    "infinity": lambda Z: (spoilt(Z, np.inf), None),
    "fewer columns": lambda Z: (Z[:, :4], None),
    "more columns": lambda Z: (np.hstack([Z, Z]), None),
    "no rows": lambda Z: (Z[:0], None),
    "one dimension": lambda Z: (Z[0], None),
    "complex": lambda Z: (Z + 1j, None),
    "negative weight": lambda Z: (Z, spoilt(np.ones(120), -1.0, 0)),
    "weights of zero": lambda Z: (Z, np.zeros(120)),
    "moments of other columns": lambda Z: (Moments.of(Z[:, :4]), None),
    "moments and weights": lambda Z: (Moments.of(Z), np.ones(120)),
    "moments that are NaN": lambda Z: (replace(Moments.of(Z), root=np.full((6, 6), np.nan)), None),
    "nothing": lambda Z: (None, None),
}


@pytest.mark.parametrize("kind", list(BAD_TARGETS))
def test_an_invalid_target_leaves_the_estimator_unchanged(shift, kind):
    est = SpARRegressor().fit(shift.X, shift.y).adapt(shift.Z)
    predictions, state = est.predict(shift.Z), dict(est.__dict__)
    Z, weight = BAD_TARGETS[kind](shift.Z)
    with pytest.raises((ValueError, TypeError)):
        est.adapt(Z, sample_weight=weight)
    np.testing.assert_array_equal(est.predict(shift.Z), predictions)
    assert is_unchanged(est, state)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_the_error_for_other_columns_names_them(shift, fitted, frame):
    messages = {
        "abde": r"\b4\b.*\b5\b.*missing 'c', unexpected none",
        "abcdex": r"\b6\b.*\b5\b.*missing none, unexpected 'x'",
        "abxye": r"missing 'c', 'd', unexpected 'x', 'y'",
        "bacde": "order",
    }
    for names, message in messages.items():
        with pytest.raises(ValueError, match=message):
            fitted.adapt(frame(dict.fromkeys(names, shift.Z[:, 0])))


def test_integer_names_in_another_order_are_refused_and_others_are_not_compared(shift):
    """scikit-learn neither records nor compares names that are not text."""
    X, Z, labels = pd.DataFrame(shift.X), pd.DataFrame(shift.Z), dict(enumerate(shift.y[:10].tolist()))
    est = SpARRegressor().fit(X, shift.y).partial_fit(X, shift.y)
    ours = TargetCorrection(LinearRegression().fit(X, shift.y)).fit(Z, labels)
    for call in (ours.predict, ours.predict_interval, ours.expected_rmse, *(partial(c, est) for c in CALLS.values())):
        with pytest.raises(InputError, match=r"different order; use '0', '1', '2', '3', '4'"):
            call(Z[[1, 0, 2, 3, 4]])
    expected = ours.predict(Z)
    for rows in (shift.Z, Z.set_axis(range(5, 10), axis=1)):
        np.testing.assert_allclose(est.predict(rows), est.predict(Z))
        np.testing.assert_allclose(ours.fit(rows, labels).predict(rows), expected)
    assert not hasattr(est, "feature_names_in_")


@pytest.mark.parametrize("alpha", [-0.1, 1.1, np.nan, np.inf, -np.inf, "a", "0.5", None, [0.5], 1j])
def test_fit_and_adapt_reject_an_alpha_outside_zero_to_one(shift, alpha):
    with pytest.raises(ValueError, match="alpha"):
        SpARRegressor(alpha).fit(shift.X, shift.y)
    est = SpARRegressor().fit(shift.X, shift.y).adapt(shift.Z)
    before = est.coef_.copy()
    est.set_params(alpha=alpha)
    for call in (lambda: est.adapt(shift.Z), lambda: est.partial_fit(shift.X, shift.y)):
        with pytest.raises(ValueError, match="alpha"):
            call()
    np.testing.assert_array_equal(est.coef_, before)


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        (SpARRegressor, "noise", "map"),
        (SpARRegressor, "noise", None),
        (SpARRegressor, "fit_intercept", "no"),
        (BayesSpARRegressor, "prior_scale", "metres"),
        (BayesSpARRegressor, "alpha", 2.0),
        (BayesSpARRegressor, "alpha", "soft"),
    ],
)
def test_fit_and_adapt_reject_unknown_values_of_a_parameter(shift, model, name, value):
    message = rf"'{name}' parameter of {model.__name__}.*{value!r}"
    est = model(**{name: value})
    with pytest.raises(ValueError, match=message):
        est.fit(shift.X, shift.y)
    assert not hasattr(est, "moments_")
    with pytest.raises(ValueError, match=message):
        model().fit(shift.X, shift.y).set_params(**{name: value}).adapt(shift.Z)


CALLS = {
    "predict": lambda est, Z: est.predict(Z),
    "predict_interval": lambda est, Z: est.predict_interval(Z),
    "adapt": lambda est, Z: est.adapt(Z),
    "expected_rmse": lambda est, Z: est.expected_rmse(Z),
    "partial_fit": lambda est, Z: est.partial_fit(Z, np.arange(len(Z))),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_method_rejects_text_and_dates_with_the_same_error(call):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["area", "town"])
    est = BayesSpARRegressor().fit(X, X["area"] + X["town"] ** 2)
    before = est.coef_.copy()
    with pytest.raises(ValueError, match=r"text in 'town' .*Chur.*OneHotEncoder"):
        CALLS[call](est, X.assign(town="Chur"))
    with pytest.raises(TypeError, match="dates or durations in 'town'"):
        CALLS[call](est, X.assign(town=pd.Timestamp("2024-05-01")))
    np.testing.assert_array_equal(est.coef_, before)


def test_the_error_messages_read_as_recorded(shift, golden):
    frame, other = pd.DataFrame(shift.X, columns=NAMES), pd.DataFrame(shift.Z, columns=list("abxye"))
    est = SpARRegressor().fit(frame, shift.y)
    ones, source, twice = np.ones(300), (shift.X, shift.y), np.c_[shift.y, shift.y]
    search = GridSearchCV(SpARRegressor(), {"alpha": [0.9]}, refit=False).fit(shift.X, shift.y)
    pipe = make_pipeline(StandardScaler(), LinearRegression()).fit(shift.X, shift.y)
    x, terms = Spectrum.of(shift.X), theory.Terms(*np.ones((3, 2, 1)))

    def correct_features(function):
        return pyspar.TargetCorrection(est, FunctionTransformer(function)).fit(frame, dict.fromkeys(range(5), 1.0))

    calls = [
        lambda: SpARRegressor(1.5).fit(shift.X, shift.y),
        lambda: est.fit(spoilt(shift.X, np.nan), shift.y),
        lambda: est.fit(np.ma.masked_less(shift.X, 0.0), shift.y),
        lambda: est.fit(frame.assign(a="Chur"), shift.y),
        lambda: est.fit(frame.assign(b=pd.Timestamp("2024-05-01")), shift.y),
        lambda: est.fit(shift.X, ["low"] * 300),
        lambda: est.fit(shift.X, shift.y, -ones),
        lambda: est.fit(shift.X, shift.y, ones[:4]),
        lambda: est.fit(shift.X, shift.y, 1e200 * ones),
        lambda: est.fit(Moments.of(shift.X)),
        lambda: est.adapt(other),
        lambda: est.adapt(pd.DataFrame(shift.Z, columns=NAMES)[NAMES[::-1]]),
        lambda: est.adapt(shift.Z[:, :4]),
        lambda: est.adapt(Moments.of(shift.Z), sample_weight=ones),
        lambda: est.predict_interval(frame, level=1.0),
        lambda: SpARRegressor().fit(shift.X, shift.y).predict_interval(csr_matrix(shift.Z)),
        lambda: Moments.of(shift.X) + Moments.of(shift.Z[:, :4]),
        lambda: Moments.of(frame) + Moments.of(frame[NAMES[::-1]]),
        lambda: est.fit(Moments.of(frame, shift.y), shift.y),
        lambda: est.fit(Moments.of(shift.X[:1], shift.y[:1])),
        lambda: est.expected_rmse(),
        lambda: pyspar.adapt_pipeline(search, shift.Z),
        *(partial(pyspar.adapt_pipeline, last, shift.Z) for last in (pipe, StandardScaler(), None, "pipe")),
        lambda: pyspar.expected_rmse(pipe, shift.Z),
        lambda: pyspar.adapt_pipeline(make_pipeline(StandardScaler(), est), Moments.of(shift.Z)),
        lambda: pyspar.rows_to_label(est, 3.0),
        *(partial(pyspar.rows_to_label, est, frame, n) for n in (0, 301, True)),
        *(partial(pyspar.rows_to_label, est, frame, exclude=rows) for rows in ([300], ones[:2] > 0.0, 3)),
        lambda: pyspar.TargetCorrection(est).fit(frame, {0: 1.0, 1: [1.0, 2.0]}),
        lambda: correct_features(lambda rows: rows[:5]),
        lambda: correct_features(lambda rows: rows * np.nan),
        lambda: pyspar.inspect(SimpleNamespace(named_modules=0), shift.Z),
        lambda: pyspar.inspect(SimpleNamespace(expected_rmse=0), shift.Z),
        lambda: pyspar.inspect(SpARRegressor().fit(shift.X, twice), shift.Z, source=source),
        lambda: pyspar.inspect(est, frame, source=(frame[:9], shift.y[:9])),
        lambda: pyspar.save(Moments.of(frame.set_axis(list("aabcd"), axis=1)), "moments.npz"),
        lambda: theory.variance_terms(x, x, -1.0),
        lambda: theory.projected_risk(x, x, 1.0, np.ones(5), np.ones(4)),
        lambda: theory.inclusion_probability(-1.0, 1.0, 0.9),
        lambda: theory.inclusion_probability(1.0, 1.0, 0.9, degrees=0),
        lambda: theory.level_with_mle(0.9, 5, 5),
        lambda: theory.top_k_rule(terms, k=-1),
    ]
    messages = []
    for call in calls:
        with pytest.raises((ValueError, TypeError)) as caught:
            call()
        messages.append(f"{caught.type.__name__}: {caught.value}")
    golden("estimator-errors", "\n".join(messages))


def test_weights_that_are_not_counts_are_reported_once(rng):
    X, y, weight = rng.normal(size=(30, 3)), rng.normal(size=30), np.full(30, 0.1)
    with pytest.warns(SparWarning) as fitted:
        est = BayesSpARRegressor().fit(X, y, weight)
    assert len(fitted) == 1
    est.adapt(X).adapt(2.0 * X)  # a warning would be an error
    est = BayesSpARRegressor().partial_fit(X, y, weight).partial_fit(X, y, weight)
    with pytest.warns(SparWarning, match="60 rows sum to 6"):
        est.adapt(X)


def test_a_frame_of_sparse_columns_is_fitted_as_a_sparse_matrix(rng):
    X = np.where(rng.random((60, 4)) < 0.5, rng.normal(size=(60, 4)), 0.0)
    y, dense = X.sum(axis=1) + rng.normal(size=60), pd.DataFrame(X, columns=list("abcd"))
    frame = dense.astype(pd.SparseDtype(float, 0.0))
    plain, ours = (BayesSpARRegressor().fit(rows, y).adapt(2.0 * rows) for rows in (dense, frame))
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.predict(frame), plain.predict(dense), rtol=1e-9)


@pytest.mark.parametrize("kind", ["rows", "sparse", "torch"])
def test_rows_of_weight_zero_are_ignored_in_every_kind_of_rows(rng, kind):
    X, y, weight = rng.normal(size=(40, 3)), rng.normal(size=40), np.r_[0.0, 0.0, np.ones(38)]
    X[0], X[1] = np.nan, np.inf
    expected = BayesSpARRegressor().fit(X[2:], y[2:]).adapt(X[2:])
    if kind == "torch":
        torch = pytest.importorskip("torch")
        X, y, weight = torch.tensor(X), torch.tensor(y), torch.tensor(weight)
    rows = csr_matrix(X) if kind == "sparse" else X
    found = BayesSpARRegressor().fit(rows, y, weight)
    np.testing.assert_allclose(found.coef_, expected.coef_source_, rtol=1e-8)


@pytest.mark.parametrize("regressor", [SpARRegressor, BayesSpARRegressor])
def test_columns_that_low_precision_makes_constant_are_named(shift, regressor):
    offset = np.array([3e6, 3e6, 0.0, 3e6, 0.0])
    X = pd.DataFrame(shift.X / shift.X.std(axis=0) + offset, columns=NAMES).astype(np.float32)
    with pytest.warns(SparWarning, match="'a', 'b', 'd' of the source count as constant"):
        est = regressor().fit(X, shift.y)
    np.testing.assert_array_equal(est.coef_ != 0.0, [False, False, True, False, True])
    with pytest.warns(SparWarning, match="'column 0', 'column 1'"):
        assert regressor().fit(Moments.of(X.to_numpy(), shift.y)).rank_ == 2
    subtracted = regressor().fit(X - offset.astype(np.float32), shift.y)  # the fix, without a warning
    np.testing.assert_allclose(subtracted.coef_, regressor().fit(X.astype(float), shift.y).coef_, rtol=1e-6)


@pytest.mark.parametrize("regressor", [SpARRegressor, BayesSpARRegressor])
def test_a_direction_that_is_lost_because_rounding_errors_add_up_is_not_lost_silently(shift, regressor):
    X = (shift.X / shift.X.std(axis=0) + 5e5).astype(np.float32)  # every column exceeds its own rounding error
    with pytest.warns(SparWarning, match="count as constant"):
        assert 0 < regressor().fit(X, shift.y).rank_ < 5


@pytest.mark.parametrize("regressor", [SpARRegressor, BayesSpARRegressor])
def test_constant_and_repeated_columns_and_small_offsets_are_no_loss_of_precision(shift, regressor, recwarn):
    constant = np.full((len(shift.X), 1), 0.1)
    for X in (np.c_[shift.X, constant], np.c_[shift.X, shift.X], shift.X + 1e4):
        for dtype in (np.float32, np.float64):
            regressor().fit(X.astype(dtype), shift.y)
    regressor().fit(shift.X + 1e6, shift.y)
    regressor(fit_intercept=False).fit((shift.X + 1e6).astype(np.float32), shift.y)
    assert not len(recwarn)


def test_weights_that_sum_to_less_than_two_rows_are_refused_where_the_noise_is_needed(shift):
    n = len(shift.X)
    weight, fix = np.full(n, 1.0 / n), r"sum to 1, .* multiply them by sum\(w\) / sum\(w\*\*2\)"
    before = vars(bayes := BayesSpARRegressor().fit(shift.X, shift.y)).copy()
    with pytest.raises(InputError, match=fix):
        bayes.fit(shift.X, shift.y, sample_weight=weight)
    assert vars(bayes) == before
    with pytest.warns(SparWarning, match="sum to 1"):
        spar = SpARRegressor().fit(shift.X, shift.y, sample_weight=weight)
    np.testing.assert_allclose(spar.coef_, SpARRegressor().fit(shift.X, shift.y).coef_)
    with pytest.raises(InputError, match=fix):
        spar.expected_rmse(shift.Z)
    bayes = BayesSpARRegressor()
    for half in (slice(0, n // 2), slice(n // 2, n)):  # the sum is known only at the end
        bayes.partial_fit(shift.X[half], shift.y[half], weight[half])
        assert np.isfinite(bayes.sigma2_)
    with pytest.warns(SparWarning), pytest.raises(InputError, match="count as 1 rows"):
        bayes.adapt(shift.Z)
    fixed = bayes.fit(shift.X, shift.y, sample_weight=weight * weight.sum() / np.square(weight).sum())
    np.testing.assert_allclose(fixed.coef_, BayesSpARRegressor().fit(shift.X, shift.y).coef_)

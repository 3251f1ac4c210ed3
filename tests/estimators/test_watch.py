"""TargetWatch: windows and the alarm."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from pyspar import BayesSpARRegressor, Moments, SpARRegressor, SparWarning
from pyspar.core.concept_shift import log_bayes_factor
from pyspar.core.mean_square import SquaredErrors
from pyspar.estimators.watch import TargetWatch


@pytest.fixture
def world(rng):
    X = rng.normal(size=(300, 4)) * [1.0, 1.0, 0.3, 0.03]
    est = SpARRegressor().fit(X, X @ [1.0, 2.0, 1.0, 0.0] + rng.normal(size=300))
    return est, [rng.normal(size=(40, 4)) * [1.0, 1.0, 1.0, scale] for scale in (0.03, 0.1, 1.0, 5.0)]


def test_a_window_is_the_sum_of_its_batches(world):
    est, batches = world
    watch = TargetWatch(est, limit=1.0, window=2)
    states = [watch.update(batch) for batch in batches]
    expected = est.adapted(np.vstack(batches[2:]))
    np.testing.assert_allclose(states[-1].estimator.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    assert [state.rows for state in states] == [40, 80, 80, 80]


def test_each_batch_is_judged_alone_by_default(world):
    est, batches = world
    watches = TargetWatch(est, limit=1.0), TargetWatch(est, limit=1.0, window=1)
    for batch in batches:
        one, other = (watch.update(batch) for watch in watches)
        assert one.adapted[0] == other.adapted[0]
        assert one.rows == len(batch)


def test_there_is_an_alarm_when_the_lower_end_of_the_interval_exceeds_the_limit(world):
    est, batches = world
    batches = [*batches[:-1], 3.0 * batches[-1]]  # far enough for an end above the error at home
    calm = TargetWatch(est, limit=1e9, window=1)
    ends = [calm.update(batch).adapted[0].interval95[0] for batch in batches]
    limit = (ends[0] + ends[-1]) / 2
    watch = TargetWatch(est, limit=limit, window=1)
    assert [watch.update(batch).alarm for batch in batches] == [end > limit for end in ends]
    assert ends[-1] > ends[0]


def test_the_default_limit_is_the_error_at_home(world):
    est, batches = world
    watch = TargetWatch(est, window=1)
    states = [watch.update(batch) for batch in batches]
    assert states[0].limits == (est.home_rmse(),)
    assert [state.alarm for state in states] == [state.adapted[0].interval95[0] > est.home_rmse() for state in states]
    same = TargetWatch(est, window=1).update(np.random.default_rng(3).normal(size=(40, 4)) * [1.0, 1.0, 0.3, 0.03])
    assert not same.alarm


def test_a_pipeline_is_watched_like_its_last_step(world):
    _, batches = world
    pipe = make_pipeline(FunctionTransformer(np.negative), SpARRegressor())
    X = np.random.default_rng(5).normal(size=(300, 4)) * [1.0, 1.0, 0.3, 0.03]
    pipe.fit(X, X @ [1.0, 2.0, 1.0, 0.0] + np.random.default_rng(6).normal(size=300))
    whole, last = TargetWatch(pipe, window=1), TargetWatch(pipe[-1], window=1)
    for batch in batches:
        state, expected = whole.update(batch), last.update(-batch)
        assert state.adapted == expected.adapted
        np.testing.assert_allclose(state.estimator.predict(batch), expected.estimator.predict(-batch))


def test_the_original_estimator_is_not_changed_and_several_outputs_are_monitored(rng):
    X = rng.normal(size=(100, 3))
    est = BayesSpARRegressor().fit(X, X @ rng.normal(size=(3, 2)) + rng.normal(size=(100, 2)))
    before = est.coef_.copy()
    state = TargetWatch(est, limit=5.0, window=3).update(rng.normal(size=(20, 3)))
    assert (est.coef_ == before).all()
    assert not hasattr(est, "adaptation_")
    assert len(state.adapted) == len(state.before) == 2
    assert "expected RMSE" in repr(state)


def test_an_invalid_batch_leaves_the_watch_unchanged(world):
    est, batches = world
    watch, other = TargetWatch(est, limit=1.0, window=2), TargetWatch(est, limit=1.0, window=2)
    watch.update(batches[0])
    other.update(batches[0])
    with pytest.raises(ValueError, match="finite"):
        watch.update(np.full((3, 4), np.nan))
    again, expected = watch.update(batches[1]), other.update(batches[1])
    assert again.batch == expected.batch == 2
    assert again.adapted == expected.adapted


def test_a_batch_may_be_moments(world):
    est, batches = world
    rows, moments = TargetWatch(est, limit=1.0, window=1), TargetWatch(est, limit=1.0, window=1)
    assert rows.update(batches[1]).adapted == moments.update(Moments.of(batches[1])).adapted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0.0, "window": 1}, "limit"),
        ({"limit": np.nan, "window": 1}, "limit"),
        ({"limit": 1.0, "window": 0}, "window.* 0"),
    ],
)
def test_invalid_settings_raise(world, options, message):
    with pytest.raises(ValueError, match=message):
        TargetWatch(world[0], **options)


def test_labels_show_a_changed_relation_and_nothing_without_one():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(100, 3)), np.array([1.0, 2.0, 3.0])
    est = BayesSpARRegressor().fit(X, X @ w + rng.normal(size=100))
    same, changed = (TargetWatch(est, limit=100.0, window=2) for _ in range(2))
    for _ in range(6):
        Z = rng.normal(size=(10, 3))
        y = np.where(np.arange(10) < 5, Z @ w + rng.normal(size=10), np.nan)
        states = same.update(Z, y), changed.update(Z, y + 2.0)
    assert [state.labels for state in states] == [30, 30]
    assert [state.relation_changed for state in states] == [False, True]
    assert "30 labels" in repr(states[1])
    without = same.update(Z)
    assert (without.labels, without.relation_p_value) == (30, states[0].relation_p_value)
    with pytest.raises(ValueError, match="10 rows"):
        same.update(Z, y[:3])
    assert same.update(Z, y).batch == 8


def test_the_evidence_of_the_watch_is_the_bayes_factor_on_all_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    est = SpARRegressor(fit_intercept=False).fit(X, X[:, 0] + rng.normal(size=50))
    Z, y = rng.normal(size=(8, 2)), rng.normal(size=8) + 3.0
    watch = TargetWatch(est, limit=100.0, window=2)
    p_values = [watch.update(Z[i : i + 4], y[i : i + 4]).relation_p_value for i in (0, 4)]
    mean, roots = est._model.predict(Z)
    scale = X.std(axis=0) * np.sqrt(2.0)
    f = est.predict(Z)
    q = (f - X.mean(axis=0) @ est.coef_) / (X @ est.coef_).std()
    factor = log_bayes_factor((Z - X.mean(axis=0)) / scale, q, y - mean[:, 0], error_root=roots[0])
    assert p_values[1] == pytest.approx(np.exp(-factor))
    assert p_values[1] < p_values[0]


@pytest.mark.parametrize("kind", [SpARRegressor, BayesSpARRegressor])
def test_wide_data_have_the_error_at_home_of_new_rows(kind):
    homes, actual, alarms = [], [], 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, w, Z = rng.normal(size=(40, 160)), rng.normal(size=160) / 12.0, rng.normal(size=(400, 160))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SparWarning)  # least squares fits the rows exactly
            est = kind().fit(X, X @ w + 0.3 * rng.normal(size=40))
            alarms += TargetWatch(est, window=1).update(Z).alarm
        homes.append(est.home_rmse())
        actual.append(np.sqrt(np.mean(np.square(Z @ w - est.predict(Z))) + 0.09))
    assert 0.85 < np.mean(homes) / np.mean(actual) < 1.15  # the standard error of both means is below 5 %
    assert alarms == 0


@pytest.fixture
def labelled(world, rng):
    """The regressor, a calm batch, its labels with the relation of the source, and labels that are 5 too large."""
    est, Z = world[0], rng.normal(size=(40, 4)) * [1.0, 1.0, 0.3, 0.03]
    y = Z @ [1.0, 2.0, 1.0, 0.0] + rng.normal(size=40)
    return est, Z, y, y + 5.0


def test_labels_that_prove_harm_raise_the_alarm_that_the_features_do_not_show(labelled):
    est, Z, y, wrong = labelled
    limit = 1.5 * est.home_rmse()
    calm, harmed, blind = (TargetWatch(est, limit=limit, window=1).update(Z, some) for some in (y, wrong, None))
    assert (calm.alarm, harmed.alarm, blind.alarm) == (False, True, False)
    assert [state.above_limit for state in (calm, harmed, blind)] == [False, True, False]
    errors = SquaredErrors.of(harmed.estimator.predict(Z) - wrong)
    assert harmed.measured[0].n == 40
    np.testing.assert_allclose(
        [harmed.measured[0].rmse, *harmed.measured[0].interval()], [errors.rmse, *errors.interval()], rtol=1e-9
    )
    assert blind.measured[0].n == 0
    assert "ALARM" in repr(harmed)
    assert f"measured RMSE {errors.rmse:.4g}" in repr(harmed)
    assert "measured" not in repr(blind)


def test_measured_errors_follow_the_window_and_the_test_of_the_relation_does_not(labelled):
    est, Z, y, wrong = labelled
    limit = 1.5 * est.home_rmse()
    watches = {1: TargetWatch(est, limit=limit, window=1), 2: TargetWatch(est, limit=limit, window=2)}
    for width, watch in watches.items():
        first = watch.update(Z, wrong)
        assert first.alarm
        states = [watch.update(Z, y), watch.update(Z, y), watch.update(Z)]
        assert [state.alarm for state in states] == [width == 2, False, False]
        assert [state.measured[0].n for state in states] == [40 * width, 40 * width, 40 * (width - 1)]
        assert [state.labels for state in states] == [80, 120, 120]
        assert states[-1].relation_changed
        assert states[-1].relation_p_value <= first.relation_p_value


def test_ten_labels_prevent_the_alarm_of_a_forecast_and_fewer_do_not(world):
    est, batches = world
    Z = 3.0 * batches[-1]
    limit = 1.01 * est.home_rmse()
    assert TargetWatch(est, limit=limit, window=1).update(Z).alarm
    y = est.adapted(Z).predict(Z)  # no error at all
    few, enough = (np.where(np.arange(40) < n, y, np.nan) for n in (9, 10))
    assert TargetWatch(est, limit=limit, window=1).update(Z, few).alarm
    state = TargetWatch(est, limit=limit, window=1).update(Z, enough)
    assert (state.alarm, state.above_limit) == (False, False)


def test_an_error_above_the_limit_that_is_not_certain_is_a_state_of_its_own(world):
    est, batches = world
    forecast = TargetWatch(est, limit=1e9, window=1).update(batches[1]).adapted[0]
    low, rmse = forecast.interval95[0], forecast.rmse
    cases = {0.99 * low: (True, True), (low + rmse) / 2: (False, True), 1.01 * rmse: (False, False)}
    texts = []
    for limit, expected in cases.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SparWarning)  # the first limits are below the error at home
            state = TargetWatch(est, limit=limit, window=1).update(batches[1])
        assert (state.alarm, state.above_limit) == expected
        texts.append(state.verdict)
        assert state.verdict in repr(state)
    assert len(set(texts)) == 3


def test_a_limit_below_the_error_at_home_causes_a_warning(world):
    home = world[0].home_rmse()
    with pytest.warns(SparWarning, match=f"{0.9 * home:.4g} < {home:.4g}"):
        TargetWatch(world[0], limit=0.9 * home, window=1)
    TargetWatch(world[0], limit=home, window=1)  # no warning


def test_large_labels_cause_an_alarm(rng):
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=200)
    state = TargetWatch(BayesSpARRegressor().fit(X, 1e55 * y)).update(X[:50], np.full(50, 5e55))
    assert state.above_limit


def test_one_row_and_one_label_are_singular(world):
    est, (batch, *_) = world
    text = repr(TargetWatch(est).update(batch[:1], [1.0]))
    assert "on 1 row;" in text
    assert "relation from 1 label:" in text


def test_the_warning_about_a_small_limit_also_suits_the_command_line(world):
    with pytest.warns(SparWarning, match="below the error at home") as caught:
        TargetWatch(world[0], limit=0.1)
    assert "()" not in str(caught[0].message)

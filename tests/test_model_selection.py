"""ExtrapolationCV: what is held out, who wins on constructed shifts, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from pyspar import SpARRegressor, SparWarning
from pyspar.model_selection import ExtrapolationCV, most_alike, target_likeness


@pytest.fixture
def trend(rng):
    """Rows along one feature; the target lies beyond them, where a line goes on and a tree stays level."""
    X = rng.uniform(0.0, 1.0, size=(300, 2))
    Z = X[:100] + np.array([1.0, 0.0])
    return X, 5.0 * X[:, 0] + 0.1 * rng.normal(size=300), Z, 5.0 * Z[:, 0]


CANDIDATES = {"line": LinearRegression(), "tree": DecisionTreeRegressor(random_state=0), "mean": DummyRegressor()}


def test_the_rows_that_are_held_out_are_those_nearest_the_target(trend):
    X, y, Z, _ = trend
    cv = ExtrapolationCV(CANDIDATES, fractions=(0.2,)).fit(X, y, Z)
    (held,) = cv.held_out_
    assert len(held) == 60
    assert X[held, 0].min() > 0.7  # the upper fifth, but for the noise of a fitted classifier


def test_where_the_trend_goes_on_the_line_beats_what_cannot_follow_it(trend):
    X, y, Z, truth = trend
    cv = ExtrapolationCV(CANDIDATES).fit(X, y, Z)
    assert cv.ranking_ == ["line", "tree", "mean"]
    assert cv.best_name_ == "line"
    assert np.sqrt(np.mean((cv.predict(Z) - truth) ** 2)) < 0.1
    np.testing.assert_array_equal(cv.predict(Z), LinearRegression().fit(X, y).predict(Z))


def test_the_scores_are_those_of_fitting_on_the_rest_and_predicting_what_was_held_out(trend):
    X, y, Z, _ = trend
    cv = ExtrapolationCV(CANDIDATES).fit(X, y, Z)
    for split, held in enumerate(cv.held_out_):
        rest = np.setdiff1d(np.arange(len(y)), held)
        byhand = LinearRegression().fit(X[rest], y[rest]).predict(X[held])
        assert cv.scores_["line"][split] == pytest.approx(np.sqrt(np.mean((byhand - y[held]) ** 2)), rel=1e-12)
    assert cv.mean_scores_["line"] == pytest.approx(np.exp(np.log(cv.scores_["line"]).mean()), rel=1e-12)


def test_what_can_be_adapted_is_adapted_to_what_is_held_out_and_then_to_the_target(shift):
    cv = ExtrapolationCV([("spar", SpARRegressor())], fractions=(0.2,)).fit(shift.X, shift.y, shift.Z)
    (held,) = cv.held_out_
    rest = np.setdiff1d(np.arange(len(shift.y)), held)
    byhand = SpARRegressor().fit(shift.X[rest], shift.y[rest]).adapt(shift.X[held]).predict(shift.X[held])
    assert cv.scores_["spar"][0] == pytest.approx(np.sqrt(np.mean((byhand - shift.y[held]) ** 2)), rel=1e-12)
    adapted = SpARRegressor().fit(shift.X, shift.y).adapt(shift.Z)
    np.testing.assert_array_equal(cv.best_estimator_.coef_, adapted.coef_)


def test_a_pipeline_is_adapted_through_its_last_step(shift):
    pipe = make_pipeline(StandardScaler(), SpARRegressor())
    cv = ExtrapolationCV({"pipe": pipe, "plain": LinearRegression()}).fit(shift.X, shift.y, shift.Z)
    assert np.isfinite(cv.scores_["pipe"]).all()
    assert not hasattr(pipe[-1], "coef_")  # the caller's own is cloned, never fitted


def test_where_a_quiet_noisy_feature_becomes_loud_adapting_wins(rng):
    """Half the features carry nothing; in the rows like the target they are loud, so their fitted weights only hurt."""
    quiet = rng.uniform(size=400) < 0.85
    loud = np.where(quiet, 0.03, 3.0)[:, None]
    X = np.hstack([rng.normal(size=(400, 5)), loud * rng.normal(size=(400, 30)), (~quiet)[:, None]])
    y = X[:, :5].sum(axis=1) + rng.normal(size=400)
    Z = np.hstack([rng.normal(size=(200, 5)), 3.0 * rng.normal(size=(200, 30)), np.ones((200, 1))])
    cv = ExtrapolationCV({"ols": LinearRegression(), "spar": SpARRegressor()}, fractions=(0.15,)).fit(X, y, Z)
    assert cv.best_name_ == "spar"


def test_the_same_seed_gives_the_same_ranking_and_a_clone_too(trend):
    X, y, Z, _ = trend
    cv = ExtrapolationCV(CANDIDATES)
    one, other = cv.fit(X, y, Z).scores_, clone(cv).fit(X, y, Z).scores_
    for name in CANDIDATES:
        np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.parametrize("kind", ["frame", "sparse"])
def test_frames_and_sparse_rows_rank_as_arrays_do(trend, kind):
    X, y, Z, _ = trend
    plain = ExtrapolationCV({"line": LinearRegression(), "ridge": Ridge(100.0)}).fit(X, y, Z)
    if kind == "frame":
        pd = pytest.importorskip("pandas")
        X, Z = (pd.DataFrame(part, columns=["time", "other"]) for part in (X, Z))
    else:
        X, Z = sp.csr_array(X), sp.csr_array(Z)
    other = ExtrapolationCV({"line": LinearRegression(), "ridge": Ridge(100.0)}).fit(X, y, Z)
    assert other.ranking_ == plain.ranking_
    np.testing.assert_allclose(other.scores_["line"], plain.scores_["line"], rtol=1e-4)  # a sparse solver iterates


def test_weights_reach_the_fit_and_the_score(trend):
    X, y, Z, _ = trend
    weight = np.where(X[:, 1] < 0.5, 1.0, 1e-12)
    bad = y + np.where(X[:, 1] < 0.5, 0.0, 50.0)
    cv = ExtrapolationCV({"line": LinearRegression(), "pipe": make_pipeline(StandardScaler(), Ridge(1e-6))})
    cv.fit(X, bad, Z, sample_weight=weight)
    assert cv.mean_scores_["line"] < 0.2  # the corrupted half counts for nothing
    assert cv.mean_scores_["pipe"] < 0.2


def test_another_classifier_and_another_loss_may_be_given(trend):
    X, y, Z, _ = trend
    worst = lambda truth, predicted: float(np.abs(truth - predicted).max())  # noqa: E731
    cv = ExtrapolationCV(CANDIDATES, classifier=DecisionTreeClassifier(max_depth=3), scoring=worst).fit(X, y, Z)
    assert cv.ranking_[0] == "line"
    assert cv.likeness_.shape == (300,)
    assert ((cv.likeness_ >= 0.0) & (cv.likeness_ <= 1.0)).all()  # probabilities: a tree has no decision function


def test_a_candidate_that_fails_is_ranked_last_and_named(trend):
    class Broken(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            raise ValueError("no luck")

    X, y, Z, _ = trend
    with pytest.warns(SparWarning, match="no luck"):
        cv = ExtrapolationCV({"broken": Broken(), "line": LinearRegression()}).fit(X, y, Z)
    assert cv.ranking_ == ["line", "broken"]
    assert np.isnan(cv.scores_["broken"]).all()
    with pytest.raises(ValueError, match=r"No candidate could be scored.*no luck"):
        ExtrapolationCV({"broken": Broken()}).fit(X, y, Z)


def test_few_rows_are_enough_until_there_are_too_few(rng):
    X, Z = rng.normal(size=(6, 1)), rng.normal(size=(3, 1))
    cv = ExtrapolationCV({"mean": DummyRegressor(), "line": LinearRegression()}).fit(X, X[:, 0], Z)
    assert cv.best_name_ == "line"
    with pytest.raises(ValueError, match="enough to hold out"):
        ExtrapolationCV({"mean": DummyRegressor()}).fit(X[:3], X[:3, 0], Z)
    with pytest.raises(ValueError, match="at least 2 rows each"):
        ExtrapolationCV({"mean": DummyRegressor()}).fit(X, X[:, 0], Z[:1])


@pytest.mark.parametrize(
    ("estimators", "error", "told"),
    [
        ({}, ValueError, "at least one"),
        ([("a", LinearRegression()), ("a", Ridge())], ValueError, "distinct names"),
        ([LinearRegression()], TypeError, "dict of name to regressor"),
        ({"a": object()}, TypeError, "fit and predict"),
    ],
)
def test_candidates_that_cannot_be_ranked_are_refused(trend, estimators, error, told):
    X, y, Z, _ = trend
    with pytest.raises(error, match=told):
        ExtrapolationCV(estimators).fit(X, y, Z)


def test_a_target_with_other_columns_and_fractions_outside_one_are_refused(trend):
    X, y, Z, _ = trend
    with pytest.raises(ValueError, match="same columns"):
        ExtrapolationCV(CANDIDATES).fit(X, y, Z[:, :1])
    with pytest.raises(ValueError, match="between 0 and 1"):
        ExtrapolationCV(CANDIDATES, fractions=(0.3, 1.0)).fit(X, y, Z)


def test_likeness_is_larger_for_rows_that_lie_where_the_target_does(rng):
    X = np.vstack([rng.normal(size=(100, 3)), rng.normal(size=(50, 3)) + 4.0])
    found = target_likeness(X, rng.normal(size=(60, 3)) + 4.0)
    assert set(most_alike(found, 1 / 3)) == set(range(100, 150))


def _mixed(n, seed, shift=0.0):
    import pandas as pd

    rng = np.random.default_rng(seed)
    size = rng.normal(size=n) + shift
    size[::9] = np.nan
    days = pd.Timestamp("2020-01-01", tz="Europe/Zurich") + pd.to_timedelta(rng.integers(0, 99, n), unit="D")
    town = np.where(rng.random(n) < 0.5, "Chur", "Bern").astype(object)
    town[::7] = None
    return pd.DataFrame({"size": size, "town": town, "lift": rng.random(n) < 0.5, "sold": days})


def test_frames_with_text_gaps_and_dates_are_told_apart_without_a_classifier_of_ones_own():
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    X, Z = _mixed(120, 0), _mixed(60, 1, shift=2.0)
    y = X["size"].fillna(0.0) + 0.1 * np.random.default_rng(2).normal(size=len(X))
    columns = make_column_transformer((SimpleImputer(), ["size"]))
    candidates = {"linear": make_pipeline(columns, LinearRegression()), "mean": DummyRegressor()}
    cv = ExtrapolationCV(candidates).fit(X, y, Z)
    assert cv.failures_ == {}
    # The target's sizes lie two above the source's, so the rows that look like it are the large ones.
    held = cv.held_out_[0]
    assert X["size"].iloc[held].mean() > X["size"].drop(held).mean() + 0.5


def test_a_town_that_only_the_target_has_makes_a_row_look_like_it():
    X, Z = _mixed(200, 0), _mixed(100, 1)
    X["town"], Z["town"] = "Bern", "Chur"
    X.loc[[3, 50], "town"] = "Chur"
    assert set(np.argsort(target_likeness(X, Z))[-2:]) == {3, 50}


def test_rows_that_the_default_classifier_cannot_read_are_told_of_the_parameter():
    X = np.array([["Chur", 1.0], ["Bern", 2.0]] * 10, dtype=object)
    with pytest.raises(ValueError, match="classifier="):
        target_likeness(X, X)


def test_rows_of_weight_zero_are_never_held_out():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(100, 2)), rng.normal(size=(50, 2)) + np.array([2.0, 0.0])
    y = X[:, 0] + 0.1 * rng.normal(size=100)
    weight = (X[:, 0] < np.median(X[:, 0])).astype(float)  # those that look most like the target weigh nothing
    cv = ExtrapolationCV({"linear": LinearRegression()}).fit(X, y, Z, sample_weight=weight)
    assert all((weight[held] > 0.0).all() for held in cv.held_out_)
    assert np.isfinite(cv.scores_["linear"]).all()


@pytest.mark.parametrize("form", [np.array, pd.DataFrame, sp.csr_array, list], ids=lambda form: form.__name__)
@pytest.mark.parametrize("which", ["X", "Z"])
def test_a_table_without_a_single_value_is_refused(trend, form, which):
    X, y, Z, _ = trend
    tables = {"X": X, "Z": Z}
    tables[which] = tables[which] * np.nan
    with pytest.raises(ValueError, match=f"{which} must hold values. Got .* rows that are missing"):
        ExtrapolationCV(CANDIDATES).fit(form(tables["X"]), y, form(tables["Z"]))


def test_some_gaps_are_filled_in_and_infinity_is_told_of(trend):
    X, y, Z, _ = trend
    holes = np.where(np.arange(Z.size).reshape(Z.shape) % 7 == 0, np.nan, Z)
    assert ExtrapolationCV(CANDIDATES).fit(X, y, holes).ranking_[0] == "line"
    with pytest.raises(ValueError, match=r"contains infinity.*replace or drop what is infinite"):
        target_likeness(X, np.where(np.isnan(holes), np.inf, Z))


@pytest.mark.parametrize("power", [-900, -600, 3, 600, 900])
@pytest.mark.parametrize("form", [np.array, pd.DataFrame, sp.csr_array], ids=lambda form: form.__name__)
def test_rows_in_units_of_a_power_of_two_look_exactly_as_alike(trend, power, form):
    X, _, Z, _ = trend
    # A power of two changes no digit, so that nothing may change, however large or small its square would be.
    found, expected = (target_likeness(form(np.ldexp(X, p)), form(np.ldexp(Z, p))) for p in (power, 0))
    np.testing.assert_array_equal(found, expected)
    assert np.ptp(expected) > 1.0


def test_huge_rows_are_ranked_as_small_ones_are(trend):
    X, y, Z, _ = trend
    both = {name: CANDIDATES[name] for name in ("mean", "line")}  # a tree rounds to float32, where these are infinite
    found, expected = (ExtrapolationCV(both).fit(X * size, y, Z * size).ranking_ for size in (1e200, 1.0))
    assert found == expected == ["line", "mean"]

"""The inspection of any fitted regressor, compared with scikit-learn's cross-validation."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from pyspar import BayesSpARRegressor, InputError, SpARRegressor, inspect, report
from pyspar.estimators.calibrated_forecasts import rmse_factors, rmse_interval


@pytest.fixture(scope="module")
def homes():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"area": rng.normal(size=400), "rooms": rng.normal(size=400)})
    y = pd.Series(np.abs(3.0 * X["area"] + rng.normal(size=400)) + 1.0, name="price")
    return X, y, X + 1.0


def rows(rng, n=120):
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.5 * rng.normal(size=n)


def test_the_error_at_home_is_the_cross_validated_one(rng):
    X, y = rows(rng)
    Z, groups = rows(rng)[0] + 2.0, np.arange(120) // 10
    model = KNeighborsRegressor().fit(X, y)
    for given, folds in ((None, KFold(5, shuffle=True, random_state=0)), (groups, GroupKFold(5))):
        inspection = inspect(model, Z, source=(X, y), groups=given)
        (output,) = inspection.outputs
        names = None if given is None else given.astype(str)
        predicted = cross_val_predict(model, X, y, cv=folds, groups=names)
        assert output.home == pytest.approx(np.sqrt(np.mean((predicted - y) ** 2)))
        assert output.separation.found
        assert inspection.outcome == "unverified"
        factors = rmse_factors(0.95, output.separation, "any", signal=max(y.std() / output.home, 1.0))
        assert output.expected.interval95 == pytest.approx([output.home * factor for factor in factors])
        assert output.base_rate.n_tasks > 0
        assert (output.recommended, inspection.before) == ("KNeighborsRegressor", "KNeighborsRegressor")
        assert "Keep KNeighborsRegressor" in output.next_step
        assert output.directions == ()


def test_without_a_shift_the_interval_has_the_width_of_the_sampling_error(rng):
    """The log RMSE of m normal errors has the standard error sqrt(1 / (2 m)), and its estimate sqrt(1 / (2 n))."""
    X, y = rows(rng, 4000)
    Z = rows(rng, 1000)[0]
    (found,) = inspect(Ridge().fit(X, y), Z, source=(X, y)).outputs
    assert found.outcome == "no-shift"
    reach = np.exp(1.96 * np.sqrt(1 / 8000 + 1 / 2000))
    narrow = found.home / reach, found.home * reach
    expected = rmse_interval(0.95, found.home, narrow, found.separation, "any", home=found.home, spread=y.std())
    assert found.expected.interval95 == pytest.approx(expected, rel=0.01)


def test_groups_that_share_labels_have_a_larger_error(rng):
    groups = np.repeat(np.arange(12), 10)
    X = rng.normal(size=(12, 2))[groups] + 0.01 * rng.normal(size=(120, 2))
    y = rng.normal(size=12)[groups]
    model = KNeighborsRegressor(1).fit(X, y)
    by_rows, by_groups = (inspect(model, X, source=(X, y), groups=g).outputs[0].home for g in (None, groups))
    assert by_groups > 3.0 * by_rows


# The coverage was 0.5 if the rows of a group counted as independent. With a Student t interval by groups it was 0.71
# for the unequal groups.
@pytest.mark.parametrize(
    ("sizes", "targets"),
    [([20] * 10, 60), ([40] * 3, 100), ([100] * 2, 60), ([100, 50, 25, 12, 6, 3, 1, 1, 1, 1], 60)],
    ids=["ten", "three", "two", "unequal"],
)
def test_the_interval_without_a_shift_covers_errors_on_new_groups(sizes, targets):
    """The nominal coverage is 0.95, and 0.96 to 1 of these targets are covered."""
    inside, n_groups = [], len(sizes)
    group = np.repeat(np.arange(n_groups), sizes)
    for seed in range(targets):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(2, len(group), 4))
        offsets = rng.normal(size=(2, n_groups))
        y, truth = (x.sum(axis=1) + 1.5 * o[group] + rng.normal(size=len(group)) for x, o in zip((X, Z), offsets))
        model = LinearRegression().fit(X, y)
        (output,) = inspect(model, Z, source=(X, y), groups=group).outputs
        if not output.separation.found:
            low, high = output.expected.interval95
            inside.append(low <= root_mean_squared_error(truth, model.predict(Z)) <= high)
    assert np.mean(inside) > 0.9


def test_columns_may_be_mixed_missing_and_unseen(rng):
    X, y = rows(rng)
    frame = pd.DataFrame(X, columns=list("abc")).assign(town=rng.choice(["Bonn", "Kiel"], 120))
    frame.loc[:5, "a"] = np.nan
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough")
    model = make_pipeline(encoder, HistGradientBoostingRegressor(max_iter=3)).fit(frame, y)
    target = frame.assign(town="Bonn")
    assert not inspect(model, frame, source=(frame, y)).separation.found
    shifted = inspect(model, target, source=(frame, y))
    assert shifted.separation.found
    assert shifted.outputs[0].unseen.rows == 0
    assert shifted.columns == ("a", "b", "c", "town")
    target.loc[:29, "town"] = "Ulm"
    unknown = inspect(model, target, source=(frame, y))
    assert unknown.outcome == "unknown"
    (finding,) = [finding for finding in unknown.findings if finding.code == "SPAR014"]
    assert finding.severity == "serious"
    (output,) = unknown.outputs
    for text in (finding.text, output.headline):
        assert "30 of 120 " in text
        assert "town 'Ulm'" in text
    assert output.base_rate.n_tasks > 0
    assert f"Of {output.base_rate.n_tasks:,} real shifts" in output.experience


def test_each_output_has_a_forecast(rng):
    X, y = rows(rng)
    both = np.column_stack([y, 2.0 * y])
    one, two = inspect(LinearRegression().fit(X, both), X, source=(X, both)).outputs
    assert two.home == pytest.approx(2.0 * one.home)
    assert (one.name, two.name) == ("y0", "y1")


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ({"source": 3}, "int"),
        ({"source": (np.zeros((20, 3)), np.zeros(19))}, r"\(19,\)"),
        ({"source": (np.zeros((20, 2)), np.zeros(20))}, r"\(20, 2\)"),
        ({"source": (np.zeros((4, 3)), np.zeros(4))}, "4"),
        ({"groups": np.zeros(120)}, "1"),
        ({"outputs": ["a", "b"]}, "^outputs.* got 2"),
    ],
)
def test_unusable_input_is_refused(rng, change, value):
    X, y = rows(rng)
    model = LinearRegression().fit(X, y)
    with pytest.raises((InputError, ValueError), match=value):
        inspect(model, X, **{"source": (X, y), **change})


def test_a_pipeline_without_a_regressor_is_refused(rng):
    X = rng.normal(size=(40, 2))
    with pytest.raises(TypeError, match=r"Pipeline.*predict"):
        inspect(make_pipeline(StandardScaler()).fit(X), X, source=(X, X[:, 0]))


def test_target_labels_come_first_for_any_regressor(homes):
    X, y, Z = homes
    model = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
    labels = np.where(np.arange(400) < 50, 10.0 + model.predict(Z), np.nan)
    output = inspect(model, Z, source=(X, y), y=labels).outputs[0]
    assert output.name == "price"
    assert output.outcome == "hurts"
    assert output.labels.n == 50
    assert output.labels.rmse == pytest.approx(10.0)
    assert not output.labels.confirmed


def test_implausible_predictions_of_any_regressor_are_reported(homes):
    X, y, Z = homes
    Z = Z.copy()
    Z.loc[3, "area"] = 1000.0
    output = inspect(Ridge().fit(X, y), Z, source=(X, y)).outputs[0]
    assert output.absurd.rows[0] == 3
    assert any(finding.code == "SPAR018" for finding in output.findings)


def test_columns_that_moved_far_are_reported_for_any_regressor_as_for_linear_ones(homes):
    X, y, Z = homes
    far = Z.assign(area=Z["area"] + 8.0)
    texts = []
    for found in (inspect(BayesSpARRegressor().fit(X, y), far), inspect(Ridge().fit(X, y), far, source=(X, y))):
        texts += [finding.text for finding in found.findings if finding.code == "SPAR009"]
    assert len(texts) == 2
    assert texts[0] == texts[1]
    assert "'area'" in texts[0]
    assert not [f for f in inspect(Ridge().fit(X, y), Z, source=(X, y)).findings if f.code == "SPAR009"]


def test_the_page_of_any_regressor_has_no_directions(homes):
    X, y, Z = homes
    html = report(Ridge().fit(X, y), Z, source=(X, y)).html()
    assert "o0-plane" not in html
    assert not re.search(r"\b(nan|NaN|None)\b", re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.S))
    assert "Ridge" in html


def test_a_search_is_inspected_like_its_best_estimator(homes):
    X, y, Z = homes
    search = GridSearchCV(BayesSpARRegressor(), {"fit_intercept": [True]}).fit(X, y)
    assert inspect(search, Z).outputs[0].forecasts == inspect(search.best_estimator_, Z).outputs[0].forecasts


def test_a_search_gets_the_groups_for_its_splitter(rng):
    X, groups = rng.normal(size=(60, 2)), np.arange(60) % 6
    y = X[:, 0] + rng.normal(size=6)[groups]
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=GroupKFold(3)).fit(X, y, groups=groups)
    by_search, by_model = (
        inspect(model, X, source=(X, y), groups=groups).outputs[0].home for model in (search, search.best_estimator_)
    )
    assert by_search == pytest.approx(by_model, rel=0.1)


def test_groups_of_source_and_target_have_their_own_parameters():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    model, names = Ridge().fit(X, y), np.arange(40) % 5
    plain, grouped = (inspect(model, X, source=(X, y), groups=g).outputs[0].home for g in (None, names))
    assert plain != grouped
    with pytest.raises(InputError, match="target_groups"):
        inspect(model, X, source=(X, y), target_groups=names)
    with pytest.raises(InputError, match="fit"):
        inspect(SpARRegressor().fit(X, y), X, groups=names)


@pytest.mark.parametrize("y", [None, dict.fromkeys(range(12), 2.0)])
def test_nothing_is_said_in_multiples_of_an_error_of_zero(rng, y):
    X = rng.normal(size=(60, 3))
    labels = np.full(60, 2.0)
    found = inspect(DummyRegressor().fit(X, labels), X + 3.0, source=(X, labels), y=y)
    assert found.outputs[0].home == 0.0
    assert " times" not in found.outputs[0].headline


def test_a_regressor_corrected_by_target_labels_is_refused_also_with_its_source(rng):
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60)
    corrected = BayesSpARRegressor().fit(X, y).adapted(X[:20] + 1.0, {row: float(row) for row in range(5)})
    for model in (corrected, make_pipeline(FunctionTransformer(), corrected)):
        with pytest.raises(InputError, match="drift_"):
            inspect(model, X[:20], source=(X, y))

"""Adapting and forecasting through a pipeline equals transforming and calling the last step separately."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from pyspar import (
    BayesSpARRegressor,
    SpARRegressor,
    SparWarning,
    TargetCorrection,
    adapt_pipeline,
    expected_rmse,
    inspect,
)
from pyspar.estimators.pipelines import find_unseen


@pytest.fixture
def pipe(shift):
    steps = StandardScaler(), PolynomialFeatures(2, include_bias=False), SpARRegressor()
    return make_pipeline(*steps).fit(shift.X, shift.y)


def test_it_equals_separate_transforming_and_adapting(shift, pipe):
    ours = adapt_pipeline(pipe, shift.Z)
    scaler = StandardScaler().fit(shift.X)
    features = PolynomialFeatures(2, include_bias=False).fit(scaler.transform(shift.X))

    def by_hand(rows):
        return features.transform(scaler.transform(rows))

    est = SpARRegressor().fit(by_hand(shift.X), shift.y).adapt(by_hand(shift.Z))
    assert est.adaptation_.removed.any()
    np.testing.assert_array_equal(ours.predict(shift.Z), est.predict(by_hand(shift.Z)))
    assert isinstance(ours, Pipeline)
    assert [name for name, _ in ours.steps] == [name for name, _ in pipe.steps]


def test_the_original_pipeline_is_unchanged_and_its_steps_are_shared(shift, pipe):
    before = pipe.predict(shift.Z)
    ours = adapt_pipeline(pipe, shift.Z)
    np.testing.assert_array_equal(pipe.predict(shift.Z), before)
    assert not np.allclose(ours.predict(shift.Z), before)
    assert not hasattr(pipe[-1], "adaptation_")
    assert ours[0] is pipe[0]
    assert ours[-1] is not pipe[-1]
    assert ours[-1].moments_ is pipe[-1].moments_


def test_a_pipeline_of_one_step_and_skipped_steps_work(shift):
    alone = make_pipeline(SpARRegressor()).fit(shift.X, shift.y)
    skipping = Pipeline([("scale", "passthrough"), ("spar", SpARRegressor())]).fit(shift.X, shift.y)
    expected = SpARRegressor().fit(shift.X, shift.y).adapt(shift.Z).predict(shift.Z)
    for pipe in (alone, skipping):
        np.testing.assert_array_equal(adapt_pipeline(pipe, shift.Z).predict(shift.Z), expected)


def test_a_regressor_alone_is_copied_and_adapted(shift):
    est = SpARRegressor().fit(shift.X, shift.y)
    adapted = adapt_pipeline(est, shift.Z)
    np.testing.assert_array_equal(est.coef_, est.coef_source_)
    np.testing.assert_array_equal(adapted.coef_, est.adapt(shift.Z).coef_)


def lognormal(rng, n=300):
    X = rng.normal(size=(n, 3))
    return X, np.exp(X @ [0.5, -0.3, 0.0] + 0.2 * rng.normal(size=n))


CHOICES = {"fit_intercept": [True]}


def encode():
    return make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["k"]))


def search(model, prefix=""):
    return GridSearchCV(model, {prefix + name: values for name, values in CHOICES.items()}, cv=2)


def transform_labels(model):
    return TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp)


def flat():
    return make_pipeline(encode(), BayesSpARRegressor())


NESTINGS = {
    "search(pipe)": lambda: search(flat(), "bayessparregressor__"),
    "randomised search": lambda: RandomizedSearchCV(flat(), {"bayessparregressor__fit_intercept": [True]}, n_iter=1),
    "pipe(search)": lambda: make_pipeline(encode(), search(BayesSpARRegressor())),
    "pipe(pipe)": lambda: make_pipeline(encode(), make_pipeline("passthrough", BayesSpARRegressor())),
    "labels(pipe)": lambda: transform_labels(flat()),
    "pipe(labels)": lambda: make_pipeline(encode(), transform_labels(BayesSpARRegressor())),
    "search(labels(pipe))": lambda: search(transform_labels(flat()), "regressor__bayessparregressor__"),
    "labels(search(pipe))": lambda: transform_labels(search(flat(), "bayessparregressor__")),
    "labels(pipe(search))": lambda: transform_labels(make_pipeline(encode(), search(BayesSpARRegressor()))),
}


@pytest.fixture
def mixed(rng):
    def frame(n, scale):
        return pd.DataFrame({"a": scale * rng.normal(size=n), "b": rng.normal(size=n), "k": rng.choice(list("xyz"), n)})

    X, Z = frame(120, 1.0), frame(50, 3.0)
    return X, np.exp(0.5 * X["a"] + (X["k"] == "x") + 0.1 * rng.normal(size=120)).to_numpy(), Z


@pytest.mark.parametrize("name", NESTINGS)
def test_every_nesting_equals_the_same_model_without_nesting(mixed, name):
    X, y, Z = mixed
    is_log = "labels" in name
    model, plain = NESTINGS[name]().fit(X, y), flat().fit(X, np.log(y) if is_log else y)
    adapted = adapt_pipeline(model, Z)
    expected = adapt_pipeline(plain, Z)
    back = np.exp if is_log else np.positive
    np.testing.assert_allclose(adapted.predict(Z), back(expected.predict(Z)), rtol=1e-10)
    assert not hasattr(adapted, "cv_results_")
    np.testing.assert_allclose(model.predict(Z), back(plain.predict(Z)), rtol=1e-10)  # the original is unchanged
    labels = np.where(np.arange(50) < 12, 1.5, np.nan)
    if is_log:
        with pytest.raises(TypeError, match=r"transformed labels.*source="):
            expected_rmse(model, Z)
        assert inspect(model, Z, source=(X, y), y=labels).outputs[0].source_rmse > 0.0
        return
    found, direct = inspect(model, Z, y=labels), inspect(plain, Z, y=labels)
    assert found.outputs[0].models == direct.outputs[0].models
    assert found.columns == direct.columns
    assert expected_rmse(model, Z) == expected_rmse(plain, Z)


def test_a_correction_forecasts_the_error_on_other_rows(rng):
    X, y = lognormal(rng)
    fixed = TargetCorrection(LinearRegression().fit(X, y)).fit(X, y + 1.0)
    assert expected_rmse(fixed, X) == fixed.expected_rmse()
    far = expected_rmse(make_pipeline(fixed), 10.0 * X)
    assert far.variance > 10.0 * fixed.expected_rmse().variance
    assert far.noise == fixed.expected_rmse().noise
    assert inspect(fixed, X).outputs[0].forecast.rmse == fixed.expected_rmse().rmse


def test_rows_in_unseen_categories_cause_a_warning(rng):
    source = pd.DataFrame({"area": rng.normal(size=60), "kind": ["house", "flat"] * 30})
    target = source.replace({"kind": {"flat": "farm"}})
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["kind"]), remainder="passthrough")
    model = make_pipeline(encoder, BayesSpARRegressor()).fit(source, source["area"] + rng.normal(size=60))
    with pytest.warns(SparWarning, match=r"30 of 60 .*kind 'farm'") as warned:
        expected_rmse(model, target)
    assert [warning.filename for warning in warned] == [__file__]
    expected_rmse(model, source)  # a warning would be an error


def test_unseen_categories_are_found_behind_other_steps_and_encoders_without_columns_are_skipped(rng):
    source = pd.DataFrame({"a": rng.normal(size=6), "k": list("xyzxyz"), "g": [1, 2, 1, 2, 1, 2]})
    target = source.assign(k=list("xywxyw"), g=[1, 2, 3, 3, 3, 3])
    impute = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="infrequent_if_exist"))
    unused = make_pipeline(StandardScaler(), OneHotEncoder(handle_unknown="ignore"))
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["k"]), (impute, ["g"]), (unused, []), remainder="passthrough"
    )
    steps = make_pipeline(encode, StandardScaler()).fit(source)
    assert find_unseen(steps, target) == {"rows": 4, "total": 6, "columns": {"k": ["w"], "g": ["3"]}}
    assert find_unseen(steps, source) is None
    assert find_unseen(None, source) is None

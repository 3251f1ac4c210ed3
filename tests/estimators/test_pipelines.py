"""Adapting the last step of a pipeline equals transforming and adapting separately."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from pyspar import Moments, PCRRegressor, SpARRegressor, adapt_pipeline


@pytest.fixture
def pipe(shift):
    return make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), SpARRegressor()).fit(
        shift.X, shift.y
    )


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


def test_an_adapted_pipeline_can_be_adapted_to_another_target(shift, pipe):
    first = adapt_pipeline(pipe, shift.Z)
    second = adapt_pipeline(first, 2.0 * shift.Z)
    np.testing.assert_array_equal(second.predict(shift.Z), adapt_pipeline(pipe, 2.0 * shift.Z).predict(shift.Z))


def test_data_frames_pass_through(shift):
    X, Z = (pd.DataFrame(part, columns=list("abcde")) for part in (shift.X, shift.Z))
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), SpARRegressor()).fit(X, shift.y)
    plain = make_pipeline(StandardScaler(), SpARRegressor()).fit(shift.X, shift.y)
    np.testing.assert_allclose(
        adapt_pipeline(pipe, Z).predict(Z), adapt_pipeline(plain, shift.Z).predict(shift.Z), rtol=1e-12
    )


def test_a_pipeline_of_one_step_and_skipped_steps_work(shift):
    alone = make_pipeline(SpARRegressor()).fit(shift.X, shift.y)
    skipping = Pipeline([("scale", "passthrough"), ("spar", SpARRegressor())]).fit(shift.X, shift.y)
    expected = SpARRegressor().fit(shift.X, shift.y).adapt(shift.Z).predict(shift.Z)
    for pipe in (alone, skipping):
        np.testing.assert_array_equal(adapt_pipeline(pipe, shift.Z).predict(shift.Z), expected)


def test_the_settings_of_the_pipeline_are_kept(shift, tmp_path):
    pipe = Pipeline([("scale", StandardScaler()), ("spar", SpARRegressor())], memory=str(tmp_path), verbose=False)
    assert adapt_pipeline(pipe.fit(shift.X, shift.y), shift.Z).memory == str(tmp_path)


@pytest.mark.parametrize("last", [LinearRegression(), PCRRegressor()])
def test_the_error_for_a_last_step_that_cannot_be_adapted_names_it(shift, last):
    pipe = make_pipeline(StandardScaler(), last).fit(shift.X, shift.y)
    with pytest.raises(TypeError, match=rf"'{type(last).__name__.lower()}' \({type(last).__name__}\)"):
        adapt_pipeline(pipe, shift.Z)


def test_an_unfitted_pipeline_raises(shift):
    with pytest.raises(NotFittedError):
        adapt_pipeline(make_pipeline(StandardScaler(), SpARRegressor()), shift.Z)


@pytest.mark.parametrize("thing", [SpARRegressor(), None, "pipe", StandardScaler()])
def test_an_object_that_is_not_a_pipeline_raises(shift, thing):
    with pytest.raises(TypeError, match=f"pipe .*{type(thing).__name__}$"):
        adapt_pipeline(thing, shift.Z)


def test_moments_cannot_pass_through_earlier_steps(shift, pipe):
    with pytest.raises(TypeError, match="Moments"):
        adapt_pipeline(pipe, Moments.of(shift.Z))


def test_an_invalid_target_leaves_the_pipeline_unchanged(shift, pipe):
    before = pipe.predict(shift.Z)
    with pytest.raises(ValueError, match="NaN"):
        adapt_pipeline(pipe, np.full((3, 5), np.nan))
    np.testing.assert_array_equal(pipe.predict(shift.Z), before)

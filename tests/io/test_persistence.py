"""A saved model is small, predicts the same, and can be adapted again."""

import copy
import io
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pyspar
from pyspar import InputError, PCRRegressor, SpARRegressor


def through_pickle(model, tmp_path):
    return pickle.loads(pickle.dumps(model))


def through_joblib(model, tmp_path):
    joblib.dump(model, tmp_path / "model.joblib")
    return joblib.load(tmp_path / "model.joblib")


def through_skops(model, tmp_path):
    pyspar.save(model, tmp_path / "model.skops")
    return pyspar.load(tmp_path / "model.skops")


def through_deepcopy(model, tmp_path):
    return copy.deepcopy(model)


ROUTES = [through_pickle, through_joblib, through_skops, through_deepcopy]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("adapted", [True, False])
@pytest.mark.parametrize("outputs", [None, 2])
def test_a_round_trip_keeps_the_predictions_and_can_be_adapted_again(shifts, rng, tmp_path, route, adapted, outputs):
    data = shifts(0, outputs=outputs)
    X, Z = (pd.DataFrame(part, columns=list("abcde")) for part in (data.X, data.Z))
    est = SpARRegressor(0.99, noise="unbiased").fit(X, data.y)
    if adapted:
        est.adapt(Z)
    back = route(est, tmp_path)
    assert type(back) is SpARRegressor
    assert back.get_params() == est.get_params()
    np.testing.assert_array_equal(back.predict(Z), est.predict(Z))
    assert back.predict(Z).shape == est.predict(Z).shape
    np.testing.assert_array_equal(back.sigma2_, est.sigma2_)
    assert hasattr(back, "adaptation_") == adapted
    if adapted:
        np.testing.assert_array_equal(back.adaptation_.removed, est.adaptation_.removed)
        np.testing.assert_array_equal(back.adaptation_.risk_after, est.adaptation_.risk_after)
    other = Z * rng.uniform(0.5, 2.0, size=5)
    np.testing.assert_array_equal(back.adapted(other).coef_, est.adapted(other).coef_)
    np.testing.assert_array_equal(back.reset().coef_, est.reset().coef_)
    np.testing.assert_array_equal(back.partial_fit(X, data.y).coef_, est.partial_fit(X, data.y).coef_)
    with pytest.raises(ValueError, match="missing 'c'"):
        back.adapt(Z.drop(columns="c"))


@pytest.mark.parametrize("route", ROUTES)
def test_pipelines_and_other_estimators_make_the_trip_too(shift, tmp_path, route):
    for model in (
        make_pipeline(StandardScaler(), SpARRegressor()).fit(shift.X, shift.y),
        PCRRegressor(2).fit(shift.X, shift.y),
    ):
        np.testing.assert_array_equal(route(model, tmp_path).predict(shift.Z), model.predict(shift.Z))


@pytest.mark.parametrize("adapted", [True, False])
def test_the_size_does_not_grow_with_the_rows(rng, adapted):
    sizes = []
    for n in (1_000, 100_000):
        X = rng.normal(size=(n, 20))
        est = SpARRegressor().fit(X, rng.normal(size=n))
        if adapted:
            est.adapt(rng.normal(size=(n, 20)))
        sizes.append(len(pickle.dumps(est)))
    assert abs(sizes[0] - sizes[1]) < 64  # the number of rows itself takes a few bytes more


def test_the_size_is_a_few_square_matrices(rng):
    d = 60
    est = SpARRegressor().fit(rng.normal(size=(500, d)), rng.normal(size=500))
    small, large = len(pickle.dumps(est)), len(pickle.dumps(est.adapt(rng.normal(size=(500, d)))))
    assert small < 3 * 8 * d**2 + 5_000  # the root of the moments and V_x
    assert large < 4 * 8 * d**2 + 10_000  # and V_z


def test_moments_can_be_sent_elsewhere(shift):
    moments = pyspar.Moments.of(shift.Z)
    back = pickle.load(io.BytesIO(pickle.dumps(moments)))
    est = SpARRegressor().fit(shift.X, shift.y)
    np.testing.assert_array_equal(est.adapted(back).coef_, est.adapted(moments).coef_)


def test_saving_replaces_a_file_whole_or_not_at_all(shift, tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    est = SpARRegressor().fit(shift.X, shift.y)
    pyspar.save(est, path)
    before = path.read_bytes()

    def breaks(model, target):
        target.write_bytes(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr("skops.io.dump", breaks)
    with pytest.raises(OSError, match="disk full"):
        pyspar.save(est.adapted(shift.Z), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.skops"]


def test_a_file_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        pyspar.load(tmp_path / "nothing.skops")
    (tmp_path / "text.skops").write_text("hello")
    with pytest.raises(InputError, match="not a readable skops file"):
        pyspar.load(tmp_path / "text.skops")


class Stranger:
    """A type that nobody has vouched for."""


def test_a_file_with_foreign_types_is_refused_by_name(shift, tmp_path):
    est = SpARRegressor().fit(shift.X, shift.y)
    est.guest_ = Stranger()
    with pytest.raises(InputError, match="Stranger"):
        pyspar.save(est, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())
    skops.io.dump(est, tmp_path / "model.skops")
    with pytest.raises(InputError, match="Stranger"):
        pyspar.load(tmp_path / "model.skops")

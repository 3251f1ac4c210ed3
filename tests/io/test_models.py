"""Saved models: size, predictions after loading, and errors."""

import copy
import io
import pickle
import zipfile

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pyspar
from pyspar import InputError, SpARRegressor, TargetCorrection


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
def test_a_loaded_model_predicts_the_same_and_can_be_adapted_again(shifts, rng, tmp_path, route, adapted, outputs):
    data = shifts(0, outputs=outputs)
    X, Z = (pd.DataFrame(part, columns=list("abcde")) for part in (data.X, data.Z))
    est = SpARRegressor(0.99, noise="unbiased").fit(X, data.y)
    if adapted:
        est.adapt(Z)
    loaded = route(est, tmp_path)
    assert type(loaded) is SpARRegressor
    assert loaded.get_params() == est.get_params()
    np.testing.assert_array_equal(loaded.predict(Z), est.predict(Z))
    assert loaded.predict(Z).shape == est.predict(Z).shape
    np.testing.assert_array_equal(loaded.sigma2_, est.sigma2_)
    assert hasattr(loaded, "adaptation_") == adapted
    if adapted:
        np.testing.assert_array_equal(loaded.adaptation_.removed, est.adaptation_.removed)
        np.testing.assert_array_equal(loaded.adaptation_.risk_after, est.adaptation_.risk_after)
    other = Z * rng.uniform(0.5, 2.0, size=5)
    np.testing.assert_array_equal(copy.copy(loaded).adapt(other).coef_, copy.copy(est).adapt(other).coef_)
    np.testing.assert_array_equal(loaded.reset().coef_, est.reset().coef_)
    np.testing.assert_array_equal(loaded.partial_fit(X, data.y).coef_, est.partial_fit(X, data.y).coef_)
    with pytest.raises(ValueError, match="missing 'c'"):
        loaded.adapt(Z.drop(columns="c"))


@pytest.mark.parametrize("route", ROUTES)
def test_pipelines_and_pcr_can_be_saved_too(shift, tmp_path, route):
    for model in (make_pipeline(StandardScaler(), SpARRegressor()).fit(shift.X, shift.y),):
        np.testing.assert_array_equal(route(model, tmp_path).predict(shift.Z), model.predict(shift.Z))


@pytest.mark.parametrize("adapted", [True, False])
def test_the_size_does_not_depend_on_the_number_of_rows(rng, adapted):
    sizes = []
    for n in (1_000, 100_000):
        X = rng.normal(size=(n, 20))
        est = SpARRegressor().fit(X, rng.normal(size=n))
        if adapted:
            est.adapt(rng.normal(size=(n, 20)))
        sizes.append(len(pickle.dumps(est)))
    assert abs(sizes[0] - sizes[1]) < 64  # the number of rows itself takes a few bytes more


def test_the_size_is_that_of_a_few_square_matrices(rng):
    d = 60
    est = SpARRegressor().fit(rng.normal(size=(500, d)), rng.normal(size=500))
    small, large = len(pickle.dumps(est)), len(pickle.dumps(est.adapt(rng.normal(size=(500, d)))))
    assert small < 3 * 8 * d**2 + 5_000  # the root of the moments and V_x
    assert large < 4 * 8 * d**2 + 10_000  # and V_z


def test_moments_can_be_pickled(shift):
    moments = pyspar.Moments.of(shift.Z)
    loaded = pickle.load(io.BytesIO(pickle.dumps(moments)))
    est = SpARRegressor().fit(shift.X, shift.y)
    np.testing.assert_array_equal(copy.copy(est).adapt(loaded).coef_, copy.copy(est).adapt(moments).coef_)


def test_a_failed_save_leaves_the_old_file(shift, tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    est = SpARRegressor().fit(shift.X, shift.y)
    pyspar.save(est, path)
    before = path.read_bytes()

    def fail(model, target):
        target.write_bytes(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr("skops.io.dump", fail)
    with pytest.raises(OSError, match="disk full"):
        pyspar.save(copy.copy(est).adapt(shift.Z), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.skops"]


def test_a_file_that_is_not_a_model_is_rejected(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.skops"):
        pyspar.load(tmp_path / "nothing.skops")
    (tmp_path / "text.skops").write_text("hello")
    with pytest.raises(InputError, match=r"text\.skops' is not a readable"):
        pyspar.load(tmp_path / "text.skops")


class Untrusted:
    """A type that is not trusted."""


def test_untrusted_types_are_named(shift, tmp_path):
    est = SpARRegressor().fit(shift.X, shift.y)
    est.extra_ = Untrusted()
    with pytest.raises(InputError, match="Untrusted"):
        pyspar.save(est, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())
    skops.io.dump(est, tmp_path / "model.skops")
    with pytest.raises(InputError, match="Untrusted"):
        pyspar.load(tmp_path / "model.skops")


def test_a_correction_of_trees_is_refused_with_the_type_and_the_cure(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    model = TargetCorrection(RandomForestRegressor(2).fit(X, X[:, 0])).fit(X, X[:, 0] + rng.normal(size=40))
    with pytest.raises(InputError, match=r"sklearn\.tree\._tree\.Tree.*skops\.io\.dump"):
        pyspar.save(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_a_model_of_another_version_is_refused_with_the_types_that_moved(shift, tmp_path):
    pyspar.save(SpARRegressor().fit(shift.X, shift.y), tmp_path / "new.skops")
    with zipfile.ZipFile(tmp_path / "new.skops") as new, zipfile.ZipFile(tmp_path / "old.skops", "w") as old:
        for name in new.namelist():
            old.writestr(name, new.read(name).replace(b'"pyspar.core.regression"', b'"pyspar.core.prior"'))
    with pytest.raises(InputError, match=r"pyspar\.core\.prior\.\w+.* version") as error:
        pyspar.load(tmp_path / "old.skops")
    assert "trusted" not in str(error.value)  # skops cannot read it either


def test_a_corrected_search_cannot_be_saved_and_its_best_estimator_can(shift, tmp_path):
    search = GridSearchCV(make_pipeline(StandardScaler(), SpARRegressor()), {"sparregressor__alpha": [0.9]}, cv=2)
    search.fit(shift.X, shift.y)
    labels = {row: float(row) for row in range(9)}
    for model in (search, TargetCorrection(search).fit(shift.Z, labels)):
        with pytest.raises(InputError, match=r"GridSearchCV.*best_estimator_"):
            pyspar.save(model, tmp_path / "model.skops")
    fixed = TargetCorrection(search.best_estimator_).fit(shift.Z, labels)
    np.testing.assert_array_equal(through_skops(fixed, tmp_path).predict(shift.Z), fixed.predict(shift.Z))

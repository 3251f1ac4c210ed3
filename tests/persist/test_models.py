"""Saved models: predictions after loading, errors, and types that are trusted."""

import ast
import copy
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import pyspar
from pyspar import BayesSpARRegressor, InputError, SpARRegressor, TargetCorrection, align


def through_pickle(model, tmp_path):
    return pickle.loads(pickle.dumps(model))


def through_skops(model, tmp_path):
    pyspar.save(model, tmp_path / "model.skops")
    return pyspar.load(tmp_path / "model.skops")


@pytest.mark.parametrize("route", [through_pickle, through_skops])
@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize("kind", [SpARRegressor, BayesSpARRegressor, partial(BayesSpARRegressor, "equal", 0.999)])
def test_a_loaded_model_predicts_the_same_and_can_be_adapted_again(shifts, rng, tmp_path, route, outputs, kind):
    data = shifts(0, outputs=outputs)
    X, Z = (pd.DataFrame(part, columns=list("abcde")) for part in (data.X, data.Z))
    est = kind().fit(X, data.y).adapt(Z)
    loaded = route(est, tmp_path)
    assert loaded.get_params() == est.get_params()
    np.testing.assert_array_equal(loaded.predict(Z), est.predict(Z))
    np.testing.assert_array_equal(loaded.predict_interval(Z), est.predict_interval(Z))
    assert loaded.expected_rmse() == est.expected_rmse()
    other = Z * rng.uniform(0.5, 2.0, size=5)
    np.testing.assert_array_equal(copy.copy(loaded).adapt(other).coef_, copy.copy(est).adapt(other).coef_)
    np.testing.assert_array_equal(loaded.partial_fit(X, data.y).coef_, est.partial_fit(X, data.y).coef_)


def correct(model, shift):
    return TargetCorrection(model).fit(shift.Z, {row: float(row) for row in range(9)})


MODELS = {
    "pipeline": lambda s: make_pipeline(StandardScaler(), SpARRegressor()).fit(s.X, s.y),
    "functions": lambda s: make_pipeline(FunctionTransformer(np.tanh), SpARRegressor()).fit(s.X, s.y),
    "log": lambda s: TransformedTargetRegressor(BayesSpARRegressor(), func=np.log, inverse_func=np.exp).fit(
        s.X, np.exp(s.y - s.y.max())
    ),
    "groups": lambda s: BayesSpARRegressor().fit(s.X, s.y, groups=np.arange(len(s.y)) % 4),
    "aligned": lambda s: align(SpARRegressor().fit(s.X, s.y), source=s.X, target=s.Z),
    "correction": lambda s: correct(BayesSpARRegressor().fit(s.X, s.y), s),
    "correction of a pipeline": lambda s: correct(make_pipeline(StandardScaler(), SpARRegressor()).fit(s.X, s.y), s),
    "correction that chooses an aligned model": lambda s: correct(
        {"trained": (model := SpARRegressor().fit(s.X, s.y)), "aligned": align(model, source=s.X, target=s.Z)}, s
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_are_saved_and_loaded_without_questions(name, shift, tmp_path):
    model = MODELS[name](shift)
    np.testing.assert_array_equal(through_skops(model, tmp_path).predict(shift.Z), model.predict(shift.Z))


@pytest.mark.parametrize(
    "make",
    [
        lambda s: correct(HistGradientBoostingRegressor(max_iter=5).fit(s.X, s.y), s),
        lambda s: correct(RandomForestRegressor(3).fit(s.X, s.y), s),
        lambda s: correct(KNeighborsRegressor(algorithm="kd_tree").fit(s.X, s.y), s),
        lambda s: make_pipeline(FunctionTransformer(np.nan_to_num), SpARRegressor()).fit(s.X, s.y),
    ],
)
def test_other_types_are_saved_and_named_when_they_are_loaded(make, shift, tmp_path):
    model, path = make(shift), tmp_path / "m.skops"
    pyspar.save(model, path)
    names: list[str] = []
    for _ in range(3):  # kinds of nodes that call something are named first, and then other types
        try:
            loaded = pyspar.load(path, trusted=names)
            break
        except InputError as error:
            names += ast.literal_eval(str(error).partition("trusted=")[2].rstrip(")"))  # the message can be pasted
    assert names
    np.testing.assert_array_equal(loaded.predict(shift.Z), model.predict(shift.Z))


def test_a_correction_of_a_network_is_refused_and_nothing_is_written(shift, tmp_path):
    torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")
    network = torch.nn.Linear(shift.Z.shape[1], 1)
    corrected = TargetCorrection(network).fit(shift.Z.astype("f4"), dict(enumerate(shift.y[:5])))
    with pytest.raises(InputError, match="cannot be saved"):
        pyspar.save(corrected, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_saved_is_refused_and_nothing_is_written(shift, tmp_path):
    search = GridSearchCV(SpARRegressor(), {"alpha": [0.9]}, cv=2).fit(shift.X, shift.y)
    with pytest.raises(InputError, match=r"GridSearchCV.*best_estimator_"):
        pyspar.save(search, tmp_path / "model.skops")
    unnamed = make_pipeline(FunctionTransformer(lambda X: X), SpARRegressor()).fit(shift.X, shift.y)
    with pytest.raises(InputError, match="cannot be saved"):
        pyspar.save(unnamed, tmp_path / "m.skops")
    with pytest.raises(TypeError, match="fitted model or Moments"):
        pyspar.save(StandardScaler(), tmp_path / "model.skops")
    with pytest.raises(InputError, match=r"end in \.skops"):
        pyspar.save(search.best_estimator_, tmp_path / "model.pkl")
    assert not list(tmp_path.iterdir())


def test_a_failed_save_leaves_the_old_file(shift, tmp_path, monkeypatch):
    path, est = tmp_path / "model.skops", SpARRegressor().fit(shift.X, shift.y)
    pyspar.save(est, path)
    before = path.read_bytes()

    def fail(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", fail)
    with pytest.raises(OSError, match="space"):
        pyspar.save(est.adapt(shift.Z), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.skops"]


def test_a_file_that_is_not_a_model_is_rejected(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.skops"):
        pyspar.load(tmp_path / "nothing.skops")
    (tmp_path / "text.skops").write_text("hello")
    with pytest.raises(InputError, match=r"text\.skops' cannot be read"):
        pyspar.load(tmp_path / "text.skops")


def test_the_size_does_not_depend_on_the_number_of_rows(rng):
    sizes = []
    for n in (1_000, 50_000):
        est = SpARRegressor().fit(rng.normal(size=(n, 20)), rng.normal(size=n)).adapt(rng.normal(size=(n, 20)))
        sizes.append(len(pickle.dumps(est)))
    assert abs(sizes[0] - sizes[1]) < 64  # the number of rows itself takes a few bytes more

"""Data frames of polars are read without conversion to pandas; lazy frames and arrow tables are refused."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pyspar import BayesSpARRegressor, TargetCorrection, adapt_pipeline, inspect, rows_to_label


@pytest.fixture
def frames(rng):
    def frame(n, scale):
        return pd.DataFrame({"a": scale * rng.normal(size=n), "b": rng.normal(size=n), "k": rng.choice(list("xyz"), n)})

    X, Z = frame(200, 1.0), frame(60, 3.0)
    Z.loc[:20, "k"] = "new"
    y = pd.Series(X["a"] + (X["k"] == "x") + 0.1 * rng.normal(size=200), name="price")
    labels = np.where(np.arange(60) < 12, Z["a"] + 2.0, np.nan)
    return X, y, Z, labels


def pipeline():
    categories = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder = make_column_transformer((StandardScaler(), ["a", "b"]), (categories, ["k"]))
    return make_pipeline(encoder, BayesSpARRegressor())


class Constant:
    """A model that accepts any rows."""

    def predict(self, X):
        return np.zeros(len(X))


def test_polars_gives_the_numbers_of_pandas_throughout(frames):
    X, y, Z, labels = frames
    results = []
    for convert in (lambda frame: frame, pl.from_pandas):
        X2, Z2 = convert(X), convert(Z)
        pipe = pipeline().fit(X2, convert(y))
        adapted = adapt_pipeline(pipe, Z2)
        inspection = inspect(pipe, Z2, y=convert(pd.Series(labels)))
        any_regressor = inspect(pipe, Z2, source=(X2, convert(y)))
        fixed = TargetCorrection(pipe).fit(Z2, labels)
        encoded = TargetCorrection(Constant()).fit(Z2, np.where(np.arange(60) < 30, labels, np.nan))
        predictions = [model.predict(Z2) for model in (adapted, fixed, encoded)]
        source = [any_regressor.outputs[0].source_rmse, any_regressor.separation.auc]
        columns = [column.name for column in inspection.columns]
        codes = [[finding.code for finding in report.findings] for report in (inspection, any_regressor)]
        names_in = list(fixed.feature_names_in_), encoded.features_.transform(Z2[:1]).shape
        rows = rows_to_label(pipe, Z2, 5).rows.tolist()
        results.append((predictions, source, (columns, codes, names_in, rows)))
    (predictions, source, names), (expected, expected_source, expected_names) = results
    np.testing.assert_allclose(predictions, expected, rtol=1e-10)
    assert source == pytest.approx(expected_source)
    assert names == expected_names
    assert "SPAR014" in codes[1]


class NoPandas:
    """An importer that fails to import pandas."""

    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def test_polars_needs_no_pandas(frames, monkeypatch):
    X, y, Z, labels = (pl.from_pandas(part) if hasattr(part, "iloc") else part for part in frames)
    monkeypatch.delitem(sys.modules, "pandas")
    monkeypatch.setattr(sys, "meta_path", [NoPandas(), *sys.meta_path])
    pipe = pipeline().fit(X, y)
    assert adapt_pipeline(pipe, Z).predict(Z).shape == (60,)
    assert {column.name for column in inspect(pipe, Z, source=(X, y)).columns} == {"a", "b", "k"}
    assert inspect(pipe, Z).n_target == 60
    assert TargetCorrection(Constant()).fit(Z, np.where(np.arange(60) < 30, labels, np.nan)).predict(Z).shape == (60,)
    assert len(rows_to_label(pipe, Z, 3)) == 3


def test_the_names_of_polars_columns_are_checked(frames):
    X, y, Z, _ = frames
    est = BayesSpARRegressor().fit(pl.from_pandas(X[["a", "b"]]), y)
    assert list(est.feature_names_in_) == ["a", "b"]
    for call in (est.adapt, est.predict, est.predict_interval, est.expected_rmse):
        with pytest.raises(ValueError, match="q"):
            call(pl.from_pandas(Z[["a", "b"]]).rename({"b": "q"}))
    with pytest.raises(ValueError, match="got text"):
        BayesSpARRegressor().fit(pl.from_pandas(X), y)


@pytest.mark.parametrize(
    ("convert", "fix"),
    [
        (lambda frame: pl.from_pandas(frame).lazy(), r"LazyFrame.*collect\(\)"),
        (pa.Table.from_pandas, "Table.*to_pandas"),
    ],
)
def test_lazy_frames_and_arrow_tables_are_refused_with_the_fix(frames, convert, fix):
    X, y, Z, labels = frames
    est, pipe = BayesSpARRegressor().fit(X[["a", "b"]], y), pipeline().fit(X, y)
    numbers = convert(Z[["a", "b"]])
    calls = [
        lambda: BayesSpARRegressor().fit(numbers, labels),
        lambda: est.adapt(numbers),
        lambda: est.predict(numbers),
        lambda: inspect(est, numbers),
        lambda: inspect(est, numbers, source=(X[["a", "b"]], y)),
        lambda: TargetCorrection(est).fit(numbers, labels),
        lambda: rows_to_label(est, numbers, 3),
        lambda: adapt_pipeline(pipe, convert(Z)),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=fix):
            call()


def test_the_output_of_transformers_may_be_polars_or_pandas(frames):
    X, y, Z, _ = frames
    expected = adapt_pipeline(pipeline().fit(X, y), Z).predict(Z)
    for library in ("pandas", "polars"):
        pipe = pipeline()
        pipe[:-1].set_output(transform=library)
        np.testing.assert_allclose(adapt_pipeline(pipe.fit(X, y), Z).predict(Z), expected, rtol=1e-10)
        assert len(pipe[-1].feature_names_in_) == 5

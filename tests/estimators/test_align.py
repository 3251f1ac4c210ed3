"""ColumnAligner and align: columns of a target get the mean and spread of the source, and nothing else changes."""

import copy
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import pyspar
from pyspar import BayesSpARRegressor, ColumnAligner, InputError, Moments, align

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 3)) * [1.0, 5.0, 0.1] + [0.0, 10.0, -3.0]
Z = RNG.normal(size=(200, 3)) * [2.0, 4.0, 0.5] + [7.0, -2.0, 1.0]


def test_the_target_gets_mean_and_spread_of_the_source():
    mapped = ColumnAligner().fit(X).adapt(Z).transform(Z)
    np.testing.assert_allclose(mapped.mean(axis=0), X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(mapped.std(axis=0), X.std(axis=0), rtol=1e-12)


def test_before_adapt_rows_are_returned_as_they_are_and_a_new_fit_forgets_the_target():
    aligner = ColumnAligner().fit(X).adapt(Z)
    np.testing.assert_array_equal(aligner.fit(X).transform(Z), Z)


def test_moments_lists_and_frames_give_the_result_of_rows():
    expected = ColumnAligner().fit(X).adapt(Z)
    for source, target in ((Moments.of(X), Moments.of(Z)), (X.tolist(), pd.DataFrame(Z))):
        aligner = ColumnAligner().fit(source).adapt(target)
        np.testing.assert_allclose(aligner.scale_, expected.scale_, rtol=1e-9)
        np.testing.assert_allclose(aligner.shift_, expected.shift_, rtol=1e-9)
        assert aligner.n_features_in_ == 3
    assert list(ColumnAligner().fit(FRAME.iloc[::-1]).feature_names_in_) == ["a", "b", "c"]


def make_frame(rows, rng):
    return pd.DataFrame(
        {
            "number": rows[:, 0],
            "whole": np.round(rows[:, 1]).astype(int),
            "text": rng.choice(["a", "b"], len(rows)),
            "kind": pd.Categorical(rng.choice(["x", "y"], len(rows))),
            "level": pd.Categorical(rng.integers(0, 30, len(rows))),
            "object": rows[:, 0].astype(object),
            "decimal": [None, pd.NA, 0, *(Decimal(str(value)) for value in rows[3:, 0])],
            "flag": rng.random(len(rows)) < 0.3,
            "code": (rng.random(len(rows)) < 0.7).astype(float),
            "constant": 4.0,
            "day": pd.Timestamp("2026-01-01"),
            "small": rows[:, 2].astype(np.float32),
        }
    )


def test_only_numeric_columns_of_a_frame_change():
    source, target = make_frame(X, RNG), make_frame(Z, RNG)
    before = target.copy()
    mapped = ColumnAligner().fit(source).adapt(target).transform(target)
    pd.testing.assert_frame_equal(target, before)
    assert list(mapped.columns) == list(source.columns)
    untouched = ["text", "kind", "level", "flag", "code", "constant", "day"]
    pd.testing.assert_frame_equal(mapped[untouched], target[untouched])
    for name in ("number", "whole", "small", "object", "decimal"):  # objects that are numbers are numbers, as in arrays
        assert mapped[name].mean() == pytest.approx(source[name].dropna().astype(float).mean(), rel=1e-4)
        assert mapped[name].std(ddof=0) == pytest.approx(source[name].dropna().astype(float).std(ddof=0), rel=1e-4)
    assert mapped["small"].dtype == np.float32


def test_two_values_are_mapped_if_the_target_measures_others():
    codes = (RNG.random(300) < 0.5).astype(float)
    measured = 0.2 + 1.1 * codes
    mapped = ColumnAligner().fit(codes[:, None]).adapt(measured[:, None]).transform(measured[:, None])
    np.testing.assert_allclose(mapped[:, 0], codes, atol=1e-12)
    from_moments = ColumnAligner().fit(Moments.of(codes[:, None])).adapt(Moments.of(1.0 - codes[:, None]))
    assert from_moments.scale_ == 1.0


@pytest.mark.parametrize("values", [12, 24, 25])
def test_at_most_24_values_that_all_occur_in_the_source_are_codes(values):
    source = np.arange(400.0)[:, None] % values
    target = source[source < values // 2][:, None]  # as months 1 to 6 of 12
    scale = ColumnAligner().fit(source).adapt(target).scale_
    assert (scale == 1.0) == (values <= 24)
    assert ColumnAligner().fit(source).adapt(target + 0.5).scale_ != 1.0
    assert ColumnAligner().fit(target).adapt(source).scale_ != 1.0  # values that the source does not have


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
def test_codes_of_categories_are_unchanged_and_numbers_with_other_values_are_mapped(container):
    """A column with few values is a code if every value of the target occurs in the source."""
    source = np.c_[RNG.integers(0, 3, 300), RNG.integers(1, 6, 300), RNG.integers(0, 30, 300), RNG.integers(0, 2, 300)]
    target = np.c_[RNG.integers(1, 3, 80), RNG.integers(3, 8, 80), RNG.integers(0, 30, 80), RNG.integers(0, 2, 80) * 2]
    rows = container(target.astype(float))
    mapped = np.asarray(ColumnAligner().fit(container(source.astype(float))).adapt(rows).transform(rows))
    np.testing.assert_array_equal(mapped[:, 0], target[:, 0])
    np.testing.assert_allclose(mapped[:, 1:].mean(axis=0), source[:, 1:].mean(axis=0))


def test_columns_that_are_constant_in_source_or_target_are_left_alone():
    source, target = X.copy(), Z.copy()
    source[:, 0], target[:, 1] = 0.1, 0.3
    mapped = ColumnAligner().fit(source).adapt(target).transform(target)
    np.testing.assert_array_equal(mapped[:, :2], target[:, :2])
    assert abs(mapped[:, 2].mean() - X[:, 2].mean()) < 1e-9


def test_missing_values_are_ignored_and_remain():
    target = Z.copy()
    target[::7, 0] = np.nan
    mapped = ColumnAligner().fit(X).adapt(target).transform(target)
    np.testing.assert_array_equal(np.isnan(mapped), np.isnan(target))
    assert np.nanmean(mapped[:, 0]) == pytest.approx(X[:, 0].mean(), abs=1e-9)
    nullable = pd.DataFrame({"a": pd.array([1, 2, None, 4], dtype="Int64")})
    result = ColumnAligner().fit(pd.DataFrame({"a": [0.0, 1.0, 2.0]})).adapt(nullable).transform(nullable)
    assert list(result["a"].isna()) == [False, False, True, False]


@pytest.mark.parametrize("dtype", ["float16", "float32", "Float32", "float[pyarrow]", "polars"])
def test_columns_of_low_precision_are_mapped_in_float64_as_arrays_are(dtype):
    """The source has an offset at which float32 has no digits, so the result has its precision."""
    source, target = X + 1e9, (Z + 200.0).astype(np.float16 if dtype == "float16" else np.float32)
    aligner = ColumnAligner().fit(source).adapt(target)
    expected = aligner.transform(target)
    assert expected.dtype == np.float64
    if dtype == "polars":
        frame = pytest.importorskip("polars").DataFrame(target, schema=["a", "b", "c"])
    else:
        frame = pd.DataFrame(target, columns=["a", "b", "c"]).astype(dtype)
    result = ColumnAligner().fit(pd.DataFrame(source, columns=["a", "b", "c"])).adapt(frame).transform(frame)
    np.testing.assert_allclose(np.asarray(result, dtype=float), expected, rtol=1e-15)
    rows = np.asarray(target, dtype=float)
    mapped = (rows - rows.mean(axis=0)) / rows.std(axis=0) * X.std(axis=0)
    np.testing.assert_allclose(expected - 1e9, mapped + X.mean(axis=0), atol=1e-6)


def test_missing_values_of_low_precision_columns_remain():
    frame = pd.DataFrame(
        {"a": pd.array([1.5, None, 2.0, 4.0], dtype="Float32"), "b": [None, 1.0, 2.0, 3.0]}, dtype="Float32"
    )
    objects = frame.astype(object).where(frame.notna(), None)
    source = pd.DataFrame(X[:, :2], columns=["a", "b"])
    for rows in (frame, objects):
        aligner = ColumnAligner().fit(source).adapt(rows)
        mapped = aligner.transform(rows)
        assert mapped.isna().to_numpy().tolist() == frame.isna().to_numpy().tolist()
        assert aligner.transform(rows.iloc[:1]).isna().to_numpy().tolist() == [[False, True]]
        np.testing.assert_allclose(mapped.astype(float).mean(), source.mean(), atol=1e-6)


def test_polars_frames_remain_polars_frames():
    polars = pytest.importorskip("polars")
    source, target = (polars.DataFrame({"a": r[:, 0], "b": ["t"] * len(r), "c": r[:, 2] > 0}) for r in (X, Z))
    mapped = ColumnAligner().fit(source).adapt(target).transform(target)
    assert isinstance(mapped, polars.DataFrame)
    assert mapped["a"].mean() == pytest.approx(X[:, 0].mean(), abs=1e-9)
    assert mapped["b"].equals(target["b"])
    assert mapped["c"].equals(target["c"])


FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (X, Z[:, :2], "target has 2 columns, the source has 3"),
        (X, Z[:0], "0 sample.* in the target"),
        (X, Z[:1], "1 sample.* in the target"),
        (X[:1], Z, "1 sample.* in the source"),
        (X, np.where([True, False, False], np.nan, Z), "column 0 of the target has no known value; drop or impute"),
        (X, np.where([True, False, False], np.inf, Z), "column 0 of the target contains infinity"),
        (X, 1e200 * Z, "the target must have values up to 1e"),
        (1e200 * X, Z, "the source must have values up to 1e"),
        (X, np.ma.masked_array(Z, Z > 0.0), "the target has masked entries"),
        (np.ma.masked_array(X, X > 0.0), Z, "the source has masked entries"),
        (FRAME, FRAME.assign(b=np.nan), "column 'b' of the target has no known value"),
        (FRAME, FRAME.rename(columns={"c": "d"}), "missing 'c', unexpected 'd'"),
        (FRAME, FRAME[["b", "a", "c"]], "a different order"),
        (pd.DataFrame(X), pd.DataFrame(Z)[[1, 0, 2]], "a different order; use '0', '1', '2'"),
        (FRAME, FRAME.set_axis(["a", "b", "b"], axis=1), "the target has duplicate column names 'b'; rename"),
        (pd.DataFrame(X).set_axis([0, 4, 4], axis=1), X, "the source has duplicate column names '4'; rename"),
        (FRAME, FRAME.astype({"a": str}), "'a' must be numeric"),
    ],
)
def test_errors_name_the_problem(source, target, message):
    with pytest.raises(ValueError, match=message):
        ColumnAligner().fit(source).adapt(target)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (Z[:, 0], "2D array"),
        (Z[:, :0], "0 feature"),
        ([["a", "b", "c"]] * 2, "numeric"),
        (3.0, "2D array, got scalar"),
        ("rows.csv", "2D array, got scalar"),
        (Z + 1j, "Complex"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused_as_by_scikit_learn(rows, message):
    with pytest.raises(ValueError, match=message):
        ColumnAligner().fit(X).adapt(rows)


def test_a_failed_adapt_changes_nothing():
    aligner = ColumnAligner().fit(X).adapt(Z)
    before = copy.deepcopy(aligner.__dict__)
    with pytest.raises(InputError):
        aligner.adapt(Z[:, :2])
    np.testing.assert_array_equal(aligner.scale_, before["scale_"])
    with pytest.raises(ValueError, match="2 features"):
        aligner.transform(Z[:, :2])
    with pytest.raises(ValueError, match="X has masked entries"):
        aligner.transform(np.ma.masked_array(Z, Z > 0.0))
    with pytest.raises(InputError, match="'b' must be numeric in X"):
        ColumnAligner().fit(FRAME).adapt(2.0 * FRAME).transform(FRAME.assign(b="text"))
    with pytest.raises(InputError, match="X has the columns of the source in a different order"):
        ColumnAligner().fit(pd.DataFrame(X)).transform(pd.DataFrame(Z)[[2, 1, 0]])


@pytest.mark.filterwarnings("ignore:Determining the column names")
def test_tables_that_are_not_in_memory_are_refused_with_the_call_that_reads_them():
    dask, polars = pytest.importorskip("dask.dataframe"), pytest.importorskip("polars")
    for rows, call in ((dask.from_pandas(FRAME), "compute"), (polars.DataFrame(dict(FRAME)).lazy(), "collect")):
        for use in (ColumnAligner().fit, ColumnAligner().fit(FRAME).adapt, ColumnAligner().fit(FRAME).transform):
            with pytest.raises(TypeError, match=rf"{call}\(\) first"):
                use(rows)


class Only:
    """A model with predict alone."""

    def predict(self, rows):
        return np.asarray(rows) @ [1.0, 2.0, 3.0]


def make_models():
    y = X @ [1.0, 2.0, 3.0] + np.sin(X[:, 0])
    return {
        "boosting": HistGradientBoostingRegressor(max_iter=20).fit(X, y),
        "pipeline": make_pipeline(StandardScaler(), LinearRegression()).fit(X, y),
        "ours": BayesSpARRegressor().fit(X, y),
        "predict alone": Only(),
    }


@pytest.mark.parametrize("name", list(make_models()))
def test_align_undoes_another_instrument_around_any_model(name):
    model = make_models()[name]
    expected, before = model.predict(X), pickle.dumps(model)
    measured = X * [2.0, 0.5, 1.3] + [1.0, -4.0, 0.2]
    aligned = align(model, source=X, target=measured)
    # Boosting splits at values of the source, and rounding can put a value on the other side.
    assert np.mean(np.abs(aligned.predict(measured) - expected) > 1e-6) < (0.1 if name == "boosting" else 1e-9)
    assert pickle.dumps(model) == before
    for copied in (pickle.loads(pickle.dumps(aligned)), clone(aligned), aligned.fit(X, expected)):
        np.testing.assert_array_equal(copied.predict(measured), aligned.predict(measured))


def test_an_aligned_model_lists_the_columns_that_it_maps():
    target = FRAME.assign(a=2.0 * FRAME["a"], b=1.0)
    assert "1 of 3 columns mapped: 'a'" in repr(align(Only(), source=FRAME, target=target))
    assert "3 of 3 columns mapped: '0', '1', '2'" in repr(align(Only(), source=X, target=Z))


def test_align_with_frames_and_categories():
    source = pd.DataFrame({"a": X[:, 0], "kind": RNG.choice(["x", "y"], 300)})
    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(encode, LinearRegression()).fit(source, X[:, 0] + (source["kind"] == "x"))
    target = source.assign(a=3.0 * source["a"] - 1.0)
    np.testing.assert_allclose(align(model, source=source, target=target).predict(target), model.predict(source))


def test_align_refuses_what_is_not_a_fitted_model():
    with pytest.raises(TypeError, match="with predict, got int"):
        align(3, source=X, target=Z)
    with pytest.raises(TypeError, match=r"got Linear; networks need pyspar\.nn\.align"):
        align(pytest.importorskip("torch").nn.Linear(3, 1), source=X, target=Z)
    with pytest.raises(TypeError, match="got the class Linear"):
        align(LinearRegression, source=X, target=Z)
    with pytest.raises(NotFittedError):
        align(LinearRegression(), source=X, target=Z)


@pytest.mark.parametrize("wrap", [lambda model: model, make_pipeline])
@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
def test_an_aligned_model_accepts_nan_if_the_model_does(wrap, container):
    y, measured = X @ [1.0, 2.0, 3.0], 2.0 * X + 1.0
    measured[::7, 0] = np.nan
    model = wrap(HistGradientBoostingRegressor(max_iter=20)).fit(container(X), y)
    aligned = align(model, source=container(X), target=container(measured))
    chosen = pyspar.TargetCorrection({"trained": model, "aligned": aligned}).fit(
        container(measured), dict(enumerate(y[:20]))
    )
    assert chosen.chosen_ == "aligned"
    linear = align(LinearRegression().fit(X, y), source=X, target=2.0 * X)
    with pytest.raises(ValueError, match="contains NaN"):
        pyspar.TargetCorrection(linear).fit(measured, dict(enumerate(y[:20])))

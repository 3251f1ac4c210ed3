"""Streamed files: the numbers of memory, in batches; folders, arrays and files of Moments; and what is refused."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyspar
from pyspar import Moments
from pyspar.errors import InputError
from pyspar.sources.files import formats
from pyspar.tables import reduce
from pyspar.tables.adapt import adapt_files
from pyspar.tables.inputs import Request
from pyspar.tables.inspect import inspect_files
from pyspar.tables.summarize import summarize_file
from pyspar.tables.write import Output
from pyspar.terminal import Progress

NUMBERS = ["area", "garden", "lift", "price"]


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(reduce, "open_rows", partial(reduce.open_rows, batch_bytes=1000))


def reasons(account):
    return {column.column: column.reason for column in account.data.ignored}


def make_towns(n, seed, *, later):
    """Return homes in three towns, with columns far from zero and of different sizes; prices bend in the target."""
    rng = np.random.default_rng(seed)
    town = rng.integers(0, 3, size=n)
    area = 2019.0 + 5.0 * town + rng.normal(size=n) + (8.0 if later else 0.0)
    garden = 1e-3 * (rng.normal(size=n) + town) * (4.0 if later else 1.0)
    lift = (rng.random(n) < 0.4).astype(float)
    price = 3.0 * area + 900.0 * garden + 0.3 * (area - 2024.0) ** 2 + 5.0 * rng.normal(size=n)
    return pd.DataFrame({"area": area, "garden": garden, "lift": lift, "price": price})


def test_a_model_saved_from_a_stream_continues_like_one_from_memory(files, small_batches, tmp_path):
    tables = files(make_towns(6000, 0, later=False), make_towns(300, 1, later=True))
    models = []
    for stream in (False, True):
        adapt_files(Request(*map(Path, tables), "price", stream=stream), save=tmp_path / f"{stream}.skops")
        models.append(pyspar.load(tmp_path / f"{stream}.skops"))
    features = [pipeline[0].transform(pd.read_csv(tables[1])) for pipeline in models]
    np.testing.assert_allclose(features[1], features[0], rtol=1e-10, atol=1e-10)
    more = make_towns(300, 2, later=True)["price"].to_numpy()
    regressors = [pipeline[-1] for pipeline in models]
    np.testing.assert_allclose(regressors[1].coef_, regressors[0].coef_, rtol=1e-10)
    assert regressors[1].evidence_.limit == regressors[0].evidence_.limit == ("interior",)
    updated = [est.partial_fit(Z, more).adapt(Z).coef_ for est, Z in zip(regressors, features, strict=True)]
    np.testing.assert_allclose(updated[1], updated[0], rtol=1e-10)


def test_adapt_and_inspect_give_the_same_forecast_of_a_stream(files, small_batches):
    tables = files(make_towns(600, 0, later=False), make_towns(200, 1, later=True))
    stream = Request(*map(Path, tables), "price", stream=True)
    forecast = inspect_files(stream).inspection.outputs[0].forecast("Bayes-SpAR")
    expected = adapt_files(stream).after
    assert forecast.rmse == pytest.approx(expected.rmse, rel=1e-9)
    assert forecast.interval95 == pytest.approx(expected.interval95, rel=1e-9)


def test_progress_has_the_rows_and_bytes_of_each_file(files, source, target, small_batches, tmp_path):
    class Recorder(Progress):
        def start(self, key, title, *, total=None, unit=""):
            if unit == "bytes":
                reports.append((title, total, []))

        def advance(self, key, done, *, total=None, **details):
            reports[-1][2].append((done, details["rows"]))

    reports = []
    paths = tuple(map(Path, files(source[NUMBERS], target[NUMBERS])))
    adapt_files(Request(*paths, "price", stream=True), output=Output(tmp_path / "p.csv"), progress=Recorder())
    sizes = [path.stat().st_size for path in (paths[0], paths[1], paths[1])]
    assert [(total, advances[-1]) for _, total, advances in reports] == [
        (size, (size, rows)) for size, rows in zip(sizes, ("120", "80", "80"))
    ]
    assert [title for title, _, _ in reports[:2]] == ["reading the source", "reading the target"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npy"])
def test_streamed_predictions_are_the_same_in_every_format(adapt, source, target, small_batches, tmp_path, suffix):
    out, reference = tmp_path / f"p{suffix}", tmp_path / f"r{suffix}"
    adapt(source[NUMBERS], target[NUMBERS], stream=True, output=out)
    adapt(source[NUMBERS], target[NUMBERS], output=reference)
    readers = {".csv": pd.read_csv, ".tsv": partial(pd.read_csv, sep="\t"), ".parquet": pd.read_parquet}
    if suffix == ".npy":
        np.testing.assert_allclose(np.load(out), np.load(reference), rtol=1e-10)
    else:
        pd.testing.assert_frame_equal(readers[suffix](out), readers[suffix](reference), rtol=1e-10)


def test_other_columns_are_ignored_and_the_id_is_unchanged(adapt, source, target, tmp_path):
    account = adapt(source, target, stream=True, identity="home", output=tmp_path / "p.csv")
    assert account.data.n_numeric == account.data.n_encoded == 3
    assert set(reasons(account)) == {"town", "sold"}
    assert "string" in reasons(account)["town"]
    assert "string" in reasons(account)["sold"]
    assert pd.read_csv(tmp_path / "p.csv", dtype=str)["home"].tolist() == target["home"].tolist()


@pytest.mark.parametrize("method", ["bayes", "spar", "ols"])
def test_a_pipeline_saved_from_a_stream_predicts_raw_tables(adapt, source, target, tmp_path, method):
    out, model = tmp_path / "p.npy", tmp_path / "m.skops"
    adapt(source[NUMBERS], target[NUMBERS], stream=True, method=method, output=out, save=model)
    loaded = pyspar.load(model)
    np.testing.assert_allclose(loaded.predict(target[NUMBERS]), np.load(out), rtol=1e-10)
    assert np.isfinite(loaded.predict(target.assign(area=np.nan)[NUMBERS])).all()  # imputed with the source mean


def test_float32_columns_keep_their_precision(source, target, tmp_path):
    for table, name in ((source, "s.parquet"), (target, "t.parquet")):
        table[NUMBERS].astype({"area": "float32", "garden": "float32"}).to_parquet(tmp_path / name)
    stream = Request(tmp_path / "s.parquet", tmp_path / "t.parquet", "price", stream=True)
    adapt_files(stream, output=Output(tmp_path / "p.npy"), save=tmp_path / "m.skops")
    again = pyspar.load(tmp_path / "m.skops").predict(pd.read_parquet(tmp_path / "t.parquet"))
    np.testing.assert_allclose(again, np.load(tmp_path / "p.npy"), rtol=1e-5)


def test_constant_and_empty_columns_are_ignored(adapt, source, target):
    rows = source[NUMBERS].assign(year=2019, empty=np.nan)
    account = adapt(rows, target[NUMBERS].assign(year=2024), stream=True)
    assert set(reasons(account)) == {"year", "empty"}
    assert "2019" in reasons(account)["year"]


@pytest.mark.parametrize("bad_cells", ["stop", "impute"])
def test_other_values_of_a_constant_column_are_noted_as_in_memory(adapt, source, target, small_batches, bad_cells):
    rows, others = source[NUMBERS].assign(year=2019, rate=0.1, zero=0), target[NUMBERS].assign(zero=0, rate="0.1")
    others["year"] = [2019, "", "soon", "inf", 2024, *[2019] * (len(target) - 5)]
    others.loc[7, "rate"] = "0.1001"
    options = {"bad_cells": bad_cells}
    memory, stream = (adapt(rows, others, stream=stream, **options).notes for stream in (False, True))
    expected = [f"year: constant in the source, but 2 of {len(target)}", "rate: constant in the source, but 1 of"]
    for notes in (memory, stream):
        found = [note for note in notes if "constant" in note]
        assert len(found) == 2
        assert all(note.startswith(start) for note, start in zip(found, expected))
    assert not [note for note in stream if "bad cell" in note]


def test_columns_without_a_name_are_ignored(source, target, tmp_path):
    paths = tmp_path / "s.csv", tmp_path / "t.csv"
    for table, path in zip((source, target), paths):
        table[NUMBERS].to_csv(path)
    account = adapt_files(Request(*paths, "price", stream=True))
    assert set(reasons(account)) == {"Unnamed: 0"}


@pytest.mark.parametrize("stream", [False, True])
def test_a_column_that_only_the_target_has_is_ignored(adapt, source, target, stream):
    account = adapt(source[NUMBERS], target[NUMBERS].assign(extra=1.0), stream=stream)
    assert set(reasons(account)) == {"extra"}


def test_a_folder_of_parquet_files_is_a_source(source, target, tmp_path):
    for role, table in (("source", source), ("target", target)):
        (tmp_path / role).mkdir()
        for k in range(3):
            table[NUMBERS].iloc[k::3].to_parquet(tmp_path / role / f"{k}.parquet", index=False)
    account = adapt_files(Request(tmp_path / "source", tmp_path / "target", "price"), output=Output(tmp_path / "p.csv"))
    assert (account.data.n_source, account.data.n_target) == (120, 80)
    assert len(pd.read_csv(tmp_path / "p.csv")) == 80


@pytest.mark.parametrize(("place", "label"), [(2, "-1"), (0, "0")])
def test_arrays_are_streamed_by_position(source, target, tmp_path, place, label):
    columns = ["area", "garden"]
    columns.insert(place, "price")
    np.save(tmp_path / "s.npy", source[columns].to_numpy())
    np.save(tmp_path / "t.npy", target[["area", "garden"]].to_numpy())
    predictions = []
    for stream in (False, True):
        output = tmp_path / "p.npy"
        adapt_files(Request(tmp_path / "s.npy", tmp_path / "t.npy", label, stream=stream), output=Output(output))
        predictions.append(np.load(output))
    np.testing.assert_allclose(predictions[1], predictions[0], rtol=1e-10)


@pytest.mark.parametrize(("separator", "suffix"), [(";", ".csv"), ("\t", ".csv"), (",", ".tsv")])
def test_another_separator_is_detected_and_noted_in_both_pipelines(source, target, tmp_path, separator, suffix):
    numbers = ["area", "garden", "price"]
    paths = tmp_path / f"s{suffix}", tmp_path / f"t{suffix}"
    for path, table in zip(paths, (source, target)):
        table[numbers].to_csv(path, sep=separator, decimal="," if separator == ";" else ".", index=False)
        table[numbers].to_csv(tmp_path / f"{path.stem}-plain.csv", index=False)
    plain = Request(tmp_path / "s-plain.csv", tmp_path / "t-plain.csv", "price")
    expected = adapt_files(plain, method="spar").scored.model.rmse
    for stream in (False, True):
        account = adapt_files(Request(*paths, "price", stream=stream), method="spar")
        assert account.scored.model.rmse == pytest.approx(expected, rel=1e-9)
        assert [note.partition(":")[0] for note in account.notes] == ["source", "target"]
        assert all(repr(separator) in note for note in account.notes)


def test_an_id_is_noted_by_its_name(adapt, source, target):
    columns = ["area", "price"]
    account = adapt(source[columns].assign(home_id=range(120)), target[columns].assign(home_id=1), stream=True)
    (note,) = account.notes
    assert note.startswith("home_id: ")
    assert "--id home_id" in note


def test_a_file_that_is_streamed_because_of_its_size_is_noted(adapt, source, target, monkeypatch):
    monkeypatch.setattr(formats, "free_memory", lambda: 10_000)
    assert len(adapt(source[NUMBERS], target[NUMBERS]).notes) == 1
    assert adapt(source[NUMBERS], target[NUMBERS], stream=True).notes == ()


def test_text_instead_of_target_labels_is_noted(adapt, source, target):
    account = adapt(source[NUMBERS], target[NUMBERS].assign(price="to come"), stream=True)
    assert account.scored is None
    assert "'price'" in account.notes[0]


@pytest.mark.parametrize(("role", "column"), [("source", "area"), ("source", "price"), ("target", "garden")])
def test_missing_values_are_refused(adapt, source, target, role, column):
    {"source": source, "target": target}[role].loc[17, column] = np.nan
    with pytest.raises(InputError, match=rf"{role} '.*{role}\.csv', column '{column}': missing .* row 17 "):
        adapt(source, target, stream=True)


def test_infinity_is_refused(adapt, source, target):
    target.loc[17, "area"] = -np.inf
    with pytest.raises(InputError, match=r"target\.csv', column 'area': .*-inf in row 19 .*data row 17 "):
        adapt(source, target, stream=True)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"method": "ridge"}, "ridge .*bayes, spar or ols"),
        ({"identity": "price"}, "--id.*'price'"),
        ({"identity": "nobody"}, "'nobody'"),
        ({"drop": ("price",)}, "--drop.*'price'"),
        ({"drop": ("gardn",)}, r"'gardn'; did you mean 'garden'\?"),
        ({"drop": ("area", "garden", "lift", "home")}, "'area': .*'garden': "),
    ],
)
def test_an_invalid_request_is_refused(adapt, source, target, options, match):
    with pytest.raises(InputError, match=match):
        adapt(source, target, stream=True, **options)


@pytest.mark.parametrize(("label", "match"), [("pirce", "did you mean 'price'"), ("town", "column 'town': .*string")])
def test_a_label_that_is_misspelt_or_text_is_refused(files, source, target, label, match):
    with pytest.raises(InputError, match=match):
        adapt_files(Request(*map(Path, files(source, target)), label, stream=True))


def test_constant_labels_and_features_are_refused(adapt, source, target):
    with pytest.raises(InputError, match=r"column 'price': .* 7;"):
        adapt(source.assign(price=7), target, stream=True)
    with pytest.raises(InputError, match=r"source\.csv': .*'area': constant"):
        adapt(source[["area", "price"]].assign(area=1.0), target, stream=True)
    with pytest.raises(InputError, match=r"source\.csv': .*two rows"):
        adapt(source[:1], target, stream=True)


def test_a_target_without_features_is_refused_before_the_source_is_read(adapt, source, target, monkeypatch):
    monkeypatch.setattr("pyspar.sources.files.rows.read_ahead", lambda *_, **__: pytest.fail("rows were read"))
    with pytest.raises(InputError, match=r"target\.csv' lacks .*'garden'"):
        adapt(source, target.drop(columns="garden"), stream=True)
    with pytest.raises(InputError, match=r"target\.csv', column 'area': .*string"):
        adapt(source, target.assign(area="large"), stream=True)


def test_arrays_are_a_target_of_a_summary_and_can_be_summarised(source, target, tmp_path):
    for name, table in (("s", source), ("t", target)):
        np.savez(tmp_path / f"{name}.npz", X=table[["area", "garden"]], price=table["price"])
    summarize_file(tmp_path / "s.npz", tmp_path / "m.npz", label="price")
    rows = adapt_files(Request(tmp_path / "s.npz", tmp_path / "t.npz", "price"), output=Output(tmp_path / "a.npy"))
    summary = adapt_files(Request(tmp_path / "m.npz", tmp_path / "t.npz", None), output=Output(tmp_path / "b.npy"))
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), np.load(tmp_path / "a.npy"), rtol=1e-9)
    assert summary.scored.model.rmse == pytest.approx(rows.scored.model.rmse, rel=1e-9)
    with pytest.raises(InputError, match=r"m\.npz' is a summary"):
        summarize_file(tmp_path / "m.npz", tmp_path / "n.npz")


@pytest.fixture
def summarised(files, source, target, tmp_path):
    """Return the files of rows and of Moments of both."""
    rows = tuple(map(Path, files(source, target)))
    summaries = tmp_path / "source.npz", tmp_path / "target.npz"
    for path, summary in zip(rows, summaries):
        summarize_file(path, summary, label="price", drop=("home",))
    return *rows, *summaries


@pytest.mark.parametrize(("method", "name"), [("spar", "SpAR"), ("bayes", "Bayes-SpAR")])
def test_files_of_moments_give_the_results_of_their_rows(summarised, method, name):
    source, target, source_moments, target_moments = summarised
    rows = adapt_files(Request(source, target, "price", drop=("home",), stream=True), method=method)
    for one, other in ((source_moments, target), (source, target_moments), (source_moments, target_moments)):
        drop = ("home",) if one == source else ()
        account = adapt_files(Request(one, other, "price", drop=drop), method=method)
        assert account.directions.removed == rows.directions.removed
        assert account.before.rmse == pytest.approx(rows.before.rmse, rel=1e-10)
        assert account.after.rmse == pytest.approx(rows.after.rmse, rel=1e-10)
        assert account.scored.model.n == 80
        assert account.scored.model.rmse == pytest.approx(rows.scored.model.rmse, rel=1e-10)
        assert account.has_rows == (other == target)
        output = inspect_files(Request(one, other, "price", drop=drop)).inspection.outputs[0]
        assert output.forecast("OLS").rmse == pytest.approx(account.before.rmse, rel=1e-10)
        assert output.forecast(name).rmse == pytest.approx(account.after.rmse, rel=1e-10)


def test_a_model_can_be_saved_without_any_rows(summarised, target, tmp_path):
    _, rows_of_target, source, target_moments = summarised
    adapt_files(Request(source, target_moments, None), save=tmp_path / "m.skops")
    adapt_files(Request(source, rows_of_target, "price"), output=Output(tmp_path / "p.npy"))
    np.testing.assert_allclose(
        pyspar.load(tmp_path / "m.skops").predict(target), np.load(tmp_path / "p.npy"), rtol=1e-9
    )


def test_saved_moments_are_a_source(files, source, target, tmp_path):
    pyspar.save(Moments.of(source[["area", "garden"]], source["price"]), tmp_path / "m.npz")
    account = adapt_files(Request(tmp_path / "m.npz", Path(files(source, target)[1]), "price"))
    assert account.data.n_numeric == 2
    assert account.scored.model.n == 80
    pyspar.save(Moments.of(source[["area", "garden"]].to_numpy(), source["price"]), tmp_path / "m.npz")
    pyspar.save(Moments.of(target[["area", "garden"]].to_numpy()), tmp_path / "z.npz")
    account = adapt_files(Request(tmp_path / "m.npz", tmp_path / "z.npz", None))
    assert account.data.label == "y"
    assert account.scored is None


def test_requests_that_need_rows_are_refused_for_moments(summarised, tmp_path):
    source, target, source_moments, target_moments = summarised
    with pytest.raises(InputError, match=r"target\.npz' .*--save"):
        adapt_files(Request(source, target_moments, "price", drop=("home",)), output=Output(tmp_path / "p.csv"))
    with pytest.raises(InputError, match="ridge"):
        adapt_files(Request(source_moments, target, "price"), method="ridge")
    with pytest.raises(InputError, match=r"source\.npz': .*'price', got --label rent"):
        adapt_files(Request(source_moments, target, "rent"))


def test_moments_of_other_columns_are_refused(files, source, target, tmp_path):
    paths = tuple(map(Path, files(source[NUMBERS], target[["area", "lift"]])))
    summarize_file(paths[0], tmp_path / "s.npz", label="price")
    summarize_file(paths[1], tmp_path / "t.npz")
    with pytest.raises(InputError, match=r"t\.npz' lacks 1 of 3 .*'garden'"):
        inspect_files(Request(tmp_path / "s.npz", tmp_path / "t.npz", None))
    with pytest.raises(InputError, match=r"t\.npz': .*one output, got 0"):
        inspect_files(Request(tmp_path / "t.npz", tmp_path / "s.npz", None))


def test_the_account_of_a_stream_is_that_of_memory(adapt, source, target, small_batches):
    rng = np.random.default_rng(0)
    tables = [table[NUMBERS].assign(floors=2.0) for table in (source, target)]
    for table in tables:
        for name in ("area", "garden"):
            table.loc[rng.random(len(table)) < 0.2, name] = np.nan
    tables[0].loc[::7, "price"] = np.nan
    tables[1]["agent"] = 1.0
    options = {"bad_cells": "impute", "drop_unlabelled": True, "drop": ("lift",)}
    memory, stream = (adapt(*tables, stream=stream, **options) for stream in (False, True))
    assert [column.column for column in memory.data.imputed] == ["area", "garden"]
    assert [column.column for column in memory.data.ignored] == ["lift", "floors", "agent"]
    assert stream.data == memory.data
    assert stream.after.rmse == pytest.approx(memory.after.rmse, rel=1e-9)


def test_ids_of_a_streamed_workbook_are_those_of_the_file(source, target, tmp_path):
    ids = [f"{row:03d}" for row in range(len(target))]
    ids[4] = None
    source[NUMBERS].to_csv(tmp_path / "s.csv", index=False)
    target[NUMBERS].assign(home=ids).to_excel(tmp_path / "t.xlsx", index=False)
    request = Request(tmp_path / "s.csv", tmp_path / "t.xlsx", "price", identity="home", stream=True)
    adapt_files(request, output=Output(tmp_path / "p.parquet"))
    written = pd.read_parquet(tmp_path / "p.parquet")["home"]
    assert written[:4].tolist() == ids[:4]
    assert written[4] in (None, "")

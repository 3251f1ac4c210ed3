"""``spar adapt``: the files that it writes and the numbers that it prints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

import pyspar
from pyspar.tables.adapt import adapt_files
from pyspar.tables.inputs import Request

LABEL = ("--label", "price")


def lines_of(text, label):
    """Return the text of the lines with a label; a label is printed on the first of its lines only."""
    chosen, current = [], ""
    for line in text.splitlines():
        name, _, rest = line.partition("  ")
        current = name.strip() or current
        if current == label:
            chosen.append(rest.strip())
    return chosen


def test_predictions_are_written_with_row_numbers(spar, files, source, target, tmp_path):
    out = tmp_path / "p.csv"
    result = spar("adapt", *files(source, target), *LABEL, "-o", out)
    assert result.exit_code == 0, result.output
    written = pd.read_csv(out)
    assert list(written.columns) == ["row", "prediction", "low", "high"]
    assert written["row"].tolist() == list(range(len(target)))
    assert np.isfinite(written["prediction"]).all()


def test_the_id_column_is_written_unchanged_and_is_not_a_feature(spar, files, source, target, tmp_path):
    target.loc[3, "home"] = "NA"
    target.loc[4, "home"] = "1e5"
    out = tmp_path / "p.csv"
    result = spar("adapt", *files(source, target), *LABEL, "--id", "home", "-o", out)
    assert result.exit_code == 0, result.output
    written = pd.read_csv(out, dtype=str, keep_default_na=False)
    assert list(written.columns) == ["home", "prediction", "low", "high"]
    assert written["home"].tolist() == target["home"].tolist()
    assert "3 numeric, 1 categorical, 1 date" in result.stdout


def test_the_account_has_the_expected_text(spar, files, source, target, tmp_path, monkeypatch, golden):
    monkeypatch.chdir(tmp_path)
    source.loc[:4, ["area", "sold"]] = None
    source.loc[5:9, "town"] = None
    target.loc[:1, ["area", "town", "sold"]] = None
    target.loc[2:4, "town"] = "Trier"
    target["garden"] = np.nan
    source["remark"] = [f"seen by {i}" for i in range(len(source))]
    source["empty"] = np.nan
    source["country"] = "DE"
    source["number"] = range(len(source))
    target["number"] = range(len(target))
    target["agent"] = "x"
    files(source, target)
    arguments = ("source.csv", "target.csv", *LABEL, "--id", "home", "-o", "p.csv", "--save", "m.skops")
    texts = [f"$ spar adapt {' '.join(arguments)}\n{spar('adapt', *arguments).stdout}"]
    numbers = ["area", "garden", "price"]
    files(source[numbers].fillna(60), target[numbers].fillna(60).assign(garden=range(80)))
    methods = (("spar",), ("ols",), ("ridge",), ("bayes", "--stream", "--alpha", "0.9"))
    for method in methods:
        options = ("source.csv", "target.csv", *LABEL, "--method", *method)
        texts.append(f"$ spar adapt {' '.join(options)}\n{spar('adapt', *options).stdout}")
    golden("cli-adapt", "\n".join(texts))


def test_the_account_names_every_column_that_is_imputed_ignored_or_unseen(spar, files, source, target):
    source.loc[:4, "area"] = np.nan
    target.loc[:1, "area"] = np.nan
    target.loc[:2, "town"] = "Trier"
    source["remark"] = [f"seen by {i}" for i in range(len(source))]
    source["empty"] = np.nan
    source["country"] = "DE"
    target["agent"] = "x"
    result = spar("adapt", *files(source, target.drop(columns="price")), *LABEL, "--id", "home")
    assert result.exit_code == 0, result.output
    assert lines_of(result.stdout, "rows") == ["120 source, 80 target"]
    assert lines_of(result.stdout, "imputed")[0].startswith("area: 5 source, 2 target")
    (unseen,) = lines_of(result.stdout, "unseen")
    assert unseen.startswith("town: 3 target rows")
    assert "'Trier'" in unseen
    ignored = [line.partition(":")[0] for line in lines_of(result.stdout, "ignored")]
    assert ignored == ["remark", "empty", "country", "agent"]
    assert lines_of(result.stdout, "measured") == []
    assert result.stderr == ""


def test_the_account_prints_the_expected_and_true_errors(spar, files, source, target):
    paths = files(source, target)
    for method in ("bayes", "spar", "ols", "ridge"):
        account = adapt_files(Request(*map(Path, paths), "price"), method=method)
        out = spar("adapt", *paths, *LABEL, "--method", method).stdout
        expected, true, noise = (" ".join(lines_of(out, name)) for name in ("expected", "measured", "noise"))
        low, high = account.after.interval95
        assert f"{account.after.rmse:,.4g} ({method}; 95 %: {low:,.4g} to {high:,.4g})" in expected
        assert f"{account.scored.model.rmse:,.4g} ({method})" in true
        assert f" {account.scored.model.n} " in true
        for text, rmse in (
            (expected, account.before.rmse),
            (true, account.scored.least_squares.rmse),
        ):
            assert (f"{rmse:,.4g} (least squares) →" in text) == (method != "ols")
        assert noise.startswith(f"{np.sqrt(account.after.noise):.4g} ")
        assert 20 < np.sqrt(account.after.noise) < 40  # the labels have noise of 30
        if method == "bayes":
            (line,) = lines_of(out, "method")
            assert f"{account.chosen}: {account.directions.removed} of {account.directions.total} " in line
            assert f"{account.directions.shrunk} " in line


def test_labels_of_the_target_only_score_the_predictions(spar, files, source, target, tmp_path):
    plain, labelled = tmp_path / "plain.csv", tmp_path / "labelled.csv"
    without = spar("adapt", *files(source, target.drop(columns="price")), *LABEL, "-o", plain)
    target["price"] = -1e6 * target["price"]
    result = spar("adapt", *files(source, target), *LABEL, "-o", labelled)
    assert without.exit_code == result.exit_code == 0
    assert plain.read_text() == labelled.read_text()
    assert lines_of(result.stdout, "measured")


@pytest.mark.parametrize("method", ["ols", "ridge"])
def test_other_methods_do_not_use_the_target(spar, files, source, target, tmp_path, method):
    numbers = ["area", "garden", "price"]
    predictions = []
    for name, rows in (("all", target), ("few", target[:20])):
        out = tmp_path / f"{name}.npy"
        result = spar("adapt", *files(source[numbers], rows[numbers]), *LABEL, "--method", method, "-o", out)
        assert result.exit_code == 0, result.output
        predictions.append(np.load(out))
    np.testing.assert_allclose(predictions[0][:20], predictions[1])


@pytest.mark.parametrize("method", ["bayes", "spar", "ols", "ridge"])
def test_a_saved_pipeline_predicts_the_same_from_the_raw_table(spar, files, source, target, tmp_path, method):
    source.loc[:4, ["area", "sold"]] = None
    source.loc[5:9, "town"] = None
    target.loc[:2, ["area", "town", "sold"]] = None
    target.loc[3, "town"] = "Trier"
    paths, out, model = files(source, target), tmp_path / "p.npy", tmp_path / "m.skops"
    result = spar("adapt", *paths, *LABEL, "--method", method, "-o", out, "--save", model)
    assert result.exit_code == 0, result.output
    again = pyspar.load(model).predict(pd.read_csv(paths[1]))
    np.testing.assert_allclose(again, np.load(out), rtol=1e-12)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npy"])
def test_predictions_are_the_same_in_every_format(spar, files, source, target, tmp_path, suffix):
    out = tmp_path / f"p{suffix}"
    result = spar("adapt", *files(source, target), *LABEL, "-o", out)
    reference = tmp_path / "reference.npy"
    assert result.exit_code == spar("adapt", *files(source, target), *LABEL, "-o", reference).exit_code == 0
    readers = {".csv": pd.read_csv, ".tsv": lambda p: pd.read_csv(p, sep="\t"), ".parquet": pd.read_parquet}
    written = np.load(out) if suffix == ".npy" else readers[suffix](out)["prediction"].to_numpy()
    np.testing.assert_allclose(written, np.load(reference), rtol=1e-14)


def test_fewer_rows_than_directions_is_a_note_and_not_a_warning(spar, files, source, target, recwarn):
    paths = files(source[:4], target)
    result = spar("adapt", *paths, *LABEL, "--method", "spar")
    assert result.exit_code == 0, result.output
    with pytest.warns(pyspar.SparWarning) as caught:
        pyspar.SpARRegressor().fit(np.eye(4), np.arange(4.0))
    start = str(caught[0].message)[:20]
    assert len([line for line in lines_of(result.stdout, "note") if line.startswith(start)]) == 1
    assert "Warning" not in result.output
    assert not [w for w in recwarn if issubclass(w.category, pyspar.SparWarning)]
    bayes = spar("adapt", *paths, *LABEL).stdout
    assert "(bayes; 95 %" in " ".join(lines_of(bayes, "expected"))
    assert not [line for line in lines_of(bayes, "note") if line.startswith(start)]


def test_a_single_target_row_is_enough(spar, files, source, target):
    assert spar("adapt", *files(source, target[:1]), *LABEL).exit_code == 0


def test_brackets_in_column_names_are_not_markup(spar, files, source, target):
    source["[bold]x"] = np.nan
    assert "[bold]x: " in spar("adapt", *files(source, target), *LABEL).stdout


def test_an_existing_output_is_replaced(spar, files, source, target, tmp_path):
    out = tmp_path / "p.csv"
    out.write_text("old")
    assert spar("adapt", *files(source, target), *LABEL, "-o", out).exit_code == 0
    assert out.read_text().startswith("row,prediction,low,high\n0,")


def test_rows_in_unseen_categories_are_reported_as_not_covered(spar, files, source, target):
    target.loc[:29, "town"] = "Hof"
    target.loc[30, "town"] = "Jena"
    (line,) = lines_of(spar("adapt", *files(source, target), *LABEL).stdout, "not covered")
    assert " 31 " in line


def test_the_share_of_the_target_outside_the_source_is_printed(spar, files, source, target):
    columns = ["area", "town", "price"]
    paths = files(source[columns], target[columns].assign(town="Trier"))
    account = adapt_files(Request(*map(Path, paths), "price"))
    (line,) = lines_of(spar("adapt", *paths, *LABEL).stdout, "outside")
    assert account.judgement.outside > 0.01
    assert line.startswith(f"{100 * account.judgement.outside:.1f} %")


def test_text_instead_of_target_labels_is_a_note(spar, files, source, target):
    for stream in ((), ("--stream",)):
        result = spar("adapt", *files(source, target.assign(price="to come")), *LABEL, *stream)
        assert result.exit_code == 0, result.output
        assert lines_of(result.stdout, "measured") == []
        assert any("price" in note for note in lines_of(result.stdout, "note"))


def test_long_lists_of_columns_are_shortened(spar, files, source, target):
    empty = {f"empty{i}": np.nan for i in range(11)}
    ignored = lines_of(spar("adapt", *files(source.assign(**empty), target), *LABEL, "--id", "home").stdout, "ignored")
    assert len(ignored) == 9
    assert "3" in ignored[-1]


def test_values_out_of_range_are_refused_with_their_column(spar, files, source, target):
    rows = target.assign(garden=1e147 * target["garden"])
    result = spar("adapt", *files(source, rows), *LABEL, "--id", "home")
    assert result.exit_code == 2
    assert "column 'garden'" in result.stderr
    assert "1e+60" in result.stderr


def test_findings_about_moved_columns_and_implausible_predictions_are_reported(spar, files, tmp_path):
    rng = np.random.default_rng(0)
    source = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    source["price"] = 10.0 + source["a"] + 0.1 * rng.normal(size=60)
    target = pd.DataFrame({"a": rng.normal(size=30) + 100.0, "b": rng.normal(size=30)})
    result = spar("adapt", *files(source, target), *LABEL, "--method", "ols", "--json")
    found = {finding["code"]: finding["text"] for finding in json.loads(result.stdout)["findings"]}
    assert set(found) == {"SPAR009", "SPAR018"}
    assert "'a'" in found["SPAR009"]
    assert found["SPAR018"].startswith("30 of 30 ")
    assert json.loads(spar("adapt", *files(source, source), *LABEL, "--json").stdout)["findings"] == []


@pytest.mark.parametrize("kind", ["Int64", "UInt64", "Int32"])
def test_integer_ids_with_a_missing_one_stay_exact_as_in_a_stream(spar, tmp_path, kind):
    rng = np.random.default_rng(0)
    first = 2**60 if kind != "Int32" else 7
    ids = pd.array([*range(first, first + 19), None], dtype=kind)
    pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "price"]).to_csv(tmp_path / "s.csv", index=False)
    rows = pd.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"]).assign(key=ids)
    table = pyarrow.Table.from_pandas(rows).replace_schema_metadata()  # as other programs than pandas write it
    parquet.write_table(table, tmp_path / "t.parquet")
    for options in ([], ["--stream"]):
        for out in (tmp_path / "p.csv", tmp_path / "p.parquet"):
            paths = tmp_path / "s.csv", tmp_path / "t.parquet"
            result = spar("adapt", *paths, *LABEL, "--id", "key", "-o", out, *options)
            assert result.exit_code == 0, result.output
        cells = pd.read_csv(tmp_path / "p.csv", dtype=str, keep_default_na=False)["key"]
        assert cells.tolist() == [*map(str, ids[:19]), ""]
        assert parquet.read_table(tmp_path / "p.parquet")["key"] == table["key"]

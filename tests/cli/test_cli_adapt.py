"""``spar adapt``: what it predicts, says, writes and saves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import pyspar
from pyspar.tables.job import Request, adapt_files

LABEL = ("--label", "price")


def test_predictions_come_with_their_row_numbers(spar, files, source, target, tmp_path):
    out = tmp_path / "p.csv"
    result = spar("adapt", *files(source, target), *LABEL, "-o", out)
    assert result.exit_code == 0, result.output
    written = pd.read_csv(out)
    assert list(written.columns) == ["row", "prediction"]
    assert written["row"].tolist() == list(range(len(target)))
    assert np.isfinite(written["prediction"]).all()


def test_the_id_column_is_kept_to_the_letter_and_is_no_feature(spar, files, source, target, tmp_path):
    target.loc[3, "home"] = "NA"
    target.loc[4, "home"] = "1e5"
    out = tmp_path / "p.csv"
    result = spar("adapt", *files(source, target), *LABEL, "--id", "home", "-o", out)
    assert result.exit_code == 0, result.output
    written = pd.read_csv(out, dtype=str, keep_default_na=False)
    assert list(written.columns) == ["home", "prediction"]
    assert written["home"].tolist() == target["home"].tolist()
    assert "3 numeric, 1 categorical, 1 date" in result.stdout


def test_an_id_column_that_only_the_target_has_is_enough(spar, files, source, target, tmp_path):
    result = spar("adapt", *files(source.drop(columns="home"), target), *LABEL, "--id", "home")
    assert result.exit_code == 0, result.output
    assert "ignored" not in result.stdout


def test_the_account_names_everything_that_was_done(spar, files, source, target):
    source.loc[:4, "area"] = np.nan
    target.loc[:1, "area"] = np.nan
    target.loc[:2, "town"] = "Trier"
    source["remark"] = [f"seen by {i}" for i in range(len(source))]
    source["empty"] = np.nan
    source["country"] = "DE"
    target["agent"] = "x"
    result = spar("adapt", *files(source, target.drop(columns="price")), *LABEL, "--id", "home")
    out = result.stdout
    assert result.exit_code == 0, result.output
    assert "120 source, 80 target" in out
    assert "area: 5 source, 2 target, by the source's mean" in out
    assert "town: 3 target rows in a new category ('Trier')" in out
    assert "remark: is free text (120 different values in 120 rows)" in out
    assert "empty: has no value in the source" in out
    assert "country: has one value in the source ('DE')" in out
    assert "agent: is in the target only" in out
    assert "if the labels are linear in these features" in out
    assert "true" not in out
    assert result.stderr == ""


def test_the_expected_error_is_the_forecast_of_the_regressor_itself(files, source, target):
    paths = files(source[["area", "garden", "price"]], target[["area", "garden"]])
    account = adapt_files(Request(*map(Path, paths), "price"), method="spar")
    mean, std = source[["area", "garden"]].mean(), source[["area", "garden"]].std(ddof=0)
    X, Z = ((t[["area", "garden"]] - mean) / std for t in (source, target))
    plain = pyspar.SpARRegressor().fit(X, source["price"])
    adapted = plain.adapted(Z)
    assert account.expected.removed == int(adapted.adaptation_.removed.sum()) == 1
    for forecast, est in ((account.expected.before, plain), (account.expected.after, adapted)):
        own = est.expected_rmse(Z)
        assert forecast.rmse == pytest.approx(own.rmse, rel=1e-6)
        assert forecast.interval95 == pytest.approx(own.interval95, rel=1e-6)
    assert account.expected.after.rmse < account.expected.before.rmse


def test_labels_of_the_target_score_and_do_nothing_else(spar, files, source, target, tmp_path):
    plain, labelled = tmp_path / "plain.csv", tmp_path / "labelled.csv"
    without = spar("adapt", *files(source, target.drop(columns="price")), *LABEL, "-o", plain)
    target["price"] = -1e6 * target["price"]
    result = spar("adapt", *files(source, target), *LABEL, "-o", labelled)
    assert without.exit_code == result.exit_code == 0
    assert plain.read_text() == labelled.read_text()
    assert "RMSE on the 80 target rows with a label" in result.stdout


def test_the_true_error_is_that_of_least_squares_and_of_the_predictions(files, source, target, tmp_path):
    columns = ["area", "garden"]
    paths = files(source[[*columns, "price"]], target[[*columns, "price"]])
    account = adapt_files(Request(*map(Path, paths), "price"), output=tmp_path / "p.npy")
    plain = LinearRegression().fit(source[columns], source["price"]).predict(target[columns])
    assert account.scored.rmse_least_squares == pytest.approx(_rmse(plain, target["price"]), rel=1e-6)
    assert account.scored.rmse == pytest.approx(_rmse(np.load(tmp_path / "p.npy"), target["price"]), rel=1e-9)
    assert account.scored.rmse < account.scored.rmse_least_squares / 2


def test_target_rows_without_a_label_are_left_out_of_the_score(files, source, target):
    target.loc[:69, "price"] = np.nan
    assert adapt_files(Request(*map(Path, files(source, target)), "price")).scored.rows == 10


def test_text_in_place_of_target_labels_is_noted(spar, files, source, target):
    result = spar("adapt", *files(source, target.assign(price="to come")), *LABEL)
    assert result.exit_code == 0, result.output
    assert "note" in result.stdout
    assert "'to come' in row 0" in result.stdout


@pytest.mark.parametrize("method", ["ols", "ridge", "pcr"])
def test_other_methods_do_not_look_at_the_target(spar, files, source, target, tmp_path, method):
    numbers = ["area", "garden", "price"]
    predictions = []
    for name, rows in (("all", target), ("few", target[:20])):
        out = tmp_path / f"{name}.npy"
        result = spar("adapt", *files(source[numbers], rows[numbers]), *LABEL, "--method", method, "-o", out)
        assert result.exit_code == 0, result.output
        predictions.append(np.load(out))
    np.testing.assert_allclose(predictions[0][:20], predictions[1])


def test_ols_is_least_squares_on_the_encoded_columns(files, source, target, tmp_path):
    columns = ["area", "garden"]
    paths = files(source[[*columns, "price"]], target[columns])
    adapt_files(Request(*map(Path, paths), "price"), method="ols", output=tmp_path / "p.npy")
    plain = LinearRegression().fit(source[columns], source["price"]).predict(target[columns])
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), plain, rtol=1e-6)


def test_features_num_uses_numbers_and_booleans_only(spar, files, source, target):
    result = spar("adapt", *files(source, target), *LABEL, "--features", "num", "--id", "home")
    assert "3 numeric; 3 after encoding" in result.stdout
    assert "town: is not numeric, and --features num was asked for" in result.stdout


@pytest.mark.parametrize("method", ["bayes", "spar", "ols", "ridge", "pcr"])
def test_a_saved_pipeline_predicts_the_same_on_the_raw_table(spar, files, source, target, tmp_path, method):
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
    result = spar("adapt", *files(source[:4], target), *LABEL, "--method", "spar")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("least squares fits it exactly") == 1
    assert "95 %" in result.stdout
    assert "Warning" not in result.output
    assert not [w for w in recwarn if issubclass(w.category, pyspar.SparWarning)]


@pytest.mark.parametrize("rows", [2, 3, 5, 7])
def test_a_source_that_is_fitted_exactly_still_has_a_forecast(files, source, target, rows):
    account = adapt_files(Request(*map(Path, files(source[:rows], target)), "price"), method="spar")
    assert account.rank + 1 == rows
    low, high = account.expected.after.interval95
    assert 0.0 < low < high < np.inf


def test_a_single_target_row_is_enough(spar, files, source, target):
    assert spar("adapt", *files(source, target[:1]), *LABEL).exit_code == 0


def test_brackets_in_column_names_are_printed_as_they_are(spar, files, source, target):
    source["[bold]x"] = np.nan
    assert "[bold]x: has no value" in spar("adapt", *files(source, target), *LABEL).stdout


def test_an_existing_output_is_replaced(spar, files, source, target, tmp_path):
    out = tmp_path / "p.csv"
    out.write_text("old")
    assert spar("adapt", *files(source, target), *LABEL, "-o", out).exit_code == 0
    assert out.read_text().startswith("row,prediction\n0,")


def _rmse(predictions, labels):
    return np.sqrt(np.mean((predictions - labels) ** 2))

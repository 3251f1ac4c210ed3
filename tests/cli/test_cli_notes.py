"""What the account points out: dates, ids, empty columns, separators, and what the expected error is made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pyspar.sources.files.names import meant
from pyspar.tables.job import Request, adapt_files

LABEL = ("--label", "price")
FORMS = ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y"]


def written(table, form):
    return table.assign(sold=pd.to_datetime(table["sold"]).dt.strftime(form))


@pytest.mark.parametrize("form", FORMS)
def test_unambiguous_dates_are_the_same_dates(spar, files, source, target, tmp_path, form):
    reference, out = tmp_path / "r.npy", tmp_path / "p.npy"
    assert spar("adapt", *files(source, target), *LABEL, "-o", reference).exit_code == 0
    paths = files(written(source, form), written(target, form))
    result = spar("adapt", *paths, *LABEL, "-o", out, "--save", tmp_path / "m.skops")
    assert "1 date" in result.stdout
    np.testing.assert_allclose(np.load(out), np.load(reference), rtol=1e-12)


def test_an_impossible_date_makes_a_column_of_text(spar, files, source, target):
    table = written(source, "%d.%m.%Y")
    table.loc[3, "sold"] = "31.02.2019"
    assert "1 date" not in spar("adapt", *files(table, written(target, "%d.%m.%Y")), *LABEL).stdout


@pytest.mark.parametrize("levels", [5, 700])
def test_dates_in_an_ambiguous_form_are_pointed_out(spar, files, source, target, levels):
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(np.arange(len(source)) % levels, unit="D")
    table = source.assign(sold=days.strftime("%d/%m/%Y"))
    result = spar("adapt", *files(table, written(target, "%d/%m/%Y")), *LABEL)
    assert result.exit_code == 0, result.output
    line = next(line for line in result.stdout.splitlines() if "sold:" in line and "looks like" in line)
    assert "looks like dates; write them as YYYY-MM-DD" in line
    assert ("free text" in line) == (levels == 700)


@pytest.mark.parametrize("other", [form for form in [*FORMS, "%d/%m/%Y"] if form != "%Y-%m-%d"])
def test_target_dates_in_another_form_are_refused(refused, files, source, target, other):
    assert "column 'sold': expected dates written as YYYY-MM-DD" in refused(*files(source, written(target, other)))
    if other in FORMS:
        assert "column 'sold': expected dates written as" in refused(*files(written(source, other), target))


def test_target_dates_are_refused_where_the_sources_were_taken_for_text(refused, files, source, target):
    table = source.assign(sold=np.where(source["lift"], "03/04/2021", "05/06/2021"))
    message = refused(*files(table, target))
    assert "column 'sold': expected dates in the source's form, such as '0" in message
    assert "write both as YYYY-MM-DD" in message


@pytest.mark.parametrize("name", ["id", "Home_ID", "homeID", "number"])
def test_whole_numbers_that_name_the_rows_are_pointed_out(spar, files, source, target, name):
    shuffled = np.random.default_rng(0).permutation(len(source))
    table = source.assign(**{name: shuffled if name != "number" else np.arange(len(source))}).drop(columns="home")
    rows = target.assign(**{name: 1})
    note = f"{name}: 120 distinct whole numbers in 120 rows; if it names the rows, pass --id {name}"
    assert note in spar("adapt", *files(table, rows), *LABEL).stdout
    assert note not in spar("adapt", *files(table, rows), *LABEL, "--id", name).stdout
    assert note not in spar("adapt", *files(table.assign(**{name: 7 * (shuffled // 2)}), rows), *LABEL).stdout


def test_an_id_is_pointed_out_in_a_stream_by_its_name(spar, files, source, target):
    paths = files(source.assign(home_id=range(120)), target.assign(home_id=1))
    assert "home_id: is named like an id" in spar("adapt", *paths, *LABEL, "--stream").stdout


def test_dropped_columns_are_not_used(spar, files, source, target):
    result = spar("adapt", *files(source, target), *LABEL, "--drop", "home", "--drop", "town", "--drop", "sold")
    assert "3 numeric; 3 after encoding" in result.stdout
    assert "town: was dropped, as asked" in result.stdout
    assert "categorical" not in result.stdout


def test_a_column_may_be_dropped_that_only_one_file_has(spar, files, source, target):
    paths = files(source, target.drop(columns="garden").assign(agent="x"))
    result = spar("adapt", *paths, *LABEL, "--drop", "garden", "--drop", "agent")
    assert result.exit_code == 0, result.output


def test_a_column_to_drop_must_be_there_and_no_label(refused, files, source, target):
    assert "did you mean 'garden'?" in refused(*files(source, target), "--drop", "gardn")
    assert "which is the label or the id" in refused(*files(source, target), "--drop", "price")


@pytest.mark.parametrize("column", ["garden", "town", "sold"])
def test_a_column_without_values_in_the_target_is_pointed_out_loudly(spar, files, source, target, column):
    result = spar("adapt", *files(source, target.assign(**{column: np.nan})), *LABEL)
    assert f"{column}: HAS NO VALUE IN THE TARGET" in result.stdout


@pytest.mark.parametrize("bad", ["words", "infinity"])
def test_label_errors_do_not_advise_to_leave_the_label_out(refused, files, source, target, bad):
    source["price"] = source["price"].astype(object)
    source.loc[4, "price"] = "much" if bad == "words" else np.inf
    message = refused(*files(source, target))
    assert "column 'price'" in message
    assert "leave" not in message
    assert "drop the" in message


def test_only_close_names_are_suggested():
    assert meant("Price", ["price", "prices"]) == "did you mean 'price'?"
    assert meant("prise", ["area", "price"]) == "did you mean 'price'?"
    for name in ("rate", "value", "y"):
        assert meant(name, ["date", "label", "yard"]) == "its columns are 'date', 'label', 'yard'."


@pytest.mark.parametrize(("separator", "suffix"), [(";", ".csv"), ("\t", ".csv"), (",", ".tsv")])
@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_another_separator_is_found_and_said(spar, files, source, target, tmp_path, separator, suffix, stream):
    numbers = ["area", "garden", "price"]
    decimal = "," if separator == ";" else "."
    paths = tmp_path / f"s{suffix}", tmp_path / f"t{suffix}"
    for path, table in zip(paths, (source, target)):
        table[numbers].to_csv(path, sep=separator, decimal=decimal, index=False)
    out, reference = tmp_path / "p.npy", tmp_path / "r.npy"
    result = spar("adapt", *paths, *LABEL, "--method", "spar", "-o", out, *stream)
    assert result.exit_code == 0, result.output
    assert f"source: its fields are separated by {separator!r}" in result.stdout
    arguments = (*files(source[numbers], target[numbers]), *LABEL, "--method", "spar", "-o", reference)
    assert spar("adapt", *arguments).exit_code == 0
    np.testing.assert_allclose(np.load(out), np.load(reference), rtol=1e-9)


@pytest.mark.parametrize("method", ["bayes", "spar", "ridge", "pcr"])
def test_the_expected_error_is_told_with_its_interval_and_noise(spar, files, source, target, method):
    paths = files(source, target)
    expected = adapt_files(Request(*map(Path, paths), "price"), method=method).expected
    out = " ".join(spar("adapt", *paths, *LABEL, "--method", method).stdout.split())
    low, high = expected.after.interval95
    assert (
        f"{expected.before.rmse:.4g} (least squares) → {expected.after.rmse:.4g} ({method}; 95 %: {low:.4g} to "
        f"{high:.4g}) RMSE; if the labels are linear in these features"
    ) in out
    noise = np.sqrt(expected.after.noise)
    assert f"{noise:.4g} in each label, as estimated on the source; 'expected' and 'true' include it" in out
    assert 20 < noise < 40  # the homes' labels have noise of 30


def test_least_squares_alone_has_one_expected_error(spar, files, source, target):
    out = spar("adapt", *files(source, target), *LABEL, "--method", "ols").stdout
    assert "(ols; 95 %" in out
    assert "→" not in out

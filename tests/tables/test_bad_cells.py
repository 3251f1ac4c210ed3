"""Bad cells: a column with mostly numbers is never ignored or encoded as categories because of a few of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pyspar.errors import InputError
from pyspar.io.models import load
from pyspar.tables.adapt import adapt_files
from pyspar.tables.inputs import Request
from pyspar.tables.summarize import summarize_file

NUMBERS = ["area", "garden", "price"]
STREAM = pytest.mark.parametrize("stream", [False, True])


def put(table, column, cells):
    """Return a table with texts in some cells of a column."""
    table = table.assign(**{column: table[column].astype(object)})
    for row, text in cells.items():
        table.loc[row, column] = text
    return table


@pytest.fixture
def numbers(source, target):
    """Return source and target with numeric columns only, whole areas between 1,000 and 2,000."""
    return tuple(table[NUMBERS].assign(area=(1500 + 4 * (table["area"] - 60)).round()) for table in (source, target))


@STREAM
@pytest.mark.parametrize("role", ["source", "target"])
@pytest.mark.parametrize("column", ["area", "price"])
def test_bad_cells_stop_the_run_with_row_and_value(adapt, numbers, stream, role, column):
    tables = dict(zip(("source", "target"), numbers))
    tables[role] = put(tables[role], column, {5: "n/a?", 60: "many"})
    with pytest.raises(InputError) as error:
        adapt(tables["source"], tables["target"], stream=stream)
    message = str(error.value)
    assert f"{role}.csv': 2 bad cells" in message
    assert f"'n/a?' in column {column!r}, row 7 (the header is row 1; data row 5 " in message
    assert f"'many' in column {column!r}, row 62 " in message
    assert "--bad-cells impute" in message
    assert ("--drop-unlabelled" in message) == (role == "source" and column == "price")


@STREAM
def test_bad_cells_are_imputed_like_missing_values_on_request(adapt, numbers, stream, tmp_path):
    source, target = numbers
    gaps = [table.assign(area=table["area"].where(~table.index.isin([5, 60]))) for table in (source, target)]
    expected = adapt(*gaps, output=tmp_path / "a.npy")
    bad = [put(table, "area", {5: "n/a?", 60: "many"}) for table in (source, target)]
    account = adapt(*bad, output=tmp_path / "b.npy", save=tmp_path / "m.skops", stream=stream, bad_cells="impute")
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), np.load(tmp_path / "a.npy"), rtol=1e-9)
    assert [(c.column, c.source, c.target) for c in account.data.imputed] == [("area", 2, 2)]
    assert account.data.imputed[0].value == expected.data.imputed[0].value
    assert sum("2 bad cells" in note for note in account.notes) == 2
    again = load(tmp_path / "m.skops").predict(gaps[1])
    np.testing.assert_allclose(again, np.load(tmp_path / "b.npy"), rtol=1e-9)


@STREAM
@pytest.mark.parametrize(
    "write",
    [
        lambda value: f"{value:,.0f}",
        lambda value: f"${value:,.2f}",
        lambda value: f"{value:.0f} €",
        lambda value: f"{value:,.0f}".replace(",", " "),
        lambda value: f"{value:,.0f}".replace(",", "'"),
        lambda value: f"{value:.1f}".replace(".", ","),
    ],
    ids=["thousands", "dollars", "euros", "spaces", "quotes", "decimal comma"],
)
def test_separators_and_signs_are_read(adapt, numbers, stream, write, tmp_path):
    adapt(*numbers, output=tmp_path / "a.npy")
    texts = [table.assign(area=table["area"].map(write)) for table in numbers]
    account = adapt(*texts, output=tmp_path / "b.npy", save=tmp_path / "m.skops", stream=stream)
    assert account.data.n_numeric == 2
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), np.load(tmp_path / "a.npy"), rtol=1e-12)
    np.testing.assert_allclose(load(tmp_path / "m.skops").predict(texts[1]), np.load(tmp_path / "a.npy"), rtol=1e-12)


@STREAM
def test_one_cell_with_a_separator_is_read_and_noted(adapt, numbers, stream, tmp_path):
    source, target = numbers
    adapt(source, target, output=tmp_path / "a.npy")
    text = put(source, "area", {119: f"{source.loc[119, 'area']:,.0f}"})
    account = adapt(text, target, output=tmp_path / "b.npy", stream=stream)
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), np.load(tmp_path / "a.npy"), rtol=1e-12)
    assert any(repr(text.loc[119, "area"]) in note and "source: area: " in note for note in account.notes)


def test_a_bad_cell_after_the_first_block_is_found_when_streaming(adapt, numbers, monkeypatch):
    from functools import partial

    from pyspar.tables import reduce

    monkeypatch.setattr(reduce, "open_rows", partial(reduce.open_rows, batch_bytes=600))
    source, target = numbers
    text = put(source, "garden", {110: "n/a?"})
    with pytest.raises(InputError, match=r"'n/a\?' in column 'garden', row 112 .*data row 110 "):
        adapt(text, target, stream=True)
    missing = put(source, "garden", {110: ""})
    accounts = [adapt(table, target, stream=True, bad_cells="impute") for table in (text, missing)]
    assert accounts[0].after.rmse == accounts[1].after.rmse
    assert accounts[0].data.imputed == accounts[1].data.imputed


@pytest.mark.parametrize("mark", ["n/a", "NA", "-", "?", "null", "N/A ", "Missing"])
def test_the_usual_marks_of_missing_values_are_no_bad_cells(adapt, numbers, mark):
    source, target = numbers
    account = adapt(put(source, "area", {3: mark}), target)
    assert [(column.column, column.source) for column in account.data.imputed] == [("area", 1)]


def test_a_column_with_as_many_words_as_numbers_is_a_category(adapt, source, target):
    floors = [["ground", "1", "attic", "2"][i % 4] for i in range(200)]
    tables = source.assign(floor=floors[:120]), target.assign(floor=floors[:80])
    assert adapt(*tables, identity="home").data.n_categorical == 2
    mostly = [["ground", "1", "2"][i % 3] for i in range(200)]
    tables = source.assign(floor=mostly[:120]), target.assign(floor=mostly[:80])
    with pytest.raises(InputError, match=r"40 bad cells.*'ground' in column 'floor', row 2 .*--category floor"):
        adapt(*tables, identity="home")
    assert adapt(*tables, identity="home", categories=("floor",)).data.n_categorical == 2
    assert adapt(*tables, identity="home", drop=("floor",)).data.n_categorical == 1


@STREAM
def test_percent_signs_are_hundredths_and_must_be_in_both_files(adapt, numbers, stream, tmp_path):
    percent = [table.assign(garden=table["garden"].map(lambda value: f"{value:.2f} %")) for table in numbers]
    plain = [table.assign(garden=table["garden"].round(2) / 100) for table in numbers]
    adapt(*plain, output=tmp_path / "a.npy")
    adapt(*percent, output=tmp_path / "b.npy", stream=stream)
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), np.load(tmp_path / "a.npy"), rtol=1e-9)
    with pytest.raises(InputError, match=r"column 'garden'.*percent"):
        adapt(percent[0], plain[1], stream=stream)


def test_rows_without_a_label_can_be_dropped(adapt, numbers, tmp_path):
    source, target = numbers
    adapt(source.drop(index=[3, 10]), target, output=tmp_path / "a.npy")
    source.loc[[3, 10], "price"] = np.nan
    for stream in (False, True):
        account = adapt(source, target, output=tmp_path / "b.npy", stream=stream, drop_unlabelled=True)
        assert account.data.n_source == 118
        np.testing.assert_allclose(np.load(tmp_path / "b.npy"), np.load(tmp_path / "a.npy"), rtol=1e-9)


def test_text_codes_in_a_typed_file_stay_text(source, target, tmp_path):
    for name, table in (("s", source), ("t", target)):
        table = table.assign(zip=[f"{i % 3:05d}" for i in range(len(table))], area=table["area"].map("{:.3f}".format))
        table.to_parquet(tmp_path / f"{name}.parquet")
    request = Request(tmp_path / "s.parquet", tmp_path / "t.parquet", "price", identity="home")
    data = adapt_files(request).data
    assert (data.n_numeric, data.n_categorical) == (3, 2)
    streamed = adapt_files(Request(request.source, request.target, "price", stream=True)).data
    assert (streamed.n_numeric, {column.column for column in streamed.ignored}) == (3, {"home", "town", "sold", "zip"})


def test_a_workbook_is_read_and_its_bad_cells_are_named(source, target, tmp_path):
    target.to_csv(tmp_path / "t.csv", index=False)
    source.to_csv(tmp_path / "s.csv", index=False)
    source.to_excel(tmp_path / "s.xlsx", index=False)
    expected, account = (
        adapt_files(Request(tmp_path / name, tmp_path / "t.csv", "price", identity="home"))
        for name in ("s.csv", "s.xlsx")
    )
    assert account.after.rmse == pytest.approx(expected.after.rmse, rel=1e-12)
    put(source, "area", {5: "n/a?"}).to_excel(tmp_path / "s.xlsx", index=False)
    with pytest.raises(InputError, match=r"s\.xlsx': 1 bad cell .*'n/a\?' in column 'area', row 7 "):
        adapt_files(Request(tmp_path / "s.xlsx", tmp_path / "t.csv", "price"))


def test_a_summary_imputes_gaps_and_bad_cells_on_request(numbers, tmp_path):
    source, _ = numbers
    filled = source.assign(area=source["area"].where(source.index != 5, source["area"].drop(5).mean()))
    filled.to_csv(tmp_path / "filled.csv", index=False)
    put(source, "area", {5: "n/a?"}).to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(InputError, match="bad cell"):
        summarize_file(tmp_path / "bad.csv", tmp_path / "b.npz", label="price")
    summarize_file(tmp_path / "filled.csv", tmp_path / "a.npz", label="price")
    summarize_file(tmp_path / "bad.csv", tmp_path / "b.npz", label="price", bad_cells="impute")
    a, b = (load(tmp_path / name) for name in ("a.npz", "b.npz"))
    np.testing.assert_allclose(a.root.T @ a.root, b.root.T @ b.root, rtol=1e-9)


def test_swapped_files_are_suspected(adapt, numbers):
    source, target = numbers
    for stream in (False, True):
        with pytest.raises(InputError, match="SOURCE and TARGET swapped"):
            adapt(source.drop(columns="price"), target, stream=stream)


def test_dates_with_the_name_of_a_month_are_noted(adapt, source, target):
    tables = [t.assign(sold=pd.to_datetime(t["sold"]).dt.strftime("%d %b %Y")) for t in (source, target)]
    account = adapt(*tables, identity="home")
    reasons = [column.reason for column in account.data.ignored if column.column == "sold"]
    assert any("YYYY-MM-DD" in text for text in [*reasons, *(n for n in account.notes if n.startswith("sold"))])


def test_imputed_means_do_not_count_rows_that_are_dropped(adapt, numbers, tmp_path):
    source, target = numbers
    source = put(source, "area", {5: "n/a?"})
    source.loc[[3, 10], "price"], source.loc[[3, 10], "area"] = np.nan, 1e6
    accounts = [
        adapt(
            source, target, output=tmp_path / f"{stream}.npy", stream=stream, bad_cells="impute", drop_unlabelled=True
        )
        for stream in (False, True)
    ]
    assert accounts[0].data.imputed == accounts[1].data.imputed
    np.testing.assert_allclose(np.load(tmp_path / "True.npy"), np.load(tmp_path / "False.npy"), rtol=1e-9)

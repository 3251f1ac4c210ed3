"""Columns: the label, the features and their kinds, ignored columns, values, and the transformers that encode them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pyspar.errors import InputError
from pyspar.tables.columns import (
    check_drop,
    check_features,
    check_identity,
    find_label,
    infer_kind,
    select_features,
)
from pyspar.tables.dates import ISO, as_days, date_format, looks_like_dates
from pyspar.tables.inputs import Request


def select(table, **options):
    return select_features(table, "price", Request(Path("s.csv"), Path("t.csv"), "price", **options))


def reasons(selection):
    return {column.column: column.reason for column in selection.ignored}


def test_columns_are_sorted_into_kinds_in_the_order_of_the_file(source):
    selection = select(source, identity="home")
    assert selection.names == ("area", "garden", "lift", "town", "sold")
    assert selection.numeric == ("area", "garden", "lift")
    assert (selection.categorical, selection.date) == (("town",), ("sold",))
    assert selection.ignored == ()
    assert selection.notes == ()


def test_columns_without_information_are_ignored_with_a_reason(source):
    source["remark"] = [f"seen by {i}" for i in range(len(source))]
    source["empty"] = np.nan
    source["country"] = "DE"
    source["year"] = 2019
    source["day"] = "2019-01-01"
    source["mixed"] = [f"{i}" if i else "none" for i in range(len(source))]
    source["pair"] = [[1, 2]] * len(source)
    source["Unnamed: 0"] = range(len(source))
    ignored = reasons(select(source, identity="home", drop=["garden"]))
    assert set(ignored) == {"remark", "empty", "country", "year", "day", "mixed", "pair", "Unnamed: 0", "garden"}
    assert "120" in ignored["remark"]
    assert "'DE'" in ignored["country"]
    assert "2019" in ignored["year"]
    assert "--drop" in ignored["garden"]


def test_features_num_uses_numbers_and_booleans_only(source):
    selection = select(source, identity="home", features="num")
    assert selection.names == ("area", "garden", "lift")
    assert all("--features num" in reason for reason in reasons(selection).values())


def test_a_source_without_features_is_refused_with_the_reasons(source):
    source["area"] = np.nan
    with pytest.raises(InputError, match=r"'area': .*'town': .*--features num"):
        select(source[["area", "home", "town", "price"]], identity="home", features="num")
    with pytest.raises(InputError, match="only column"):
        select(source[["price"]])


@pytest.mark.parametrize("name", ["id", "Home_ID", "homeID", "number"])
def test_whole_numbers_that_look_like_ids_are_noted(source, name):
    shuffled = np.random.default_rng(0).permutation(len(source))
    numbers = shuffled if name != "number" else np.arange(len(source))
    table = source.drop(columns="home").assign(**{name: numbers})
    (note,) = select(table).notes
    assert note.startswith(f"{name}: 120 ")
    assert note.endswith(f"--id {name} or --drop {name}")
    assert select(table, identity=name).notes == ()
    assert select(table.assign(**{name: 7 * (shuffled // 2)})).notes == ()
    assert select(table[:5]).notes == ()


@pytest.mark.parametrize("levels", [5, 700])
def test_dates_in_an_ambiguous_format_are_noted(source, levels):
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(np.arange(len(source)) % levels, unit="D")
    selection = select(source.assign(sold=days.strftime("%d/%m/%Y")), identity="home")
    text = reasons(selection)["sold"] if levels == 700 else selection.notes[0]
    assert "YYYY-MM-DD" in text
    assert (selection.categorical == ("town", "sold")) == (levels == 5)


def test_the_label_is_found_by_name_or_by_number(tmp_path):
    names = ["x0", "x1", "x2"]
    assert find_label(names, Path("s.csv"), "x1") == "x1"
    assert find_label(names, Path("s.npy"), "-1") == "x2"
    with pytest.raises(InputError, match=r"s\.npy'.*\[-3, 2\], got 3"):
        find_label(names, Path("s.npy"), "3")
    with pytest.raises(InputError, match=r"s\.csv'.*'3'"):
        find_label(names, Path("s.csv"), "3")
    with pytest.raises(InputError, match=r"--label .*'x0', 'x1', 'x2'"):
        find_label(names, Path("s.csv"), None)


def test_a_misspelt_label_is_answered_with_close_names():
    with pytest.raises(InputError, match=r"'Pirce'; did you mean 'price'\?"):
        find_label(["area", "price"], Path("s.csv"), "Pirce")


def test_the_id_must_not_be_the_label():
    with pytest.raises(InputError, match="'price'"):
        check_identity("price", "price")
    check_identity(None, "price")


def test_a_dropped_column_must_exist_and_be_a_feature():
    check_drop(["garden"], ["garden", "price"], label="price", identity=None)
    with pytest.raises(InputError, match=r"'gardn'; did you mean 'garden'\?"):
        check_drop(["gardn"], ["garden", "price"], label="price", identity=None)
    for name in ("price", "home"):
        with pytest.raises(InputError, match=f"--drop.*'{name}'"):
            check_drop([name], ["garden", "price", "home"], label="price", identity="home")


def test_missing_features_are_named_with_the_options_that_ignore_them():
    check_features(["a", "b"], ["a"], "target 't.csv'")
    with pytest.raises(InputError, match=r"target 't\.csv' lacks 2 of 3 .*'b', 'the c' .*--drop b --drop 'the c'"):
        check_features(["a"], ["a", "b", "the c"], "target 't.csv'")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "numeric"),
        ([True, None], "numeric"),
        ([1.5, None], "numeric"),
        ([Decimal(1), Decimal(2)], "numeric"),
        (pd.to_timedelta([1, 2], unit="h"), "numeric"),
        (["a", "b"], "categorical"),
        (pd.Categorical(["a", "b"]), "categorical"),
        (["2020-01-01", None], "date"),
        (pd.to_datetime(["2020-01-01"]), "date"),
        ([datetime.date(2020, 1, 1)], "date"),
        (["2024", "2023"], "categorical"),
        (["03/04/2021"], "categorical"),
    ],
)
def test_the_kind_follows_from_the_values(values, kind):
    assert infer_kind(pd.Series(values)) == kind


@pytest.mark.parametrize("values", [[1 + 2j], [[1, 2], [3]], ["a", 1]])
def test_unsupported_values_have_no_kind(values):
    assert infer_kind(pd.Series(values)) not in ("numeric", "categorical", "date")


@pytest.mark.parametrize("layout", ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y"])
def test_dates_are_days_since_1970_in_every_format(layout):
    days = pd.to_datetime(["1970-01-11", "2020-02-29"])
    column = pd.Series([*days.strftime(layout), None], name="sold")
    np.testing.assert_array_equal(as_days(column), [10.0, 18321.0, np.nan])
    assert date_format(column) is not None


def test_times_and_time_zones_are_fractions_of_days_in_utc():
    zoned = pd.Series(pd.to_datetime(["1970-01-02T01:00+01:00"]))
    np.testing.assert_array_equal(as_days(zoned), [1.0])
    np.testing.assert_array_equal(as_days(pd.Series(["1970-01-01T12:00:00"])), [0.5])
    remote = pd.Series(np.array([10**9, "NaT"], "datetime64[D]").astype("datetime64[s]"))  # too far for microseconds
    np.testing.assert_array_equal(as_days(remote), [1e9, np.nan])


@pytest.mark.parametrize("values", [["31.02.2019"], ["2024"], ["03/04/2021"], ["2020-01-01", "soon"], [1, 2], []])
def test_other_values_have_no_date_format(values):
    assert date_format(pd.Series(values)) is None


@pytest.mark.parametrize("values", [["2020-01-01", "last May"], [20200101], ["01.02.2020"]])
def test_a_value_in_another_format_is_refused_with_its_column(values):
    with pytest.raises(InputError, match=rf"column 'sold': .* in row \d.*{ISO}"):
        as_days(pd.Series(values, name="sold"), ISO)


def test_text_that_looks_like_dates_is_recognised():
    assert looks_like_dates(pd.Series(["03/04/2021", "5/6/2021"]))
    assert looks_like_dates(pd.Series(["2021.4.3"]))
    assert not looks_like_dates(pd.Series(["3 apples"]))

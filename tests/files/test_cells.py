"""Cells: kinds of columns, numbers, dates, missing marks, and messages about bad cells."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from pyspar.cells import MISSING_MARKS, PLAIN, BadCell, ReadOptions, bad_cells_error, infer_kind, to_numbers

COMMA = ReadOptions(decimal=",")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", ""], "number"),
        (["1", "2", "3", "many"], "number"),
        (["0,5", "1,25"], "number"),
        (["1,599", "$8.33", "12 %", "9 €"], "number"),
        (["1", "ground", "2", "attic"], "category"),
        (["4711-1", "0815-2", "1.2.3"], "category"),
        (["true", "False", "TRUE"], "truth"),
        (["2024-01-31", "2024-02-01 12:00"], "date"),
        (["2024-01", "2024-02"], "date"),
        (["31.12.2024", "1.1.2025"], "date"),
        (["2024/01/31", "x", "2024/01/30"], "date"),
        (["2024/01/31", "1.2.2024", "x"], "date"),
        (["03/04/2021"], "category"),
        (["2024", "2025"], "number"),
        (["NA", "", "?"], "empty"),
        ([None, None], "empty"),
        ([1, None], "number"),
        ([1.5], "number"),
        (np.float32([1.5]), "float32"),
        ([Decimal("1.50")], "number"),
        ([True, None], "truth"),
        ([date(2024, 1, 31)], "date"),
        ([datetime(2024, 1, 31)], "date"),
        ([[1, 2]], "type list<item: int64>"),
        ([b"x"], "type binary"),
    ],
)
def test_the_kind_of_a_column_follows_from_its_values(values, kind):
    assert infer_kind(pa.array(values), PLAIN) == kind
    if isinstance(values[0], str):
        assert infer_kind(pa.array(values).dictionary_encode(), PLAIN) == kind


@pytest.mark.parametrize(
    ("text", "options", "number"),
    [
        ("1.5", PLAIN, 1.5),
        (" -2e3 ", PLAIN, -2000.0),
        ("+7", PLAIN, 7.0),
        (".5", PLAIN, 0.5),
        ("1,869", COMMA, 1.869),
        ("2,000", COMMA, 2.0),
        ("1.869", COMMA, None),
        ("1.000,5", COMMA, None),
        ("gone", ReadOptions(na=("gone",)), np.nan),
        *((mark, PLAIN, np.nan) for mark in MISSING_MARKS),
        *((bad, PLAIN, None) for bad in ["1,869", "2,000", "1 000", "$8", "12 %", "inf", "1e61", "0x10", "true"]),
    ],
)
def test_numbers_have_one_notation(text, options, number):
    for other in ("7", "many"):  # alone with numbers, and beside a bad cell
        values, bad = to_numbers(pa.array([text, other]), "number", options)
        np.testing.assert_equal(values[0], np.nan if number is None else number)
        assert [row for row, _ in bad] == [*([0] if number is None else []), *([1] if other == "many" else [])]


@pytest.mark.parametrize(
    ("cells", "kind", "day"),
    [
        (["1970-01-02"], "date", 1.0),
        (["1970-01-02T12:00:00"], "date", 1.5),
        (["1970-01-02 06:00:00Z"], "date", 1.25),
        (["1970-02"], "date", 31.0),
        ([datetime(1970, 1, 2, 12)], "date", 1.5),
        ([datetime(1970, 1, 2, tzinfo=UTC)], "date", 1.0),
        (["2.1.1970", "1970/1/3", "1970-01-04"], "date", 1.0),
        *(([bad], "date", None) for bad in ("2024-02-30", "last May", "20240131")),
        *(([day], "date", 1.0) for day in ("2.1.1970", "1970/1/2", "1970-01-02T12:00:00+12:00", date(1970, 1, 2))),
    ],
)
def test_dates_are_days_since_1970(cells, kind, day):
    values, bad = to_numbers(pa.array(cells), kind, PLAIN)
    np.testing.assert_equal(values[0], np.nan if day is None else day)
    assert len(bad) == (day is None)
    for unit in ("s", "ms", "us", "ns"):
        assert to_numbers(pa.array([datetime(1970, 1, 2)], pa.timestamp(unit)), "date", PLAIN)[0] == [1.0]


@pytest.mark.parametrize("cells", [[-999.0, 1.0], [-999, 1], np.float32([-999.9, 1.0]), ["-999.0", "1"], [np.inf, 1.0]])
def test_a_mark_that_is_a_number_is_missing_in_every_notation(cells):
    near = pa.array([99999990.0, 99999999.0])
    np.testing.assert_equal(to_numbers(near, "number", ReadOptions(na=("99999999",)))[0], [99999990.0, np.nan])
    options = ReadOptions(na=("-999", "-999.9", "inf", "gone"))
    values, bad = to_numbers(pa.array(cells), "number", options)
    np.testing.assert_equal(values, [np.nan, 1.0])
    assert not bad
    assert infer_kind(pa.array(["-999,0", "0,5"]), COMMA._replace(na=("-999",))) == "number"
    np.testing.assert_equal(
        to_numbers(pa.array(["-999,50", "0,5"]), "number", COMMA._replace(na=("-999,5",)))[0], [np.nan, 0.5]
    )


def test_truth_values_and_numbers_of_another_kind_than_in_the_source():
    assert to_numbers(pa.array(["True", "false", "1", ""]), "truth", PLAIN)[0].tolist()[:3] == [1.0, 0.0, 1.0]
    assert to_numbers(pa.array([True, None]), "truth", PLAIN)[0][0] == 1.0
    assert to_numbers(pa.array([Decimal("1.25")]), "number", PLAIN)[0].tolist() == [1.25]
    assert to_numbers(pa.array([date(2024, 1, 1)]), "number", PLAIN)[1] == [(0, "2024-01-01")]
    assert to_numbers(pa.array([3]), "date", PLAIN)[1] == [(0, "3")]
    assert to_numbers(pa.array(["yes"]), "truth", PLAIN)[1] == [(0, "yes")]


def test_a_message_names_three_cells_and_the_option_that_helps():
    file = SimpleNamespace(path=Path("homes.csv"), role="source", options=PLAIN)
    text = str(bad_cells_error([BadCell("area", row, "0,5") for row in range(5)], file))
    assert text.startswith(
        "source 'homes.csv': 5 bad cells among numbers or dates: '0,5' in column 'area', row 2 (the "
    )
    assert text.count("in column") == 3
    assert "and 2 more" in text
    for option in ("--decimal ,", "--bad-cells impute", "--na 0,5", "--drop area", "--category area"):
        assert option in text
    file.options = COMMA
    assert "leave out --decimal" in str(bad_cells_error([BadCell("area", 0, "0.5")], file))
    assert "percent" in str(bad_cells_error([BadCell("area", 0, "5 %")], file))

"""The preprocessing: values as numbers and words, and the transformers that a model stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pyspar.errors import InputError
from pyspar.tables.columns import (
    select_features,
)
from pyspar.tables.encode import (
    MISSING_CATEGORY,
    DateParts,
    Numbers,
    TableEncoder,
    Words,
    as_numbers,
    as_words,
    build_encoder,
    list_raw_columns,
)
from pyspar.tables.inputs import Request


def select(table, **options):
    return select_features(table, "price", Request(Path("s.csv"), Path("t.csv"), "price", **options))


def test_encoded_features_have_raw_columns(source):
    selection = select(source, identity="home")
    encoder = build_encoder(source, selection.numeric, selection.categorical, selection.date).fit(
        source[list(selection.names)]
    )
    columns = list_raw_columns(encoder)
    assert columns[:6] == ["area", "garden", "lift", "town", "town", "town"]
    assert set(columns[6:]) == {"sold"}
    assert len(columns) == encoder.transform(source).shape[1]


@pytest.mark.parametrize("encoded", ["float32", "float64"])
def test_float32_is_kept_only_if_all_numbers_have_it(source, encoded):
    names = ("area", "garden")
    table = source.astype({"area": "float32", "garden": encoded})
    encoder = build_encoder(table, names).fit(table[list(names)])
    assert encoder.transform(table).dtype == encoded


def test_numbers_keep_their_precision_and_missing_values_are_nan():
    assert as_numbers(pd.Series([1.5, None], dtype="float32")).dtype == np.float32
    np.testing.assert_array_equal(as_numbers(pd.Series([True, None], dtype="boolean")), [1.0, np.nan])
    np.testing.assert_array_equal(as_numbers(pd.Series(pd.to_timedelta([12, 24], unit="h"))), [0.5, 1.0])
    np.testing.assert_array_equal(as_numbers(pd.Series(pd.Categorical([2, 1]))), [2.0, 1.0])


@pytest.mark.parametrize(
    ("values", "row", "count"), [(["1", "large", "x"], 1, "2 of 3"), (pd.to_datetime(["2020-01-01"]), 0, "1 of 1")]
)
def test_a_value_that_is_not_a_number_is_refused_with_column_and_row(values, row, count):
    with pytest.raises(InputError, match=rf"column 'area': .* in row {row} .*{count}.*drop the column"):
        as_numbers(pd.Series(values, name="area"))


def test_words_of_whole_numbers_have_no_decimal_point():
    assert as_words(pd.Series([1.0, 2.5, -0.0, None])).tolist() == ["1", "2.5", "0", None]
    texts = ["1.0", "-3.0", "-0.0", "-0", "--3.0", "².0", "1.00", "3.0\n"]
    assert as_words(pd.Series(texts)).tolist() == ["1", "-3", "0", "0", "--3.0", "².0", "1.00", "3.0\n"]


def test_numbers_of_one_precision_are_copied_and_others_converted():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["3", "4"]})
    np.testing.assert_array_equal(Numbers().fit(frame).transform(frame), [[1, 3], [2, 4]])
    assert Numbers("float32").fit(frame[["a"]]).transform(frame[["a"]]).dtype == np.float32


def test_missing_categories_are_a_category_or_the_most_frequent_one():
    complete, incomplete = pd.DataFrame({"a": ["x", "y", "y"]}), pd.DataFrame({"a": ["x", None, "y"]})
    assert Words().fit(complete).transform(incomplete)[:, 0].tolist() == ["x", "y", "y"]
    assert Words().fit(incomplete).transform(incomplete)[:, 0].tolist() == ["x", MISSING_CATEGORY, "y"]


def test_constant_date_parts_are_omitted():
    frame = pd.DataFrame({"sold": ["2020-01-06", "2020-01-13", "2020-01-20"]})  # Mondays at midnight
    parts = DateParts().fit(frame)
    assert parts.get_feature_names_out().tolist() == ["sold_days", "sold_year_sin", "sold_year_cos"]
    np.testing.assert_allclose(parts.transform(frame)[:, 0], [-7.0, 0.0, 7.0])
    assert np.isnan(parts.transform(pd.DataFrame({"sold": [None]}))).all()


def test_a_table_without_columns_of_the_fit_is_refused_and_they_are_named():
    encoder = TableEncoder([("numeric", Numbers(), ["area", "garden"])]).fit(
        pd.DataFrame({"area": [1.0, 2.0], "garden": [3.0, 4.0]})
    )
    with pytest.raises(InputError, match=r"1 of 2 .*'area'; did you mean 'Area'\?"):
        encoder.transform(pd.DataFrame({"Area": [1.0], "garden": [2.0]}))
    with pytest.raises(InputError, match=r"'area', 'garden', got ndarray"):
        encoder.transform(np.ones((1, 2)))


def test_an_error_from_python_does_not_name_options_of_the_command_line():
    with pytest.raises(InputError, match=r"'area'.*drop the column") as error:
        as_numbers(pd.Series([1.0, "large"], name="area"))
    assert "--" not in str(error.value)


def test_an_integer_that_is_too_large_for_a_float_is_an_input_error():
    with pytest.raises(InputError, match=r"'area': 10+ in row 1 .*1 of 3 values"):
        as_numbers(pd.Series([1, 10**400, 3], name="area", dtype=object))

"""Outputs are checked before anything is read. Ids and categories have one text in every format and reader."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

from pyspar.errors import InputError
from pyspar.tables.adapt import adapt_files
from pyspar.tables.inputs import Request
from pyspar.tables.label import label_files
from pyspar.tables.write import Output, check_path


def test_an_output_in_a_read_only_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match=r"--output '.*p\.csv': .*read-only"):
        check_path(tmp_path / "p.csv", "--output", (".csv",), ())


def test_an_output_that_is_a_folder_is_refused(tmp_path):
    (tmp_path / "p.csv").mkdir()
    with pytest.raises(InputError, match=r"--output '.*p\.csv' is a folder"):
        check_path(tmp_path / "p.csv", "--output", (".csv",), ())


IDS = {
    "s": [datetime(2024, 1, 31), datetime(2024, 1, 31, 12, 30)],
    "us": [datetime(2024, 1, 31, 12, 0, 0, 500), datetime(2024, 1, 31)],
    "zone": [datetime(2024, 1, 31, tzinfo=UTC), datetime(2024, 7, 31, tzinfo=UTC)],
    "date32": [date(2024, 1, 31), date(1969, 7, 20)],
    "time64": [time(12, 30), time(0, 0, 1)],
    "duration": [timedelta(days=1, seconds=1), timedelta(microseconds=5)],
    "bool_": [True, False],
    "binary": [b"a-1", b"b"],
    "float32": [0.1, 3.0],
    "float64": [0.1, 1e20],
    "decimal": [Decimal("1.50"), Decimal("2.00")],
    "categories": ["b", "a"],
    "string_view": ["b", "a"],
    "binary_view": [b"a-1", b"b"],
    "nanoseconds": [1, 86_399_000_500_000],
    "day": [2_932_897, -719_529],
    "late": [253_402_300_800_000, 253_402_300_800_500],
    "late zone": [0, 253_402_300_800_000],
}
TEXTS = {
    "s": ["2024-01-31 00:00:00.000", "2024-01-31 12:30:00.000"],
    "us": ["2024-01-31 12:00:00.000500", "2024-01-31 00:00:00.000000"],
    "zone": ["2024-01-31 01:00:00.000000000+0100", "2024-07-31 02:00:00.000000000+0200"],
    "date32": ["2024-01-31", "1969-07-20"],
    "time64": ["12:30:00.000000", "00:00:01.000000"],
    "duration": ["86401000000", "5"],
    "bool_": ["true", "false"],
    "binary": ["a-1", "b"],
    "float32": ["0.1", "3"],
    "float64": ["0.1", "1e+20"],
    "decimal": ["1.50", "2.00"],
    "categories": ["b", "a"],
    "string_view": ["b", "a"],
    "binary_view": ["a-1", "b"],
    "nanoseconds": ["00:00:00.000000001", "23:59:59.000500000"],
    "day": ["10000-01-01", "-0001-12-31"],
    "late": ["10000-01-01 00:00:00.000", "10000-01-01 00:00:00.500"],
    "late zone": ["1970-01-01 01:00:00.000+0100", "10000-01-01 01:00:00.000+0100"],
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_have_the_same_text_and_type_in_memory_and_in_a_stream(kind, tmp_path):
    types = {
        "s": pyarrow.timestamp("s"), "us": pyarrow.timestamp("us"), "zone": pyarrow.timestamp("ns", "Europe/Berlin"),
        "duration": pyarrow.duration("us"), "decimal": pyarrow.decimal128(5, 2), "time64": pyarrow.time64("us"),
        "categories": pyarrow.dictionary(pyarrow.int8(), pyarrow.string()), "nanoseconds": pyarrow.time64("ns"),
        "day": pyarrow.date32(), "late": pyarrow.timestamp("ms"), "late zone": pyarrow.timestamp("ms", "Europe/Berlin"),
    }  # fmt: skip
    numbers = np.random.default_rng(0).normal(size=(40, 3))
    pd.DataFrame(numbers, columns=["a", "b", "price"]).to_csv(tmp_path / "s.csv", index=False)
    ids = pyarrow.array([*IDS[kind], None], types.get(kind) or getattr(pyarrow, kind)())
    table = pyarrow.table({"key": ids, "a": numbers[:3, 0], "b": numbers[:3, 1]})
    if kind == "us":  # pandas stores its index as a column
        table = pyarrow.Table.from_pandas(table.to_pandas().set_index("key"))
    parquet.write_table(table, tmp_path / "t.parquet")
    request = Request(tmp_path / "s.csv", tmp_path / "t.parquet", "price", identity="key")
    tables = []
    for stream in (False, True):
        text, typed = tmp_path / f"{stream}.csv", tmp_path / f"{stream}.parquet"
        for path in (text, typed):
            adapt_files(replace(request, stream=stream), output=Output(path))
        assert pd.read_csv(text, dtype=str, keep_default_na=False)["key"].tolist() == [*TEXTS[kind], ""]
        tables.append(parquet.read_table(typed))
    assert tables[0].schema == tables[1].schema
    assert tables[0]["key"] == tables[1]["key"]


SAFE_IDS = {
    "whole": ([2**62 + 1, None, -7], pyarrow.int64(), [str(2**62 + 1), "", "-7"]),
    "text": (["=1+1", None, "-a"], pyarrow.string(), ["'=1+1", "", "'-a"]),
}


@pytest.mark.parametrize(("cells", "kind", "texts"), SAFE_IDS.values(), ids=list(SAFE_IDS))
def test_a_safe_file_changes_text_only(cells, kind, texts, tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "price"]).to_csv(tmp_path / "s.csv", index=False)
    ids = pyarrow.array(cells, kind)
    rows = pyarrow.table({"=key": ids, "a": rng.normal(size=3), "b": rng.normal(size=3)})
    parquet.write_table(rows, tmp_path / "t.parquet")
    request = Request(tmp_path / "s.csv", tmp_path / "t.parquet", "price", identity="=key")
    out = tmp_path / "p.csv"
    for stream in (False, True):
        adapt_files(replace(request, stream=stream), output=Output(out, safe_csv=True))
        assert pd.read_csv(out, dtype=str, keep_default_na=False)["'=key"].tolist() == texts
    label_files(replace(request, identity=None), n=3, output=Output(out, safe_csv=True))
    assert sorted(pd.read_csv(out, dtype=str, keep_default_na=False)["'=key"]) == sorted(texts)


def test_ids_that_are_lists_are_refused_in_a_text_file(tmp_path):
    numbers = np.random.default_rng(0).normal(size=(40, 3))
    pd.DataFrame(numbers, columns=["a", "b", "price"]).to_csv(tmp_path / "s.csv", index=False)
    table = pyarrow.table({"key": [[1, 2], [3]], "a": numbers[:2, 0], "b": numbers[:2, 1]})
    parquet.write_table(table, tmp_path / "t.parquet")
    request = Request(tmp_path / "s.csv", tmp_path / "t.parquet", "price", identity="key")
    for stream in (False, True):
        with pytest.raises(InputError, match=r"'key'.*list"):
            adapt_files(replace(request, stream=stream), output=Output(tmp_path / "p.csv"))
        adapt_files(replace(request, stream=stream), output=Output(tmp_path / "p.parquet"))
        assert parquet.read_table(tmp_path / "p.parquet")["key"].to_pylist() == [[1, 2], [3]]


@pytest.mark.parametrize("source_kind", ["parquet", "csv", "written by pandas"])
def test_a_category_has_one_name_whether_or_not_other_cells_are_missing(source_kind, tmp_path):
    codes = [2**53 + 1, 2**53 + 3, 7, -3]
    rng = np.random.default_rng(0)
    rows = {"a": rng.normal(size=40), "price": rng.normal(size=40)}
    source = pyarrow.table({**rows, "code": pyarrow.array([*codes * 9, *[None] * 4], pyarrow.int64())})
    parquet.write_table(pyarrow.table({"a": rows["a"], "code": codes * 10}), tmp_path / "t.parquet")
    path = tmp_path / ("s.parquet" if source_kind == "parquet" else "s.csv")
    if source_kind == "parquet":
        parquet.write_table(source, path)
    elif source_kind == "csv":
        source.to_pandas(types_mapper={pyarrow.int64(): pd.Int64Dtype()}.get).to_csv(path, index=False)
    else:  # '7.0', because pandas stores the column as floats
        codes = [7, -3, 11, 12]
        frame = source.to_pandas().assign(code=[*map(float, codes * 9), *[np.nan] * 4])
        frame.to_csv(path, index=False)
        assert "7.0" in path.read_text()
        parquet.write_table(pyarrow.table({"a": rows["a"], "code": codes * 10}), tmp_path / "t.parquet")
    data = adapt_files(Request(path, tmp_path / "t.parquet", "price", categories=("code",))).data
    assert data.unseen.rows == 0
    assert data.n_encoded == 1 + len(codes) + 1  # one for each code, and one for missing values


def test_integers_with_nulls_stay_exact_in_the_rows_to_label(tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "price"]).to_csv(tmp_path / "s.csv", index=False)
    codes = pyarrow.array([2**60 + 1] * 19 + [None], pyarrow.int64())
    rows = pyarrow.table({"a": rng.normal(size=20), "b": rng.normal(size=20), "order": codes})
    parquet.write_table(rows, tmp_path / "t.parquet")
    out = tmp_path / "to_label.csv"
    label_files(Request(tmp_path / "s.csv", tmp_path / "t.parquet", "price"), n=20, output=Output(out))
    assert sorted(pd.read_csv(out, dtype=str, keep_default_na=False)["order"]) == ["", *[str(2**60 + 1)] * 19]

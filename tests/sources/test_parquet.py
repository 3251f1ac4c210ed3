"""Parquet: damaged text, names and row counts are refused with the name of the file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspar.errors import InputError
from pyspar.sources.files import moments_of_file, open_rows, parquet
from pyspar.tables.load import load_table

TABLE = pa.table({"key": ["first", "second", "third"], "size": [1.0, 2.0, 4.0]})


@pytest.fixture
def damage(tmp_path):
    def damage(old, new):
        path = tmp_path / "x.parquet"
        pq.write_table(TABLE, path, compression="none", use_dictionary=False)
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new))
        return path

    return damage


@pytest.mark.parametrize(("old", "new"), [(b"second", b"sec\xffnd"), (b"size", b"si\xffe")], ids=["text", "name"])
def test_text_and_names_that_are_not_utf8_are_refused(damage, old, new):
    path = damage(old, new)
    for read in (open_rows, moments_of_file, lambda path: load_table(path, "file", verbatim="key")):
        with pytest.raises(InputError, match=r"x\.parquet': damaged"):
            read(path)


def test_text_after_the_sample_that_is_not_utf8_is_refused(damage, monkeypatch):
    monkeypatch.setattr(parquet, "_SAMPLE_ROWS", 1)
    rows = open_rows(damage(b"second", b"sec\xffnd"))
    with pytest.raises(InputError, match=r"x\.parquet': damaged"):
        list(rows.read(["size"], identity="key"))


@pytest.mark.parametrize("n_rows", [2, 9])
def test_a_footer_with_another_number_of_rows_is_refused(damage, n_rows):
    rows = open_rows(damage(b"first", b"FIRST"))
    rows = replace(rows, files=(replace(rows.files[0], n_rows=n_rows),))
    with pytest.raises(InputError, match=rf"x\.parquet': damaged .*3 rows, but the footer states {n_rows}"):
        list(rows.read(["size"]))


def test_the_first_file_of_a_folder_may_have_no_rows(tmp_path):
    table = pa.table({"share": ["10 %", "30 %"], "size": [1.0, 2.0]})
    pq.write_table(table.slice(0, 0), tmp_path / "a.parquet")
    pq.write_table(table, tmp_path / "b.parquet")
    np.testing.assert_allclose(moments_of_file(tmp_path).mean, [0.2, 1.5])

"""Files: CSV, workbooks, Parquet and arrays of one table are one table; damaged files are refused with their name."""

from __future__ import annotations

import gzip
import subprocess
import sys
from datetime import datetime
from decimal import Decimal

import numpy as np
import openpyxl
import openpyxl.chart
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspar import InputError, Moments
from pyspar.cells import ReadOptions
from pyspar.cli.files import Request, convert, load_inputs, read_table
from pyspar.sources.files import open_rows


def read(path, **options):
    return read_table(open_rows(path, ReadOptions(**options)))


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.normal(size=30),
            "whole": rng.integers(0, 9, 30),
            "gaps": [None if row % 7 == 0 else row / 4 for row in range(30)],
            "new": rng.random(30) < 0.5,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, 30), unit="D"),
            "town": rng.choice(["Ulm", "Köln"], 30),
            "y": rng.normal(size=30),
        }
    )


WRITERS = {
    "csv": lambda t, p: t.to_csv(p, index=False),
    "csv.gz": lambda t, p: t.to_csv(p, index=False),
    "tsv": lambda t, p: t.to_csv(p, index=False, sep="\t"),
    "parquet": lambda t, p: t.to_parquet(p, index=False),
    "xlsx": lambda t, p: t.to_excel(p, index=False),
    "bom.csv": lambda t, p: t.to_csv(p, index=False, encoding="utf-8-sig"),
    "blank.csv": lambda t, p: p.write_text("\ufeff\r\n \r\n" + t.to_csv(index=False, lineterminator="\r\n")),
    "mac.csv": lambda t, p: t.to_csv(p, index=False, lineterminator="\r"),
    "semicolon.csv": lambda t, p: t.to_csv(p, index=False, sep=";"),
    "pipe.csv": lambda t, p: t.to_csv(p, index=False, sep="|"),
    "index.parquet": lambda t, p: t.set_index(np.arange(5, 35)).to_parquet(p),
    "category.parquet": lambda t, p: t.astype({"town": "category"}).to_parquet(p, index=False),
    "text.parquet": lambda t, p: t.astype(str).replace("nan", None).to_parquet(p, index=False),
}


@pytest.mark.parametrize("ending", WRITERS)
def test_every_format_of_a_table_gives_one_result(table, tmp_path, ending):
    table.to_csv(tmp_path / "plain.csv", index=False)
    WRITERS[ending](table, tmp_path / f"t.{ending}")
    expected, got = (load_inputs(Request(tmp_path / n, tmp_path / n, "y")) for n in ("plain.csv", f"t.{ending}"))
    assert got.columns.kinds.keys() == expected.columns.kinds.keys()
    pd.testing.assert_frame_equal(got.X, expected.X, rtol=1e-14)
    np.testing.assert_allclose(got.y, expected.y, rtol=1e-14)
    assert (got.imputed, got.ignored) == (expected.imputed, expected.ignored)


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_a_missing_mark_is_missing_in_every_format(table, tmp_path, ending):
    table.loc[[2, 5], "a"] = -999.0
    table["whole"] = table["whole"].replace(3, -999)
    table["truth"] = table["whole"] > 4
    path = tmp_path / f"t.{ending}"
    WRITERS[ending](table, path)
    got = load_inputs(Request(path, path, "y", category=("whole", "truth"), options=ReadOptions(na=("-999",))))
    assert set(got.X["truth"]) == {"true", "false"}
    assert got.X["a"].isna().sum() == 2
    assert (got.X["whole"].isna() == (table["whole"] == -999)).all()


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_spaces_around_names_are_ignored_and_duplicate_names_refused(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    WRITERS[ending](pd.DataFrame([[1, 2]], columns=[" a", "y "]), path)
    assert read(path).names == ["a", "y"]
    assert read(path).numbers("y")[0] == [2.0]
    for twice in (" y", "y"):  # the label would be a feature
        rows = pa.table([[1.0], [2.0], [3.0]], names=["a", "y", twice])
        pq.write_table(rows, path) if ending == "parquet" else WRITERS[ending](rows.to_pandas(), path)
        with pytest.raises(InputError, match=r"duplicate column names 'y'; rename"):
            open_rows(path)


def test_a_workbook_has_errors_empty_rows_and_charts(tmp_path):
    book = openpyxl.Workbook()
    for row in (["id", "a", "when", None], ["007", 1.5, datetime(2024, 1, 31), None], [], ["8", "#DIV/0!", None, None],
                [123456789012345, 2, datetime(2024, 2, 1, 12), None], [], []):  # fmt: skip
        book.active.append(row)
    book.active.cell(9, 1).number_format = "0.00"  # an empty cell
    book.create_chartsheet("chart", 0).add_chart(openpyxl.chart.LineChart())
    book.save(tmp_path / "t.xlsx")
    table = read(tmp_path / "t.xlsx")
    assert table.names == ["id", "a", "when"]
    assert len(table.cells) == 4  # the empty row in the middle keeps the numbers of the others
    assert table.words("when")[0] == "2024-01-31"
    values, bad = table.numbers("a")
    assert [(cell.row, cell.text) for cell in bad] == [(2, "#DIV/0!")]
    np.testing.assert_equal(values, [1.5, np.nan, np.nan, 2.0])
    assert table.cells["id"].to_pylist() == ["007", None, "8", "123456789012345"]
    np.testing.assert_equal(read(tmp_path / "t.xlsx", decimal=",").numbers("a")[0], values)  # numbers have no mark
    with pytest.raises(InputError, match=r"'#DIV/0!' in column 'a', row 4 \(the header is row 1; data row 2 "):
        convert(table, {"a": "number"})


def test_parquet_decimals_are_numbers_in_memory_and_in_a_stream(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 2)).round(3)
    decimals = pa.array([Decimal(str(value)) for value in values[:, 0]], pa.decimal128(12, 4))
    pq.write_table(pa.table([decimals, values[:, 1]], names=["a", "y"]), tmp_path / "t.parquet")
    request = Request(tmp_path / "t.parquet", tmp_path / "t.parquet", "y")
    memory, stream = load_inputs(request), load_inputs(Request(*[tmp_path / "t.parquet"] * 2, "y", stream=True))
    np.testing.assert_allclose(memory.X["a"], values[:, 0], rtol=1e-15)
    assert stream.columns.kinds == memory.columns.kinds == {"a": "number"}
    np.testing.assert_allclose(stream.X.spread[0], 1.0)


FAULTS = {
    "empty.csv": (b"", "the file is empty"),
    "blank.csv": (b"\n\n", "the file is empty"),
    "header.csv": (b"a,y\n", "header and no rows"),
    "lines.csv": (b'"a\nb",y\n', "header and no rows"),
    "short.csv": (b"a,y\n1,2\n3\n", r"record 3 must have 2 fields .*got 1"),
    "long.csv": (b"a,y\n1,2,3\n", r"record 2 must have 2 fields .*got 3"),
    "name.csv": (b"a" * 200_000 + b",y\n1,2\n", "a column name has over 131,072 characters"),
    "quote.csv": (b'a,y\n1,"2\n3,4\n5,6\n', "quote is never closed"),
    "latin.csv": ("á,y\n1,2\n".encode("latin-1"), "save the file as UTF-8"),
    "cell.csv": ("a,y\ná,2\n".encode("latin-1"), "save the file as UTF-8"),
    "utf16.csv": ("a,y\n1,2\n".encode("utf-16"), "save the file as UTF-8"),
    "not.csv.gz": (b"a,y\n1,2\n", "cannot be read"),
    "cut.csv.gz": (gzip.compress(b"a,y\n" + b"1,2\n" * 99)[:-20], "cannot be read"),
    "not.parquet": (b"PAR1", "cannot be read"),
    "not.xlsx": (b"x", "cannot be read"),
    "not.npy": (b"x", "cannot be read"),
    "t.ods": (b"x", "unsupported suffix '.ods'"),
    "none": (b"x", "unsupported suffix 'none'"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_file_that_cannot_be_read_is_refused_with_its_name(tmp_path, name):
    data, reason = FAULTS[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=reason) as error:
        read(tmp_path / name)
    assert name in str(error.value)


def test_arrays_and_parquet_without_rows_are_refused(tmp_path):
    for array in (np.ones(3), np.empty((0, 3)), np.array([["a"]]), np.ones((2, 2, 2)), np.ones((2, 2)) * 1j):
        np.save(tmp_path / "x.npy", array)
        with pytest.raises(InputError, match="must be 2-D with numbers"):
            open_rows(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.array([[object()]]), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read"):
        open_rows(tmp_path / "x.npy")
    for ending, words in (("parquet", "no rows"), ("xlsx", "must have a header and rows")):
        WRITERS[ending](pd.DataFrame({"a": [1.0]})[:0], tmp_path / f"x.{ending}")
        with pytest.raises(InputError, match=words):
            open_rows(tmp_path / f"x.{ending}")


def test_a_file_without_permission_is_refused_with_the_reason(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("a,y\n1,2\n")
    monkeypatch.setattr("pyspar.sources.files.csv.reader", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13)))
    with pytest.raises(InputError, match=r"cannot read file .*x\.csv.*permission denied"):
        open_rows(tmp_path / "x.csv")


def test_a_flipped_bit_in_a_parquet_file_with_checksums_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.arange(5000.0)}), path, write_page_checksum=True, use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[2000] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="cannot be read"):
        read(path)


def test_quoted_line_breaks_blank_lines_and_names_are_kept(tmp_path):
    (tmp_path / "x.csv").write_text('\ufeff"a b",,y\n\n1,"two\nlines",3\n\n4,"5 "" x",6\n')
    table = read(tmp_path / "x.csv")
    assert table.names == ["a b", "Unnamed: 1", "y"]
    assert table.cells["Unnamed: 1"].to_pylist() == ["two\nlines", '5 " x']
    with pytest.raises(InputError, match=r"row 3 \(the header is row 1, empty lines do not count; data row 1 "):
        convert(table, {"Unnamed: 1": "number"})


def test_the_options_of_text_files(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a;b\n1,5;gone\n2,5;3\n")
    table = read(path, sep=";", decimal=",", na=("gone",))
    assert convert(table, {"a": "number", "b": "number"})[0]["a"].tolist() == [1.5, 2.5]
    with pytest.raises(InputError, match="--decimal ,"):
        convert(read(path, na=("gone",)), {"a": "number"})
    assert read(path, sep="x").names == ["a;b"]
    path.write_text('"a";"size, net";"b"\n1;2;3\n')  # the comma is taken as the separator
    for sep in ("x", None):
        with pytest.raises(InputError, match=r"no label column 'b'; the separator may be wrong: .* --sep"):
            load_inputs(Request(path, path, "b", options=ReadOptions(sep=sep)))


def test_a_folder_of_parquet_files_is_a_table(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    with pytest.raises(InputError, match=r"no \.parquet files"):
        open_rows(folder)
    pd.DataFrame({"a": [1, 2], "b": [0.5, 1.0]}).to_parquet(folder / "1.parquet")
    pd.DataFrame({"a": [2.5], "b": [3.0]}).to_parquet(folder / "2.parquet")
    (folder / ".hidden.parquet").write_text("x")
    assert convert(read(folder), {"a": "number"})[0]["a"].tolist() == [1.0, 2.0, 2.5]
    pd.DataFrame({"b": [3.0]}).to_parquet(folder / "3.parquet")
    with pytest.raises(InputError, match=r"3\.parquet lacks 'a'"):
        open_rows(folder)


def stream(path, label):
    return load_inputs(Request(path, path, label, stream=True))


def standardised_moments(rows):
    """Return the Moments of features and, in the last column, labels."""
    X = rows[:, :-1]
    return Moments.of((X - X.mean(axis=0)) / X.std(axis=0), rows[:, -1:])


def assert_same_moments(got, expected):
    np.testing.assert_allclose(got.root.T @ got.root, expected.root.T @ expected.root, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy", "csv.gz", "blank.csv"])
def test_moments_of_a_file_are_those_of_its_rows(tmp_path, ending, monkeypatch):
    monkeypatch.setattr("pyspar.sources.files.BATCH_BYTES", 4000)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 4)) + np.array([0, 5, 100, 0])
    frame, path = pd.DataFrame(rows, columns=["x0", "x1", "x2", "x3"]), tmp_path / f"rows.{ending}"
    np.save(path, rows) if ending == "npy" else WRITERS[ending](frame, path)
    inputs = stream(path, "x3")
    assert_same_moments(inputs.X, standardised_moments(rows))
    assert inputs.X.names == inputs.Z.names == ("x0", "x1", "x2")
    np.testing.assert_allclose(inputs.y, rows[:, 3])


def test_missing_values_in_a_stream_are_replaced_by_the_mean(tmp_path, monkeypatch):
    monkeypatch.setattr("pyspar.sources.files.BATCH_BYTES", 2000)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=["a", "b", "y"])
    frame.loc[::9, "a"] = None
    frame.loc[120:200, "b"] = None  # all of some batches
    frame.assign(same=3.0).to_csv(tmp_path / "rows.csv", index=False)
    inputs = stream(tmp_path / "rows.csv", "y")
    assert_same_moments(inputs.X, standardised_moments(frame.fillna(frame.mean()).to_numpy()))
    assert inputs.imputed["a"].startswith("34 source, 34 target, with the source mean")
    assert inputs.ignored == {"same": "constant in the source (3)"}


def test_rows_without_a_label_in_a_stream_are_refused_or_ignored(tmp_path, monkeypatch):
    monkeypatch.setattr("pyspar.sources.files.BATCH_BYTES", 2000)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=["a", "b", "y"])
    frame.loc[frame.index[120:200], "y"] = None  # all of some batches
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    with pytest.raises(InputError, match=r"80 of 300 labels are missing, in rows 122, .*--drop-unlabelled"):
        stream(path, "y")
    inputs = load_inputs(Request(path, path, "y", drop_unlabelled=True, stream=True))
    assert_same_moments(inputs.X, standardised_moments(frame.dropna().to_numpy()))
    assert inputs.notes == ["source: 80 rows without a label are ignored"]
    assert inputs.n_target == 300


def test_float32_columns_keep_their_precision(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    pd.DataFrame(X, columns=["a", "b"]).assign(y=1.0 * X[:, 0]).to_parquet(tmp_path / "x.parquet")
    assert (load_inputs(Request(*[tmp_path / "x.parquet"] * 2, "y")).X.dtypes == np.float32).all()
    assert stream(tmp_path / "x.parquet", "y").X.eps[0] == np.finfo(np.float32).eps


def test_a_long_cell_and_a_long_line_need_little_memory(tmp_path):
    words = ["x", "y"] * 10 + ["z" * 100_000, "q" * 100_000]
    pd.DataFrame({"a": range(22), "c": words, "y": np.arange(22) % 5}).to_csv(tmp_path / "x.csv", index=False)
    inputs = load_inputs(Request(*[tmp_path / "x.csv"] * 2, "y"))
    assert inputs.encoder.fit_transform(inputs.X).shape == (22, 5)
    with gzip.open(tmp_path / "line.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"a,y\n1,2\n" + b"1" * 40_000_000)
    with pytest.raises(InputError, match=r"longer than 16,000,000 bytes"):
        read(tmp_path / "line.csv.gz")
    (tmp_path / "header.csv").write_bytes(b"a" * 17_000_000)
    with pytest.raises(InputError, match=r"first line is longer"):
        open_rows(tmp_path / "header.csv")


PEAK = """
import re, sys
from pathlib import Path
from pyspar.cli.files import Request, load_inputs
load_inputs(Request(Path(sys.argv[1]), Path(sys.argv[1]), "y", stream=True))
# Not ru_maxrss, which a new process inherits from the one that started it.
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_the_peak_memory_of_a_stream_does_not_grow_with_the_rows(tmp_path):
    peaks = []
    for rows in (150_000, 600_000):  # both are several batches
        values = np.random.default_rng(0).normal(size=(rows, 40))
        frame = pd.DataFrame(values, columns=[*(f"c{j}" for j in range(39)), "y"])
        frame.to_parquet(tmp_path / "x.parquet", row_group_size=rows)
        del values, frame
        run = subprocess.run([sys.executable, "-c", PEAK, str(tmp_path / "x.parquet")], capture_output=True, text=True)
        peaks.append(int(run.stdout) / 1e3)
    assert peaks[1] < peaks[0] + 60  # MB; the larger file has 144 MB more


def test_ten_thousand_columns_are_read_in_linear_time(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 10_000))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10_000)])
    frame.to_csv(tmp_path / "x.csv", index=False)
    inputs = load_inputs(Request(*[tmp_path / "x.csv"] * 2, "c0"))
    assert inputs.X.shape == (12, 9_999)
    assert inputs.columns.transform(inputs.Z).shape == (12, 9_999)

"""Row files: every format gives the results of rows in memory, in constant memory, or an error that names the cause."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspar import Moments, SpARRegressor
from pyspar.errors import InputError
from pyspar.io.atomic import whole_file
from pyspar.sources.files import moments_of_file, open_rows
from pyspar.sources.files import rows as rows_module
from pyspar.tables.write import prediction_file

KINDS = ["parquet", "folder", "csv", "tsv.gz", "npy", "fortran.npy"]


@pytest.fixture
def table(shift):
    frame = pd.DataFrame(shift.X + 3.0, columns=list("abcde"))
    return frame.assign(y=shift.y, c=(100 * frame["c"]).round().astype(int), e=frame["e"] > 3)


@pytest.fixture
def write(tmp_path):
    def write(frame, kind):
        path = tmp_path / f"rows.{kind}"
        if kind == "parquet":
            frame.to_parquet(path, row_group_size=70, index=False)
        elif kind == "folder":
            path.mkdir()
            for k, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
                frame.iloc[part].to_parquet(path / f"part-{k}.parquet", index=False)
        elif kind.endswith("npy"):
            values = frame.to_numpy(dtype=np.float64)
            np.save(path, np.asfortranarray(values) if kind == "fortran.npy" else values)
        else:
            frame.to_csv(path, index=False, sep="\t" if "tsv" in kind else ",")
        return path

    return write


def names_of(rows, frame):
    """Return the label and the features of a file; columns of arrays have numbers."""
    place = list(frame.columns).index("y")
    return (rows.names[place], [name for j, name in enumerate(rows.names) if j != place])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_bytes", [200, 5000, 16_000_000])
def test_every_format_gives_the_coefficients_of_the_rows_in_memory(table, write, kind, batch_bytes):
    rows = open_rows(write(table, kind), batch_bytes=batch_bytes)
    label, features = names_of(rows, table)
    reports = []
    found = moments_of_file(rows, label=label, progress=lambda *done: reports.append(done))
    reference = SpARRegressor().fit(table.drop(columns="y"), table["y"])
    np.testing.assert_allclose(SpARRegressor().fit(found).coef_, reference.coef_, rtol=1e-10)
    assert found.names == tuple(features)
    assert found.rows == len(table)
    assert reports[-1] == (len(table), rows.n_bytes)
    assert reports == sorted(reports)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_adapts_an_estimator_as_its_rows_do(table, write, kind):
    path = write(table, kind)
    label, features = names_of(open_rows(path), table)
    est = SpARRegressor().fit(moments_of_file(path, label=label))
    est.adapt(moments_of_file(path, features=features))
    reference = SpARRegressor().fit(table.drop(columns="y"), table["y"]).adapt(table.drop(columns="y"))
    np.testing.assert_allclose(est.coef_, reference.coef_, rtol=1e-9, atol=1e-12)


def test_columns_and_size_are_known_before_rows_are_read(table, write):
    path = write(table.assign(town="Ulm"), "parquet")
    rows = open_rows(path)
    assert rows.names == (*"abcdey", "town")
    assert rows.numeric == tuple("abcdey")
    assert rows.n_rows == len(table)
    assert rows.n_bytes == path.stat().st_size


def test_only_float32_columns_make_float32_batches(table, write):
    path = write(table.astype({"a": "float32", "b": "float32"}), "parquet")
    rows = open_rows(path)
    assert next(rows.read(["a", "b"])).X.dtype == np.float32
    batch = next(rows.read(["a", "b", "d"], label="y"))
    X, y = batch.X, batch.y
    assert X.dtype == y.dtype == np.float64
    eps32 = np.finfo(np.float32).eps
    np.testing.assert_array_equal(moments_of_file(path, features=["a", "d"]).eps, [eps32, np.finfo(float).eps])


def test_columns_have_the_requested_order(table, write):
    for kind in KINDS:
        rows = open_rows(write(table, kind))
        first, second = rows.names[3], rows.names[0]
        X = np.concatenate([batch.X for batch in rows.read([first, second])])
        np.testing.assert_allclose(X, table[["d", "a"]].to_numpy(), rtol=1e-15)


def test_batches_have_about_the_requested_size(rng, tmp_path):
    np.save(tmp_path / "x.npy", rng.normal(size=(1000, 4)))
    sizes = [batch.X.nbytes for batch in open_rows(tmp_path / "x.npy", batch_bytes=8000).read(["x0", "x1", "x2", "x3"])]
    assert max(sizes) <= 8000
    assert len(sizes) < 8


def test_whole_numbers_in_one_file_and_fractions_in_another_are_widened(table, tmp_path):
    table[["a", "y"]].round().astype(int).to_parquet(tmp_path / "0.parquet")
    table[["a", "y"]].astype({"a": "float32"}).to_parquet(tmp_path / "1.parquet")
    table[["a", "y"]].to_parquet(tmp_path / "2.parquet")
    X = np.concatenate([batch.X for batch in open_rows(tmp_path).read(["a"])])
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X[-len(table) :, 0], table["a"])
    assert moments_of_file(tmp_path, features=["a"]).eps[0] == np.finfo(np.float32).eps  # the coarsest of the three


def test_a_fraction_after_a_block_of_whole_numbers_is_read(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("a,y\n" + "1,2\n" * 100 + "1.5,2.5\n")
    X = np.concatenate([batch.X for batch in open_rows(path, batch_bytes=64).read(["a"])])
    assert X[-1, 0] == 1.5


def test_semicolons_and_decimal_commas_are_read(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("a;b\n1,5;2\n-2,25;3\n")
    np.testing.assert_array_equal(next(open_rows(path).read(["a", "b"])).X, [[1.5, 2.0], [-2.25, 3.0]])


def write_predictions(est, rows, features, output, identity=None):
    with whole_file(output) as temporary, prediction_file(temporary, identity) as write:
        for batch in rows.read(features, identity=identity):
            write(batch.ids, est.predict(batch.X))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npy"])
@pytest.mark.parametrize("kind", ["folder", "csv", "npy"])
def test_streamed_predictions_are_those_of_the_estimator(table, write, tmp_path, kind, suffix):
    features = pd.DataFrame(table.drop(columns="y"), dtype=float)
    est = SpARRegressor().fit(features.to_numpy(), table["y"])
    rows = open_rows(write(features, kind), batch_bytes=1000)
    out = tmp_path / f"p{suffix}"
    write_predictions(est, rows, list(rows.names), out)
    if suffix == ".npy":
        written = np.load(out)
    elif suffix == ".parquet":
        written = pd.read_parquet(out)["prediction"]
    else:
        read = pd.read_csv(out, sep="\t" if suffix == ".tsv" else ",")
        assert read["row"].tolist() == list(range(len(table)))
        written = read["prediction"]
    np.testing.assert_allclose(written, est.predict(features.to_numpy()), rtol=1e-12)


def test_features_are_read_in_any_order_and_ids_are_unchanged(table, write, tmp_path):
    est = SpARRegressor().fit(table[["d", "a"]].to_numpy(), table["y"])
    path = write(table.assign(key=[f"{i:03d}" for i in range(len(table))]), "csv")
    write_predictions(est, open_rows(path), ["d", "a"], tmp_path / "p.csv", "key")
    read = pd.read_csv(tmp_path / "p.csv", dtype={"key": str})
    assert read["key"].tolist() == [f"{i:03d}" for i in range(len(table))]
    np.testing.assert_allclose(read["prediction"], est.predict(table[["d", "a"]].to_numpy()), rtol=1e-12)


def test_an_error_in_the_middle_leaves_no_predictions(table, write, tmp_path):
    est = SpARRegressor().fit(table[["a", "b"]].to_numpy(), table["y"])
    path = write(table.assign(a=table["a"].where(table.index != 250)), "parquet")
    with pytest.raises(InputError, match="row 250"):
        write_predictions(est, open_rows(path, batch_bytes=500), ["a", "b"], tmp_path / "p.csv")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_file_of_a_folder_without_a_column_is_named_before_rows_are_read(table, write, monkeypatch):
    folder = write(table, "folder")
    table.drop(columns="c").to_parquet(folder / "part-1.parquet")
    monkeypatch.setattr(rows_module.RowFile, "_read_checked", lambda *_: pytest.fail("rows were read"))
    with pytest.raises(InputError, match=r"part-1\.parquet': .*'c'.*'part-0\.parquet'"):
        moments_of_file(folder, label="y")


def test_a_file_of_a_folder_with_text_instead_of_numbers_is_named(table, write):
    folder = write(table, "folder")
    table.assign(c="many").to_parquet(folder / "part-2.parquet")
    with pytest.raises(InputError, match=r"part-2\.parquet', column 'c': .*string"):
        moments_of_file(folder, label="y")


@pytest.mark.parametrize("kind", ["parquet", "folder", "csv"])
@pytest.mark.parametrize("column", ["a", "y"])
def test_a_missing_value_is_refused_with_file_column_and_row(table, write, kind, column):
    table.loc[250, column] = np.nan
    frame = table.convert_dtypes(dtype_backend="pyarrow") if kind != "csv" else table
    path = write(frame, kind)
    # Rows are counted in the file that holds them; the third part of 300 rows starts at row 200.
    row, file = (50, "part-2.parquet") if kind == "folder" else (250, path.name)
    with pytest.raises(InputError, match=rf"{file}', column '{column}': missing .* row {row} "):
        moments_of_file(open_rows(path, batch_bytes=1500), label="y")


@pytest.mark.parametrize("kind", ["parquet", "folder", "csv", "npy"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e300])
def test_a_value_that_is_not_finite_is_refused_with_column_and_row(rng, write, kind, value):
    if kind == "csv" and np.isnan(value):
        value = np.inf  # in text, nan is a missing value
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=["x0", "x1", "x2"])
    frame.loc[250, "x1"] = value
    path = write(frame, kind)
    if kind in ("parquet", "folder"):  # written again by Arrow itself, because pandas writes NaN as missing
        part, first = (path, 0) if kind == "parquet" else (path / "part-2.parquet", 200)
        pq.write_table(pa.table({name: frame[name].to_numpy()[first:] for name in frame.columns}), part)
    shown = {"folder": 50, "csv": 252}.get(kind, 250)  # a spreadsheet counts the header of a text file
    with pytest.raises(InputError, match=rf"column 'x1': .* {f'{value:g}'.replace('+', '.')} in row {shown} "):
        moments_of_file(open_rows(path, batch_bytes=1500), label="x2")


def test_a_missing_label_can_be_read_as_nan(table, write):
    table.loc[7, "y"] = np.nan
    (batch,) = open_rows(write(table, "csv")).read(["a"], label="y", missing_labels=True)
    assert np.flatnonzero(np.isnan(batch.y)).tolist() == [7]


@pytest.mark.parametrize("kind", ["parquet", "npy", "tsv.gz"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_a_file_cut_off_in_the_middle_is_refused(table, write, kind, share):
    path = write(table, kind)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(InputError, match=path.name):
        moments_of_file(path)


def test_a_text_cut_off_inside_a_line_is_refused(table, write):
    path = write(table, "csv")
    text = path.read_text()
    path.write_text(text[: text.rindex(",")])
    with pytest.raises(InputError, match=r"record 301 .* 6 fields.* got 5;"):
        moments_of_file(path)


def test_a_damaged_page_is_refused(rng, tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"a": rng.normal(size=10_000), "b": rng.normal(size=10_000)})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 200] = bytes(200)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"x\.parquet': .*Parquet"):
        moments_of_file(path)


def test_a_quote_that_never_closes_is_refused(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text('a,note\n1,"fine"\n2,5" pipe\n3,"open\n4,x\n5,y\n')
    with pytest.raises(InputError, match=r"q\.csv': a quote after line 3"):
        moments_of_file(path)
    path.write_text('a,note\n1,"fine"\n2,5" pipe\n3,x\n')
    assert moments_of_file(path).rows == 3


@pytest.mark.parametrize(("line", "got"), [("1,2,3", 3), ("1", 1)])
def test_a_ragged_record_is_refused_by_number(tmp_path, line, got):
    path = tmp_path / "r.csv"
    path.write_text("a,b\n" + "1,2\n" * 50 + line + "\n")
    with pytest.raises(InputError, match=rf"record 52 .* 2 fields.* got {got};"):
        moments_of_file(open_rows(path, batch_bytes=64))


def test_a_word_among_numbers_is_refused_and_its_column_named(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("t,a,b\n" + "x,1,2\n" * 50 + "x,3,many\n")
    with pytest.raises(InputError, match=r"'many' in column 'b', row 52 .*data row 50 "):
        moments_of_file(open_rows(path, batch_bytes=64), features=["b", "a"])


@pytest.mark.parametrize("content", ["", "\n\n", "a,b\n"])
def test_a_text_without_rows_is_refused(tmp_path, content):
    (tmp_path / "e.csv").write_text(content)
    with pytest.raises(InputError, match=r"e\.csv': .*(empty|no rows|no numeric)"):
        moments_of_file(tmp_path / "e.csv")


def test_files_without_rows_are_refused(table, write, tmp_path):
    with pytest.raises(InputError, match=r"rows\.parquet': .*6 columns"):
        open_rows(write(table[:0], "parquet"))
    np.save(tmp_path / "e.npy", np.empty((0, 3)))
    with pytest.raises(InputError, match=r"e\.npy': .*\(0, 3\)"):
        open_rows(tmp_path / "e.npy")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty': .*\.parquet"):
        open_rows(tmp_path / "empty")
    with pytest.raises(InputError, match=r"not found: '.*nowhere\.parquet'"):
        open_rows(tmp_path / "nowhere.parquet")
    (tmp_path / "rows.xlsx").touch()
    with pytest.raises(InputError, match=r"rows\.xlsx': .*CSV"):
        open_rows(tmp_path / "rows.xlsx")


def test_a_column_that_does_not_exist_or_is_not_numeric_is_refused(table, write):
    path = write(table.assign(town="Ulm"), "parquet")
    with pytest.raises(InputError, match=r"column 'town': .*string"):
        moments_of_file(path, features=["a", "town"])
    with pytest.raises(InputError, match="column 'prize'"):
        moments_of_file(path, label="prize")


def test_arrays_that_are_not_tables_of_numbers_are_refused(tmp_path):
    for values in (np.ones(3), np.ones((3, 2), complex), np.array([[1, None]], object)):
        np.save(tmp_path / "x.npy", values, allow_pickle=True)
        with pytest.raises(InputError, match=r"x\.npy': .*(\(3,\)|complex128|Python objects)"):
            open_rows(tmp_path / "x.npy")


def test_closing_the_iterator_stops_the_reader_and_closes_the_file(table, write):
    batches = open_rows(write(table, "csv"), batch_bytes=200).read(["a"])
    next(batches)
    batches.close()
    assert list(batches) == []


def test_text_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "l.csv").write_bytes("área,price\n1,2\n".encode("latin-1"))
    with pytest.raises(InputError, match="UTF-8"):
        open_rows(tmp_path / "l.csv")


def test_a_file_that_is_not_gzip_is_refused(tmp_path):
    (tmp_path / "l.csv.gz").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="gzip"):
        open_rows(tmp_path / "l.csv.gz")
    (tmp_path / "l.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert moments_of_file(tmp_path / "l.csv.gz").rows == 1


def test_moments_of_one_batch_are_those_of_the_rows(rng, tmp_path):
    X = rng.normal(size=(50, 3))
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_allclose(moments_of_file(tmp_path / "x.npy").root, Moments.of(X).root)


PEAK = """
import resource, sys
from pyspar import SpARRegressor
from pyspar.sources.files import moments_of_file, open_rows

rows = open_rows(sys.argv[1], batch_bytes=2_000_000)
SpARRegressor().fit(moments_of_file(rows, label="x0"))
try:  # getrusage returns the peak of the parent process if that is higher
    lines = open("/proc/self/status").read().splitlines()
    print(next(line for line in lines if line.startswith("VmHWM")).split()[1])
except OSError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_the_peak_memory_of_a_streamed_fit_does_not_grow_with_the_rows(rng, tmp_path):
    """One large row group is the hard case: without a bound, all its pages are loaded at once."""
    peaks, sizes = [], []
    for times in (1, 8):
        path = tmp_path / f"{times}.parquet"
        block = rng.standard_normal((times * 75_000, 32), dtype=np.float32)
        table = pa.table({f"x{j}": np.ascontiguousarray(block[:, j]) for j in range(32)})
        pq.write_table(table, path, compression="none", use_dictionary=False, row_group_size=10**9)
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        peaks.append(int(done.stdout) * 1024)
        sizes.append(path.stat().st_size)
    # Less than a third of 67 MB: the allocators keep some memory between batches.
    assert peaks[1] - peaks[0] < 0.3 * (sizes[1] - sizes[0])


def test_ids_must_have_one_type_that_the_output_can_hold(table, tmp_path):
    est = SpARRegressor().fit(table[["a", "b"]].to_numpy(), table["y"])
    for k, ids in enumerate((range(300), [f"n{i}" for i in range(300)])):
        table[["a", "b"]].assign(key=ids).to_parquet(tmp_path / f"{k}.parquet")
    with pytest.raises(InputError, match=r"'key' .*int64.*string"):
        write_predictions(est, open_rows(tmp_path), ["a", "b"], tmp_path / "p.csv", "key")
    (tmp_path / "pairs").mkdir()
    table[["a", "b"]].assign(key=[[1, 2]] * 300).to_parquet(tmp_path / "pairs" / "0.parquet")
    with pytest.raises(InputError, match=r"'key': .*list"):
        write_predictions(est, open_rows(tmp_path / "pairs"), ["a", "b"], tmp_path / "p.csv", "key")
    (tmp_path / "words").mkdir()
    table[["a", "b"]].assign(key=pd.Categorical(["x"] * 300)).to_parquet(tmp_path / "words" / "0.parquet")
    write_predictions(est, open_rows(tmp_path / "words"), ["a", "b"], tmp_path / "p.csv", "key")
    assert pd.read_csv(tmp_path / "p.csv")["key"].tolist() == ["x"] * 300

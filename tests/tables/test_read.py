"""Files become data frames: every format gives the same predictions, and damaged files are refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pyspar.errors import InputError
from pyspar.tables.adapt import adapt_files
from pyspar.tables.inputs import Request
from pyspar.tables.load import check_input, load_table
from pyspar.tables.write import Output

NUMBERS = ["area", "garden"]


def predictions(source, target, tmp_path, *, label="price"):
    adapt_files(Request(Path(source), Path(target), label), output=Output(tmp_path / "p.npy"))
    return np.load(tmp_path / "p.npy")


def read(path, **options):
    return load_table(path, "source", **options).frame


@pytest.fixture
def reference(files, source, target, tmp_path):
    return predictions(*files(source[[*NUMBERS, "price"]], target[NUMBERS]), tmp_path)


@pytest.mark.parametrize("suffix", [".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".CSV"])
def test_text_and_parquet_give_the_results_of_csv(reference, source, target, tmp_path, suffix):
    paths = tmp_path / f"s.2019{suffix}", tmp_path / f"t.2024{suffix}"
    for path, table in zip(paths, (source[[*NUMBERS, "price"]], target[NUMBERS])):
        if suffix == ".parquet":
            table.to_parquet(path)
        else:
            table.to_csv(path, index=False, sep="\t" if ".tsv" in suffix else ",")
    np.testing.assert_allclose(predictions(*paths, tmp_path), reference, rtol=1e-9)


@pytest.mark.parametrize(("place", "label"), [(2, "-1"), (2, "x2"), (0, "0"), (1, "x1")])
@pytest.mark.parametrize("with_label", [True, False])
def test_npy_columns_are_numbered_and_the_label_has_any_position(
    reference, source, target, tmp_path, place, label, with_label
):
    columns = list(NUMBERS)
    columns.insert(place, "price")
    np.save(tmp_path / "s.npy", source[columns].to_numpy())
    np.save(tmp_path / "t.npy", target[columns if with_label else NUMBERS].to_numpy())
    values = predictions(tmp_path / "s.npy", tmp_path / "t.npy", tmp_path, label=label)
    np.testing.assert_allclose(values, reference, rtol=1e-9)


def test_npz_has_features_as_X_and_the_label_with_its_key(reference, source, target, tmp_path):
    np.savez(tmp_path / "s.npz", X=source[NUMBERS].to_numpy(), y=source["price"].to_numpy())
    np.savez(tmp_path / "t.npz", X=target[NUMBERS].to_numpy())
    values = predictions(tmp_path / "s.npz", tmp_path / "t.npz", tmp_path, label="y")
    np.testing.assert_allclose(values, reference, rtol=1e-9)


def test_npz_arrays_of_one_dimension_are_columns(reference, source, target, tmp_path):
    np.savez(tmp_path / "s.npz", **{name: source[name].to_numpy() for name in [*NUMBERS, "price"]})
    np.savez(tmp_path / "t.npz", **{name: target[name].to_numpy() for name in NUMBERS})
    values = predictions(tmp_path / "s.npz", tmp_path / "t.npz", tmp_path)
    np.testing.assert_allclose(values, reference, rtol=1e-9)


def test_npz_columns_are_named_by_their_arrays(tmp_path):
    np.savez(tmp_path / "s.npz", X=np.ones((3, 2)), A=np.ones((3, 2)), one=np.ones((3, 1)), y=np.arange(3.0))
    assert list(read(tmp_path / "s.npz").columns) == ["x0", "x1", "A0", "A1", "one", "y"]
    np.savez(tmp_path / "s.npz", anything=np.ones((3, 2), dtype=">f8"))
    assert list(read(tmp_path / "s.npz").columns) == ["x0", "x1"]


def test_a_parquet_target_goes_with_a_csv_source(files, source, target, tmp_path):
    paths = files(source, target)
    expected = predictions(*paths, tmp_path)
    moved = target.assign(sold=pd.to_datetime(target["sold"]), town=target["town"].astype("category"), home=range(80))
    moved.to_parquet(tmp_path / "t.parquet")
    np.testing.assert_allclose(predictions(paths[0], tmp_path / "t.parquet", tmp_path), expected, rtol=1e-9)


def test_a_named_index_of_parquet_is_a_column(source, tmp_path):
    source.set_index("home").to_parquet(tmp_path / "s.parquet")
    assert read(tmp_path / "s.parquet").columns[0] == "home"
    source.set_axis(range(5, 125), axis=0).to_parquet(tmp_path / "s.parquet")
    assert list(read(tmp_path / "s.parquet").columns) == list(source.columns)


def test_the_order_of_the_target_columns_does_not_matter(files, source, target, tmp_path):
    expected = predictions(*files(source, target), tmp_path)
    np.testing.assert_allclose(predictions(*files(source, target[target.columns[::-1]]), tmp_path), expected)


def test_unusual_parquet_columns_are_converted_or_ignored(source, target, tmp_path):
    paths = tmp_path / "s.parquet", tmp_path / "t.parquet"
    for table, path in zip((source, target), paths):
        n = len(table)
        table = table.assign(
            dec=[Decimal(i % 7) for i in range(n)],
            maybe=pd.array([True, None, False, True] * (n // 4), dtype="boolean"),
            day=[datetime.date(2020, 1, 1 + i % 28) for i in range(n)],
            wait=pd.to_timedelta(np.arange(n), unit="h"),
            zoned=pd.date_range("2020-01-01", periods=n, freq="h", tz="Europe/Berlin"),
            pair=[[1, 2]] * n,
        )
        table.to_parquet(path)
    data = adapt_files(Request(*paths, "price", identity="home")).data
    assert (data.n_numeric, data.n_categorical, data.n_date) == (6, 1, 3)
    assert [column.column for column in data.ignored] == ["pair"]
    assert [(column.column, column.source, column.target) for column in data.imputed] == [("maybe", 30, 20)]


def test_quoted_line_breaks_and_blank_lines_are_not_records(source, tmp_path):
    source["remark"] = 'two\nlines, "quoted"'
    path = tmp_path / "s.csv"
    source.to_csv(path, index=False)
    with path.open("a") as file:
        file.write("\n\n")
    assert len(read(path)) == 120


def test_text_columns_and_verbatim_columns_are_kept(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("a,b,c\n007,NA,007\n1,1e5,NA\n")
    frame = read(path, as_text=["a"], verbatim="b")
    assert frame["a"].tolist() == ["007", "1"]
    assert frame["b"].tolist() == ["NA", "1e5"]
    assert frame["c"].isna().tolist() == [False, True]


@pytest.mark.parametrize(("separator", "suffix"), [(";", ".csv"), ("\t", ".csv"), (",", ".tsv")])
def test_another_separator_is_detected_and_noted(tmp_path, separator, suffix):
    path = tmp_path / f"s{suffix}"
    decimal = "," if separator == ";" else "."
    path.write_text(separator.join(["a", "b"]) + "\n" + separator.join([f"1{decimal}5", "x"]) + "\n")
    table = load_table(path, "source")
    assert table.frame["a"].tolist() == [1.5]
    assert repr(separator) in table.notes[0]
    expected = "\t" if suffix == ".tsv" else ","
    path.write_text(f"a{expected}b\n1{expected}x\n")
    assert load_table(path, "source").notes == ()


def test_a_file_has_one_column_if_no_separator_is_in_its_header(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("a\n1\n")
    assert read(path)["a"].tolist() == [1]


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("s.csv", b"area,price\n1,2\n3\n", r"record 3 .* 2 fields.* got 1;"),
        ("s.csv", b"area,price\n1,2,3\n", r"record 2 .* 2 fields.* got 3;"),
        ("s.csv", b'area,price\n"1\n",2\n3\n', "record 3 "),
        ("s.csv", b'area,price\n1,2\n3,"4\n5,6\n', "quote|fields"),
        ("s.csv", "área,price\n1,2\n".encode("latin-1"), "UTF-8.*0xe1"),
        ("s.csv", b"area,area\n1,2\n", "'area'"),
        ("s.csv", b"area,price\n", "no rows"),
        ("s.csv", b"\n\n", "empty"),
        ("s.csv", b"", "empty"),
        ("s.xlsx", b"1", r"\.xlsx.*CSV"),
        ("s.ods", b"1", r"\.ods.*CSV"),
        ("s", b"1", "'none'"),
        ("s.csv.gz", b"area,price\n1,2\n", "gzip"),
        ("s.parquet", b"area,price\n1,2\n", "Parquet"),
        ("s.npy", b"area,price\n1,2\n", r"\.npy"),
        ("s.npz", b"area,price\n1,2\n", r"\.npz"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name(tmp_path, name, content, match):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"source '.*/{name}'.*({match})"):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("name", lambda entry: entry.replace(b"xl/styles", b"xm/styles")),  # its dates would be read as numbers
        ("comment", lambda entry: entry[:33] + b"\xff" + entry[34:]),  # hides the entries after this one
        ("method", lambda entry: entry[:10] + b"\x63" + entry[11:]),
        ("version", lambda entry: entry[:6] + b"\x94" + entry[7:]),
    ],
)
def test_a_workbook_with_a_damaged_directory_is_refused(tmp_path, field, change):
    path = tmp_path / "s.xlsx"
    pd.DataFrame({"sold": pd.to_datetime(["2024-05-21"]), "price": [1.0]}).to_excel(path, index=False)
    assert read(path)["sold"].dt.year.tolist() == [2024]
    content = path.read_bytes()
    start = content.rfind(b"PK\x01\x02", 0, content.rfind(b"xl/styles.xml"))
    path.write_bytes(content[:start] + change(content[start : start + 59]) + content[start + 59 :])
    with pytest.raises(InputError, match=r"s\.xlsx"):
        read(path)


def test_files_that_do_not_exist_and_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"source file not found: '.*nowhere\.csv'"):
        check_input(tmp_path / "nowhere.csv", "source")
    with pytest.raises(InputError, match="is a folder"):
        check_input(tmp_path, "source")


@pytest.mark.parametrize("suffix", [".parquet", ".npy", ".npz", ".csv.gz"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_a_truncated_file_is_refused(source, tmp_path, suffix, share):
    path, numbers = tmp_path / f"cut{suffix}", source[[*NUMBERS, "price"]]
    if suffix == ".parquet":
        numbers.to_parquet(path)
    elif suffix == ".npy":
        np.save(path, numbers.to_numpy())
    elif suffix == ".npz":
        np.savez(path, X=numbers.to_numpy()[:, :2], y=numbers["price"].to_numpy())
    else:
        numbers.to_csv(path, index=False)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(InputError, match="cut"):
        read(path)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (np.ones((4, 2), complex), "complex128"),
        (np.array([[1, "a"], [None, 2]], object), "Python objects"),
        (np.ones((2, 2, 2)), r"\(2, 2, 2\)"),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_that_are_not_tables_of_numbers_are_refused(tmp_path, values, match, suffix):
    path = tmp_path / f"s{suffix}"
    if suffix == ".npy":
        np.save(path, values, allow_pickle=True)
    else:
        np.savez(path, X=values, y=np.arange(float(len(values))))
    with pytest.raises(InputError, match=match):
        read(path)


def test_arrays_of_one_dimension_and_of_different_lengths_are_refused(tmp_path):
    np.save(tmp_path / "s.npy", np.arange(5.0))
    with pytest.raises(InputError, match=r"\(5,\)"):
        read(tmp_path / "s.npy")
    np.savez(tmp_path / "s.npz", X=np.ones((4, 2)), y=np.arange(5.0))
    with pytest.raises(InputError, match=r"'X': 4, 'y': 5"):
        read(tmp_path / "s.npz")
    np.savez(tmp_path / "s.npz")
    with pytest.raises(InputError, match="no arrays"):
        read(tmp_path / "s.npz")
    np.save(tmp_path / "s.npy", np.empty((0, 3)))
    with pytest.raises(InputError, match="3 columns and no rows"):
        read(tmp_path / "s.npy")


def test_dates_that_pandas_cannot_represent_are_refused(tmp_path):
    np.savez(tmp_path / "s.npz", a=np.array([0, 2**62], "datetime64[D]"), y=np.arange(2.0))
    with pytest.raises(InputError, match=r"s\.npz', array 'a': a date is out of range"):
        read(tmp_path / "s.npz")


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".npz", ".parquet"])
def test_a_file_that_may_not_be_read_is_refused(source, tmp_path, monkeypatch, suffix):
    path = tmp_path / f"s{suffix}"
    path.write_text("x")
    reader = {".csv": "separator_of", ".npy": "Path.open", ".npz": "zipfile.ZipFile", ".parquet": ""}[suffix]

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    if suffix == ".parquet":
        monkeypatch.setattr("pyarrow.parquet.ParquetFile", denied)
    else:
        module = "sources.files.text" if suffix == ".csv" else "tables.read"
        monkeypatch.setattr(f"pyspar.{module}.{reader}", denied)
    with pytest.raises(InputError, match=rf"source '.*s\{suffix}': permission denied"):
        read(path)


def test_pandas_alone_pads_a_short_record(tmp_path):
    """The reason to count fields: if pandas raises an error for short records, the count can be removed."""
    (tmp_path / "s.csv").write_text("a,b\n1,2\n3\n")
    assert pd.read_csv(tmp_path / "s.csv")["b"].isna().sum() == 1


def test_a_damaged_description_of_the_columns_is_refused(source, tmp_path):
    path = tmp_path / "s.parquet"
    source[NUMBERS].to_parquet(path)
    content = path.read_bytes()
    for word, damaged in (
        (b'"columns":', b'"columns";'),
        (b'"pandas_type"', b'"pandas_typf"'),
        (b"float64", b"float\xe94"),
    ):
        assert word in content
        path.write_bytes(content.replace(word, damaged))
        with pytest.raises(InputError, match=r"s\.parquet"):
            read(path)


def test_a_flipped_bit_in_a_parquet_file_with_checksums_is_refused(source, target, files, tmp_path):
    path = tmp_path / "p.parquet"
    adapt_files(Request(*map(Path, files(source, target)), "price"), output=Output(path))
    values = read(path)["prediction"].to_numpy()
    content = bytearray(path.read_bytes())
    place = content.index(values[40].tobytes()) if values[40].tobytes() in content else 400
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="CRC"):
        read(path)

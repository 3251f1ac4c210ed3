"""The formats of numbers in source, target, labels and later files: compared, and never silently read in two ways."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pyspar.errors import InputError
from pyspar.sources.files.number_text import infer_format
from pyspar.tables import reduce
from pyspar.tables.adapt import adapt_files
from pyspar.tables.inputs import Request
from pyspar.tables.predict import predict_file
from pyspar.tables.summarize import summarize_file
from pyspar.tables.watch import WatchRequest, watch_files
from pyspar.tables.write import Output

STREAM = pytest.mark.parametrize("stream", [False, True])


@pytest.fixture
def tables():
    """Source and target with the features a and b, written with three decimals, and the label y."""
    rng = np.random.default_rng(0)
    tables = []
    for rows in (60, 30):
        a = rng.uniform(1.0, 900.0, rows).round(3)
        b = rng.normal(size=rows).round(3)
        tables.append(pd.DataFrame({"a": a, "b": b, "y": (a + 10 * b + rng.normal(size=rows)).round(2)}))
    return tables


def write(table, path, *, comma=False, form="{:.3f}", sign=""):
    """Write a file. The column a has three decimals, and with ``comma`` the others have decimal commas."""
    table = table.assign(a=[form.format(value) + sign for value in table["a"]]).astype({"a": str})
    if comma:
        table = table.assign(a=table["a"].str.translate(str.maketrans(".,", ",.")))
    table.to_csv(path, index=False, sep=";" if comma else ",", decimal="," if comma else ".")
    return path


def predict(model, path, tmp_path, **options):
    predict_file(model, path, Output(tmp_path / "p.npy"), **options)
    return np.load(tmp_path / "p.npy")


@STREAM
def test_predict_and_watch_compare_percent_signs_with_the_source(tables, tmp_path, stream):
    source, target = write(tables[0], tmp_path / "s.csv", sign="%"), write(tables[1], tmp_path / "t.csv", sign="%")
    plain, model = write(tables[1], tmp_path / "plain.csv"), tmp_path / "m.skops"
    adapt_files(Request(source, target, "y", stream=stream), output=Output(tmp_path / "a.npy"), save=model)
    np.testing.assert_allclose(predict(model, target, tmp_path), np.load(tmp_path / "a.npy"), rtol=1e-9)
    with pytest.raises(InputError, match=r"column 'a'.*percent"):
        predict(model, plain, tmp_path)
    accounts = list(watch_files(WatchRequest(model, (target, plain), once=True)))
    assert [bool(account.error) for account in accounts] == [False, True]
    assert "'a'" in accounts[1].error


def test_labels_in_a_file_of_labels_have_the_format_of_the_source(tables, tmp_path):
    source, target = tables[0].assign(y=[f"{value:.2f}%" for value in tables[0]["y"]]), tables[1].drop(columns="y")
    paths = tmp_path / "s.csv", tmp_path / "t.csv"
    source.to_csv(paths[0], index=False)
    target.to_csv(paths[1], index=False)
    labels = target.assign(row=range(30), y=tables[1]["y"].round(2))[:10]
    labels.to_csv(tmp_path / "l.csv", index=False)
    with pytest.raises(InputError, match=r"labels.*'y'.*percent"):
        adapt_files(Request(*paths, "y", labels=tmp_path / "l.csv"), use_target_labels=True)
    labels.assign(y=[f"{value:.2f}%" for value in labels["y"]]).to_csv(tmp_path / "l.csv", index=False)
    account = adapt_files(Request(*paths, "y", labels=tmp_path / "l.csv"), use_target_labels=True)
    assert account.correction.n_labels == 10


def test_another_currency_is_refused(tables, tmp_path):
    source, target = write(tables[0], tmp_path / "s.csv", sign="$"), write(tables[1], tmp_path / "t.csv", sign="€")
    with pytest.raises(InputError, match=r"'a'.*€.*\$"):
        adapt_files(Request(source, target, "y"))


def test_an_ambiguous_decimal_mark_is_that_of_the_source(tables, tmp_path):
    """With decimal commas in the source, '1.234' in the target is 1234."""
    big = [table.assign(a=(1000 * table["a"]).round()) for table in tables]
    source = write(big[0], tmp_path / "s.csv", comma=True, form="{:,.1f}")
    target = write(big[1], tmp_path / "t.csv", comma=True, form="{:,.0f}")
    assert all("." in cell and "," not in cell for cell in pd.read_csv(target, sep=";", dtype=str)["a"])
    adapt_files(Request(source, target, "y"), output=Output(tmp_path / "a.npy"), save=tmp_path / "m.skops")
    paths = tmp_path / "s2.csv", tmp_path / "t2.csv"
    for table, path in zip(big, paths):
        table.to_csv(path, index=False)
    adapt_files(Request(*paths, "y"), output=Output(tmp_path / "b.npy"))
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"), rtol=1e-9)
    np.testing.assert_allclose(predict(tmp_path / "m.skops", target, tmp_path), np.load(tmp_path / "b.npy"), rtol=1e-9)


@STREAM
def test_a_decimal_mark_that_only_one_file_proves_otherwise_stops_with_both_cells(tables, tmp_path, stream):
    source = write(tables[0], tmp_path / "s.csv")  # '1.234' in all cells: no proof
    target = write(tables[1], tmp_path / "t.csv", comma=True, form="{:.1f}")
    with pytest.raises(InputError) as error:
        adapt_files(Request(source, target, "y", stream=stream))
    first = [pd.read_csv(path, sep=sep, dtype=str)["a"].tolist() for path, sep in ((source, ","), (target, ";"))]
    assert any(repr(cell) in str(error.value) for cell in first[0])
    assert any(repr(cell) in str(error.value) for cell in first[1])
    proven = write(tables[0], tmp_path / "s.csv", form="{:.2f}")
    assert adapt_files(Request(proven, target, "y", stream=stream)).data.n_numeric == 2


def test_a_cell_far_down_the_file_proves_the_decimal_mark(tables, tmp_path):
    """The first rows are ambiguous ('1.234'), and only the last row has another number of decimals."""
    rows = pd.concat([tables[0]] * 400, ignore_index=True)
    source = write(rows, tmp_path / "s.csv")
    target = write(tables[1], tmp_path / "t.csv", comma=True, form="{:.1f}")
    with pytest.raises(InputError, match="'a'"):
        adapt_files(Request(source, target, "y"))
    source.write_text(source.read_text() + "12.5,0.5,3.25\n")
    assert adapt_files(Request(source, target, "y")).data.n_numeric == 2


def write_lines(path: Path, cells: list[str], separator: str = ",") -> Path:
    quote = '"' if separator == "," else ""
    lines = [separator.join([f"{quote}{cell}{quote}", str(row % 7), str(row % 5)]) for row, cell in enumerate(cells)]
    path.write_text("\n".join([separator.join("aby"), *lines]) + "\n")
    return path


@pytest.mark.parametrize("policy", ["stop", "impute"])
def test_a_later_block_that_contradicts_the_decimal_mark_stops_the_stream(monkeypatch, tmp_path, policy):
    monkeypatch.setattr(reduce, "open_rows", partial(reduce.open_rows, batch_bytes=300))
    cells = [f"{1 + row % 9},{100 + row}" for row in range(200)]
    paths = [write_lines(tmp_path / name, cells) for name in ("s.csv", "t.csv")]
    assert adapt_files(Request(*paths, "y", stream=True)).data.n_numeric == 2
    cells[150] = "4,25"
    write_lines(paths[1], cells)
    with pytest.raises(InputError, match=r"'4,25'.*row 152"):
        adapt_files(Request(*paths, "y", stream=True, bad_cells=policy))


def test_decimal_commas_after_whole_numbers_are_read_alike_by_stream_and_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(reduce, "open_rows", partial(reduce.open_rows, batch_bytes=300))
    cells = [str(row % 9) for row in range(150)] + [f"{row % 9},{row:03}" for row in range(50)]
    paths = [write_lines(tmp_path / name, cells, ";") for name in ("s.csv", "t.csv")]
    for stream in (False, True):
        adapt_files(Request(*paths, "y", stream=stream), output=Output(tmp_path / f"{stream}.npy"))
    np.testing.assert_allclose(np.load(tmp_path / "True.npy"), np.load(tmp_path / "False.npy"), rtol=1e-9)


@pytest.mark.parametrize(
    ("cells", "comma"), [(["5001,500", "4800,250"], True), (["1,500", "5001,500", "1,250"], False)]
)
def test_a_comma_after_four_digits_is_a_decimal_comma(cells, comma):
    assert infer_format(dict.fromkeys(cells, 1)).decimal_comma == comma


@STREAM
def test_mixed_decimal_marks_are_bad_cells_and_no_free_text(tmp_path, stream):
    cells = [f"{5000 + row},500" if row % 2 else f"{row}.25" for row in range(60)]
    paths = [write_lines(tmp_path / name, cells) for name in ("s.csv", "t.csv")]
    with pytest.raises(InputError, match=r"30 bad cells.*'0.25' in column 'a', row 2 "):
        adapt_files(Request(*paths, "y", stream=stream))


@STREAM
@pytest.mark.parametrize("column", ["a", "y"])
def test_thousands_marks_that_differ_and_that_no_cell_explains_are_refused(tmp_path, stream, column):
    """'3,447' in one file and '2.752' in the other are a thousand times apart with either decimal mark."""
    rng = np.random.default_rng(0)
    paths = {name: tmp_path / f"{name}.tsv" for name in ("source", "same", "other")}
    for name, path in paths.items():
        area = rng.integers(1300, 4000, 40)
        table = pd.DataFrame({"a": area, "b": rng.integers(1, 8, 40), "y": area + rng.integers(0, 300, 40)})
        cells = [f"{value:,}" for value in table[column]]
        table[column] = [cell.replace(",", ".") if name == "other" else cell for cell in cells]
        table.to_csv(path, index=False, sep="\t")
    model = tmp_path / "m.skops"
    adapt_files(Request(paths["source"], paths["same"], "y", stream=stream), save=model)
    assert predict(model, paths["same"], tmp_path, label="y").shape == (40,)
    for pair in (("source", "other"), ("other", "source")):
        with pytest.raises(InputError, match=rf"'{column}'.*'\d[.,]\d{{3}}'.*'\d[.,]\d{{3}}'"):
            adapt_files(Request(*(paths[name] for name in pair), "y", stream=stream))
    with pytest.raises(InputError, match=rf"'{column}'") as error:
        predict(model, paths["other"], tmp_path, label="y")
    assert "--drop" not in str(error.value)
    assert ("leave out --label" in str(error.value)) == (column == "y")
    if column == "a":
        accounts = list(watch_files(WatchRequest(model, (paths["same"], paths["other"]), once=True)))
        assert [bool(account.error) for account in accounts] == [False, True]
        assert "--drop" not in accounts[1].error


def test_bad_cells_in_predict_and_watch_name_only_their_options(tables, tmp_path):
    source, target = write(tables[0], tmp_path / "s.csv"), write(tables[1], tmp_path / "t.csv")
    bad, model = tmp_path / "bad.csv", tmp_path / "m.skops"
    adapt_files(Request(source, target, "y"), save=model)
    tables[1].astype(str).replace({"a": {str(tables[1]["a"][3]): "four"}}).to_csv(bad, index=False)
    with pytest.raises(InputError, match=r"'four'.*--bad-cells impute") as error:
        predict(model, bad, tmp_path)
    assert "--drop" not in str(error.value)
    assert "--category" not in str(error.value)
    accounts = list(watch_files(WatchRequest(model, (target, bad), once=True)))
    assert "'four'" in accounts[1].error
    assert "--" not in accounts[1].error


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ({}, {"sign": "%"}),
        ({"sign": "%"}, {}),
        ({"sign": "$"}, {"sign": "€"}),
        ({"form": "{:.3f}"}, {"comma": True, "form": "{:.1f}"}),
    ],
)
def test_a_summary_stores_the_formats_and_saves_them_with_the_model(tables, tmp_path, source, target):
    rows, other = write(tables[0], tmp_path / "s.csv", **source), write(tables[1], tmp_path / "t.csv", **target)
    same, model = write(tables[1], tmp_path / "same.csv", **source), tmp_path / "m.skops"
    account = summarize_file(rows, tmp_path / "s.npz", label="y")
    assert [note.split(": ")[1] for note in account.notes] == (["a"] if "sign" in source else [])
    adapt_files(Request(rows, same, "y", stream=True), output=Output(tmp_path / "a.npy"))
    adapt_files(Request(tmp_path / "s.npz", same, None), output=Output(tmp_path / "b.npy"), save=model)
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), np.load(tmp_path / "a.npy"), rtol=1e-9)
    summarize_file(other, tmp_path / "t.npz", label="y")
    for file in (other, tmp_path / "t.npz"):
        with pytest.raises(InputError, match="column 'a'"):
            adapt_files(Request(tmp_path / "s.npz", file, None))
    assert predict(model, same, tmp_path).shape == (30,)
    with pytest.raises(InputError, match="column 'a'"):
        predict(model, other, tmp_path)


def test_a_summary_contains_no_cell_of_the_file(tmp_path):
    cells = [f"{1 + row % 9},{100 + row}" for row in range(40)]
    paths = [write_lines(tmp_path / name, cells, "\t") for name in ("s.tsv", "t.tsv")]
    write_lines(paths[1], [cell.replace(",", ".") for cell in cells], "\t")
    summarize_file(paths[0], tmp_path / "s.npz", label="y")
    with np.load(tmp_path / "s.npz") as file:
        assert file["formats"].tolist() == [["a", ".", "", "", ","], ["b", ".", "", "", ""], ["y", ".", "", "", ""]]
    with pytest.raises(InputError, match=r"'a'.*'9,999'"):
        adapt_files(Request(tmp_path / "s.npz", paths[1], None))

"""The decimal mark of a file, and the signs of numbers in source, target, labels and later files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspar.tables.watch import WatchRequest, watch_files

from pyspar.errors import InputError
from pyspar.sources.files.number_text import infer_format
from pyspar.tables import reduce
from pyspar.tables.adapt import adapt_files
from pyspar.tables.inputs import Request
from pyspar.tables.predict import predict_file
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


def test_the_decimal_mark_of_a_file_with_semicolons_is_that_of_all_columns(tables, tmp_path):
    """With decimal commas in other columns, '1.234' is 1234."""
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


def write_lines(path: Path, cells: list[str], separator: str = ",") -> Path:
    quote = '"' if separator == "," else ""
    lines = [separator.join([f"{quote}{cell}{quote}", str(row % 7), str(row % 5)]) for row, cell in enumerate(cells)]
    path.write_text("\n".join([separator.join("aby"), *lines]) + "\n")
    return path


def test_a_later_block_that_contradicts_the_decimal_mark_stops_the_stream(monkeypatch, tmp_path):
    monkeypatch.setattr(reduce, "open_rows", partial(reduce.open_rows, batch_bytes=300))
    cells = [f"{1 + row % 9},{100 + row}" for row in range(200)]
    paths = [write_lines(tmp_path / name, cells) for name in ("s.csv", "t.csv")]
    assert adapt_files(Request(*paths, "y", stream=True)).data.n_numeric == 2
    cells[150] = "4,25"
    write_lines(paths[1], cells)
    with pytest.raises(InputError, match=r"'4,25'.*row 152"):
        adapt_files(Request(*paths, "y", stream=True))


def test_decimal_commas_after_the_first_block_are_bad_cells(monkeypatch, tmp_path):
    monkeypatch.setattr(reduce, "open_rows", partial(reduce.open_rows, batch_bytes=300))
    cells = [str(row % 9) for row in range(150)] + [f"{row % 9},{row:03}" for row in range(50)]
    paths = [write_lines(tmp_path / name, cells, ";") for name in ("s.csv", "t.csv")]
    assert adapt_files(Request(*paths, "y")).data.n_numeric == 2
    with pytest.raises(InputError, match=r"'0,000' in column 'a', row 152 "):
        adapt_files(Request(*paths, "y", stream=True))


@STREAM
@pytest.mark.parametrize("mark", [",", "."])
def test_a_file_with_semicolons_whose_decimal_mark_is_open_is_refused(tmp_path, stream, mark):
    cells = [f"{1 + row % 9}{mark}{100 + row}" for row in range(40)]
    paths = [write_lines(tmp_path / name, cells, ";") for name in ("s.csv", "t.csv")]
    with pytest.raises(InputError, match=rf"s\.csv': '1\{mark}100' "):
        adapt_files(Request(*paths, "y", stream=stream))
    for path in paths:
        path.write_text(path.read_text() + f"2{mark}5;1;1\n")
    assert adapt_files(Request(*paths, "y", stream=stream)).data.n_numeric == 2


@pytest.mark.parametrize(
    ("cells", "comma"), [(["5001,500", "4800,250"], True), (["1,500", "5001,500", "1,250"], False)]
)
def test_a_comma_after_four_digits_is_a_decimal_comma(cells, comma):
    assert infer_format(dict.fromkeys(cells, 1)).decimal_comma == comma


@STREAM
def test_mixed_decimal_marks_are_bad_cells_and_no_free_text(tmp_path, stream):
    cells = [f"{5000 + row},500" if row % 2 else f"{row}.25" for row in range(60)]
    paths = [write_lines(tmp_path / name, cells) for name in ("s.csv", "t.csv")]
    with pytest.raises(InputError, match=r"30 bad cells.*'5001,500' in column 'a', row 3 "):
        adapt_files(Request(*paths, "y", stream=stream))


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

"""Invalid input of ``spar adapt``: exit code 2, one message that names the cause, and no file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pyspar

NUMBERS = ["area", "garden", "price"]


def test_the_messages_have_the_expected_text(spar, files, source, target, tmp_path, monkeypatch, golden):
    """Run many invalid commands, and compare all messages with one text."""
    monkeypatch.chdir(tmp_path)
    texts = []

    def run(change_source=None, change_target=None, *arguments, label="price", paths=("source.csv", "target.csv")):
        files(
            source if change_source is None else change_source(source.copy()),
            target if change_target is None else change_target(target.copy()),
        )
        options = (*paths, *(() if label is None else ("--label", label)), *arguments)
        result = spar("adapt", *options)
        assert result.exit_code == 2, result.output
        texts.append(f"$ spar adapt {' '.join(options)}\n{result.stderr.replace(str(tmp_path), 'TMP')}")

    def put(row, column, value):
        def change(table):
            table[column] = table[column].astype(object)
            table.loc[row, column] = value
            return table

        return change

    def write(name, text):
        Path(name).write_text(text)
        return name

    run(paths=("nowhere.csv", "target.csv"))
    run(paths=("source.csv", "."))
    run(paths=(write("empty.csv", ""), "target.csv"))
    run(paths=(write("table.xlsx", "x"), "target.csv"))
    run(paths=(write("header.csv", "area,price\n"), "target.csv"))
    run(paths=(write("ragged.csv", "area,price\n1,2\n3\n"), "target.csv"))
    run(paths=(write("quote.csv", 'area,price\n1,2\n3,"4\n'), "target.csv"))
    run(paths=(write("twice.csv", "area,area,price\n1,2,3\n"), "target.csv"))
    run(paths=(write("broken.npz", "x"), "target.csv"))
    Path("latin.csv").write_bytes("área,price\n1,2\n".encode("latin-1"))
    run(paths=("latin.csv", "target.csv"))
    np.save("x.npy", np.ones(3))
    run(paths=("x.npy", "target.csv"), label="0")
    np.save("x.npy", np.ones((3, 2)))
    run(paths=("x.npy", "x.npy"), label="7")
    np.savez("x.npz", X=np.ones((4, 2)), y=np.arange(5.0))
    run(paths=("x.npz", "target.csv"), label="y")
    run(label=None)
    run(label="prize")
    run(label="rent")
    run(label="town")
    run(lambda table: table[:1])
    run(lambda table: table.assign(price=7))
    run(put([3, 10], "price", None))
    run(put(17, "area", -np.inf))
    run(None, put(9, "area", "large"))
    run(None, put(4, "sold", "last May"))
    run(None, lambda table: table.rename(columns={"area": "Area"}).drop(columns="town"))
    run(lambda table: table[["price"]])
    run(lambda table: table[["town", "price"]], None, "--features", "num")
    run(None, None, "--alpha", "1.5")
    run(None, None, "--id", "hom")
    run(None, None, "--id", "price")
    run(None, None, "--drop", "gardn")
    run(None, None, "--drop", "price")
    run(None, None, "-o", "p.xlsx")
    run(None, None, "-o", "nowhere/p.csv")
    run(None, None, "-o", "source.csv")
    run(None, None, "--id", "home", "-o", "p.npy")
    run(None, None, "--save", "m.pkl")
    run(put(17, "area", None), None, "--stream")
    run(None, put(17, "garden", np.inf), "--stream")
    run(None, None, "--stream", "--method", "ridge")
    run(None, lambda table: table.drop(columns="garden"), "--stream")
    run(None, None, "--stream", label="town")
    run(None, None, "--stream", paths=("x.npz", "target.csv"))
    run(None, None, "--stream", paths=("ragged.csv", "target.csv"))
    Path("folder").mkdir()
    run(None, None, "--stream", paths=("folder", "target.csv"))
    golden("cli-refusals", "\n".join(texts))


@pytest.mark.parametrize("role", ["source", "target"])
def test_a_file_that_does_not_exist_is_named(refused, files, source, target, tmp_path, role):
    paths = dict(zip(("source", "target"), files(source, target))) | {role: tmp_path / "nowhere.csv"}
    message = refused(paths["source"], paths["target"])
    assert f"{role} file not found: " in message
    assert "nowhere.csv" in message


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy", ".npz"])
def test_an_empty_file_is_refused(refused, files, source, target, tmp_path, suffix):
    empty = tmp_path / f"none{suffix}"
    empty.touch()
    assert f"none{suffix}': the file is empty" in refused(empty, files(source, target)[1])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy"])
def test_a_table_without_rows_is_refused(refused, files, source, target, tmp_path, suffix):
    path = tmp_path / f"none{suffix}"
    if suffix == ".npy":
        np.save(path, np.empty((0, 3)))
    else:
        (target[:0].to_csv if suffix == ".csv" else target[:0].to_parquet)(path, index=False)
    message = refused(files(source, target)[0], path)
    assert f"none{suffix}'" in message
    assert "no rows" in message


@pytest.mark.parametrize(("change", "fields"), [(lambda row: row + ",9", 8), (lambda row: row.rsplit(",", 1)[0], 6)])
def test_the_line_of_a_ragged_csv_is_named(refused, files, source, target, change, fields):
    paths = files(source, target)
    lines = Path(paths[0]).read_text().splitlines()
    lines[41] = change(lines[41])
    Path(paths[0]).write_text("\n".join(lines))
    message = refused(*paths)
    assert "record 42 must have 7 fields" in message
    assert f"got {fields};" in message


@pytest.mark.parametrize(("role", "column"), [("source", "area"), ("source", "price"), ("target", "area")])
def test_infinity_is_refused_with_its_column_and_row(refused, files, source, target, role, column):
    {"source": source, "target": target}[role].loc[17, column] = -np.inf
    message = refused(*files(source, target))
    assert f"{role}.csv', column {column!r}" in message
    assert "-inf in row 19 " in message
    assert "data row 17 " in message


def test_infinity_in_the_labels_of_the_target_is_refused(refused, files, source, target):
    target.loc[2, "price"] = np.inf
    message = refused(*files(source, target))
    assert "target.csv', column 'price'" in message
    assert "inf in row 4 " in message


def test_numbers_near_the_limit_of_floating_point_are_refused(refused, files, source, target):
    source.loc[0, "area"], source.loc[1, "area"] = 1.7e308, -1.7e308
    message = refused(*files(source, target))
    assert "source.csv', column 'area'" in message
    assert "1.7e+308 in row 2 " in message


def test_missing_labels_are_counted_and_their_rows_named(refused, files, source, target):
    source.loc[[3, 10], "price"] = np.nan
    message = refused(*files(source, target))
    assert "2 of 120" in message
    assert "rows 5, 12 " in message
    assert "data rows 3, 10 " in message
    assert "--drop-unlabelled" in message
    source.loc[20:40, "price"] = np.nan
    assert "data rows 3, 10, 20, 21, 22, ..." in refused(*files(source, target))


@pytest.mark.parametrize("alpha", ["-0.1", "1.5", "nan"])
def test_a_confidence_outside_its_range_is_refused_before_files_are_read(refused, alpha):
    assert "alpha" in refused("no.csv", "such.csv", "--alpha", alpha)


@pytest.mark.parametrize("option", ["--output", "--save"])
def test_an_output_folder_that_does_not_exist_is_refused(refused, files, source, target, tmp_path, option):
    name = "p.csv" if option == "--output" else "m.skops"
    message = refused(*files(source, target), option, tmp_path / "nowhere" / name)
    assert message.startswith(f"error: {option} ")
    assert str(tmp_path / "nowhere") in message


@pytest.mark.parametrize("which", [0, 1])
def test_an_input_is_never_overwritten(refused, files, source, target, tmp_path, which):
    paths = files(source, target)
    before = Path(paths[which]).read_text()
    (tmp_path / "link.csv").symlink_to(paths[which])
    for path in (paths[which], tmp_path / "." / f"{['source', 'target'][which]}.csv", tmp_path / "link.csv"):
        assert f"{str(path)!r} is an input file" in refused(*paths, "-o", path)
    assert Path(paths[which]).read_text() == before


@pytest.mark.parametrize(
    ("command", "options", "name"),
    [
        ("adapt", ["--use-target-labels", "-o"], "labels.csv"),
        ("adapt", ["--save"], "labels.skops"),
        ("label", ["-o"], "labels.csv"),
        ("inspect", ["--report"], "labels.html"),
    ],
)
def test_the_file_of_labels_is_never_overwritten(spar, files, source, target, tmp_path, command, options, name):
    labels = tmp_path / name
    labels.write_text("row,price\n0,1\n1,2\n2,4\n")
    before = labels.read_bytes()
    result = spar(command, *files(source, target), "--label", "price", "--labels", labels, *options, labels)
    assert result.exit_code == 2
    assert f"{str(labels)!r} is an input file" in " ".join(result.output.split())
    assert labels.read_bytes() == before


@pytest.mark.parametrize(("option", "name"), [("--output", "p.xlsx"), ("--output", "p"), ("--save", "m.pkl")])
def test_an_unknown_output_suffix_is_refused_before_files_are_read(refused, tmp_path, option, name):
    message = refused("no.csv", "such.csv", option, tmp_path / name)
    assert message.startswith(f"error: {option} ")
    assert repr(Path(name).suffix or "none") in message


@pytest.mark.parametrize("arguments", [("--method", "magic"), ("--features", "some"), ("--alpha", "high")])
def test_unknown_values_are_usage_errors(spar, files, source, target, arguments):
    assert spar("adapt", *files(source, target), "--label", "price", *arguments).exit_code == 2


def test_a_saved_model_names_the_columns_that_a_table_lacks(spar, files, source, target, tmp_path):
    model = tmp_path / "m.skops"
    assert spar("adapt", *files(source, target), "--label", "price", "--id", "home", "--save", model).exit_code == 0
    loaded = pyspar.load(model)
    with pytest.raises(pyspar.InputError, match=r"1 of 5 .*'area'; did you mean 'Area'\?"):
        loaded.predict(target.rename(columns={"area": "Area"}))
    with pytest.raises(pyspar.InputError, match=r"'area'.*got ndarray"):
        loaded.predict(target.to_numpy())


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_a_column_that_the_target_lacks_can_be_dropped_as_the_message_suggests(
    refused, spar, files, source, target, stream
):
    paths = files(source, target.drop(columns="garden"))
    assert refused(*paths, *stream).rstrip().endswith("--drop garden")
    assert spar("adapt", *paths, "--label", "price", *stream, "--drop", "garden").exit_code == 0


@pytest.mark.parametrize(("column", "value"), [("area", "38.6 m2"), ("sold", "23.03.2024")])
def test_a_column_of_another_kind_can_be_dropped_as_the_message_suggests(
    refused, spar, files, source, target, column, value
):
    paths = files(source, target.assign(**{column: value}))
    assert refused(*paths).rstrip().endswith(f"--drop {column}")
    assert spar("adapt", *paths, "--label", "price", "--drop", column).exit_code == 0


@pytest.mark.parametrize("column", ["price", "area"])
def test_values_that_are_too_small_name_the_column(refused, files, source, target, column):
    source[column] *= 1e-70
    paths = files(source, target)
    if column == "price":
        message = refused(*paths)
        assert "column 'price': the column must be zero or have values between 1e-60 and 1e+60 in size" in message
    message = refused(*paths, "--stream", "--features", "num")
    assert f"source.csv', column '{column}': the column must be zero or have values between 1e-60" in message


@pytest.mark.parametrize("options", [(), ("--stream",)])
def test_a_name_that_an_empty_name_gets_is_a_duplicate(refused, tmp_path, target, options):
    path = tmp_path / "names.csv"
    path.write_text("area,,Unnamed: 1,price\n1,2,3,4\n2,3,4,6\n5,1,0,2\n")
    assert "duplicate column names 'Unnamed: 1'; rename the columns" in refused(path, path, *options)


@pytest.mark.parametrize("options", [(), ("--stream",)])
def test_a_file_without_rows_is_named_as_such(refused, tmp_path, options):
    path = tmp_path / "header.csv"
    path.write_text("area,price\n")
    assert "the file has a header and no rows" in refused(path, path, *options)


@pytest.mark.parametrize("options", [(), ("--stream",)])
def test_rows_without_a_label_that_are_ignored_are_counted(spar, tmp_path, options):
    source, target = tmp_path / "rows.csv", tmp_path / "new.csv"
    source.write_text("area,price\n1,2\n2,3\n5,7\n4,\n6,NA\n7,9\n")
    target.write_text("area\n3\n4\n")
    result = spar("adapt", source, target, "--label", "price", "--drop-unlabelled", "--json", *options)
    assert "source: 2 rows without a label are ignored" in json.loads(result.stdout)["notes"]


@pytest.mark.parametrize("command", ["predict", "watch"])
def test_a_file_for_a_saved_model_with_infinity_names_the_column(spar, tmp_path, command):
    source, rows, model = tmp_path / "rows.csv", tmp_path / "new.csv", tmp_path / "model.skops"
    source.write_text("area,price\n1,2\n2,3\n5,7\n4,5\n")
    spar("adapt", source, source, "--label", "price", "--save", model)
    rows.write_text("area\n3\ninf\n")
    options = ("-o", tmp_path / "out.csv") if command == "predict" else ("--once",)
    result = spar(command, model, rows, *options)
    assert result.exit_code == 2
    assert "column 'area': values must be finite and below 1e+60, got inf in row 3" in result.stderr

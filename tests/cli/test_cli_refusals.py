"""Bad input: a clear message, code 2, and no file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyspar

NUMBERS = ["area", "garden", "price"]


@pytest.mark.parametrize("role", ["source", "target"])
def test_a_missing_file_is_named(refused, files, source, target, tmp_path, role):
    paths = dict(zip(("source", "target"), files(source, target))) | {role: tmp_path / "nowhere.csv"}
    message = refused(paths["source"], paths["target"])
    assert role in message
    assert "nowhere.csv" in message


def test_a_folder_is_no_table(refused, files, source, target, tmp_path):
    assert "Got a folder" in refused(files(source, target)[0], tmp_path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy", ".npz"])
def test_an_empty_file_is_refused(refused, files, source, target, tmp_path, suffix):
    empty = tmp_path / f"empty{suffix}"
    empty.touch()
    assert "Got an empty file" in refused(empty, files(source, target)[1])


def test_blank_lines_alone_are_an_empty_file(refused, files, source, target, tmp_path):
    (tmp_path / "blank.csv").write_text("\n\n")
    assert "Got an empty file" in refused(tmp_path / "blank.csv", files(source, target)[1])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy"])
def test_a_table_without_rows_is_refused(refused, files, source, target, tmp_path, suffix):
    path = tmp_path / f"none{suffix}"
    if suffix == ".npy":
        np.save(path, np.empty((0, 3)))
    else:
        (target[:0].to_csv if suffix == ".csv" else target[:0].to_parquet)(path, index=False)
    assert "expected rows" in refused(files(source, target)[0], path)


def test_one_source_row_is_refused(refused, files, source, target):
    assert "at least two rows" in refused(*files(source[:1], target))


@pytest.mark.parametrize("name", ["table.xlsx", "table"])
def test_an_unknown_suffix_is_refused(refused, files, source, target, tmp_path, name):
    (tmp_path / name).write_text("area,price\n1,2\n")
    assert ".parquet" in refused(tmp_path / name, files(source, target)[1])


@pytest.mark.parametrize(("change", "got"), [(lambda row: row + ",9", 8), (lambda row: row.rsplit(",", 1)[0], 6)])
def test_a_ragged_csv_is_refused_and_its_line_named(refused, files, source, target, change, got):
    paths = files(source, target)
    lines = Path(paths[0]).read_text().splitlines()
    lines[41] = change(lines[41])
    Path(paths[0]).write_text("\n".join(lines))
    message = refused(*paths)
    assert "line 42: expected 7 fields" in message
    assert f"Got {got};" in message


def test_a_ragged_line_is_counted_past_quoted_line_breaks(refused, files, source, target, tmp_path):
    (tmp_path / "s.csv").write_text('area,price\n"1\n",2\n3\n')
    assert "line 4" in refused(tmp_path / "s.csv", files(source, target)[1])


def test_a_quote_that_never_closes_is_refused(refused, files, source, target, tmp_path):
    (tmp_path / "s.csv").write_text('area,price\n1,2\n3,"4\n5,6\n')
    assert "quote" in refused(tmp_path / "s.csv", files(source, target)[1])


def test_text_that_is_not_utf8_is_refused(refused, files, source, target, tmp_path):
    (tmp_path / "s.csv").write_bytes("área,price\n1,2\n3,4\n".encode("latin-1"))
    assert "UTF-8" in refused(tmp_path / "s.csv", files(source, target)[1])


@pytest.mark.parametrize("suffix", [".parquet", ".npy", ".npz", ".csv.gz"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_a_file_cut_off_in_the_middle_is_refused(refused, files, source, target, tmp_path, suffix, share):
    path, numbers = tmp_path / f"cut{suffix}", source[NUMBERS]
    if suffix == ".parquet":
        numbers.to_parquet(path)
    elif suffix == ".npy":
        np.save(path, numbers.to_numpy())
    elif suffix == ".npz":
        np.savez(path, X=numbers.to_numpy()[:, :2], y=numbers["price"].to_numpy())
    else:
        numbers.to_csv(path, index=False)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert "cut" in refused(path, files(source, target)[1])


@pytest.mark.parametrize("suffix", [".parquet", ".npy", ".npz"])
def test_a_file_that_is_not_what_its_suffix_says_is_refused(refused, files, source, target, tmp_path, suffix):
    (tmp_path / f"s{suffix}").write_text("area,price\n1,2\n3,4\n")
    assert "Got a broken one" in refused(tmp_path / f"s{suffix}", files(source, target)[1])


@pytest.mark.parametrize("values", [np.ones((4, 2), complex), np.array([[1, "a"], [None, 2]], object)])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_complex_and_object_arrays_are_refused(refused, files, source, target, tmp_path, values, suffix):
    path = tmp_path / f"s{suffix}"
    if suffix == ".npy":
        np.save(path, values, allow_pickle=True)
    else:
        np.savez(path, X=values, y=np.arange(4.0))
    message = refused(path, files(source, target)[1], label="-1")
    assert "complex128" in message or "Python objects" in message


def test_an_array_of_one_dimension_is_refused(refused, files, source, target, tmp_path):
    np.save(tmp_path / "s.npy", np.arange(5.0))
    assert "2-D" in refused(tmp_path / "s.npy", files(source, target)[1], label="-1")


def test_npz_arrays_of_different_lengths_are_refused(refused, files, source, target, tmp_path):
    np.savez(tmp_path / "s.npz", X=np.ones((4, 2)), y=np.arange(5.0))
    assert "lengths" in refused(tmp_path / "s.npz", files(source, target)[1], label="y")


def test_a_label_that_is_not_there_brings_close_names(refused, files, source, target):
    assert "did you mean 'price'?" in refused(*files(source, target), label="Pirce")


def test_a_label_number_out_of_range_is_refused(refused, files, source, target, tmp_path):
    np.save(tmp_path / "s.npy", source[NUMBERS].to_numpy())
    assert "one of its 3 columns" in refused(tmp_path / "s.npy", tmp_path / "s.npy", label="3")


def test_a_label_of_text_is_refused_and_the_value_named(refused, files, source, target):
    message = refused(*files(source, target), label="town")
    assert "since it is the label" in message
    assert repr(source["town"][0]) in message


def test_a_constant_label_is_refused(refused, files, source, target):
    assert "Got 7 only" in refused(*files(source.assign(price=7), target))


def test_missing_labels_are_counted_and_their_rows_named(refused, files, source, target):
    source.loc[[3, 10], "price"] = np.nan
    message = refused(*files(source, target))
    assert "2 missing of 120 (rows 3, 10;" in message


@pytest.mark.parametrize(("role", "column"), [("source", "area"), ("source", "price"), ("target", "area")])
def test_infinity_is_refused_with_its_column_and_row(refused, files, source, target, role, column):
    {"source": source, "target": target}[role].loc[17, column] = -np.inf
    message = refused(*files(source, target))
    assert role in message
    assert f"column {column!r}" in message
    assert "-inf in row 17" in message


def test_infinity_in_the_targets_own_labels_is_refused(refused, files, source, target):
    target.loc[2, "price"] = np.inf
    assert "inf in row 2" in refused(*files(source, target))


def test_numbers_near_the_limit_of_floating_point_are_refused(refused, files, source, target):
    source.loc[0, "area"], source.loc[1, "area"] = 1.7e308, -1.7e308
    assert "column 'area': expected finite numbers that can be squared. Got 1.7e+308 in row 0" in refused(
        *files(source, target)
    )


def test_a_target_without_the_sources_columns_is_refused_and_they_are_named(refused, files, source, target):
    message = refused(*files(source, target.rename(columns={"area": "Area"}).drop(columns="town")))
    assert "without 'area', 'town'" in message
    assert "did you mean 'Area'?" in message


def test_text_in_a_numeric_target_column_is_refused_and_the_value_named(refused, files, source, target):
    target["area"] = target["area"].astype(object)
    target.loc[9, "area"] = "large"
    message = refused(*files(source, target))
    assert "column 'area': expected numbers, as in the source. Got 'large' in row 9" in message


def test_a_target_value_that_is_no_date_is_refused(refused, files, source, target):
    target.loc[4, "sold"] = "last May"
    assert "column 'sold': expected dates" in refused(*files(source, target))


def test_duplicate_column_names_are_refused(refused, files, source, target):
    assert "'area' more than once" in refused(*files(source.rename(columns={"garden": "area"}), target))


@pytest.mark.parametrize("alpha", ["-0.1", "1.5", "nan"])
def test_a_confidence_outside_its_range_is_refused_before_files_are_read(refused, alpha):
    assert "alpha" in refused("no.csv", "such.csv", "--alpha", alpha)


def test_a_source_without_usable_features_is_refused_with_the_reasons(refused, files, source, target):
    source["area"] = np.nan
    message = refused(*files(source[["area", "home", "town", "price"]], target), "--features", "num", "--id", "home")
    assert "'area' has no value in the source; 'town' is not numeric" in message


def test_a_source_of_the_label_alone_is_refused(refused, files, source, target):
    assert "there is only the label" in refused(*files(source[["price"]], target))


def test_an_id_column_that_is_not_there_is_refused(refused, files, source, target):
    assert "did you mean 'home'?" in refused(*files(source, target), "--id", "hom")


def test_the_label_is_no_id(refused, files, source, target):
    assert "different columns" in refused(*files(source, target), "--id", "price")


@pytest.mark.parametrize("option", ["--output", "--save"])
def test_a_folder_that_is_not_there_is_refused(refused, files, source, target, tmp_path, option):
    name = "p.csv" if option == "--output" else "m.skops"
    assert "create it first" in refused(*files(source, target), option, tmp_path / "nowhere" / name)


@pytest.mark.parametrize("which", [0, 1])
def test_an_input_is_never_overwritten(refused, files, source, target, tmp_path, which):
    paths = files(source, target)
    before = Path(paths[which]).read_text()
    (tmp_path / "link.csv").symlink_to(paths[which])
    for path in (paths[which], tmp_path / "." / f"{['source', 'target'][which]}.csv", tmp_path / "link.csv"):
        assert "which would be lost" in refused(*paths, "-o", path)
    assert Path(paths[which]).read_text() == before


@pytest.mark.parametrize(("option", "name"), [("--output", "p.xlsx"), ("--output", "p"), ("--save", "m.pkl")])
def test_an_unknown_output_suffix_is_refused_before_files_are_read(refused, tmp_path, option, name):
    assert "expected the suffix" in refused("no.csv", "such.csv", option, tmp_path / name)


def test_an_id_cannot_be_kept_in_npy(refused, files, source, target, tmp_path):
    assert ".npy" in refused(*files(source, target), "--id", "home", "-o", tmp_path / "p.npy")


@pytest.mark.parametrize("arguments", [("--method", "magic"), ("--features", "some"), ("--alpha", "high")])
def test_unknown_words_are_usage_errors(spar, files, source, target, arguments):
    assert spar("adapt", *files(source, target), "--label", "price", *arguments).exit_code == 2


def test_pandas_alone_would_have_filled_the_short_row(tmp_path):
    """The reason why fields are counted: if pandas ever refuses short rows itself, the counting can go."""
    (tmp_path / "s.csv").write_text("a,b\n1,2\n3\n")
    assert pd.read_csv(tmp_path / "s.csv")["b"].isna().sum() == 1


def test_a_label_that_is_not_named_is_answered_with_the_columns(spar, files, source, target):
    result = spar("adapt", *files(source, target))
    assert result.exit_code == 2
    assert "expected --label and the name of the label's column. Got none; there are 'home', 'area'" in result.stderr


def test_a_saved_model_tells_which_columns_a_table_lacks(spar, files, source, target, tmp_path):
    model = tmp_path / "m.skops"
    assert spar("adapt", *files(source, target), "--label", "price", "--id", "home", "--save", model).exit_code == 0
    loaded = pyspar.load(model)
    with pytest.raises(pyspar.InputError, match=r"without 'area' \(1 of 5 missing\); did you mean 'Area'\?"):
        loaded.predict(target.rename(columns={"area": "Area"}))
    with pytest.raises(pyspar.InputError, match=r"expected a data frame with the columns 'area'.*Got ndarray"):
        loaded.predict(target.to_numpy())


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_a_column_that_the_target_lacks_can_be_dropped_as_the_message_says(
    refused, spar, files, source, target, stream
):
    paths = files(source, target.drop(columns="garden"))
    assert refused(*paths, *stream).rstrip().endswith("leave the column out with --drop garden.")
    assert spar("adapt", *paths, "--label", "price", *stream, "--drop", "garden").exit_code == 0


@pytest.mark.parametrize(("column", "value"), [("area", "38.6 m2"), ("sold", "23.03.2024")])
def test_a_column_of_another_kind_can_be_dropped_as_the_message_says(
    refused, spar, files, source, target, column, value
):
    paths = files(source, target.assign(**{column: value}))
    assert refused(*paths).rstrip().endswith(f"or leave the column out with --drop {column}.")
    assert spar("adapt", *paths, "--label", "price", "--drop", column).exit_code == 0

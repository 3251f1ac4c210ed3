"""The formats that tables come in: each gives what CSV gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

NUMBERS = ["area", "garden"]


def predictions(spar, source, target, tmp_path, *, label="price"):
    out = tmp_path / "p.npy"
    result = spar("adapt", source, target, "--label", label, "-o", out)
    assert result.exit_code == 0, result.output
    return np.load(out)


@pytest.fixture
def reference(spar, files, source, target, tmp_path):
    return predictions(spar, *files(source[[*NUMBERS, "price"]], target[NUMBERS]), tmp_path)


@pytest.mark.parametrize("suffix", [".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".CSV"])
def test_text_and_parquet_give_what_csv_gives(spar, reference, source, target, tmp_path, suffix):
    paths = tmp_path / f"s.2019{suffix}", tmp_path / f"t.2024{suffix}"
    for path, table in zip(paths, (source[[*NUMBERS, "price"]], target[NUMBERS])):
        if suffix == ".parquet":
            table.to_parquet(path)
        else:
            table.to_csv(path, index=False, sep="\t" if ".tsv" in suffix else ",")
    np.testing.assert_allclose(predictions(spar, *paths, tmp_path), reference, rtol=1e-9)


@pytest.mark.parametrize(("place", "label"), [(2, "-1"), (2, "x2"), (0, "0"), (1, "x1")])
@pytest.mark.parametrize("with_label", [True, False])
def test_npy_columns_are_numbered_and_the_label_may_be_anywhere(
    spar, reference, source, target, tmp_path, place, label, with_label
):
    columns = list(NUMBERS)
    columns.insert(place, "price")
    np.save(tmp_path / "s.npy", source[columns].to_numpy())
    np.save(tmp_path / "t.npy", target[columns if with_label else NUMBERS].to_numpy())
    found = predictions(spar, tmp_path / "s.npy", tmp_path / "t.npy", tmp_path, label=label)
    np.testing.assert_allclose(found, reference, rtol=1e-9)


def test_npz_holds_features_as_X_and_the_label_under_its_key(spar, reference, source, target, tmp_path):
    np.savez(tmp_path / "s.npz", X=source[NUMBERS].to_numpy(), y=source["price"].to_numpy())
    np.savez(tmp_path / "t.npz", X=target[NUMBERS].to_numpy())
    found = predictions(spar, tmp_path / "s.npz", tmp_path / "t.npz", tmp_path, label="y")
    np.testing.assert_allclose(found, reference, rtol=1e-9)


def test_npz_arrays_of_one_dimension_are_columns(spar, reference, source, target, tmp_path):
    np.savez(tmp_path / "s.npz", **{name: source[name].to_numpy() for name in [*NUMBERS, "price"]})
    np.savez(tmp_path / "t.npz", **{name: target[name].to_numpy() for name in NUMBERS})
    np.testing.assert_allclose(
        predictions(spar, tmp_path / "s.npz", tmp_path / "t.npz", tmp_path), reference, rtol=1e-9
    )


def test_a_parquet_target_goes_with_a_csv_source(spar, files, source, target, tmp_path):
    paths = files(source, target)
    expected = predictions(spar, *paths, tmp_path)
    moved = target.assign(sold=pd.to_datetime(target["sold"]), town=target["town"].astype("category"), home=range(80))
    moved.to_parquet(tmp_path / "t.parquet")
    np.testing.assert_allclose(predictions(spar, paths[0], tmp_path / "t.parquet", tmp_path), expected, rtol=1e-9)


def test_categories_that_look_like_numbers_are_matched_as_text(spar, files, source, target):
    source["town"] = np.where(source["town"] == "Ulm", "x", "007")
    target["town"] = "007"
    result = spar("adapt", *files(source, target), "--label", "price")
    assert "unseen" not in result.stdout


def test_the_order_of_the_target_columns_does_not_matter(spar, files, source, target, tmp_path):
    expected = predictions(spar, *files(source, target), tmp_path)
    np.testing.assert_allclose(predictions(spar, *files(source, target[target.columns[::-1]]), tmp_path), expected)


def test_a_column_without_a_name_is_taken_for_an_index(spar, source, target, tmp_path):
    source.to_csv(tmp_path / "s.csv")
    target.to_csv(tmp_path / "t.csv")
    result = spar("adapt", tmp_path / "s.csv", tmp_path / "t.csv", "--label", "price")
    assert result.exit_code == 0, result.output
    assert "Unnamed: 0: has no name; it is taken for a row index" in result.stdout


def test_odd_parquet_columns_are_read_or_ignored_by_name(spar, source, target, tmp_path):
    import datetime
    from decimal import Decimal

    for table, path in ((source, "s.parquet"), (target, "t.parquet")):
        n = len(table)
        table = table.assign(
            dec=[Decimal(i % 7) for i in range(n)],
            maybe=pd.array([True, None, False, True] * (n // 4), dtype="boolean"),
            day=[datetime.date(2020, 1, 1 + i % 28) for i in range(n)],
            wait=pd.to_timedelta(np.arange(n), unit="h"),
            zoned=pd.date_range("2020-01-01", periods=n, freq="h", tz="Europe/Berlin"),
            pair=[[1, 2]] * n,
        )
        table.to_parquet(tmp_path / path)
    result = spar("adapt", tmp_path / "s.parquet", tmp_path / "t.parquet", "--label", "price", "--id", "home")
    assert result.exit_code == 0, result.output
    assert "6 numeric, 1 categorical, 3 date" in result.stdout
    assert "pair: holds" in result.stdout
    assert "maybe: 30 source, 20 target" in result.stdout


def test_float32_rounding_is_not_taken_for_a_direction(source, target, tmp_path):
    from pyspar.tables.job import Request, inspect_files

    rng = np.random.default_rng(5)
    paths = []
    for n, name in ((200, "s"), (150, "t")):
        base = rng.normal(size=(n, 3)).astype(np.float32)
        X = np.column_stack([base, (base[:, 0] + base[:, 1]).astype(np.float32)])
        paths.append(tmp_path / f"{name}.npz")
        np.savez(paths[-1], X=X, y=base[:, 2].astype(np.float64) + rng.normal(size=n))
    assert inspect_files(Request(*paths, "y")).inspection.rank == 3


def test_quoted_line_breaks_and_blank_lines_are_no_ragged_rows(spar, files, source, target, tmp_path):
    source["remark"] = 'two\nlines, "quoted"'
    paths = files(source, target)
    with open(paths[1], "a") as file:
        file.write("\n\n")
    result = spar("adapt", *paths, "--label", "price")
    assert result.exit_code == 0, result.output
    assert "120 source, 80 target" in result.stdout

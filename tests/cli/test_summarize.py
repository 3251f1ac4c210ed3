"""``spar summarize``: a file of Moments, which ``adapt`` and ``inspect`` accept in place of rows."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pandas as pd
import pytest

import pyspar
from pyspar import Moments
from pyspar.io.moments import read_moments_file
from pyspar.sources.files.formats import INPUT_SUFFIXES

LABEL = ("--label", "price")


def test_the_output_has_the_expected_text(spar, files, source, target, tmp_path, monkeypatch, golden):
    monkeypatch.chdir(tmp_path)
    files(source, target)
    texts = []
    for arguments in (
        ("summarize", "source.csv", *LABEL, "-o", "s.npz"),
        ("summarize", "target.csv", "--features", "area,garden,lift,home", "-o", "t.npz"),
        ("adapt", "s.npz", "t.npz"),
    ):
        text = re.sub(r"[\d.]+ (bytes|kB)", "SIZE", spar(*arguments).stdout)
        texts.append(f"$ spar {' '.join(arguments)}\n{text}")
    golden("cli-summarize", "\n".join(texts))


def test_a_summary_has_the_moments_of_the_numeric_columns(spar, files, source, target, tmp_path):
    out = tmp_path / "m.npz"
    result = spar("summarize", files(source, target)[0], *LABEL, "--drop", "home", "-o", out)
    assert result.exit_code == 0, result.output
    for part in ("120", "3 numeric", "'price'", "town: ", "sold: ", "kB"):
        assert part in result.stdout
    moments = pyspar.load(out)
    assert moments.names == ("area", "garden", "lift")
    expected = Moments.of(source[["area", "garden", "lift"]].astype(float), source["price"])
    np.testing.assert_allclose(np.abs(moments.root), np.abs(expected.root), rtol=1e-9, atol=1e-9)
    assert read_moments_file(out).outputs == ("price",)


@pytest.mark.parametrize("options", [("--features", "garden,area"), ("--features", "garden", "--features", "area")])
def test_features_can_be_chosen(spar, files, source, target, tmp_path, options):
    out = tmp_path / "m.npz"
    assert spar("summarize", files(source, target)[0], *options, "-o", out).exit_code == 0
    moments = pyspar.load(out)
    assert moments.names == ("garden", "area")
    assert moments.n_outputs == 0


def test_the_label_of_a_summary_need_not_be_repeated(spar, files, source, target, tmp_path):
    source_path, target_path = files(source, target)
    assert spar("summarize", source_path, *LABEL, "--drop", "home", "-o", tmp_path / "s.npz").exit_code == 0
    result = spar("adapt", tmp_path / "s.npz", target_path, "-o", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    assert "label 'price'" in result.stdout
    assert len(pd.read_csv(tmp_path / "p.csv")) == 80


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("-o", "m.csv"), ".npz"),
        (("-o", "nowhere/m.npz"), "'nowhere'"),
        (("-o", "m.npz", "--features", "areas"), "did you mean 'area'?"),
        (("-o", "m.npz", "--features", "area,area"), "--features: duplicate column names 'area'"),
        (("-o", "m.npz", "--features", "town"), "column 'town': "),
        (("-o", "m.npz", "--label", "prize"), "did you mean 'price'?"),
        (("-o", "m.npz", "--label", "area", "--features", "area"), "label 'area'"),
    ],
)
def test_invalid_options_are_refused(spar, files, source, target, tmp_path, monkeypatch, arguments, part):
    monkeypatch.chdir(tmp_path)
    path = files(source, target)[0]
    before = sorted(tmp_path.iterdir())
    result = spar("summarize", path, *arguments)
    assert result.exit_code == 2
    assert part in result.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_an_unknown_suffix_is_refused_with_all_suffixes(spar, tmp_path):
    (tmp_path / "x.foo").write_text("a,b\n1,2\n")
    result = spar("summarize", tmp_path / "x.foo", "-o", tmp_path / "m.npz")
    assert result.exit_code == 2
    assert all(f" {suffix}" in result.stderr for suffix in INPUT_SUFFIXES)


def test_a_missing_value_is_refused_and_nothing_written(spar, files, source, target, tmp_path):
    source.loc[3, "area"] = np.nan
    result = spar("summarize", files(source, target)[0], "-o", tmp_path / "m.npz")
    assert result.exit_code == 2
    assert "column 'area': missing value or nan in row 5 " in result.stderr
    assert not (tmp_path / "m.npz").exists()


def test_all_columns_with_missing_values_are_named_with_the_options_that_ignore_them(
    spar, files, source, target, tmp_path
):
    source.loc[3, "area"] = np.nan
    source.loc[1, "garden"] = np.nan
    path = files(source.rename(columns={"garden": "the garden"}), target)[0]
    message = spar("summarize", path, "-o", tmp_path / "m.npz").stderr
    assert "data row 3 " in message
    options = "--drop area --drop 'the garden'"
    assert message.rstrip().endswith(options)
    assert spar("summarize", path, *shlex.split(options), "-o", tmp_path / "m.npz").exit_code == 0
    source.loc[:, "area"], source.loc[:, "garden"], source.loc[2, "price"] = 1.0, 2.0, np.nan
    message = spar("summarize", files(source, target)[0], *LABEL, "-o", tmp_path / "m.npz").stderr
    assert "column 'price'" in message
    assert "--drop price" not in message  # the label cannot be ignored


def test_a_disk_error_is_reported(spar, files, source, target, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyspar.tables.summarize.write_moments", fail)
    result = spar("summarize", files(source, target)[0], "-o", tmp_path / "m.npz")
    assert result.exit_code == 2
    assert f"cannot write {tmp_path / 'm.npz'}: no space left on device" in result.stderr

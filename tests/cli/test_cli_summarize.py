"""``spar summarize``: rows become a small file, which ``adapt`` and ``inspect`` take in their place."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyspar
from pyspar import Moments
from pyspar.io.moments import read_outputs
from pyspar.tables.job import Request, adapt_files, inspect_files

NUMBERS = ["area", "garden", "price"]


@pytest.fixture
def summarised(spar, files, source, target, tmp_path):
    """The rows of both, and the summaries of both."""
    rows = files(source, target)
    summaries = [tmp_path / "source.npz", tmp_path / "target.npz"]
    for path, summary in zip(rows, summaries):
        result = spar("summarize", path, "--label", "price", "--drop", "home", "-o", summary)
        assert result.exit_code == 0, result.output
    return *map(Path, rows), *summaries


def test_a_summary_is_the_moments_of_the_numeric_columns(spar, files, source, target, tmp_path):
    out = tmp_path / "m.npz"
    result = spar("summarize", files(source, target)[0], "--label", "price", "--drop", "home", "-o", out)
    assert "120" in result.stdout
    assert "3 numeric; label 'price'" in result.stdout
    assert "town: holds string values" in result.stdout
    assert "kB" in result.stdout
    found = pyspar.load(out)
    assert found.names == ("area", "garden", "lift")
    expected = Moments.of(source[["area", "garden", "lift"]].astype(float), source["price"])
    np.testing.assert_allclose(np.abs(found.root), np.abs(expected.root), rtol=1e-9, atol=1e-9)
    assert read_outputs(out) == ("price",)


@pytest.mark.parametrize("given", [("--features", "garden,area"), ("--features", "garden", "--features", "area")])
def test_features_may_be_chosen(spar, files, source, target, tmp_path, given):
    out = tmp_path / "m.npz"
    assert spar("summarize", files(source, target)[0], *given, "-o", out).exit_code == 0
    found = pyspar.load(out)
    assert found.names == ("garden", "area")
    assert found.n_outputs == 0


@pytest.mark.parametrize(("method", "name"), [("spar", "SpAR"), ("bayes", "Bayes-SpAR")])
def test_summaries_give_what_their_rows_give(summarised, method, name):
    source, target, source_summary, target_summary = summarised
    rows = adapt_files(Request(source, target, "price", drop=("home",), stream=True), method=method)
    for one, other in ((source_summary, target), (source, target_summary), (source_summary, target_summary)):
        drop = ("home",) if one == source else ()
        account = adapt_files(Request(one, other, "price", drop=drop), method=method)
        expected = account.expected
        assert expected.removed == rows.expected.removed
        assert expected.before.rmse == pytest.approx(rows.expected.before.rmse, rel=1e-10)
        assert expected.after.rmse == pytest.approx(rows.expected.after.rmse, rel=1e-10)
        assert account.scored.rows == 80
        assert account.scored.rmse == pytest.approx(rows.scored.rmse, rel=1e-10)
        output = inspect_files(Request(one, other, "price", drop=drop)).inspection.outputs[0]
        assert output.forecast("OLS").rmse == pytest.approx(expected.before.rmse, rel=1e-10)
        assert output.forecast(name).rmse == pytest.approx(expected.after.rmse, rel=1e-10)


def test_the_label_need_not_be_named_again(spar, summarised, tmp_path):
    _, target, summary, _ = summarised
    result = spar("adapt", summary, target, "-o", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    assert "label 'price'" in result.stdout
    assert len(pd.read_csv(tmp_path / "p.csv")) == 80


def test_a_model_can_be_saved_without_any_rows(spar, summarised, target, tmp_path):
    _, rows_of_target, source, target_summary = summarised
    result = spar("adapt", source, target_summary, "--save", tmp_path / "m.skops")
    assert result.exit_code == 0, result.output
    assert "the target is a summary, without rows" in result.stdout
    adapt_files(Request(source, rows_of_target, "price"), output=tmp_path / "p.npy")
    np.testing.assert_allclose(
        pyspar.load(tmp_path / "m.skops").predict(target), np.load(tmp_path / "p.npy"), rtol=1e-9
    )


def test_moments_saved_by_hand_are_a_source(spar, files, source, target, tmp_path):
    pyspar.save(Moments.of(source[["area", "garden"]], source["price"]), tmp_path / "m.npz")
    result = spar("adapt", tmp_path / "m.npz", files(source, target)[1], "--label", "price")
    assert result.exit_code == 0, result.output
    assert "2 numeric" in result.stdout
    assert "RMSE on the 80 target rows" in result.stdout


def test_what_needs_rows_is_refused(refused, summarised):
    source, target, source_summary, target_summary = summarised
    assert "expected rows to predict. Got Moments" in refused(source, target_summary, "--drop", "home")
    assert "use bayes, spar, ols or pcr" in refused(source_summary, target, "--method", "ridge")
    assert "Got Moments with 'price'" in refused(source_summary, target, label="rent")


def test_summaries_of_other_columns_are_refused(spar, files, source, target, tmp_path):
    paths = files(source[NUMBERS], target[["area"]])
    for path, summary, label in zip(paths, ("s.npz", "t.npz"), (("--label", "price"), ())):
        assert spar("summarize", path, *label, "-o", tmp_path / summary).exit_code == 0
    result = spar("inspect", tmp_path / "s.npz", tmp_path / "t.npz")
    assert result.exit_code == 2
    assert "without 'garden'" in result.stderr
    result = spar("inspect", tmp_path / "t.npz", tmp_path / "s.npz")
    assert "expected Moments of a source with one label. Got 0 outputs" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-o", "m.csv"), "expected the suffix .npz"),
        (("-o", "nowhere/m.npz"), "create it first"),
        (("-o", "m.npz", "--features", "areas"), "did you mean 'area'?"),
        (("-o", "m.npz", "--features", "area,area"), "more than once"),
        (("-o", "m.npz", "--features", "town"), "column 'town': expected numbers"),
        (("-o", "m.npz", "--label", "prize"), "did you mean 'price'?"),
        (("-o", "m.npz", "--label", "area", "--features", "area"), "Got 'area', the label"),
    ],
)
def test_what_cannot_be_summarised_is_refused(spar, files, source, target, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    path = files(source, target)[0]
    before = sorted(tmp_path.iterdir())
    result = spar("summarize", path, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_a_missing_value_is_refused_and_nothing_written(spar, files, source, target, tmp_path):
    source.loc[3, "area"] = np.nan
    result = spar("summarize", files(source, target)[0], "-o", tmp_path / "m.npz")
    assert result.exit_code == 2
    assert "column 'area': expected a number in every row. Got no value in row 3" in result.stderr
    assert not (tmp_path / "m.npz").exists()


def test_all_columns_with_gaps_are_named_with_the_way_to_do_without(spar, files, source, target, tmp_path):
    source.loc[3, "area"] = np.nan
    source.loc[1, "garden"] = np.nan
    path = files(source.rename(columns={"garden": "the garden"}), target)[0]
    message = spar("summarize", path, "-o", tmp_path / "m.npz").stderr
    assert "Got no value in row 3 (the first row is 0), and none in some rows of 'the garden';" in message
    drop = "--drop area --drop 'the garden'"
    assert message.rstrip().endswith(f"leave the columns out with {drop}.")
    assert spar("summarize", path, *shlex.split(drop), "-o", tmp_path / "m.npz").exit_code == 0
    source.loc[:, "area"], source.loc[:, "garden"], source.loc[2, "price"] = 1.0, 2.0, np.nan
    message = spar("summarize", files(source, target)[0], "--label", "price", "-o", tmp_path / "m.npz").stderr
    assert "column 'price'" in message
    assert "--drop" not in message  # the label is needed


def test_an_npz_of_rows_is_no_summary(spar, source, target, tmp_path):
    np.savez(tmp_path / "s.npz", X=source[["area", "garden"]], y=source["price"])
    np.savez(tmp_path / "t.npz", X=target[["area", "garden"]])
    assert not Request(tmp_path / "s.npz", tmp_path / "t.npz", "y").summarised

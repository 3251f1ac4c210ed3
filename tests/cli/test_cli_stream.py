"""``--stream``: the same numbers as in memory, in batches; and Moments in place of rows."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import pyspar
from pyspar.cli import progress as show_progress
from pyspar.tables import inputs as given
from pyspar.tables import memory, request
from pyspar.tables.job import Request, adapt_files, inspect_files

NUMBERS = ["area", "garden", "lift", "price"]
LABEL = ("--label", "price")


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(given, "open_rows", partial(given.open_rows, batch_bytes=1000))


@pytest.fixture
def numbers(files, source, target):
    return files(source[NUMBERS], target[NUMBERS])


@pytest.mark.parametrize("method", ["bayes", "spar", "ols", "pcr"])
def test_a_stream_gives_what_memory_gives(numbers, small_batches, tmp_path, method):
    accounts, predictions = [], []
    for stream in (False, True):
        out = tmp_path / f"{stream}.npy"
        asked = Request(*map(Path, numbers), "price", stream=stream)
        accounts.append(adapt_files(asked, method=method, output=out))
        predictions.append(np.load(out))
    np.testing.assert_allclose(predictions[1], predictions[0], rtol=1e-10)
    memory_, stream_ = accounts
    assert stream_.tables == memory_.tables
    assert (stream_.rank, stream_.chosen) == (memory_.rank, memory_.chosen)
    removed = int(method in ("bayes", "spar"))
    assert stream_.expected.removed == memory_.expected.removed == removed
    for name in ("before", "after"):
        one, other = getattr(stream_.expected, name), getattr(memory_.expected, name)
        assert one.rmse == pytest.approx(other.rmse, rel=1e-10)
        assert one.interval95 == pytest.approx(other.interval95, rel=1e-10)
    assert stream_.scored.rmse == pytest.approx(memory_.scored.rmse, rel=1e-10)
    assert stream_.scored.rmse_least_squares == pytest.approx(memory_.scored.rmse_least_squares, rel=1e-10)


def clustered(n, seed, *, later):
    """Homes in three towns, their columns far from zero and of unlike sizes; prices bend where the later ones lie."""
    rng = np.random.default_rng(seed)
    town = rng.integers(0, 3, size=n)
    area = 2019.0 + 5.0 * town + rng.normal(size=n) + (8.0 if later else 0.0)
    garden = 1e-3 * (rng.normal(size=n) + town) * (4.0 if later else 1.0)
    lift = (rng.random(n) < 0.4).astype(float)
    price = 3.0 * area + 900.0 * garden + 0.3 * (area - 2024.0) ** 2 + 5.0 * rng.normal(size=n)
    return pd.DataFrame({"area": area, "garden": garden, "lift": lift, "price": price})


def test_a_model_saved_from_a_stream_goes_on_as_one_from_memory(files, small_batches, tmp_path):
    tables = files(clustered(6000, 0, later=False), clustered(300, 1, later=True))
    models = []
    for stream in (False, True):
        asked = Request(*map(Path, tables), "price", stream=stream)
        adapt_files(asked, save=tmp_path / f"{stream}.skops")
        models.append(pyspar.load(tmp_path / f"{stream}.skops"))
    features = [pipeline[0].transform(pd.read_csv(tables[1])) for pipeline in models]
    np.testing.assert_allclose(features[1], features[0], rtol=1e-10, atol=1e-10)
    more = clustered(300, 2, later=True)["price"].to_numpy()
    found = [pipeline[-1] for pipeline in models]
    np.testing.assert_allclose(found[1].coef_, found[0].coef_, rtol=1e-10)
    assert found[1].evidence_.limit == found[0].evidence_.limit == ("interior",)
    learnt = [est.partial_fit(Z, more).adapt(Z).coef_ for est, Z in zip(found, features, strict=True)]
    np.testing.assert_allclose(learnt[1], learnt[0], rtol=1e-10)


def test_adapt_and_inspect_forecast_the_same_of_a_stream(files, small_batches):
    tables = files(clustered(600, 0, later=False), clustered(200, 1, later=True))
    asked = Request(*map(Path, tables), "price", stream=True)
    forecast = inspect_files(asked).inspection.outputs[0].forecast("Bayes-SpAR")
    expected = adapt_files(asked).expected.after
    assert forecast.rmse == pytest.approx(expected.rmse, rel=1e-9)
    assert forecast.interval95 == pytest.approx(expected.interval95, rel=1e-9)


def test_inspecting_a_stream_gives_what_memory_gives(numbers, small_batches):
    asked = Request(*map(Path, numbers), "price")
    in_memory = inspect_files(asked)
    streamed = inspect_files(Request(*map(Path, numbers), "price", stream=True))
    sides = [found.inspection.outputs[0].directions for found in (in_memory, streamed)]
    for one, other in zip(*sides, strict=True):
        assert other.keeping == pytest.approx(one.keeping, rel=1e-10)
        assert other.goes == one.goes
        assert other.loads == tuple((name, pytest.approx(share, abs=1e-10)) for name, share in one.loads)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npy"])
def test_streamed_predictions_are_the_same_in_every_format(spar, numbers, small_batches, tmp_path, suffix):
    out, reference = tmp_path / f"p{suffix}", tmp_path / f"r{suffix}"
    assert spar("adapt", *numbers, *LABEL, "--stream", "-o", out).exit_code == 0
    assert spar("adapt", *numbers, *LABEL, "-o", reference).exit_code == 0
    readers = {".csv": pd.read_csv, ".tsv": partial(pd.read_csv, sep="\t"), ".parquet": pd.read_parquet}
    if suffix == ".npy":
        np.testing.assert_allclose(np.load(out), np.load(reference), rtol=1e-10)
    else:
        pd.testing.assert_frame_equal(readers[suffix](out), readers[suffix](reference), rtol=1e-10)


def test_other_columns_are_listed_and_the_id_is_kept_to_the_letter(spar, files, source, target, tmp_path):
    out = tmp_path / "p.csv"
    result = spar("adapt", *files(source, target), *LABEL, "--stream", "--id", "home", "-o", out)
    assert result.exit_code == 0, result.output
    assert "3 numeric; 3 after encoding" in result.stdout
    assert "town: holds string values, and a stream takes numbers only" in result.stdout
    assert "sold: holds date32" in result.stdout
    assert pd.read_csv(out, dtype=str)["home"].tolist() == target["home"].tolist()


@pytest.mark.parametrize("method", ["bayes", "spar", "ols", "pcr"])
def test_a_pipeline_saved_from_a_stream_predicts_raw_tables(spar, numbers, target, tmp_path, method):
    out, model = tmp_path / "p.npy", tmp_path / "m.skops"
    arguments = ("--stream", "--method", method, "-o", out, "--save", model)
    assert spar("adapt", *numbers, *LABEL, *arguments).exit_code == 0
    loaded = pyspar.load(model)
    np.testing.assert_allclose(loaded.predict(pd.read_csv(numbers[1])), np.load(out), rtol=1e-10)
    assert np.isfinite(loaded.predict(target.assign(area=np.nan)[NUMBERS])).all()  # filled in by the source's mean


def test_float32_columns_stay_what_they_were_measured_in(source, target, tmp_path):
    for table, name in ((source, "s.parquet"), (target, "t.parquet")):
        table[NUMBERS].astype({"area": "float32", "garden": "float32"}).to_parquet(tmp_path / name)
    asked = Request(tmp_path / "s.parquet", tmp_path / "t.parquet", "price", stream=True)
    adapt_files(asked, output=tmp_path / "p.npy", save=tmp_path / "m.skops")
    again = pyspar.load(tmp_path / "m.skops").predict(pd.read_parquet(tmp_path / "t.parquet"))
    np.testing.assert_allclose(again, np.load(tmp_path / "p.npy"), rtol=1e-5)


def test_constant_columns_are_ignored(spar, files, source, target):
    tables = files(source[NUMBERS].assign(year=2019), target[NUMBERS].assign(year=2024))
    result = spar("adapt", *tables, *LABEL, "--stream")
    assert "year: has one value in the source (2019)" in result.stdout


def test_columns_that_start_empty_are_ignored(spar, files, source, target, tmp_path):
    tables = files(source[NUMBERS].assign(empty=np.nan), target[NUMBERS])
    result = spar("adapt", *tables, *LABEL, "--stream")
    assert "empty: has no value in the first rows" in result.stdout


def test_a_folder_of_parquet_files_is_a_source(spar, source, target, tmp_path):
    for role, table in (("source", source), ("target", target)):
        (tmp_path / role).mkdir()
        for k in range(3):
            table[NUMBERS].iloc[k::3].to_parquet(tmp_path / role / f"{k}.parquet", index=False)
    result = spar("adapt", tmp_path / "source", tmp_path / "target", *LABEL, "-o", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    assert "120 source, 80 target" in result.stdout
    assert len(pd.read_csv(tmp_path / "p.csv")) == 80


@pytest.mark.parametrize(("place", "label"), [(2, "-1"), (0, "0")])
def test_arrays_are_streamed_by_position(spar, source, target, tmp_path, place, label):
    columns = ["area", "garden"]
    columns.insert(place, "price")
    np.save(tmp_path / "s.npy", source[columns].to_numpy())
    np.save(tmp_path / "t.npy", target[["area", "garden"]].to_numpy())
    outs = []
    for stream in ((), ("--stream",)):
        outs.append(tmp_path / f"p{len(outs)}.npy")
        arguments = ("adapt", tmp_path / "s.npy", tmp_path / "t.npy", "--label", label, "-o", outs[-1], *stream)
        assert spar(*arguments).exit_code == 0
    np.testing.assert_allclose(np.load(outs[1]), np.load(outs[0]), rtol=1e-10)


def test_files_above_a_quarter_of_the_free_memory_are_streamed(spar, numbers, monkeypatch):
    for free, streamed in ((None, False), (10**9, False), (10_000, True)):
        monkeypatch.setattr(memory, "free_memory", lambda free=free: free)
        assert Request(*map(Path, numbers), "price").summarised == streamed
    assert "rows were read in a stream" in spar("adapt", *numbers, *LABEL).stdout


def test_the_free_memory_is_known_here():
    assert memory.free_memory() is None or memory.free_memory() > 0
    assert not request.too_large(Path("no-such-file"))


def test_target_rows_without_a_label_are_left_out_of_the_score(files, source, target, small_batches):
    target.loc[:69, "price"] = np.nan
    asked = Request(*map(Path, files(source[NUMBERS], target[NUMBERS])), "price", stream=True)
    assert adapt_files(asked).scored.rows == 10


def test_text_in_place_of_target_labels_is_noted(spar, files, source, target):
    result = spar("adapt", *files(source, target.assign(price="to come")), *LABEL, "--stream")
    assert "the target's labels were not used to score" in result.stdout


@pytest.mark.parametrize(("role", "column"), [("source", "area"), ("source", "price"), ("target", "garden")])
def test_missing_values_are_refused_in_a_stream(refused, files, source, target, role, column):
    {"source": source, "target": target}[role].loc[17, column] = np.nan
    message = refused(*files(source, target), "--stream")
    assert f"{role} " in message
    assert f"column {column!r}: expected a number in every row. Got no value in row 17" in message


def test_infinity_is_refused_in_a_stream(refused, files, source, target):
    target.loc[17, "area"] = -np.inf
    assert "column 'area': expected finite numbers" in refused(*files(source, target), "--stream")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "ridge"), "use bayes, spar, ols or pcr"),
        (("--label", "pirce"), "did you mean 'price'?"),
        (("--label", "town"), "column 'town': expected numbers"),
        (("--id", "price"), "different columns"),
        (("--id", "nobody"), "expected a column 'nobody'"),
        (("--drop", "price"), "which is the label or the id"),
        (("--drop", "gardn"), "did you mean 'garden'?"),
        (("--drop", "area", "--drop", "garden", "--drop", "lift", "--drop", "home"), "'area' was dropped, as asked"),
    ],
)
def test_what_a_stream_cannot_do_is_refused(refused, files, source, target, arguments, said):
    assert said in refused(*files(source, target), "--stream", *arguments)


def test_labels_and_columns_without_spread_are_refused_in_a_stream(refused, files, source, target):
    assert "Got 7 only" in refused(*files(source.assign(price=7), target), "--stream")
    same = source[["area", "price"]].assign(area=1.0)
    assert "expected a column that varies" in refused(*files(same, target), "--stream")
    assert "at least two rows" in refused(*files(source[:1], target), "--stream")


def test_a_target_without_the_sources_columns_is_refused_before_the_source_is_read(
    refused, files, source, target, monkeypatch
):
    monkeypatch.setattr(given, "moments_of_file", lambda *_, **__: pytest.fail("rows were read"))
    assert "without 'garden'" in refused(*files(source, target.drop(columns="garden")), "--stream")
    assert "column 'area': expected numbers" in refused(*files(source, target.assign(area="large")), "--stream")


def test_an_npz_of_rows_is_not_streamed(refused, files, source, target, tmp_path):
    np.savez(tmp_path / "s.npz", X=np.ones((4, 2)), y=np.arange(4.0))
    assert "to read in a stream. Got the suffix '.npz'" in refused(
        tmp_path / "s.npz", files(source, target)[1], "--stream"
    )


SLOW = """
import sys, time
from functools import partial
from pyspar.sources.files import text as rows_text
from pyspar.tables import inputs as given, standardise as standard
given.open_rows = partial(given.open_rows, batch_bytes=500)

def slow(function):
    def later(*arguments):
        print("working", flush=True)
        time.sleep(0.2)
        return function(*arguments)
    return later

if sys.argv.pop(1) == "reading":
    rows_text.converted = slow(rows_text.converted)
else:
    standard.Standard.predict = slow(standard.Standard.predict)
from pyspar.__main__ import main
main()
"""


@pytest.mark.parametrize("stage", ["reading", "predicting"])
def test_ctrl_c_in_the_middle_of_a_stream_leaves_no_file(numbers, tmp_path, stage):
    arguments = ["adapt", *numbers, *LABEL, "--stream", "-o", str(tmp_path / "out.csv")]
    running = subprocess.Popen(
        [sys.executable, "-c", SLOW, stage, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert [running.stdout.readline() for _ in range(2)] == ["working\n"] * 2
    if stage == "predicting":
        assert [path for path in tmp_path.iterdir() if path.name.startswith(".out-")]
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=30)
    assert running.returncode == 130
    assert stderr == "stopped; nothing was written\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.csv", "target.csv"]


def test_a_terminal_sees_rows_bytes_and_their_rate(numbers, monkeypatch):
    console = Console(force_terminal=True, width=120, record=True, file=io.StringIO())
    monkeypatch.setattr(show_progress, "Console", lambda **_: console)
    with show_progress.status() as line:
        line("starting")
        move = line.reading("reading the source", 4_000_000)
        move(12_345, 2_000_000)
        line._shown.refresh()
        text = console.export_text()
    assert "12,345 rows" in text
    assert "2.0/4.0 MB" in text
    assert "/s" in text or "?" in text

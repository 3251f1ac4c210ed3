"""``watch_files``: batches from files and folders."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pyspar import BayesSpARRegressor, InputError
from pyspar.cli.as_json import describe_batch
from pyspar.tables import watch
from pyspar.tables.adapt import adapt_files
from pyspar.tables.inputs import Request
from pyspar.tables.watch import WatchRequest, list_files, watch_files


@pytest.fixture
def folder(tmp_path, source, target):
    """A labelled source, a saved model, and a folder with a calm and a shifted batch."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    source.to_csv(tmp_path / "source.csv", index=False)
    source[:60].drop(columns="price").to_csv(inbox / "a.csv", index=False)
    target.assign(garden=1000 * target["garden"]).to_csv(inbox / "b.csv", index=False)
    request = Request(tmp_path / "source.csv", inbox / "a.csv", "price", identity="home")
    adapt_files(request, save=tmp_path / "model.skops")
    return tmp_path


def test_each_file_is_a_batch_and_a_large_shift_raises_the_alarm(folder):
    request = WatchRequest(folder / "model.skops", (folder / "inbox",), once=True, limit=25.0)
    accounts = list(watch_files(request))
    assert [account.path.name for account in accounts] == ["a.csv", "b.csv"]
    assert [account.state.alarm for account in accounts] == [False, True]
    assert describe_batch(accounts[1])["interval95"][0] > 25.0


def test_a_saved_model_and_its_source_give_the_same_numbers(folder):
    files = tuple(sorted((folder / "inbox").iterdir()))
    saved = watch_files(WatchRequest(folder / "model.skops", files, once=True, window=2))
    fitted = watch_files(WatchRequest(folder / "source.csv", files, "price", once=True, window=2, identity="home"))
    for one, other in zip(saved, fitted, strict=True):
        assert one.state.adapted[0].rmse == pytest.approx(other.state.adapted[0].rmse, rel=1e-6)
    assert one.state.rows == 60 + 80


def test_the_limit_is_the_error_on_new_groups(tmp_path):
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(12), 10)
    x = rng.normal(size=120)
    y = x + 2.0 * rng.normal(size=12)[patient] + 0.1 * rng.normal(size=120)
    table = pd.DataFrame({"x": x, "patient": [f"p{i}" for i in patient], "y": y})
    table.to_csv(tmp_path / "source.csv", index=False)
    table.drop(columns="y").to_csv(tmp_path / "batch.csv", index=False)
    files = tmp_path / "source.csv", (tmp_path / "batch.csv",), "y"
    (account,) = watch_files(WatchRequest(*files, once=True, groups="patient"))
    expected = BayesSpARRegressor().fit(x[:, None], y, groups=patient).home_rmse()
    assert account.state.limits[0] == pytest.approx(expected, rel=1e-9)
    with pytest.raises(InputError, match="--groups"):
        list(watch_files(WatchRequest(tmp_path / "model.skops", files[1], once=True, groups="patient")))


def test_files_that_appear_later_are_read_when_their_size_is_stable(folder, monkeypatch):
    inbox, pauses = folder / "inbox", []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            (inbox / "c.csv").write_bytes((inbox / "a.csv").read_bytes()[:500])
        elif len(pauses) == 3:
            (inbox / "c.csv").write_bytes((inbox / "a.csv").read_bytes())
            (inbox / ".d.csv").write_text("hidden")
        elif len(pauses) == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(watch.time, "sleep", sleep)
    seen = []

    def collect():
        for account in watch_files(WatchRequest(folder / "model.skops", (inbox,), seconds=0.5)):
            seen.append((account.path.name, len(pauses), account.error))

    with pytest.raises(KeyboardInterrupt):
        collect()
    assert seen == [("a.csv", 1, ""), ("b.csv", 1, ""), ("c.csv", 4, "")]
    assert set(pauses) == {0.5}


def test_the_first_batch_after_a_source_is_read_like_every_other_batch(folder, target):
    """Its message must not suggest options of spar adapt, which spar watch does not have."""
    bad = target.drop(columns="price").astype({"area": object})
    bad.loc[0, "area"] = "large"
    bad.to_csv(folder / "bad.csv", index=False)
    files = (folder / "bad.csv", folder / "inbox" / "a.csv")
    first, second = watch_files(WatchRequest(folder / "source.csv", files, "price", once=True, identity="home"))
    assert first.state is None
    assert "batch" in first.error
    assert "'large'" in first.error
    assert "--" not in first.error
    assert second.state.rows == 60


def test_a_bad_file_is_reported_and_the_watch_goes_on(folder):
    (folder / "inbox" / "aa.csv").write_text("area\n1\n")
    accounts = list(watch_files(WatchRequest(folder / "model.skops", (folder / "inbox",), once=True)))
    assert [account.state is None for account in accounts] == [False, True, False]
    assert "garden" in accounts[1].error
    assert describe_batch(accounts[1]) == {"file": str(folder / "inbox" / "aa.csv"), "error": accounts[1].error}
    assert accounts[2].state.batch == 2


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"model": Path("no.skops")}, "no.skops"),
        ({"paths": (Path("nowhere"),)}, "nowhere"),
        ({"limit": -1.0}, "--limit.*-1"),
        ({"window": 0}, "--window.*0"),
        ({"seconds": 0.0}, "--seconds.*0"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_read(tmp_path, change, text):
    (tmp_path / "model.skops").write_text("not a model")
    arguments = {"model": tmp_path / "model.skops", "paths": (tmp_path,), **change}
    with pytest.raises(InputError, match=text):
        next(watch_files(WatchRequest(**arguments)))


def test_other_files_in_a_folder_are_ignored(tmp_path):
    for name in ("b.csv", "a.parquet", "notes.txt", ".c.csv"):
        (tmp_path / name).write_text("x")
    assert [path.name for path in list_files([tmp_path])] == ["a.parquet", "b.csv"]


@pytest.mark.parametrize(("limit", "code"), [("25", 3), ("1e9", 0)])
def test_the_exit_code_of_the_command_is_that_of_the_last_batch(spar, folder, limit, code):
    result = spar("watch", folder / "model.skops", folder / "inbox", "--once", "--json", "--limit", limit)
    assert result.exit_code == code, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["alarm"] for line in lines] == [False, code == 3]
    text = spar("watch", folder / "model.skops", folder / "inbox", "--once", "--limit", limit).stdout
    assert ("ALARM    b.csv" in text) == (code == 3)
    assert spar("watch", folder / "none.skops", folder / "inbox", "--once").exit_code == 2


@pytest.fixture
def labelled(folder, source):
    """The folder, with three batches that have the features of the source: without harm, with harm, without labels."""
    (folder / "labelled").mkdir()
    batch = source[:60]
    batch.to_csv(folder / "labelled" / "a.csv", index=False)
    batch.assign(price=batch["price"] + 100.0).to_csv(folder / "labelled" / "b.csv", index=False)
    batch.assign(price=np.nan).to_csv(folder / "labelled" / "c.csv", index=False)
    return folder


@pytest.mark.parametrize("kind", ["model", "source"])
def test_labels_in_a_batch_measure_the_error_and_raise_the_alarm(spar, labelled, kind):
    model = ["model.skops"] if kind == "model" else ["source.csv", "--label", "price", "--id", "home"]
    options = [labelled / "labelled", "--once", "--limit", "40", *model[1:]]
    result = spar("watch", labelled / model[0], *options, "--json")
    assert result.exit_code == 0, result.output  # the last batch has no labels
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["alarm"] for line in lines] == [False, True, False]
    assert [line["measured_labels"] for line in lines] == [60, 60, 0]
    assert lines[0]["measured"] < 40 < lines[1]["measured_interval95"][0] < lines[1]["measured"]
    assert lines[1]["measured"] == pytest.approx(np.hypot(100.0, lines[0]["measured"]), rel=0.1)
    assert [line["relation_changed"] for line in lines] == [False, True, True]
    assert [line["labels"] for line in lines] == [60, 120, 120]
    assert lines[2]["measured"] is lines[2]["measured_interval95"] is None
    (labelled / "labelled" / "c.csv").unlink()
    result = spar("watch", labelled / model[0], *options)
    assert result.exit_code == 3
    assert f"{lines[1]['measured']:.4g}" in result.stdout


def test_a_label_column_that_is_missing_or_a_feature_is_reported(labelled):
    request = {"model": labelled / "model.skops", "paths": (labelled / "labelled" / "a.csv",), "once": True}
    (account,) = watch_files(WatchRequest(**request, label="pirce"))
    assert account.state.labels == 0
    assert "'price'" in account.notes[0]
    (account,) = watch_files(WatchRequest(**request, label="area"))
    assert account.state is None
    assert "'area'" in account.error


def test_a_limit_between_the_interval_and_the_expected_error_is_above_the_limit(spar, folder):
    (account,) = watch_files(WatchRequest(folder / "model.skops", (folder / "inbox" / "a.csv",), once=True))
    forecast = account.state.adapted[0]
    limit = (forecast.interval95[0] + forecast.rmse) / 2
    options = [folder / "model.skops", folder / "inbox" / "a.csv", "--once"]
    result = spar("watch", *options, "--limit", limit, "--json")
    first = json.loads(result.stdout)
    assert (result.exit_code, first["alarm"], first["above_limit"]) == (0, False, True)
    assert f"{limit:.4g}" in first["notes"][0]  # the limit is below the error at home
    assert "not certain" in spar("watch", *options, "--limit", limit).stdout


def test_a_model_that_is_corrected_by_target_labels_is_refused(spar, labelled):
    request = Request(labelled / "source.csv", labelled / "labelled" / "b.csv", "price", identity="home")
    adapt_files(request, save=labelled / "corrected.skops", use_target_labels=True)
    result = spar("watch", labelled / "corrected.skops", labelled / "inbox", "--once")
    assert result.exit_code == 2
    assert "corrected.skops" in result.stderr
    assert "without --use-target-labels" in result.stderr

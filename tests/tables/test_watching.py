"""``watch_files``: batches from files and folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspar import InputError
from pyspar.tables import watching
from pyspar.tables.jobs import Request, adapt_files
from pyspar.tables.watching import WatchRequest, list_files, watch_files


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
    assert accounts[1].as_dict()["interval95"][0] > 25.0


def test_a_saved_model_and_its_source_give_the_same_numbers(folder):
    files = tuple(sorted((folder / "inbox").iterdir()))
    saved = watch_files(WatchRequest(folder / "model.skops", files, once=True, window=2))
    fitted = watch_files(WatchRequest(folder / "source.csv", files, "price", once=True, window=2, identity="home"))
    for one, other in zip(saved, fitted, strict=True):
        assert one.state.adapted[0].rmse == pytest.approx(other.state.adapted[0].rmse, rel=1e-6)
    assert one.state.rows == 60 + 80


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

    monkeypatch.setattr(watching.time, "sleep", sleep)
    seen = []

    def collect():
        for account in watch_files(WatchRequest(folder / "model.skops", (inbox,), seconds=0.5)):
            seen.append((account.path.name, len(pauses), account.error))

    with pytest.raises(KeyboardInterrupt):
        collect()
    assert seen == [("a.csv", 1, ""), ("b.csv", 1, ""), ("c.csv", 4, "")]
    assert set(pauses) == {0.5}


def test_a_bad_file_is_reported_and_the_watch_goes_on(folder):
    (folder / "inbox" / "aa.csv").write_text("area\n1\n")
    accounts = list(watch_files(WatchRequest(folder / "model.skops", (folder / "inbox",), once=True)))
    assert [account.state is None for account in accounts] == [False, True, False]
    assert "garden" in accounts[1].error
    assert accounts[1].as_dict() == {"file": str(folder / "inbox" / "aa.csv"), "error": accounts[1].error}
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
    import json

    result = spar("watch", folder / "model.skops", folder / "inbox", "--once", "--json", "--limit", limit)
    assert result.exit_code == code, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["alarm"] for line in lines] == [False, code == 3]
    text = spar("watch", folder / "model.skops", folder / "inbox", "--once", "--limit", limit).stdout
    assert ("ALARM    b.csv" in text) == (code == 3)
    assert spar("watch", folder / "none.skops", folder / "inbox", "--once").exit_code == 2

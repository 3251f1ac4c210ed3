"""What may not be read is said with its path and the cure; other sets go on, and what can be built is built."""

from __future__ import annotations

import builtins
import io
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import pyspar.paper.data.rcf_mnist as rcf_mnist
from pyspar.cli.app import app
from pyspar.errors import InputError, MissingDataError, SparWarning
from pyspar.paper.data import load, names, where
from pyspar.paper.data.access import UnreadableError, is_file, is_folder, names_in, permitted
from pyspar.paper.data.built import built_once, is_kept, kept_file
from pyspar.paper.data.check import checked
from pyspar.paper.data.image_files import read_image
from pyspar.paper.data.registry import state_of


@pytest.fixture
def shut(monkeypatch):
    """Shut files or folders, as mode 000 does for anyone but root: a folder can be seen, but nothing in it."""
    closed: list[str] = []

    def guarded(function, *, opens):
        def ask(path=".", *args, **kwargs):
            if isinstance(path, str | os.PathLike):
                asked = os.path.join(os.getcwd(), os.fspath(path))
                for each in closed:
                    if asked.startswith(each + os.sep) or (opens and asked == each):
                        raise PermissionError(13, "Permission denied", os.fspath(path))
            return function(path, *args, **kwargs)

        return ask

    for module, name in (
        (os, "stat"),
        (os, "listdir"),
        (os, "scandir"),
        (os, "mkdir"),
        (builtins, "open"),
        (io, "open"),
    ):
        monkeypatch.setattr(module, name, guarded(getattr(module, name), opens=name != "stat"))
    return lambda path: closed.append(str(path))


@pytest.fixture
def spar(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *words: CliRunner().invoke(app, words)


def test_a_shut_folder_is_neither_there_nor_missing(tmp_path, shut):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    assert is_folder(tmp_path / "in")
    assert not is_file(tmp_path / "in" / "none")
    assert names_in(tmp_path / "in") == ["deep"]
    assert names_in(tmp_path / "none") == []
    shut(tmp_path / "in")
    for ask in (is_file, is_folder, names_in):
        with pytest.raises(
            UnreadableError, match=rf"permission denied at '{tmp_path}/in'.*chmod -R u\+rwX {tmp_path}/in$"
        ):
            ask(tmp_path / "in" / "deep" / "file")


def test_only_an_error_that_names_no_path_and_is_given_none_stays_what_it_is(tmp_path):
    with pytest.raises(PermissionError), permitted():
        raise PermissionError("no")
    with pytest.raises(UnreadableError, match="chmod"), permitted(tmp_path):
        raise PermissionError("no")
    with pytest.raises(FileNotFoundError), permitted(tmp_path):
        raise FileNotFoundError(tmp_path)


def test_a_path_with_a_space_is_quoted_for_the_shell(tmp_path):
    assert str(UnreadableError(tmp_path / "my data")).endswith(f"'{tmp_path}/my data'")


def test_a_shut_set_is_said_unreadable_and_the_others_go_on(tmp_path, shut, spar):
    (tmp_path / "chair-angles-tails").mkdir()
    before = {name: state_of(name, tmp_path) for name in names()}
    shut(tmp_path / "chair-angles-tails")
    assert {name: state_of(name, tmp_path) for name in names()} == before | {"chair-angles-tails": "unreadable"}
    listed = spar("data", "list", "--data", str(tmp_path))
    assert listed.exit_code == 0
    assert listed.stdout.count("unreadable") == 1
    assert f"chmod -R u+rwX {tmp_path}/chair-angles-tails" in listed.stderr
    told = spar("data", "check", "chair-angles-tails", "povertymap", "--data", str(tmp_path))
    assert told.exit_code == 1
    assert f"chmod -R u+rwX {tmp_path}/chair-angles-tails" in told.stdout
    assert "povertymap" in told.stdout.splitlines()[-2]
    asked = spar("data", "where", "chair-angles-tails", "--data", str(tmp_path))
    assert asked.exit_code == 2
    assert "permission denied" in asked.stderr


def test_a_named_folder_that_is_shut_is_refused_once(tmp_path, shut, spar):
    (tmp_path / "data").mkdir()
    shut(tmp_path / "data")
    listed = spar("data", "list", "--data", str(tmp_path / "data"))
    assert listed.exit_code == 2
    assert listed.stderr.count("chmod") == 1
    assert f"to read '{tmp_path}/data'. " in listed.stderr


@pytest.mark.parametrize("name", ["chair-angles-tails.npz", "RC-49_64x64.npz", "RC-49_64x64.h5"])
def test_a_shut_file_is_unreadable_not_damaged(tmp_path, shut, name, monkeypatch):
    (tmp_path / name).write_bytes(b"1")
    if name.endswith("h5"):
        h5py = pytest.importorskip("h5py")

        def closed(path, mode):
            raise PermissionError(13, "Unable to open file")  # h5py names the path in the text alone

        monkeypatch.setattr(h5py, "File", closed)
    shut(tmp_path / name)
    with pytest.raises(UnreadableError, match=name):
        load("chair-angles-tails", folder=tmp_path)
    found = checked("chair-angles-tails", tmp_path)
    assert found.state == "wrong"
    assert found.detail.startswith("unreadable: ")


def test_a_shut_image_is_unreadable_not_damaged(tmp_path, shut):
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    shut(tmp_path / "a.npz")
    with pytest.raises(UnreadableError, match=r"chmod .*a\.npz"):
        read_image(tmp_path / "a.npz")


def test_a_shut_file_with_a_checksum_is_unreadable(tmp_path, shut):
    (tmp_path / "SkillCraft1_Dataset.csv").write_text("1")
    assert state_of("skillcraft", tmp_path) == "changed"
    shut(tmp_path / "SkillCraft1_Dataset.csv")
    assert state_of("skillcraft", tmp_path) == "unreadable"


@pytest.mark.parametrize("what", ["cache", "folder", "file", "sum"])
def test_a_shut_cache_costs_time_not_the_result(cache, shut, what):
    def build():
        return {"a": np.arange(3)}

    built_once("set", "key", build)
    path = kept_file("set", "key")
    closed = {"cache": cache, "folder": path.parent, "file": path, "sum": path.with_suffix(".sha256")}[what]
    shut(closed)
    with pytest.warns(SparWarning, match="set was built in memory and not kept: .*chmod -R") as caught:
        arrays = built_once("set", "key", build)
    assert len(caught) == 1
    assert str(closed) in str(caught[0].message)
    np.testing.assert_array_equal(arrays["a"], np.arange(3))


def test_rcf_mnist_is_built_in_memory_where_the_cache_is_shut(cache, shut, monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (60, 28, 28), dtype=np.uint8)
    monkeypatch.setattr(rcf_mnist, "find", lambda folder: rcf_mnist.Found(Path("any.gz"), "here"))
    monkeypatch.setattr(rcf_mnist, "read_idx_images", lambda path, sha256: images)
    expected = load("rcf-mnist")
    shut(cache)
    with pytest.warns(SparWarning, match="rcf-mnist was built in memory"):
        task = load("rcf-mnist")
    np.testing.assert_array_equal(task.train.X, expected.train.X)


def test_what_can_only_be_had_from_a_shut_cache_is_unreadable_not_missing(cache, shut, monkeypatch, tmp_path):
    monkeypatch.setattr(rcf_mnist, "DEBIAN", tmp_path / "none")
    (cache / "rcf-mnist").mkdir()
    kept = cache / "rcf-mnist" / "v1-nearest-seed0.npz"
    kept.write_bytes(b"1")
    kept.with_suffix(".sha256").write_bytes(b"1")
    shut(kept)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnreadableError, match="v1-nearest-seed0"):
            load("rcf-mnist")
    shut(cache)
    with pytest.raises(UnreadableError, match="chmod"):
        where("rcf-mnist")


def test_a_kept_file_that_is_shut_can_be_drawn_again(cache, shut):
    built_once("set", "key", lambda: {"a": np.arange(3)})
    assert is_kept(kept_file("set", "key"))
    shut(cache / "set")
    assert not is_kept(kept_file("set", "key"))


def test_an_unreadable_set_is_refused_like_any_other_bad_input_and_is_not_missing():
    assert issubclass(UnreadableError, InputError)
    assert not issubclass(UnreadableError, MissingDataError)

"""Unreadable files and folders: errors with path and chmod command, other data sets work, and caches are rebuilt."""

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
from pyspar.paper.data.access import UnreadableError, convert_permission_errors, is_file, is_folder, list_names
from pyspar.paper.data.cache import cache_file, is_cached, load_or_build
from pyspar.paper.data.check import check_dataset
from pyspar.paper.data.image_files import read_image
from pyspar.paper.data.registry import state_of


@pytest.fixture
def block(monkeypatch):
    """Return a function that blocks a path like mode 000: a folder can be seen, but not its content."""
    blocked: list[str] = []

    def guard(function, *, opens):
        def guarded(path=".", *args, **kwargs):
            if isinstance(path, str | os.PathLike):
                absolute = os.path.join(os.getcwd(), os.fspath(path))
                for other in blocked:
                    if absolute.startswith(other + os.sep) or (opens and absolute == other):
                        raise PermissionError(13, "Permission denied", os.fspath(path))
            return function(path, *args, **kwargs)

        return guarded

    for module, name in (
        (os, "stat"),
        (os, "listdir"),
        (os, "scandir"),
        (os, "mkdir"),
        (builtins, "open"),
        (io, "open"),
    ):
        monkeypatch.setattr(module, name, guard(getattr(module, name), opens=name != "stat"))
    return lambda path: blocked.append(str(path))


@pytest.fixture
def spar(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *words: CliRunner().invoke(app, words)


def test_a_path_in_a_blocked_folder_raises_with_the_chmod_command(tmp_path, block):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    assert is_folder(tmp_path / "in")
    assert not is_file(tmp_path / "in" / "none")
    assert list_names(tmp_path / "in") == ["deep"]
    assert list_names(tmp_path / "none") == []
    block(tmp_path / "in")
    for function in (is_file, is_folder, list_names):
        with pytest.raises(UnreadableError, match=rf"'{tmp_path}/in'.*chmod -R u\+rwX {tmp_path}/in$"):
            function(tmp_path / "in" / "deep" / "file")


def test_permission_errors_are_converted_if_the_path_is_known(tmp_path):
    with pytest.raises(PermissionError), convert_permission_errors():
        raise PermissionError("no")
    with pytest.raises(UnreadableError, match="chmod"), convert_permission_errors(tmp_path):
        raise PermissionError("no")
    with pytest.raises(FileNotFoundError), convert_permission_errors(tmp_path):
        raise FileNotFoundError(tmp_path)


def test_a_path_with_a_space_is_quoted_for_the_shell(tmp_path):
    assert str(UnreadableError(tmp_path / "my data")).endswith(f"'{tmp_path}/my data'")


def test_a_blocked_data_set_is_reported_as_unreadable_and_the_others_work(tmp_path, block, spar):
    (tmp_path / "chair-angles-tails").mkdir()
    before = {name: state_of(name, tmp_path) for name in names()}
    block(tmp_path / "chair-angles-tails")
    assert {name: state_of(name, tmp_path) for name in names()} == before | {"chair-angles-tails": "unreadable"}
    listed = spar("data", "list", "--data", str(tmp_path))
    assert listed.exit_code == 0
    assert listed.stdout.count("unreadable") == 1
    assert f"chmod -R u+rwX {tmp_path}/chair-angles-tails" in listed.stderr
    check = spar("data", "check", "chair-angles-tails", "povertymap", "--data", str(tmp_path))
    assert check.exit_code == 1
    assert f"chmod -R u+rwX {tmp_path}/chair-angles-tails" in check.stdout
    assert "povertymap" in check.stdout.splitlines()[-2]
    location = spar("data", "where", "chair-angles-tails", "--data", str(tmp_path))
    assert location.exit_code == 2
    assert f"{tmp_path}/chair-angles-tails" in location.stderr


def test_a_blocked_folder_is_reported_once(tmp_path, block, spar):
    (tmp_path / "data").mkdir()
    block(tmp_path / "data")
    listed = spar("data", "list", "--data", str(tmp_path / "data"))
    assert listed.exit_code == 2
    assert listed.stderr.count("chmod") == 1
    assert f"'{tmp_path}/data'" in listed.stderr


@pytest.mark.parametrize("name", ["chair-angles-tails.npz", "RC-49_64x64.npz", "RC-49_64x64.h5"])
def test_a_blocked_file_is_reported_as_unreadable(tmp_path, block, name, monkeypatch):
    (tmp_path / name).write_bytes(b"1")
    if name.endswith("h5"):
        h5py = pytest.importorskip("h5py")

        def raise_error(path, mode):
            raise PermissionError(13, "Unable to open file")  # h5py has the path only in the text

        monkeypatch.setattr(h5py, "File", raise_error)
    block(tmp_path / name)
    with pytest.raises(UnreadableError, match=name):
        load("chair-angles-tails", folder=tmp_path)
    result = check_dataset("chair-angles-tails", tmp_path)
    assert result.state == "wrong"
    assert result.detail.startswith("unreadable: ")


def test_a_blocked_image_is_reported_as_unreadable(tmp_path, block):
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    block(tmp_path / "a.npz")
    with pytest.raises(UnreadableError, match=r"chmod .*a\.npz"):
        read_image(tmp_path / "a.npz")


def test_a_blocked_file_with_a_checksum_is_reported_as_unreadable(tmp_path, block):
    (tmp_path / "SkillCraft1_Dataset.csv").write_text("1")
    assert state_of("skillcraft", tmp_path) == "changed"
    block(tmp_path / "SkillCraft1_Dataset.csv")
    assert state_of("skillcraft", tmp_path) == "unreadable"


@pytest.mark.parametrize("what", ["cache", "folder", "file", "sum"])
def test_a_blocked_cache_causes_a_rebuild_in_memory(cache, block, what):
    def build():
        return {"a": np.arange(3)}

    load_or_build("set", "key", build)
    path = cache_file("set", "key")
    target = {"cache": cache, "folder": path.parent, "file": path, "sum": path.with_suffix(".sha256")}[what]
    block(target)
    with pytest.warns(SparWarning, match="^set .*chmod -R") as caught:
        arrays = load_or_build("set", "key", build)
    assert len(caught) == 1
    assert str(target) in str(caught[0].message)
    np.testing.assert_array_equal(arrays["a"], np.arange(3))


def test_rcf_mnist_is_built_in_memory_if_the_cache_is_blocked(cache, block, monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (60, 28, 28), dtype=np.uint8)
    monkeypatch.setattr(rcf_mnist, "find", lambda folder: rcf_mnist.Location(Path("any.gz"), "here"))
    monkeypatch.setattr(rcf_mnist, "read_idx_images", lambda path, sha256: images)
    expected = load("rcf-mnist")
    block(cache)
    with pytest.warns(SparWarning, match="^rcf-mnist .*chmod -R"):
        task = load("rcf-mnist")
    np.testing.assert_array_equal(task.train.X, expected.train.X)


def test_a_blocked_cache_without_the_original_images_raises(cache, block, monkeypatch, tmp_path):
    monkeypatch.setattr(rcf_mnist, "DEBIAN", tmp_path / "none")
    (cache / "rcf-mnist").mkdir()
    cached = cache / "rcf-mnist" / "v1-nearest-seed0.npz"
    cached.write_bytes(b"1")
    cached.with_suffix(".sha256").write_bytes(b"1")
    block(cached)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnreadableError, match="v1-nearest-seed0"):
            load("rcf-mnist")
    block(cache)
    with pytest.raises(UnreadableError, match="chmod"):
        where("rcf-mnist")


def test_a_blocked_cache_file_does_not_count_as_cached(cache, block):
    load_or_build("set", "key", lambda: {"a": np.arange(3)})
    assert is_cached(cache_file("set", "key"))
    block(cache / "set")
    assert not is_cached(cache_file("set", "key"))


def test_an_unreadable_error_is_an_input_error_and_not_a_missing_data_error():
    assert issubclass(UnreadableError, InputError)
    assert not issubclass(UnreadableError, MissingDataError)

"""Arrays are built once, kept whole or not at all, and never trusted when they are not what was kept."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from pyspar.errors import SparWarning
from pyspar.paper.data import built
from pyspar.paper.data.built import built_once, is_whole, kept_file


class Builder:
    """Counts how often it is asked."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return {"a": np.arange(1000.0), "b": np.ones((3, 4), np.uint8)}


def test_the_second_time_nothing_is_built_and_the_arrays_are_the_same():
    build = Builder()
    first, second = built_once("set", "key", build), built_once("set", "key", build)
    assert build.times == 1
    for name in ("a", "b"):
        np.testing.assert_array_equal(first[name], second[name])
        assert first[name].dtype == second[name].dtype


@pytest.mark.parametrize("junk", [b"\xff\xfe\x00\x9c", b"", b"0" * 64])
def test_junk_where_the_checksum_should_be_is_a_rebuild(junk):
    build = Builder()
    built_once("set", "key", build)
    path = kept_file("set", "key")
    path.with_suffix(".sha256").write_bytes(junk)
    assert not is_whole(path)
    with pytest.warns(SparWarning, match="does not have the checksum"):
        built_once("set", "key", build)
    assert build.times == 2
    assert is_whole(path)


def test_another_key_is_another_build():
    build = Builder()
    built_once("set", "one", build)
    built_once("set", "two", build)
    assert build.times == 2


@pytest.mark.parametrize("stop_at", ["savez", "sha256_of"])
def test_a_full_disk_leaves_nothing_behind_and_still_gives_the_arrays(monkeypatch, stop_at):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np if stop_at == "savez" else built, stop_at, full)
        with pytest.warns(SparWarning, match="No space left on device"):
            arrays = built_once("set", "key", Builder())
    assert arrays["a"].size == 1000
    assert list(kept_file("set", "key").parent.iterdir()) == []


def test_a_stop_between_the_checksum_and_the_file_is_a_build_not_yet_done(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pyspar.io.atomic.os.replace", _once_then(stop))
        with pytest.raises(KeyboardInterrupt):
            built_once("set", "key", Builder())
    path = kept_file("set", "key")
    assert not path.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        built_once("set", "key", Builder())
    assert is_whole(path)


def _once_then(stop):
    import os

    real, calls = os.replace, []

    def replace(source, target):
        calls.append(target)
        return real(source, target) if len(calls) == 1 else stop()

    return replace


@pytest.mark.parametrize("compressed", [False, True])
def test_a_kept_file_is_read_however_it_was_written(compressed):
    built_once("set", "key", Builder(), compressed=compressed)
    build = Builder()
    for asked in (False, True):
        np.testing.assert_array_equal(built_once("set", "key", build, compressed=asked)["a"], np.arange(1000.0))
    assert build.times == 0


def test_compressed_arrays_take_less_room():
    plain, compressed = (built_once("set", str(c), Builder(), compressed=c) for c in (False, True))
    np.testing.assert_array_equal(plain["a"], compressed["a"])
    assert kept_file("set", "True").stat().st_size < kept_file("set", "False").stat().st_size

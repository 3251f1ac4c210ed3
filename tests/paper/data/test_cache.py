"""The cache of arrays: they are built once, written completely or not at all, and rebuilt if damaged."""

from __future__ import annotations

import numpy as np
import pytest

from pyspar.errors import SparWarning
from pyspar.paper.data import cache
from pyspar.paper.data.cache import cache_file, load_or_build


class Builder:
    """Count the builds."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return {"a": np.arange(1000.0), "b": np.ones((3, 4), np.uint8)}


def test_the_second_call_reads_the_same_arrays_from_the_cache():
    build = Builder()
    first, second = load_or_build("set", "key", build), load_or_build("set", "key", build)
    assert build.times == 1
    for name in ("a", "b"):
        np.testing.assert_array_equal(first[name], second[name])
        assert first[name].dtype == second[name].dtype


@pytest.mark.parametrize("position", [300, 3000, 8000])
def test_a_changed_byte_causes_a_rebuild(position):
    build = Builder()
    expected = load_or_build("set", "key", build)
    path = cache_file("set", "key")
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    with pytest.warns(SparWarning, match=r"set.key\.npz.*checksum"):
        arrays = load_or_build("set", "key", build)
    assert build.times == 2
    np.testing.assert_array_equal(arrays["a"], expected["a"])
    load_or_build("set", "key", build)
    assert build.times == 2


def test_a_file_without_permission_causes_a_rebuild(monkeypatch):
    build = Builder()
    load_or_build("set", "key", build)

    def raise_error(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(cache, "read_npz", raise_error)
    with pytest.warns(SparWarning, match=r"set.key\.npz.*Permission denied"):
        np.testing.assert_array_equal(load_or_build("set", "key", build)["a"], np.arange(1000.0))
    assert build.times == 2


def test_another_key_causes_another_build():
    build = Builder()
    load_or_build("set", "one", build)
    load_or_build("set", "two", build)
    assert build.times == 2


def test_a_full_disk_leaves_no_file_and_the_arrays_are_returned(monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.warns(SparWarning, match="No space left on device"):
            arrays = load_or_build("set", "key", Builder())
    assert arrays["a"].size == 1000
    assert list(cache_file("set", "key").parent.iterdir()) == []


def test_an_interruption_leaves_no_file(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pyspar.io.atomic.os.replace", stop)
        with pytest.raises(KeyboardInterrupt):
            load_or_build("set", "key", Builder())
    assert list(cache_file("set", "key").parent.iterdir()) == []


@pytest.mark.parametrize("compressed", [False, True])
def test_a_cached_file_is_read_whether_compressed_or_not(compressed):
    load_or_build("set", "key", Builder(), compressed=compressed)
    build = Builder()
    for option in (False, True):
        np.testing.assert_array_equal(load_or_build("set", "key", build, compressed=option)["a"], np.arange(1000.0))
    assert build.times == 0


def test_compressed_files_are_smaller():
    plain, compressed = (load_or_build("set", str(c), Builder(), compressed=c) for c in (False, True))
    np.testing.assert_array_equal(plain["a"], compressed["a"])
    assert cache_file("set", "True").stat().st_size < cache_file("set", "False").stat().st_size

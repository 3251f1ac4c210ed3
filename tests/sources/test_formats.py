"""What is known of a file before it is read: its size in memory, compared with the free memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyspar.sources.files.formats import PARQUET, decoded_size, exceeds_memory, format_of, free_memory


def test_a_damaged_file_has_its_size_on_disk(tmp_path):
    for suffix in (".parquet", ".csv.gz", ".npz", ".xlsx"):
        path = tmp_path / f"s{suffix}"
        path.write_bytes(b"1,2\n3,4\n")
        assert decoded_size(path) == 8


@pytest.mark.parametrize("name", ["sales", "sales.2019", "sales.csv"])
def test_a_folder_contains_parquet_files(name, tmp_path):
    (tmp_path / name).mkdir()
    assert format_of(tmp_path / name) == PARQUET


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_the_limit_of_the_process_counts_as_free_memory():
    code = (
        "import resource; from pyspar.sources.files.formats import free_memory; "
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize(); "
        "resource.setrlimit(resource.RLIMIT_AS, (used + 10**8, -1)); print(free_memory())"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 0 < int(shown) <= 10**8


def test_the_limit_of_a_container_counts_as_free_memory(tmp_path, monkeypatch):
    files = {"memory.max": "5000\n", "memory.current": "3000\n"}
    original = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, *a, **k: files.get(path.name) or original(path, *a, **k))
    assert free_memory() == 2000


def test_the_free_memory_is_positive_or_unknown():
    assert free_memory() is None or free_memory() > 0
    assert not exceeds_memory(Path("no-such-file"))


def test_an_unknown_free_memory_is_none(monkeypatch):
    def fail(*_):
        raise OSError

    monkeypatch.setattr(Path, "read_text", fail)
    monkeypatch.setattr(os, "sysconf", fail)
    assert free_memory() is None

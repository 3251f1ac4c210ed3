"""The request of a command: files that do not fit into memory are streamed, and outputs are checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pyspar.errors import InputError
from pyspar.tables import request
from pyspar.tables.request import Request, check_path, contains_moments, decoded_size, exceeds_memory


def test_files_above_a_quarter_of_the_free_memory_are_streamed(files, source, target, monkeypatch):
    paths = tuple(map(Path, files(source, target)))
    for free, streamed in ((None, False), (10**9, False), (10_000, True)):
        monkeypatch.setattr(request, "free_memory", lambda free=free: free)
        assert Request(*paths, "price").is_streamed == streamed


def test_an_npz_file_of_rows_is_not_a_summary(source, target, tmp_path):
    np.savez(tmp_path / "s.npz", X=source[["area", "garden"]], y=source["price"])
    np.savez(tmp_path / "t.npz", X=target[["area", "garden"]])
    assert not contains_moments(tmp_path / "s.npz")
    assert not Request(tmp_path / "s.npz", tmp_path / "t.npz", "y").is_streamed


@pytest.mark.parametrize("alpha", [-0.1, 1.5, float("nan")])
def test_a_confidence_outside_its_range_is_refused(alpha):
    with pytest.raises(InputError, match="alpha"):
        Request(Path("s.csv"), Path("t.csv"), "y", alpha=alpha).check()


def test_an_output_in_a_read_only_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(request.os, "access", lambda *_: False)
    with pytest.raises(InputError, match=r"--output '.*p\.csv': .*read-only"):
        check_path(tmp_path / "p.csv", "--output", (".csv",), ())


def test_an_output_that_is_a_folder_is_refused(tmp_path):
    (tmp_path / "p.csv").mkdir()
    with pytest.raises(InputError, match=r"--output '.*p\.csv' is a folder"):
        check_path(tmp_path / "p.csv", "--output", (".csv",), ())


@pytest.fixture
def constant():
    """Return a table whose files are much smaller than its 1.6 MB in memory."""
    return pd.DataFrame({name: np.zeros(100_000) for name in ("area", "price")})


@pytest.mark.parametrize("suffix", [".parquet", ".csv.gz"])
def test_a_compressed_file_is_streamed_if_its_content_is_large(constant, tmp_path, monkeypatch, suffix):
    path = tmp_path / f"s{suffix}"
    constant.to_parquet(path) if suffix == ".parquet" else constant.to_csv(path, index=False)
    size = path.stat().st_size
    truth = 1_600_000 if suffix == ".parquet" else len(constant.to_csv(index=False))
    assert size < truth / 20
    assert decoded_size(path) == pytest.approx(truth, rel=0.05)
    monkeypatch.setattr(request, "free_memory", lambda: 20 * size)  # a quarter exceeds the file
    assert Request(path, path, "price").is_streamed
    monkeypatch.setattr(request, "free_memory", lambda: 5 * truth)
    assert not Request(path, path, "price").is_streamed


def test_a_damaged_file_has_its_size_on_disk(tmp_path):
    for suffix in (".parquet", ".csv.gz", ".npz", ".xlsx"):
        path = tmp_path / f"s{suffix}"
        path.write_bytes(b"1,2\n3,4\n")
        assert decoded_size(path) == 8


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_lack_of_memory_is_not_reported_as_a_damaged_file(spar, constant, tmp_path, monkeypatch, suffix):
    path = tmp_path / f"s{suffix}"
    constant.to_parquet(path) if suffix == ".parquet" else constant.to_csv(path, index=False)

    def fail(*_, **__):
        if suffix == ".csv":
            raise pd.errors.ParserError("Error tokenizing data. C error: out of memory")
        raise pa.ArrowMemoryError("malloc of size 2147483648 failed")

    monkeypatch.setattr("pyspar.tables.read.pd.read_csv", fail)
    monkeypatch.setattr("pyarrow.parquet.ParquetFile.read", fail)
    result = spar("adapt", path, path, "--label", "price")
    assert result.exit_code == 2
    assert "--stream" in result.stderr
    assert "memory" in result.stderr
    assert "damaged" not in result.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_the_limit_of_the_process_counts_as_free_memory():
    code = (
        "import resource; from pyspar.tables.request import free_memory; "
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize(); "
        "resource.setrlimit(resource.RLIMIT_AS, (used + 10**8, -1)); print(free_memory())"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 0 < int(shown) <= 10**8


def test_the_limit_of_a_container_counts_as_free_memory(tmp_path, monkeypatch):
    files = {"memory.max": "5000\n", "memory.current": "3000\n"}
    original = Path.read_text
    monkeypatch.setattr(
        request.Path, "read_text", lambda path, *a, **k: files.get(path.name) or original(path, *a, **k)
    )
    assert request.free_memory() == 2000


def test_the_free_memory_is_positive_or_unknown():
    assert request.free_memory() is None or request.free_memory() > 0
    assert not exceeds_memory(Path("no-such-file"))


def test_an_unknown_free_memory_is_none(monkeypatch):
    def fail(*_):
        raise OSError

    monkeypatch.setattr(Path, "read_text", fail)
    monkeypatch.setattr(request.os, "sysconf", fail)
    assert request.free_memory() is None

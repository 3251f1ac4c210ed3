"""The request of a command: files that do not fit into memory are streamed, and options are checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pyspar.errors import InputError
from pyspar.sources.files import formats
from pyspar.sources.files.formats import decoded_size
from pyspar.tables.adapt import check_confidence
from pyspar.tables.inputs import Request
from pyspar.tables.load import is_streamed


def test_files_above_a_quarter_of_the_free_memory_are_streamed(files, source, target, monkeypatch):
    paths = tuple(map(Path, files(source, target)))
    for free, streamed in ((None, False), (10**9, False), (10_000, True)):
        monkeypatch.setattr(formats, "free_memory", lambda free=free: free)
        assert is_streamed(Request(*paths, "price")) == streamed


def test_an_npz_file_of_rows_is_not_a_summary(source, target, tmp_path):
    np.savez(tmp_path / "s.npz", X=source[["area", "garden"]], y=source["price"])
    np.savez(tmp_path / "t.npz", X=target[["area", "garden"]])
    assert not is_streamed(Request(tmp_path / "s.npz", tmp_path / "t.npz", "y"))


@pytest.mark.parametrize("alpha", [-0.1, 1.5, float("nan")])
def test_a_confidence_outside_its_range_is_refused(alpha):
    with pytest.raises(InputError, match="alpha"):
        check_confidence(alpha)


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
    monkeypatch.setattr(formats, "free_memory", lambda: 20 * size)  # a quarter exceeds the file
    assert is_streamed(Request(path, path, "price"))
    monkeypatch.setattr(formats, "free_memory", lambda: 5 * truth)
    assert not is_streamed(Request(path, path, "price"))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_lack_of_memory_is_not_reported_as_a_damaged_file(spar, constant, tmp_path, monkeypatch, suffix):
    path = tmp_path / f"s{suffix}"
    constant.to_parquet(path) if suffix == ".parquet" else constant.to_csv(path, index=False)

    def fail(*_, **__):
        raise pa.ArrowMemoryError("malloc of size 2147483648 failed")

    monkeypatch.setattr("pyarrow.csv.open_csv", fail)
    monkeypatch.setattr("pyarrow.parquet.ParquetFile.read", fail)
    result = spar("adapt", path, path, "--label", "price")
    assert result.exit_code == 2
    assert "--stream" in result.stderr
    assert "memory" in result.stderr
    assert "damaged" not in result.stderr

"""Which files are streamed, and which requests are refused."""

from pathlib import Path

import numpy as np
import pytest

from pyspar.errors import InputError
from pyspar.tables import request
from pyspar.tables.request import Request, contains_moments


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

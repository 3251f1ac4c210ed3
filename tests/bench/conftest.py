"""Miniatures: every suite on generated data, a few rows, two epochs, two seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspar.bench.perform import Options


@pytest.fixture
def mini(tmp_path: Path) -> Options:
    return Options(out=tmp_path / "out", mini=True)

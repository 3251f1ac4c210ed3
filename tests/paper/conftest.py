"""Suites in miniature (generated data, a few rows, two epochs, two seeds) and a small task for training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pyspar.paper.data.task import Part, ShiftTask
from pyspar.paper.runs.run_suite import Options


@pytest.fixture
def mini(tmp_path: Path) -> Options:
    return Options(out=tmp_path / "out", mini=True)


@pytest.fixture
def table_task():
    """The factory of a task for training."""
    return make_table_task


def make_table_task(n=70, m=24, d=5, outputs=None, seed=3, groups=2):
    """Return a task whose target has a larger spread than its source."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(d,) if outputs is None else (d, outputs))

    def part(rows, scale):
        X = rng.normal(size=(rows, d)) * scale
        y = np.tanh(X) @ w + 0.1 * rng.normal(size=(rows, *w.shape[1:]))
        return Part(X, y, np.arange(rows) % groups)

    return ShiftTask("toy", part(n, 1.0), part(m, 1.0), part(m, 2.0), "half", "made here", "none")

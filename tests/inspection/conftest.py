"""A small shift for inspections: most of it is along the second of eight features."""

from __future__ import annotations

import numpy as np
import pytest


def make_data(n: int = 150, m: int = 90, d: int = 8, *, seed: int = 0, shift: float = 20.0):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    Z[:, 1] *= shift
    w = np.geomspace(2.0, 0.1, d)
    return X, X @ w + rng.normal(size=n), Z


@pytest.fixture
def shifted():
    return make_data()

"""Small data sets for reports: most of the target's shift is along the second of eight features."""

from __future__ import annotations

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, report

NAMES = ["area", "garden <b>&", "$rooms$", "age", "lift", "noise", "trees", "tram"]


def make_data(n: int = 150, m: int = 90, d: int = 8, *, seed: int = 0, shift: float = 20.0):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    Z[:, 1] *= shift
    w = np.geomspace(2.0, 0.1, d)
    return X, X @ w + rng.normal(size=n), Z


@pytest.fixture
def shifted():
    return make_data()


@pytest.fixture(scope="session")
def html(made) -> str:
    return made.html()


@pytest.fixture(scope="session")
def made():
    X, y, Z = make_data()
    est = BayesSpARRegressor().fit(X, y)
    groups = np.where(np.arange(len(Z)) % 3 == 0, "<i>north</i>", "south")
    return report(est, Z, groups=groups, columns=NAMES, outputs=["price"], title="<script>alert(1)</script>")

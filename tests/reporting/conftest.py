"""One report, made once, with names that a page has to escape."""

from __future__ import annotations

import numpy as np
import pytest

from pyspar import SpARRegressor, report

NAMES = ["area", "garden <b>&", "$rooms$", "age", "lift", "noise", "trees", "tram"]


@pytest.fixture(scope="session")
def html(made) -> str:
    return made.html()


@pytest.fixture(scope="session")
def made(shifted_data):
    X, y, Z = shifted_data()
    est = SpARRegressor().fit(X, y)  # its rule has a slider
    groups = np.where(np.arange(len(Z)) % 3 == 0, "<i>north</i>", "south")
    return report(est, Z, target_groups=groups, columns=NAMES, outputs=["price"], title="<script>alert(1)</script>")


@pytest.fixture
def plain_figures(monkeypatch) -> None:
    """Write the name of a figure in place of the figure, because drawing takes most of the time of a page."""
    monkeypatch.setattr("pyspar.reporting.drawing.draw_figure", lambda name, *_: f'<svg id="{name}"></svg>')

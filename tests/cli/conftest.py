"""Small made-up homes: one feature hardly varies in the source and much in the target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from pyspar.cli.app import app


def homes(n: int, seed: int, *, later: bool) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    area = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "home": [f"{i:04d}" for i in range(n)],
            "area": 60 + 25 * area,
            "garden": 60 + (40 if later else 0.05) * rng.normal(size=n),
            "lift": rng.random(n) < 0.4,
            "town": rng.choice(["Ulm", "Bonn", "Kiel"], n),
            "sold": (np.datetime64("2019-01-01") + rng.integers(0, 700, n)).astype(str),
        }
    )
    table["price"] = 3 * table["area"] + 20 * (table["town"] == "Bonn") + 30 * rng.normal(size=n)
    return table


@pytest.fixture
def source() -> pd.DataFrame:
    return homes(120, 3, later=False)


@pytest.fixture
def target() -> pd.DataFrame:
    return homes(80, 1, later=True)


@pytest.fixture
def files(tmp_path: Path) -> Callable[[pd.DataFrame, pd.DataFrame], tuple[str, str]]:
    """Write two tables as CSV and return their paths."""

    def write(source: pd.DataFrame, target: pd.DataFrame) -> tuple[str, str]:
        paths = str(tmp_path / "source.csv"), str(tmp_path / "target.csv")
        source.to_csv(paths[0], index=False)
        target.to_csv(paths[1], index=False)
        return paths

    return write


@pytest.fixture
def spar(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command line in this process, in a terminal wide enough that no line is broken."""
    monkeypatch.setenv("COLUMNS", "300")

    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(a) for a in arguments])

    return invoke


@pytest.fixture
def refused(spar: Callable[..., Result], tmp_path: Path) -> Callable[..., str]:
    """Run ``spar adapt`` on what must be refused: code 2, one message, no traceback, no file. Return the message."""

    def invoke(source: object, target: object, *arguments: object, label: str = "price") -> str:
        out = tmp_path / "never.csv"
        # Later options win, so a test may name an output of its own.
        result = spar("adapt", source, target, "--label", label, "-o", out, *arguments)
        assert result.exit_code == 2, result.output
        assert not out.exists()
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
        assert "Traceback" not in result.output
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
        return result.stderr

    return invoke

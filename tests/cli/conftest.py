"""Run a command with invalid input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result


@pytest.fixture
def refused(spar: Callable[..., Result], tmp_path: Path) -> Callable[..., str]:
    """Run ``spar adapt`` with invalid input: code 2, one message, no traceback, no file. Return the message."""

    def invoke(source: object, target: object, *arguments: object, label: str = "price") -> str:
        out = tmp_path / "never.csv"
        # Later options win, so a test may choose another output.
        result = spar("adapt", source, target, "--label", label, "-o", out, *arguments)
        assert result.exit_code == 2, result.output
        assert not out.exists()
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
        assert "Traceback" not in result.output
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
        return result.stderr

    return invoke

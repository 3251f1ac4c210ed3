"""Tests that ``make docs`` fails if the documentation has a broken link."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"


@pytest.mark.parametrize(("link", "status"), [("existing.md", 0), ("missing.md", 1), ("existing.md#missing", 1)])
def test_make_docs_fails_if_a_link_is_broken(tmp_path, link, status):
    pytest.importorskip("myst_parser", reason="needs the extra docs")
    (line,) = [line for line in MAKEFILE.read_text().splitlines() if " -m sphinx " in line]
    arguments = shlex.split(line.partition("$(BIN)/python")[2], comments=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "conf.py").write_text("extensions = ['myst_parser']\nmyst_heading_anchors = 3\n")
    (tmp_path / "docs" / "index.md").write_text(f"# Home\n\n[a link]({link})\n\n```{{toctree}}\nexisting\n```\n")
    (tmp_path / "docs" / "existing.md").write_text("# A page\n")
    result = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == status, result.stderr

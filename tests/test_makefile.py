"""Tests that ``make docs`` fails if the documentation has a broken link."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"


@pytest.mark.parametrize(("link", "status"), [("existing.md", 0), ("missing.md", 1)])
def test_make_docs_fails_if_a_link_is_broken(tmp_path, link, status):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    (line,) = [line for line in MAKEFILE.read_text().splitlines() if line.startswith("\t$(BIN)/mkdocs ")]
    arguments = shlex.split(line.replace("$(BIN)/mkdocs", ""), comments=True)
    (tmp_path / "mkdocs.yml").write_text("site_name: x\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"[a link]({link})\n")
    (tmp_path / "docs" / "existing.md").write_text("A page.\n")
    command = [sys.executable, "-m", "mkdocs", *arguments]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == status, result.stderr

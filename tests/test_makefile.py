"""``make docs`` fails where a reader would: on a link that leads nowhere."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"


@pytest.mark.parametrize(("link", "status"), [("there.md", 0), ("nowhere.md", 1)])
def test_the_documentation_is_not_built_with_a_broken_link(tmp_path, link, status):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    (line,) = [line for line in MAKEFILE.read_text().splitlines() if line.startswith("\t$(BIN)/mkdocs ")]
    arguments = shlex.split(line.replace("$(BIN)/mkdocs", ""), comments=True)
    (tmp_path / "mkdocs.yml").write_text("site_name: x\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"[a link]({link})\n")
    (tmp_path / "docs" / "there.md").write_text("Here.\n")
    done = subprocess.run([sys.executable, "-m", "mkdocs", *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == status, done.stderr

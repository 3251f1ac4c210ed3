"""Tests that the documentation is correct: its code runs, its output is real, and its names and commands exist."""

import contextlib
import io
import re
import runpy
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import pyspar
from pyspar import theory

ROOT = Path(pyspar.__file__).parents[2]
README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.is_file(), reason="the documentation is not part of an installed package")


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.S)


def run_block(code: str, namespace: dict) -> str:
    """Run code and return its output."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "documentation", "exec"), namespace)
    return output.getvalue()


@pytest.mark.parametrize(
    "page", ["README.md", "docs/scale.md", "docs/networks.md", "docs/forecasts.md", "docs/report.md"]
)
def test_the_code_of_a_page_runs(page):
    blocks, namespace = python_blocks(ROOT / page), {}
    assert blocks
    for block in blocks:  # in order, in one namespace, as a reader would run them
        run_block(block, namespace)


@pytest.mark.parametrize("page", ["README.md", "docs/labels.md"])
def test_a_page_shows_the_output_of_its_example(page):
    (example,) = python_blocks(ROOT / page)
    assert f"```\n{run_block(example, {})}```" in (ROOT / page).read_text()


def test_the_watch_example_raises_the_alarm_that_the_page_describes():
    page, namespace = ROOT / "docs" / "forecasts.md", {}
    for block in python_blocks(page):
        run_block(block, namespace)
    assert namespace["state"].alarm
    assert f"{namespace['state'].adapted[0].rmse:.2f}" in page.read_text()


def test_the_readme_or_the_pages_of_integrations_name_every_extra_for_users():
    pages = sorted((ROOT / "docs" / "integrations").glob("*.md"))
    text = "\n".join(page.read_text() for page in (README, *pages))
    named = {extra for group in re.findall(r"'\.\[([\w,]+)\]'", text) for extra in group.split(",")}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert named == set(declared) - {"dev", "docs"}


def test_the_first_screen_of_the_readme_has_the_two_commands_and_ci_runs_the_second():
    first_screen = "\n".join(README.read_text().splitlines()[:24])
    assert "make demo" in first_screen
    assert "make test" in first_screen
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_changelog_and_the_citation_have_the_current_version():
    assert f"\n## {pyspar.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {pyspar.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_every_public_name_is_documented():
    text = (ROOT / "docs" / "api.md").read_text()
    missing = [n for n in pyspar.__all__ if not n.startswith("__") and f"`pyspar.{n}`" not in text]
    missing += [n for n in theory.__all__ if f"`{n}`" not in text and f"`pyspar.{n}`" not in text]
    assert missing == []


@pytest.mark.parametrize("package", ["nn", "paper"])
def test_the_documented_names_of_a_package_are_its_public_names(package):
    pytest.importorskip("torch")
    rows = [line for line in (ROOT / "docs" / "api.md").read_text().splitlines() if line.startswith("|")]
    documented = re.findall(rf"`pyspar\.{package}\.(\w+)`", "\n".join(rows))
    assert sorted(documented) == sorted(import_module(f"pyspar.{package}").__all__)


def test_every_command_is_documented_and_has_help():
    from typer.testing import CliRunner

    from pyspar.cli.app import app

    text = (ROOT / "docs" / "command-line.md").read_text()
    commands = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert {"adapt", "inspect", "reproduce", "demo"} <= set(commands)
    for command in commands:
        assert f"## `spar {command}" in text
        result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "100"})
        assert result.exit_code == 0
        assert "Example:" in result.output


def test_every_link_in_the_documentation_has_a_target():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_table_of_packages_agrees_with_the_import_rules_that_a_test_enforces():
    rules = runpy.run_path(str(ROOT / "tests" / "test_architecture.py"))["MAY"]
    row = r"^\| `(\w+)(?:\.py|/)?` \|.*\| ([^|]*) \| ([^|]*) \|$"
    documented = {
        name: (set(packages.split(", ")) - {"none"}, set(libraries.split(", ")) - {"none"})
        for name, packages, libraries in re.findall(row, (ROOT / "ARCHITECTURE.md").read_text(), flags=re.M)
    }
    enforced = {
        name: (packages - {"__init__"}, libraries)
        for name, (packages, libraries) in rules.items()
        if not name.startswith("__")
    }
    assert documented == enforced


def test_every_file_named_in_the_architecture_exists():
    names = re.findall(r"`([\w/]+\.(?:py|toml))`", (ROOT / "ARCHITECTURE.md").read_text())
    folders = (ROOT, ROOT / "src" / "pyspar", ROOT / "src" / "pyspar" / "paper")
    missing = [name for name in names if not any((folder / name).is_file() for folder in folders)]
    assert names
    assert missing == []


def test_the_synthetic_tables_of_the_reproduction_equal_the_published_numbers():
    from pyspar.paper.experiments.published import published

    text = (ROOT / "docs" / "reproduction.md").read_text()
    for name in ("synthetic", "synthetic-100d"):
        for task, methods in published(name).cells.items():
            for method, (mean, spread) in methods.items():
                assert f"| {task} | {method} | {mean} ± {spread} | {mean} ± {spread} | same |" in text

"""The documentation is true: its code runs, its commands exist, its public names are all there."""

import re
import tomllib
from pathlib import Path

import pytest

import pyspar
from pyspar import theory

ROOT = Path(pyspar.__file__).parents[2]
README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.is_file(), reason="the documentation is not part of an installed package")


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.S)


def test_the_code_in_the_documentation_runs():
    for page in (README, *(ROOT / "docs" / f"{name}.md" for name in ("scale", "networks", "forecasts", "report"))):
        blocks, names = python_blocks(page), {}
        assert blocks
        for block in blocks:  # one after the other, as a reader would
            exec(compile(block, page.name, "exec"), names)


def test_the_watch_in_the_documentation_raises_the_alarm_that_it_tells_of():
    page, names = ROOT / "docs" / "forecasts.md", {}
    for block in python_blocks(page):
        exec(compile(block, page.name, "exec"), names)
    assert names["state"].alarm
    assert f"an expected RMSE of {names['state'].adapted[0].rmse:.2f}" in page.read_text()


def test_the_readme_names_every_extra_that_a_user_may_need():
    text = README.read_text()
    told = {extra for group in re.findall(r"'\.\[([\w,]+)\]'", text) for extra in group.split(",")}
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert told == set(offered) - {"dev", "docs"}
    assert "'.[cli,report]'` for `spar inspect --report`" in text


def test_the_readme_has_the_two_commands_and_ci_runs_the_second():
    first_screen = "\n".join(README.read_text().splitlines()[:24])
    assert "make demo" in first_screen
    assert "make test" in first_screen
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_every_public_name_is_documented():
    text = (ROOT / "docs" / "api.md").read_text()
    missing = [n for n in pyspar.__all__ if not n.startswith("__") and f"`pyspar.{n}`" not in text]
    missing += [n for n in theory.__all__ if f"`{n}`" not in text and f"`pyspar.{n}`" not in text]
    assert missing == []


def test_every_verb_is_documented_and_has_help():
    from typer.testing import CliRunner

    from pyspar.cli.app import app

    text = (ROOT / "docs" / "command-line.md").read_text()
    verbs = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert {"adapt", "inspect", "reproduce", "demo"} <= set(verbs)
    for verb in verbs:
        assert f"## `spar {verb}" in text
        shown = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "100"})
        assert shown.exit_code == 0
        assert "Example:" in shown.output


def test_links_in_the_documentation_lead_somewhere():
    for page in [README, *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_documented_reproduction_is_what_the_published_file_says():
    from pyspar.paper.experiments.published import published

    text = (ROOT / "docs" / "reproduction.md").read_text()
    for name in ("synthetic", "synthetic-100d"):
        for task, methods in published(name).cells.items():
            for method, (mean, spread) in methods.items():
                assert f"| {task} | {method} | {mean} ± {spread} | {mean} ± {spread} | same |" in text

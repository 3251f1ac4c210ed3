"""Tests that the documentation is correct: its code runs, its output is real, and its names and commands exist."""

import contextlib
import io
import itertools
import re
import runpy
import shlex
import tomllib
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

import pyspar
from pyspar import theory
from pyspar.core.moments import EPS64

ROOT = Path(pyspar.__file__).parents[2]
README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.is_file(), reason="the documentation is not part of an installed package")


FENCE = re.compile(
    r"^(?P<marker><!-- (?P<note>not run): [^\n]+ -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
DECIMAL = re.compile(r"(\d+\.\d+)")


class Block(NamedTuple):
    """A fenced block of a page. ``output`` is the plain block that follows directly, or None."""

    kind: str
    text: str
    note: str | None
    output: str | None


def blocks_of(page: Path, *kinds: str) -> list[Block]:
    """Return the fenced blocks of the given kinds. ``<!-- not run: reason -->`` above a block excludes it."""
    text, blocks = page.read_text(), []
    fences = list(FENCE.finditer(text))
    for fence, following in itertools.zip_longest(fences, fences[1:]):
        adjacent = following and not following["kind"] and not text[fence.end() : following.start()].strip()
        if fence["kind"] in kinds:
            blocks.append(Block(fence["kind"], fence["text"], fence["note"], following["text"] if adjacent else None))
    return blocks


def run_block(code: str, namespace: dict) -> str:
    """Run code and return its output."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "documentation", "exec"), namespace)
    return output.getvalue()


def pages(*folders: str) -> list[Path]:
    return sorted(page for folder in folders for page in (ROOT / folder).glob("*.md"))


PAGES = [*pages("."), *pages("docs")]
PAGES_WITH_CODE = [page for page in PAGES if "```python\n" in page.read_text()]


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=page_id)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch, spar, request):
    """``pytest --update-golden`` writes the output into the page."""
    trains = "import torch" in page.read_text()  # the digits of a trained network depend on processor and threads
    if trains:
        pytest.importorskip("torch").set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")  # the width of the terminal output on the pages
    namespace: dict = {}
    for block in blocks_of(page, "python", "bash"):  # in order, in one namespace and folder, as a reader would run them
        if block.note is not None:
            continue
        if block.kind == "python":
            require_imports(block.text)
            output = run_block(block.text, namespace)
        elif block.output is None:  # commands without output are only parsed, by the next test
            continue
        else:
            output = "".join(run_command(line, spar) for line in commands_in(block.text))
        output = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
        if block.output is not None and request.config.getoption("--update-golden"):
            shown = f"```{block.kind}\n{block.text}```\n\n```\n"
            page.write_text(page.read_text().replace(f"{shown}{block.output}```", f"{shown}{output}```"))
        elif block.output is not None and trains:
            ours, shown = (DECIMAL.split(text) for text in (output, block.output))  # numbers at odd positions
            assert ours[::2] == shown[::2]
            assert [*map(float, ours[1::2])] == pytest.approx([*map(float, shown[1::2])], rel=0.02)
        elif block.output is not None:
            assert output == block.output


def require_imports(code: str) -> None:
    """Skip the test if the code imports an optional package that is not installed."""
    for name in re.findall(r"^(?:from|import) (\w+)", code, flags=re.M):
        if name != "pyspar":
            pytest.importorskip(name)


def commands_in(text: str) -> list[str]:
    """Return the lines of a bash block, with continued lines joined and without comments."""
    lines = (line.partition(" #")[0].strip() for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def run_command(line: str, spar) -> str:
    program, *arguments = shlex.split(line)
    if program == "cat":
        return Path(*arguments).read_text()
    assert program == "spar", line
    result = spar(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_command_in_the_documentation_has_existing_options():
    import typer

    from pyspar.cli.app import app

    group = typer.main.get_command(app)
    lines = [line for page in PAGES for block in blocks_of(page, "bash", "") for line in commands_in(block.text)]
    lines = [line for line in lines if re.match(r"spar [a-z]", line)]
    assert len(lines) > 5
    for line in lines:
        name, *arguments = shlex.split(line)[1:]
        command = group.commands[name]
        if hasattr(command, "commands"):
            command = command.commands[arguments.pop(0)]
        command.make_context(name, arguments, resilient_parsing=True)


def test_the_start_page_names_every_extra():
    _, installation = (ROOT / "docs" / "index.md").read_text().split("\n## Installation\n")
    rows = re.findall(r"^\| (`.+?) \|", installation, flags=re.M)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(declared)


def test_the_site_is_small_and_every_page_is_in_its_navigation():
    examples = [*(ROOT / "examples").glob("*/plot_*.py")]
    assert examples
    assert len(pages("docs")) + len(examples) + 1 <= 35  # and the page that lists the examples
    entries = re.findall(r'^(?:.* <)?([\w-]+)>?(?:""",)?$', (ROOT / "docs" / "conf.py").read_text(), flags=re.M)
    assert {page.stem for page in pages("docs")} - {"index"} <= set(entries)


def test_the_page_of_recipes_shows_every_script():
    shown = re.findall(r"examples/recipes/(\w+\.py)", (ROOT / "docs" / "recipes.md").read_text())
    assert sorted(shown) == sorted(path.name for path in (ROOT / "examples" / "recipes").glob("*.py"))


def test_the_first_screen_of_the_readme_has_the_two_commands_and_ci_runs_the_second():
    first_screen = "\n".join(README.read_text().splitlines()[:24])
    assert "make demo" in first_screen
    assert "make test" in first_screen
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def sections_of_the_reference() -> list[tuple[str, list[str], list[str]]]:
    """Return module, names in the table, and names described below it, for each section of the API reference."""
    text = "\n".join((ROOT / "docs" / name).read_text() for name in ("api.md", "theory-api.md"))
    section = r"currentmodule:: (.+)\n\.\. autosummary::\n   :nosignatures:\n\n((?:   .+\n)+)\n((?:\.\. auto.+\n)*)```"
    return [
        (module, table.split(), re.findall(r"auto(?:class|exception|function):: (\S+)", described))
        for module, table, described in re.findall(section, text)
    ]


def documented_names() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for module, table, _ in sections_of_the_reference():
        names.setdefault(module, []).extend(table)
    return names


def test_every_name_in_a_table_of_the_api_reference_is_described_below_it():
    for module, table, described in sections_of_the_reference():
        assert [name.removeprefix(f"{module}.") for name in described] == table


def test_the_api_reference_has_every_public_name():
    documented = documented_names()
    top = [name for name in documented["pyspar"] if "." not in name]
    assert sorted(top) == sorted(name for name in pyspar.__all__ if not name.startswith("__"))
    assert set(documented["pyspar.theory"]) == set(theory.__all__) - set(top)
    for module in documented.keys() - {"pyspar.nn"}:
        for name in documented[module]:
            parent, _, leaf = f"{module}.{name}".rpartition(".")
            assert getattr(import_module(parent), leaf).__doc__


def test_the_documented_names_of_the_packages_that_need_torch_are_their_public_names():
    pytest.importorskip("torch")
    assert sorted(documented_names()["pyspar.nn"]) == sorted(import_module("pyspar.nn").__all__)
    rows = re.findall(r"^\|.*", (ROOT / "docs" / "api.md").read_text(), flags=re.M)
    in_rows = re.findall(r"`pyspar\.paper\.(\w+)`", "\n".join(rows))
    assert sorted(in_rows) == sorted(import_module("pyspar.paper").__all__)


def test_every_command_is_documented_and_has_help():
    from typer.testing import CliRunner

    from pyspar.cli.app import app

    text = (ROOT / "docs" / "command-line.md").read_text()
    commands = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert {"adapt", "inspect", "reproduce"} <= set(commands)
    for command in commands:
        assert f"## `spar {command}" in text
        result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "100"})
        assert result.exit_code == 0
        assert "Example:" in result.output


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as code hosting sites and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), flags=re.M)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


GENERATED = "gallery/"
"""A folder that exists only after ``make docs``; Sphinx checks links into it."""


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_of_a_page_has_a_target(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        if re.match(r"https?:|mailto:", target) or path.startswith(GENERATED):
            continue
        linked = page.parent / path if path else page
        assert linked.exists(), target
        if anchor and linked.suffix == ".md":
            assert anchor in anchors_of(linked), target


def test_the_pages_with_evidence_are_those_of_the_records():
    pytest.importorskip("pandas")
    evidence = pytest.importorskip("benchmarks.evidence", reason="the benchmarks are not part of an installed package")
    text = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert text == evidence.write_page()
    assert evidence.write_networks() in evidence.NETWORKS.read_text(encoding="utf-8")
    assert evidence.write_forecasts() in evidence.FORECASTS.read_text(encoding="utf-8")
    assert evidence.count_words(text) <= evidence.MOST_WORDS


def test_the_table_of_packages_agrees_with_the_import_rules_that_a_test_enforces():
    tree = runpy.run_path(str(ROOT / "tests" / "test_architecture.py"))
    row = r"^\| `(\w+)(?:\.py|/)?` \|.*\| ([^|]*) \| ([^|]*) \|$"
    documented = {
        name: (set(packages.split(", ")) - {"none"}, set(libraries.split(", ")) - {"none"})
        for name, packages, libraries in re.findall(row, (ROOT / "ARCHITECTURE.md").read_text(), flags=re.M)
    }
    enforced = {
        name: (uses - {"__init__"}, libraries) for name, (uses, libraries) in tree["MAY"].items() if name[:2] != "__"
    }
    assert documented == enforced


def test_every_file_named_in_the_architecture_exists():
    names = re.findall(r"`([\w/]+\.(?:py|toml))`", (ROOT / "ARCHITECTURE.md").read_text())
    folders = (ROOT, ROOT / "src" / "pyspar", ROOT / "src" / "pyspar" / "paper")
    missing = [name for name in names if not any((folder / name).is_file() for folder in folders)]
    assert names
    assert missing == []


def test_the_tolerances_of_the_method_page_are_those_of_the_code():
    row = r"^\| `(\w+)\.py` \| `(\w+)` \| ([\d.e-]+)( ε)? \|"
    rows = re.findall(row, (ROOT / "docs" / "method.md").read_text(), flags=re.M)
    documented = {name: float(value) * (EPS64 if unit else 1.0) for _, name, value, unit in rows}
    assert len(documented) >= 10
    assert documented == {name: getattr(import_module(f"pyspar.core.{file}"), name) for file, name, _, _ in rows}


def test_the_start_page_is_plain_markdown():
    """Code hosting sites show the directives of the site as raw text."""
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert not re.findall(r"^(?::{3,}|`{3})\{.*$", page, flags=re.MULTILINE)

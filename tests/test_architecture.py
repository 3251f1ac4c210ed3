"""The rules of the house: who may import whom, how long a file may be, what importing pyspar may load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pyspar

ROOT = Path(pyspar.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
STANDARD = set(sys.stdlib_module_names) | {"__future__"}

# For each part of the house: the rooms and the libraries it may import, at the top or inside functions.
MAY = {
    "core": ({"core"}, {"numpy", "scipy"}),
    "errors": (set(), set()),
    "atomic": ({"errors"}, set()),
    "stopping": (set(), set()),
    "sources": ({"core", "errors", "atomic", "sources"}, {"numpy", "scipy", "pyarrow", "dask", "torch"}),
    "_checks": ({"core", "errors", "sources"}, {"numpy", "sklearn"}),
    "_forecasting": ({"core", "sources", "_checks", "_regressor"}, {"numpy", "sklearn"}),
    "_regressor": ({"core", "sources", "_checks"}, {"numpy", "sklearn"}),
    "_adaptable": ({"core", "sources", "_checks", "_regressor", "_forecasting"}, {"sklearn"}),
    "estimators": ({"core", "_checks", "_regressor", "_adaptable"}, {"numpy", "sklearn"}),
    "_centre": ({"core"}, {"numpy"}),
    "bayes": ({"core", "_checks", "_adaptable", "_centre"}, {"numpy", "sklearn"}),
    "heads": ({"core", "bayes", "estimators"}, {"numpy", "sklearn"}),
    "watching": ({"core", "_checks", "_adaptable"}, {"numpy", "sklearn"}),
    "pipelines": ({"core"}, {"sklearn"}),
    "archives": ({"errors"}, {"numpy"}),
    "moments_file": ({"core", "errors", "atomic", "archives"}, {"numpy"}),
    "model_schema": ({"errors", "archives"}, {"numpy"}),
    "persist": ({"core", "errors", "atomic", "model_schema", "moments_file"}, set()),
    "theory": ({"core"}, set()),
    "tracing": ({"core"}, set()),
    "directions": ({"core"}, {"numpy"}),
    "wording": (set(), set()),
    "verdicts": ({"core", "wording"}, set()),
    "grouped": ({"core", "errors"}, {"numpy"}),
    "findings": ({"core", "directions", "verdicts", "wording"}, set()),
    "sampled": ({"core", "sources"}, {"numpy"}),
    "unseen": ({"findings", "inspection", "wording"}, {"numpy", "sklearn"}),
    "compared": (
        {"core", "errors", "_checks", "_forecasting", "estimators", "bayes", "directions", "findings"},
        {"numpy"},
    ),
    "inspection": (
        {
            "core",
            "errors",
            "_checks",
            "estimators",
            "bayes",
            "compared",
            "directions",
            "findings",
            "grouped",
            "pipelines",
            "sampled",
            "unseen",
            "verdicts",
        },
        {"numpy", "sklearn"},
    ),
    "reporting": (
        {"__init__", "errors", "atomic", "compared", "inspection", "reporting", "wording"},
        {"scipy", "jinja2", "markupsafe", "matplotlib"},
    ),
    "nn": (
        {"core", "sources", "errors", "atomic", "bayes", "estimators", "heads", "data", "nn"},
        {"torch", "numpy"},
    ),
    "data": ({"core", "errors", "atomic", "data"}, {"numpy", "scipy"}),
    "tables": (
        {
            "core",
            "errors",
            "atomic",
            "bayes",
            "_checks",
            "_forecasting",
            "compared",
            "sources",
            "estimators",
            "moments_file",
            "persist",
            "pipelines",
            "inspection",
            "reporting",
            "unseen",
            "wording",
            "tables",
        },
        {"numpy", "pandas", "pyarrow", "sklearn"},
    ),
    "bench": (
        {"__init__", "core", "errors", "atomic", "estimators", "bayes", "heads", "data", "nn", "bench", "stopping"},
        {"numpy", "scipy", "sklearn", "threadpoolctl", "torch", "optuna", "matplotlib"},
    ),
    "show": ({"errors", "inspection", "stopping", "tables", "show_inspection", "wording"}, {"rich", "typer"}),
    "show_inspection": ({"inspection", "wording"}, set()),
    "show_progress": (set(), {"rich"}),
    "show_bench": ({"bench"}, {"rich"}),
    "show_data": ({"show", "data"}, {"rich"}),
    "cli_data": ({"errors", "show", "show_data", "show_progress", "data"}, {"typer"}),
    "cli_reproduce": ({"show", "show_bench", "bench"}, {"typer"}),
    "cli": (
        {"__init__", "cli_data", "cli_reproduce", "errors", "show", "show_bench", "show_progress", "tables", "bench"},
        {"typer"},
    ),
    "__main__": ({"cli", "stopping"}, set()),
    "__init__": (
        {"bayes", "core", "errors", "estimators", "inspection", "persist", "pipelines", "reporting", "tracing"}
        | {"watching"},
        set(),
    ),
}


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide who imports whom"
            if node.module == "pyspar":  # `from pyspar import show` is the room, other names are of __init__
                rooms = {room(f) for f in FILES}
                found |= {f"pyspar.{n.name}" if n.name in rooms else "pyspar.__init__" for n in node.names}
            else:
                found.add(str(node.module))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_imports_only_what_it_may(path):
    rooms, libraries = MAY[room(path)]
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "pyspar":
            assert rest.partition(".")[0] in rooms, f"{room(path)} must not import {name}"
        else:
            assert top in STANDARD | libraries, f"{room(path)} must not import {top}"


def test_nothing_imports_the_command_line_but_its_entry():
    assert [room(f) for f in FILES if "pyspar.cli" in imports(f)] == ["__main__"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_is_short_and_says_what_it_is(path):
    text = path.read_text()
    assert text.count("\n") < 400
    assert ast.get_docstring(ast.parse(text))
    assert path.stem not in {"utils", "helpers", "misc", "common"}


def test_importing_pyspar_is_light():
    heavy = ["torch", "dask", "pandas", "polars", "pyarrow", "matplotlib", "typer", "rich", "skops", "sklearn"]
    code = f"import sys, pyspar; print([m for m in {heavy} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_using_an_estimator_loads_no_plotting_network_or_cluster_library():
    heavy = ["torch", "dask", "matplotlib", "typer", "skops"]
    code = (
        f"import sys, numpy; from pyspar import SpARRegressor; X = numpy.eye(4); "
        f"SpARRegressor(fit_intercept=False).fit(X[:, :2], X[:, 0]).adapt(X[:, :2]); "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_every_public_name_can_be_had_and_is_listed():
    assert set(pyspar.__all__) == set(pyspar._HOME) | {"__version__"}
    for name in pyspar.__all__:
        assert getattr(pyspar, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pyspar.nothing

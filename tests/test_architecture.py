"""The rules of the source tree: allowed imports, names of files, and what ``import pyspar`` may load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pyspar

ROOT = Path(pyspar.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
STANDARD = set(sys.stdlib_module_names) | {"__future__"}

SHARED = {"errors", "progress", "text"}
NUMERIC = {"numpy", "scipy"}
LOWER = {"core", "sources", "estimators", "persist", "shared"}
# For each package: the packages of pyspar and the libraries that it imports, at the top, in functions or by name.
MAY = {
    "shared": (set(), {"rich"}),
    "core": (set(), NUMERIC),
    "theory": ({"core"}, NUMERIC),
    "persist": ({"core", "shared"}, {"numpy", "skops"}),
    "cells": ({"shared"}, {"numpy", "pyarrow"}),
    "sources": ({"core", "cells", "shared"}, NUMERIC | {"pyarrow", "openpyxl", "dask", "torch"}),
    "estimators": ({"core", "sources", "shared"}, NUMERIC | {"sklearn", "polars", "torch"}),
    "report": (LOWER, NUMERIC | {"sklearn", "jinja2"}),
    "nn": ({"core", "sources", "estimators", "persist", "shared"}, NUMERIC | {"torch"}),
    "paper": (
        LOWER - {"sources"} | {"__init__", "theory"},
        NUMERIC
        | {"sklearn", "joblib", "threadpoolctl", "torch", "torchvision", "optuna"}
        | {"matplotlib", "h5py", "rich", "typer"},
    ),
    "cli": (
        LOWER | {"__init__", "cells", "paper", "report"},
        {"numpy", "pandas", "pyarrow", "sklearn", "rich", "typer"},
    ),
    "__main__": ({"cli"}, set()),
    "__init__": (LOWER - {"sources"} | {"report"}, set()),
}


def package_of(path: Path) -> str:
    name = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "shared" if name in SHARED else name


def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide who imports whom"
            if node.module == "pyspar":  # `from pyspar import theory` is a module, other names are of __init__
                modules = {package_of(f) for f in FILES}
                names |= {f"pyspar.{n.name}" if n.name in modules else "pyspar.__init__" for n in node.names}
            else:
                names.add(str(node.module))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("need", "import_module"):
            names |= {name.value for name in node.args[:1] if isinstance(name, ast.Constant)}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_package_imports_only_what_it_may(path):
    packages, libraries = MAY[package_of(path)]
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "pyspar":
            part = rest.partition(".")[0]
            part = "shared" if part in SHARED else part
            assert part in packages | {package_of(path)}, f"{package_of(path)} must not import {name}"
        else:
            assert top in STANDARD | libraries, f"{package_of(path)} must not import {top}"


def test_a_package_may_import_only_what_it_imports():
    used = {name: set() for name in MAY}
    for path in FILES:
        for top, _, rest in (name.partition(".") for name in imports(path)):
            part = rest.partition(".")[0]
            used[package_of(path)].add(("shared" if part in SHARED else part) if top == "pyspar" else top)
    unused = {name: (packages | libraries) - used[name] for name, (packages, libraries) in MAY.items()}
    assert not {name: parts for name, parts in unused.items() if parts}


def test_nothing_imports_the_command_line_but_its_entry():
    assert [package_of(f) for f in FILES if "pyspar.cli.app" in imports(f)] == ["__main__"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text()))
    assert path.stem not in {"utils", "helpers", "misc", "common"}


@pytest.mark.parametrize("path", sorted((ROOT / "core").glob("*.py")), ids=lambda p: p.name)
def test_the_core_has_no_mutable_class_and_validates_only_what_users_call(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base) for base in node.bases}
            frozen = any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list)
            assert frozen or bases & {"NamedTuple", "ValueError"}, node.name
        if isinstance(node, ast.Raise):
            assert path.stem in ("moments", "adapt"), f"{path.name} raises an error in line {node.lineno}"
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in ("print", "warn", "warnings.warn", "open")


FIT = (
    "import numpy; from pyspar import SpARRegressor; X = numpy.eye(4); "
    "SpARRegressor(fit_intercept=False).fit(X[:, :2], X[:, 0]).adapt(X[:, :2])"
)
HEAVY = ["torch", "dask", "matplotlib", "typer", "skops"]


@pytest.mark.parametrize(
    ("code", "heavy"),
    [("import pyspar, pyspar.theory", [*HEAVY, "pandas", "polars", "pyarrow", "rich", "sklearn"]), (FIT, HEAVY)],
)
def test_importing_pyspar_is_light_and_an_estimator_loads_no_library_for_other_work(code, heavy):
    code = f"{code}; import sys; print([m for m in {heavy} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_every_public_name_can_be_had_and_is_listed():
    assert set(pyspar.__all__) == set(pyspar._HOME) | {"__version__"}
    for name in pyspar.__all__:
        assert getattr(pyspar, name) is not None

"""The metadata of the package: one version, one list of dependencies, and a helpful message for a missing extra."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

import pyspar
from pyspar.errors import MissingExtraError

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}


def recipe_list(name):
    """Return the items of a list in the recipe."""
    items = re.search(rf"^  {name}:.*\n((?:    - .*\n)+)", RECIPE, flags=re.MULTILINE)[1]
    return [line.removeprefix("    - ") for line in items.splitlines()]


def in_conda(requirement):
    name, bound = re.fullmatch(r"([a-z0-9-]+)(>=[\d.]+)", requirement).groups()
    return f"{CONDA_NAMES.get(name, name)} {bound}"


def test_the_version_is_the_same_everywhere():
    version = pyspar.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'\n  version: "{version}"\n' in RECIPE
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_base_package_needs_three_packages():
    assert [re.match(r"[a-z-]+", name)[0] for name in PROJECT["dependencies"]] == ["numpy", "scipy", "scikit-learn"]


def test_the_conda_recipe_has_the_dependencies_of_the_project():
    python = f"python {PROJECT['requires-python']}"
    assert recipe_list("run") == [python, *map(in_conda, PROJECT["dependencies"])]
    optional = [name for extra in ("cli", "torch", "report") for name in PROJECT["optional-dependencies"][extra]]
    assert recipe_list("run_constrained") == list(dict.fromkeys(map(in_conda, optional)))
    assert recipe_list("entry_points") == [f"{name} = {where}" for name, where in PROJECT["scripts"].items()]
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert recipe_list("host") == [python, "pip", *map(in_conda, backend)]
    assert f"license: {PROJECT['license']}\n" in RECIPE


def test_the_classifiers_begin_with_the_oldest_supported_version():
    versions = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert f">={versions[0]}" == PROJECT["requires-python"]
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in versions
    assert (ROOT / "src" / "pyspar" / "py.typed").is_file()


@pytest.fixture
def fitted(rng):
    X = rng.normal(size=(30, 2))
    return pyspar.SpARRegressor().fit(X, X[:, 0] + rng.normal(size=30)), X


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("skops.io", "cli", lambda model, X, path: pyspar.save(model, path / "m.skops")),
        ("jinja2", "report", lambda model, X, path: pyspar.inspect(model, X).save(path / "r.html")),
        ("torch", "torch", lambda model, X, path: pyspar.nn.adapt_head),
    ],
)
def test_a_missing_package_is_named_with_its_extra_and_nothing_is_written(
    fitted, tmp_path, monkeypatch, module, extra, call
):
    for name in [name for name in sys.modules if name.startswith("pyspar.nn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(pyspar, "nn", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=re.escape(f"{module.partition('.')[0]}'") + rf".*pyspar\[{extra}\]"):
        call(*fitted, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_the_command_without_its_extra_prints_the_pip_command(monkeypatch, capsys, module):
    from pyspar.__main__ import main

    loaded = ("pyspar.cli", "pyspar.paper.commands", f"{module}.")
    for name in [name for name in sys.modules if name.startswith(loaded)]:
        monkeypatch.delitem(sys.modules, name)  # a cached submodule would be imported without its package
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("pyspar.__main__._set_handler", lambda handler: None)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "pip install 'pyspar[cli]'" in capsys.readouterr().err

"""The recipes for other libraries run as programs, if the library is installed."""

import os
import runpy
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
PAGE = RECIPES.parents[1] / "docs" / "recipes.md"
NEEDS = {
    "huggingface_head": ["torch", "transformers"],
    "lightning_head": ["torch", "pytorch_lightning"],
    "mlflow_model": ["mlflow", "sqlalchemy"],
    "onnx_export": ["skl2onnx", "onnxruntime"],
    "skorch_head": ["torch", "skorch"],
    "timm_head": ["torch", "timm"],
}


def test_every_recipe_is_run_and_short():
    scripts = sorted(RECIPES.glob("*.py"))
    assert [script.stem for script in scripts] == sorted(NEEDS)
    assert all(len(script.read_text().splitlines()) <= 35 for script in scripts)


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
@pytest.mark.filterwarnings("default::pyspar.errors.SparWarning")
def test_a_recipe_runs_and_prints_what_its_page_shows(name, tmp_path, monkeypatch, capsys, request):
    for library in NEEDS[name]:
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "")
    runpy.run_path(str(RECIPES / f"{name}.py"))
    printed, text = capsys.readouterr().out, PAGE.read_text(encoding="utf-8")
    after = text.partition(f"recipes/{name}.py\n:language: python\n```\n\n```\n")[2]
    shown = after.partition("```")[0]  # the last lines; nothing where the page could not be written
    last = "".join(printed.splitlines(keepends=True)[-shown.count("\n") :])
    if shown and request.config.getoption("--update-golden"):
        PAGE.write_text(text.removesuffix(after) + last + after.removeprefix(shown), encoding="utf-8")
    else:
        assert last == shown if shown else printed

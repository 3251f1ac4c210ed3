"""The recipes for other libraries run as programs, if the library is installed."""

import os
import runpy
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
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
def test_a_recipe_runs(name, tmp_path, monkeypatch, capsys):
    for library in NEEDS[name]:
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "")
    runpy.run_path(str(RECIPES / f"{name}.py"))
    assert capsys.readouterr().out

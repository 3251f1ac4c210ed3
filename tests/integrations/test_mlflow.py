"""Models are logged to MLflow as skops files, with their report, and without a pickle."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyspar import BayesSpARRegressor, InputError, expected_rmse, load, report

mlflow = pytest.importorskip("mlflow", reason="needs: pip install 'pyspar[mlflow]'")

from pyspar.integrations.mlflow import log_model  # noqa: E402


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A folder as the tracking store; the settings of the process are put back."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield tmp_path / "runs"
    mlflow.set_tracking_uri(before)


@pytest.fixture
def fitted(shift):
    """A regressor fitted on a data frame and adapted to the target, and the target."""
    X, Z = (pd.DataFrame(rows, columns=list("abcde")) for rows in (shift.X, shift.Z))
    return BayesSpARRegressor().fit(X, shift.y).adapt(Z), Z


def test_a_logged_model_predicts_the_same_and_its_report_is_an_artifact(store, fitted):
    model, Z = fitted
    with mlflow.start_run() as active:
        info = log_model(model, report=report(model, Z), signature=mlflow.models.infer_signature(Z))
    assert info.run_id == active.info.run_id
    np.testing.assert_array_equal(mlflow.pyfunc.load_model(info.model_uri).predict(Z), model.predict(Z))
    loaded = load(Path(mlflow.artifacts.download_artifacts(info.model_uri)) / "data" / "model.skops")
    assert expected_rmse(loaded, Z).rmse == expected_rmse(model, Z).rmse
    artifacts = store / active.info.experiment_id / active.info.run_id / "artifacts"
    assert json.loads((artifacts / "report.json").read_text())
    assert "<html" in (artifacts / "report.html").read_text()
    files = [path for path in store.rglob("*") if path.is_file()]
    assert [path.name for path in files if path.suffix in (".pkl", ".pickle", ".joblib")] == []
    assert len([path for path in files if path.name == "model.skops"]) == 1


def test_a_model_that_cannot_be_loaded_safely_is_not_logged(store, fitted):
    from sklearn.preprocessing import FunctionTransformer

    unsafe = make_pipeline(StandardScaler(), FunctionTransformer(_cube), fitted[0])
    with mlflow.start_run() as active, pytest.raises(InputError, match="_cube"):
        log_model(unsafe)
    assert list((store / active.info.experiment_id).rglob("MLmodel")) == []


def _cube(x):
    return x**3

"""MLflow: log an adapted model as a file without pickle, with its forecast as metrics, and load it from the run."""

import tempfile
from pathlib import Path

import mlflow
import numpy as np

import pyspar

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(200, 3)), 3.0 * rng.normal(size=(100, 3))
model = pyspar.BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=200)).adapt(Z)
folder = Path(tempfile.mkdtemp())
mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
with mlflow.start_run():
    pyspar.save(model, folder / "model.skops")
    mlflow.log_artifact(str(folder / "model.skops"))
    mlflow.log_params(model.get_params())
    forecast = model.expected_rmse(Z)
    mlflow.log_metrics({"expected_rmse": forecast.rmse, "expected_rmse_high": forecast.interval95[1]})
    path = mlflow.artifacts.download_artifacts(mlflow.get_artifact_uri("model.skops"))
np.testing.assert_array_equal(pyspar.load(path).predict(Z), model.predict(Z))
print(forecast)

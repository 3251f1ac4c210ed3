"""Log fitted models to MLflow as skops files, with their report. No file contains a pickle.

MLflow's own scikit-learn flavour and ``mlflow.pyfunc.PythonModel`` objects are pickled, and opening a pickle can run
code. This module stores the file of :func:`pyspar.save`, which MLflow opens with :func:`pyspar.load`.
"""

from __future__ import annotations

import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyspar import __version__
from pyspar.errors import need
from pyspar.io.models import load, save
from pyspar.reporting import Report

_mlflow = need("mlflow", "mlflow")
_pyfunc = need("mlflow.pyfunc", "mlflow")


def log_model(model: Any, name: str = "model", *, report: Report | None = None, **options: Any) -> Any:
    """Log a fitted model to the active run of MLflow, or to a new run, and return MLflow's ``ModelInfo``.

    ``mlflow.pyfunc.load_model`` returns a wrapper that predicts. The estimator itself is in the file
    ``data/model.skops`` of the logged model, which :func:`pyspar.load` reads.

    Parameters
    ----------
    model : fitted estimator or pipeline that :func:`pyspar.save` accepts
    name : str, default "model"
    report : Report, optional
        The result of :func:`pyspar.report`. It is logged to the same run as ``report.html`` and ``report.json``.
    **options
        Arguments of ``mlflow.pyfunc.log_model``, such as ``signature``, ``input_example`` and
        ``registered_model_name``.
    """
    packages = ["numpy", "scipy", "scikit-learn", "skops"]
    pinned = [f"pyspar[mlflow]=={__version__}", *(f"{package}=={version(package)}" for package in packages)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        save(model, path)  # refuses a model that load would not read, before anything is logged
        options |= {"loader_module": __name__, "data_path": str(path), "pip_requirements": pinned}
        info = _pyfunc.log_model(name=name, **options)
        if report is not None:
            for file in (path.with_name("report.html"), path.with_name("report.json")):
                report.save(file)
                _mlflow.log_artifact(str(file), run_id=info.run_id)
    return info


def _load_pyfunc(path: str) -> Any:
    """Return the object with ``predict`` that ``mlflow.pyfunc.load_model`` wraps. MLflow calls this function."""
    return load(path)

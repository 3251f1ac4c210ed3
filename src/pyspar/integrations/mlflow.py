"""Log fitted models to MLflow as skops files, with their report. No file contains a pickle.

MLflow's own scikit-learn flavour and ``mlflow.pyfunc.PythonModel`` objects are pickled, and opening a pickle can run
code. These functions store the file of :func:`pyspar.save`, and load it with :func:`pyspar.load`, which checks it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyspar import __version__
from pyspar.errors import InputError, need
from pyspar.io.models import load, save
from pyspar.reporting import Report

_mlflow = need("mlflow", "mlflow")
_pyfunc = need("mlflow.pyfunc", "mlflow")

MODEL_FILE = "model.skops"


def log_model(model: Any, name: str = "model", *, report: Report | None = None, **options: Any) -> Any:
    """Log a fitted model to the active run of MLflow, or to a new run, and return MLflow's ``ModelInfo``.

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
    with _write_model(model) as (folder, arguments):
        info = _pyfunc.log_model(name=name, **arguments, **options)
        if report is not None:
            for suffix in ("html", "json"):
                report.save(folder / f"report.{suffix}")
                _mlflow.log_artifact(str(folder / f"report.{suffix}"), run_id=info.run_id)
    return info


def save_model(model: Any, path: Any, **options: Any) -> None:
    """Write a fitted model to a new folder in MLflow's format, with options of ``mlflow.pyfunc.save_model``."""
    with _write_model(model) as (_, arguments):
        _pyfunc.save_model(str(path), **arguments, **options)


def load_model(uri: Any) -> Any:
    """Return the estimator of a logged or saved model, with all its methods.

    ``mlflow.pyfunc.load_model(uri)`` returns MLflow's wrapper instead, which only predicts. It runs the loader that
    the folder names. This function opens only the skops file.

    Parameters
    ----------
    uri : str or path
        The ``model_uri`` of ``log_model``, ``"models:/NAME/VERSION"``, or the folder of ``save_model``.
    """
    folder = Path(need("mlflow.artifacts", "mlflow").download_artifacts(str(uri)))
    files = sorted(folder.rglob(MODEL_FILE))
    if len(files) != 1:
        raise InputError(f"{str(uri)!r} must contain one {MODEL_FILE}, got {len(files)}; log the model with log_model")
    return load(files[0])


def _load_pyfunc(path: str) -> Any:
    """Return the object with ``predict`` that ``mlflow.pyfunc.load_model`` wraps. MLflow calls this function."""
    return load(path)


@contextmanager
def _write_model(model: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield a temporary folder with the file of a model, and MLflow's arguments for it and the packages that read it.

    An unfitted or untrusted model is refused here, before anything is logged.
    """
    if hasattr(model, "state_dict") or hasattr(model, "write_to"):  # recognised without torch
        raise InputError(
            f"a network cannot be a skops file, got {type(model).__name__}; use "
            'mlflow.pytorch.log_model(adapted.model.eval(), name="model", input_example=...)'
        )
    packages = ["numpy", "scipy", "scikit-learn", "skops"]
    requirements = [f"pyspar[mlflow]=={__version__}", *(f"{package}=={version(package)}" for package in packages)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / MODEL_FILE
        save(model, path)
        arguments = {"loader_module": __name__, "data_path": str(path), "pip_requirements": requirements}
        yield Path(folder), arguments

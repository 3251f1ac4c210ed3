"""pyspar: adapt a regressor to a target whose features are distributed differently from its source.

SpAR (Eyre, Creager, Madras, Papyan and Zemel, "Out of the Ordinary: Spectrally Adapting Regression for Covariate
Shift") finds the directions in which unlabelled target rows vary much more than the source, and removes from them the
weights that noise alone can explain.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspar.core.adapt import Adaptation
    from pyspar.core.moments import Moments
    from pyspar.core.spectrum import Spectrum
    from pyspar.errors import InputError, MissingExtraError, SparWarning
    from pyspar.estimators.align import ColumnAligner, align
    from pyspar.estimators.correction import TargetCorrection
    from pyspar.estimators.labels import rows_to_label
    from pyspar.estimators.pipelines import adapt_pipeline, expected_rmse, predict_interval
    from pyspar.estimators.spar import BayesSpARRegressor, SpARRegressor
    from pyspar.persist import load, save
    from pyspar.report.inspect import inspect
    from pyspar.report.shift_report import ShiftReport

__version__ = "0.2.0"

# The module of each public name. They are imported on first access: scikit-learn takes a second to import.
_HOME = {
    "Adaptation": "pyspar.core.adapt",
    "BayesSpARRegressor": "pyspar.estimators.spar",
    "ColumnAligner": "pyspar.estimators.align",
    "InputError": "pyspar.errors",
    "MissingExtraError": "pyspar.errors",
    "Moments": "pyspar.core.moments",
    "ShiftReport": "pyspar.report.shift_report",
    "SpARRegressor": "pyspar.estimators.spar",
    "SparWarning": "pyspar.errors",
    "Spectrum": "pyspar.core.spectrum",
    "TargetCorrection": "pyspar.estimators.correction",
    "adapt_pipeline": "pyspar.estimators.pipelines",
    "align": "pyspar.estimators.align",
    "expected_rmse": "pyspar.estimators.pipelines",
    "inspect": "pyspar.report.inspect",
    "load": "pyspar.persist",
    "predict_interval": "pyspar.estimators.pipelines",
    "rows_to_label": "pyspar.estimators.labels",
    "save": "pyspar.persist",
}

_PACKAGES = ("core", "errors", "nn", "paper", "sources", "theory")
"""Packages and modules that are imported on first access, for example ``pyspar.nn``."""

__all__ = [
    "Adaptation",
    "BayesSpARRegressor",
    "ColumnAligner",
    "InputError",
    "MissingExtraError",
    "Moments",
    "ShiftReport",
    "SpARRegressor",
    "SparWarning",
    "Spectrum",
    "TargetCorrection",
    "__version__",
    "adapt_pipeline",
    "align",
    "expected_rmse",
    "inspect",
    "load",
    "predict_interval",
    "rows_to_label",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _PACKAGES:
        return import_module(f"pyspar.{name}")
    from pyspar.text import suggest_name

    hint = "" if name.startswith("_") else suggest_name(name, (*__all__, *_PACKAGES))
    raise AttributeError(f"module 'pyspar' has no attribute {name!r}{'; ' if hint else ''}{hint}")


def __dir__() -> list[str]:
    return sorted((*__all__, *_PACKAGES))

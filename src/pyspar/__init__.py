"""pyspar: adapt a regressor to a target whose features are distributed differently from its source.

SpAR (Eyre, Creager, Madras, Papyan and Zemel, "Out of the Ordinary: Spectrally Adapting Regression for Covariate
Shift") finds the directions in which unlabelled target rows vary much more than the source, and removes from them the
weights that noise alone can explain.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspar.core.moments import Moments
    from pyspar.errors import InputError, SparWarning
    from pyspar.estimators.align import ColumnAligner, align
    from pyspar.estimators.correction import TargetCorrection
    from pyspar.estimators.labels import rows_to_label
    from pyspar.estimators.pipelines import adapt_pipeline, expected_rmse
    from pyspar.estimators.spar import BayesSpARRegressor, SpARRegressor
    from pyspar.persist import load, save
    from pyspar.report.inspect import inspect
    from pyspar.report.shift_report import ShiftReport

__version__ = "0.3.0"
__all__ = [
    "BayesSpARRegressor", "ColumnAligner", "InputError", "Moments", "ShiftReport", "SpARRegressor", "SparWarning",
    "TargetCorrection", "__version__", "adapt_pipeline", "align", "expected_rmse", "inspect", "load", "rows_to_label",
    "save",
]  # fmt: skip

# The public names by module. They are imported on first access: scikit-learn takes a second to import.
_MODULES = {
    "core.moments": ("Moments",),
    "errors": ("InputError", "SparWarning"),
    "estimators.align": ("ColumnAligner", "align"),
    "estimators.correction": ("TargetCorrection",),
    "estimators.labels": ("rows_to_label",),
    "estimators.pipelines": ("adapt_pipeline", "expected_rmse"),
    "estimators.spar": ("BayesSpARRegressor", "SpARRegressor"),
    "persist": ("load", "save"),
    "report.inspect": ("inspect",),
    "report.shift_report": ("ShiftReport",),
}
_HOME = {name: f"pyspar.{module}" for module, names in _MODULES.items() for name in names}
_PACKAGES = ("core", "errors", "nn", "paper", "sources", "theory")  # for example ``pyspar.nn``


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

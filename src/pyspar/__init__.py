"""pyspar: repair a regressor for a world that differs from the one it was trained in.

SpAR (Eyre, Creager, Madras, Papyan and Zemel, "Out of the Ordinary: Spectrally Adapting Regression for Covariate
Shift") finds the directions in which unlabelled target rows vary and the source hardly did, and projects them out.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspar.core.adapt import Adaptation
    from pyspar.core.moments import Moments
    from pyspar.core.spectrum import Spectrum
    from pyspar.errors import InputError, MissingExtraError, SparWarning
    from pyspar.estimators.bayes import BayesSpARRegressor
    from pyspar.estimators.pipelines import adapt_pipeline
    from pyspar.estimators.spar import PCRRegressor, SpARRegressor
    from pyspar.estimators.tracing import alpha_path
    from pyspar.estimators.watch import TargetWatch
    from pyspar.inspection import Inspection, inspect
    from pyspar.io.models import load, save
    from pyspar.reporting import Report, report

__version__ = "0.2.0"

# Loaded when first asked for: scikit-learn alone takes a second and brings pandas along where it is installed.
_HOME = {
    "Adaptation": "pyspar.core.adapt",
    "BayesSpARRegressor": "pyspar.estimators.bayes",
    "InputError": "pyspar.errors",
    "Inspection": "pyspar.inspection",
    "MissingExtraError": "pyspar.errors",
    "Moments": "pyspar.core.moments",
    "PCRRegressor": "pyspar.estimators.spar",
    "Report": "pyspar.reporting",
    "SpARRegressor": "pyspar.estimators.spar",
    "SparWarning": "pyspar.errors",
    "Spectrum": "pyspar.core.spectrum",
    "TargetWatch": "pyspar.estimators.watch",
    "adapt_pipeline": "pyspar.estimators.pipelines",
    "alpha_path": "pyspar.estimators.tracing",
    "inspect": "pyspar.inspection",
    "load": "pyspar.io.models",
    "report": "pyspar.reporting",
    "save": "pyspar.io.models",
}

_ROOMS = ("core", "errors", "nn", "paper", "sources", "theory")
"""Modules that ``import pyspar`` does not load, and that ``pyspar.nn`` and the like do."""

__all__ = [
    "Adaptation",
    "BayesSpARRegressor",
    "InputError",
    "Inspection",
    "MissingExtraError",
    "Moments",
    "PCRRegressor",
    "Report",
    "SpARRegressor",
    "SparWarning",
    "Spectrum",
    "TargetWatch",
    "__version__",
    "adapt_pipeline",
    "alpha_path",
    "inspect",
    "load",
    "report",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _ROOMS:
        return import_module(f"pyspar.{name}")
    raise AttributeError(f"module 'pyspar' has no attribute {name!r}{_meant(name)}")


def _meant(name: str) -> str:
    from difflib import get_close_matches

    known = {other.lower(): other for other in (*__all__, *_ROOMS)}
    close = [] if name.startswith("_") else get_close_matches(name.lower(), list(known), n=1, cutoff=0.75)
    return f"; did you mean {known[close[0]]!r}?" if close else ""


def __dir__() -> list[str]:
    return sorted((*__all__, *_ROOMS))

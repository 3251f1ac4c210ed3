"""pyspar: repair a regressor for a world that differs from the one it was trained in.

SpAR (Eyre, Creager, Madras, Papyan and Zemel, "Out of the Ordinary: Spectrally Adapting Regression for Covariate
Shift") finds the directions in which unlabelled target rows vary and the source hardly did, and projects them out.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspar.bayes import BayesSpARRegressor
    from pyspar.core.adapt import Adaptation
    from pyspar.core.moments import Moments
    from pyspar.core.spectrum import Spectrum
    from pyspar.errors import InputError, MissingExtraError, SparWarning
    from pyspar.estimators import PCRRegressor, SpARRegressor
    from pyspar.inspection import Inspection, inspect
    from pyspar.persist import load, save
    from pyspar.pipelines import adapt_pipeline
    from pyspar.reporting import Report, report
    from pyspar.tracing import alpha_path
    from pyspar.watching import TargetWatch

__version__ = "0.1.0"

# Loaded when first asked for: scikit-learn alone takes a second and brings pandas along where it is installed.
_HOME = {
    "Adaptation": "pyspar.core.adapt",
    "BayesSpARRegressor": "pyspar.bayes",
    "InputError": "pyspar.errors",
    "Inspection": "pyspar.inspection",
    "MissingExtraError": "pyspar.errors",
    "Moments": "pyspar.core.moments",
    "PCRRegressor": "pyspar.estimators",
    "Report": "pyspar.reporting",
    "SpARRegressor": "pyspar.estimators",
    "SparWarning": "pyspar.errors",
    "Spectrum": "pyspar.core.spectrum",
    "TargetWatch": "pyspar.watching",
    "adapt_pipeline": "pyspar.pipelines",
    "alpha_path": "pyspar.tracing",
    "inspect": "pyspar.inspection",
    "load": "pyspar.persist",
    "report": "pyspar.reporting",
    "save": "pyspar.persist",
}

_ROOMS = ("bench", "core", "data", "errors", "nn", "sources", "theory")
"""Modules that ``import pyspar`` does not load, and that ``pyspar.data`` and the like do."""

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

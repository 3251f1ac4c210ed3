"""pyspar: repair a regressor for a world that differs from the one it was trained in.

SpAR (Eyre, Creager, Madras, Papyan and Zemel, "Out of the Ordinary: Spectrally Adapting Regression for Covariate
Shift") finds the directions in which unlabelled target rows vary and the source hardly did, and projects them out.
"""

from pyspar.core.adapt import Adaptation
from pyspar.core.moments import Moments
from pyspar.core.spectrum import Spectrum
from pyspar.errors import InputError, MissingExtraError, SparWarning
from pyspar.estimators import PCRRegressor, SpARRegressor
from pyspar.persist import load, save
from pyspar.pipelines import adapt_pipeline

__version__ = "0.1.0"

__all__ = [
    "Adaptation",
    "InputError",
    "MissingExtraError",
    "Moments",
    "PCRRegressor",
    "SpARRegressor",
    "SparWarning",
    "Spectrum",
    "__version__",
    "adapt_pipeline",
    "load",
    "save",
]

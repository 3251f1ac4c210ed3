"""The names of :mod:`pyspar.core.regression` under their old module. Temporary."""  # temporary

from pyspar.core.regression import Coordinates, Evidence, maximum_evidence

__all__ = ["Coordinates", "Evidence", "maximum_evidence"]

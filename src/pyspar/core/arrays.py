"""The names of :mod:`pyspar.core.moments` under their old module. Temporary."""  # temporary

from pyspar.core.moments import EPS64, VALUE_RANGE, Mask, Matrix, Vector

__all__ = ["EPS64", "VALUE_RANGE", "Mask", "Matrix", "Vector"]

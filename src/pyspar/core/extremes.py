"""The names of :mod:`pyspar.core.moments` under their old module. Temporary."""  # temporary

from pyspar.core.moments import ExtremeValues

__all__ = ["ExtremeValues"]

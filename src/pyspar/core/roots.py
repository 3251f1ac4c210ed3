"""The names of :mod:`pyspar.core.moments` under their old module. Temporary."""  # temporary

from pyspar.core.moments import column_norms as root_sum_squares
from pyspar.core.moments import row_slices

__all__ = ["root_sum_squares", "row_slices"]

"""Array types and constants of the core.

All arrays of the core are two-dimensional, except vectors of singular values and of one number per output.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
"""Rows, roots, eigenvectors (one per column), or weights (features x outputs)."""
Mask: TypeAlias = NDArray[np.bool_]
"""The set S: which directions are removed, directions x outputs."""
Rows: TypeAlias = NDArray[np.floating]
"""Rows in the dtype and memory order of the caller: float32 or float64. They are never copied as a whole."""

VALUE_RANGE = (1e-60, 1e60)
"""The size of the values of a column. Fourth powers of values in this range neither overflow nor underflow."""

EPS64 = float(np.finfo(np.float64).eps)

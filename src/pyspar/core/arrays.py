"""Names for the arrays that the core passes around.

Everything in the core is 2-D: ``Matrix`` for rows, roots, eigenvectors (columns) and weights (features x outputs),
``Vector`` for singular values and per-output numbers, ``Mask`` for the set S.
"""

from __future__ import annotations

from math import frexp, isfinite, ldexp
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.floating]
"""Rows as the caller holds them: float32 or float64, any memory order, never copied as a whole."""

SAFE_SQUARES = (1e-200, 1e200)
"""Sums of squares in this range have neither overflowed nor underflowed."""

EPS64 = float(np.finfo(np.float64).eps)


def power_of_two(size: float) -> float:
    """Return the power of two next to a size, so that dividing by it is exact and squares cannot overflow.

    >>> power_of_two(5.0), power_of_two(0.0)
    (4.0, 1.0)
    """
    if not isfinite(size) or size <= 0.0:
        return 1.0
    return ldexp(1.0, min(max(frexp(size)[1] - 1, -1000), 1000))


def squared(values: Vector) -> Vector:
    """Return squares; what is beyond float64 is infinite, without a warning.

    >>> squared(np.array([3.0, 1e200]))
    array([ 9., inf])
    """
    with np.errstate(over="ignore", under="ignore"):
        return np.square(values)


def root_sum_squares(columns: Matrix) -> Vector:
    """Return the norm of each column, without overflow or underflow of the squares.

    >>> root_sum_squares(np.array([[3e200], [4e200]]))
    array([5.e+200])
    """
    squares = np.einsum("ij,ij->j", columns, columns)  # which warns of nothing
    if squares.size and SAFE_SQUARES[0] < np.minimum.reduce(squares) and np.maximum.reduce(squares) < SAFE_SQUARES[1]:
        return np.asarray(np.sqrt(squares))
    largest = np.abs(columns).max(axis=0, initial=0.0)
    safe = np.where(largest > 0.0, largest, 1.0)
    with np.errstate(under="ignore"):
        return np.asarray(largest * np.sqrt(((columns / safe) ** 2).sum(axis=0)))

"""Linear algebra: column norms without overflow, a robust SVD, and the two operations that a GPU can take over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import frexp, isfinite, ldexp

import numpy as np
from scipy.linalg import LinAlgError, svd

from pyspar.core.arrays import SAFE_SQUARES, Matrix, Vector


def power_of_two(size: float) -> float:
    """Return the power of two next to a size. Dividing by it is exact, and squares of the quotient cannot overflow.

    >>> power_of_two(5.0), power_of_two(0.0)
    (4.0, 1.0)
    """
    if not isfinite(size) or size <= 0.0:
        return 1.0
    return ldexp(1.0, min(max(frexp(size)[1] - 1, -1000), 1000))


def squared(values: Vector) -> Vector:
    """Return squares. A square beyond the range of float64 is infinite, without a warning.

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
    squares = np.einsum("ij,ij->j", columns, columns)  # einsum does not warn of overflow
    if squares.size and SAFE_SQUARES[0] < np.minimum.reduce(squares) and np.maximum.reduce(squares) < SAFE_SQUARES[1]:
        return np.asarray(np.sqrt(squares))
    largest = np.abs(columns).max(axis=0, initial=0.0)
    safe = np.where(largest > 0.0, largest, 1.0)
    with np.errstate(under="ignore"):
        return np.asarray(largest * np.sqrt(((columns / safe) ** 2).sum(axis=0)))


def thin_svd(matrix: Matrix) -> tuple[Matrix, Vector, Matrix]:
    """Return U, the singular values and V'.

    LAPACK's fast driver (divide and conquer) occasionally does not converge for a matrix with many dependent columns,
    such as products of indicators. The slower driver is then used. Both take twice as long for a matrix with many more
    columns than rows as for its transpose.
    """
    if matrix.shape[0] < matrix.shape[1]:
        V, lam, Ut = thin_svd(matrix.T)
        return Ut.T, lam, V.T
    try:
        U, lam, Vt = svd(matrix, full_matrices=False, check_finite=False)
    except LinAlgError:
        U, lam, Vt = svd(matrix, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return U, lam, Vt


class Algebra:
    """The two operations whose cost grows as D cubed, in numpy. A subclass computes them on another device."""

    def gram_eigen(self, root: Matrix) -> tuple[Vector, Matrix]:
        """Return the eigenvalues of ``root' root``, descending, and its eigenvectors."""
        with np.errstate(under="ignore"):
            squares, V = np.linalg.eigh(root.T @ root)
        # BLAS does not support negative strides: without a contiguous copy every later product would copy.
        return squares[::-1], np.ascontiguousarray(V[:, ::-1])

    def overlap_sums(self, V: Matrix, E: Matrix, weights: Matrix) -> Matrix:
        """Return ``weights @ (V' E)**2``: weighted sums of squared overlaps, one row per row of weights."""
        overlap = V.T @ E
        return np.asarray(weights @ np.square(overlap, out=overlap))


_current_algebra: ContextVar[Algebra] = ContextVar("pyspar_algebra", default=Algebra())  # noqa: B039


def algebra() -> Algebra:
    """Return the implementation in use."""
    return _current_algebra.get()


@contextmanager
def use_algebra(implementation: Algebra) -> Iterator[None]:
    """Use another implementation inside a ``with`` block, in the current thread only."""
    token = _current_algebra.set(implementation)
    try:
        yield
    finally:
        _current_algebra.reset(token)

"""The two operations whose cost grows as D cubed, in one place, so that they can be done elsewhere: on a GPU, say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import numpy as np

from pyspar.core.arrays import Matrix, Vector


class Algebra(Protocol):
    """What can be done elsewhere."""

    def squares_and_vectors(self, root: Matrix) -> tuple[Vector, Matrix]:
        """Return the eigenvalues of ``root' root``, descending, and its eigenvectors."""

    def overlap_sums(self, V: Matrix, E: Matrix, weights: Matrix) -> Matrix:
        """Return ``weights @ (V' E)**2``: weighted sums of squared overlaps, one row per row of weights."""


class NumpyAlgebra:
    """Both operations in numpy."""

    def squares_and_vectors(self, root: Matrix) -> tuple[Vector, Matrix]:
        with np.errstate(under="ignore"):
            squares, V = np.linalg.eigh(root.T @ root)
        # Contiguous, because BLAS takes no negative strides and every later product would copy.
        return squares[::-1], np.ascontiguousarray(V[:, ::-1])

    def overlap_sums(self, V: Matrix, E: Matrix, weights: Matrix) -> Matrix:
        overlap = V.T @ E
        return np.asarray(weights @ np.square(overlap, out=overlap))


_HERE = NumpyAlgebra()
_algebra: ContextVar[Algebra] = ContextVar("pyspar_algebra", default=_HERE)


def algebra() -> Algebra:
    """Return who does the work."""
    return _algebra.get()


@contextmanager
def working_with(other: Algebra) -> Iterator[None]:
    """Let another do the work inside a ``with`` block, in this thread alone."""
    token = _algebra.set(other)
    try:
        yield
    finally:
        _algebra.reset(token)

"""The one place where a symmetric eigenproblem is solved, so that it can be solved elsewhere: on a GPU, say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from pyspar.core.arrays import Matrix, Vector

Solver = Callable[[Matrix], tuple[Vector, Matrix]]


def _with_numpy(root: Matrix) -> tuple[Vector, Matrix]:
    with np.errstate(under="ignore"):
        return np.linalg.eigh(root.T @ root)


_solver: ContextVar[Solver] = ContextVar("pyspar_eigensolver", default=_with_numpy)


def squares_and_vectors(root: Matrix) -> tuple[Vector, Matrix]:
    """Return the eigenvalues of ``root' root``, ascending, and its eigenvectors."""
    return _solver.get()(root)


@contextmanager
def solving_with(solver: Solver) -> Iterator[None]:
    """Solve eigenproblems with another solver inside a ``with`` block, in this thread alone."""
    token = _solver.set(solver)
    try:
        yield
    finally:
        _solver.reset(token)

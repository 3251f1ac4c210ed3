"""Singular value decomposition with a fallback for matrices on which the fast driver fails."""

from __future__ import annotations

from scipy.linalg import LinAlgError, svd

from pyspar.core.arrays import Matrix, Vector


def thin_svd(matrix: Matrix) -> tuple[Matrix, Vector, Matrix]:
    """Return U, the singular values and V'.

    LAPACK's fast way (divide and conquer) now and then does not converge on a matrix with many dependent columns, such
    as products of indicators; the slower one does.
    """
    try:
        U, lam, Vt = svd(matrix, full_matrices=False, check_finite=False)
    except LinAlgError:
        U, lam, Vt = svd(matrix, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return U, lam, Vt

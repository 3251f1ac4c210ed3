"""Moments: a mergeable summary of a data set in D x D numbers, sufficient for SpAR.

For ``A = [1 | X | Y]`` with row weights, Moments stores a root R with ``R'R = A'A``. Moments of batches, or of parts on
a cluster, can be added, and the rows are not needed again. Every root has the form ``[[r, r * mean], [0, C]]`` with C a
root of the scatter about the mean, so centring means dropping the first row.

There are three ways to a root:

* No more rows than columns are a root already, apart from this form.
* Otherwise the root follows from the Gram matrix ``A'A`` of one pass over the rows. Squaring halves the digits, so
  directions that are shorter than a thousandth of the longest are measured again, from the rows
  (:func:`root_of_product`).
* Roots are merged by QR, which loses no digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]  # rows, roots, eigenvectors (one per column), or weights (features x outputs)
Mask: TypeAlias = NDArray[np.bool_]  # the set S: which directions are removed, directions x outputs

EPS64 = float(np.finfo(np.float64).eps)
VALUE_RANGE = (1e-60, 1e60)
"""The size of the values of a column. Fourth powers of values in this range neither overflow nor underflow."""
WEIGHT_RANGE = (1e-150, 1e150)
"""The range of the largest weight. The square of a weight beyond it, or of its inverse, overflows float64."""
ROUNDING_SLACK = 8.0
"""The bound on the rounding error of a column, in eps times its length. Storing a column costs at most half an eps."""
GRAM_SPREAD = 1e-3
"""The share of the largest singular value, for columns of unit length, down to which a product keeps eleven digits."""
OFFSET_LIMIT = 8.0
"""Products of raw values lose (mean / spread)**2 in accuracy; up to this ratio that is less than two digits."""

# A copied block should still be in the cache when it is multiplied. A block that is read in place need not be, and
# larger blocks update the D x D sum less often.
_BLOCK_BYTES, _IN_PLACE_BYTES = 4_000_000, 32_000_000


@dataclass(frozen=True, eq=False)
class Moments:
    """The mergeable statistic of ``[1 | X | Y]``.

    Attributes
    ----------
    root : array of shape (at most 1 + D + K, 1 + D + K)
        R with ``R'R = A'A``. The first column is zero below the first row.
    n_features, rows : int
        D, where the K columns after the features are the outputs, and the number of rows that were read.
    weight, weight2 : float
        The sum of the weights, N in the paper (M for a target), and of their squares. ``weight**2 / weight2`` is the
        effective number of rows.
    eps : array of shape (D,)
        The machine epsilon of the dtype in which each feature was *measured*.
    names : tuple of str
        The names of the features, if the rows had names.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 2.0]])
    >>> whole = Moments.of(X)
    >>> halves = Moments.of(X[:1]) + Moments.of(X[1:])
    >>> np.allclose(whole.mean, [2, 2]), np.allclose(whole.root.T @ whole.root, halves.root.T @ halves.root)
    (True, True)
    """

    root: Matrix
    n_features: int
    rows: int
    weight: float
    weight2: float
    eps: Vector
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, X: Any, Y: Any = None, sample_weight: Any = None, *, eps: float | Vector | None = None) -> Moments:
        """Summarise rows. A weight of 2 equals two copies of the row, and rows of weight zero are ignored.

        ``eps`` is the relative precision of the features, one number or one per feature. Set it if the dtype is finer
        than the data (bfloat16 stored as float32). The values of each column must be zero, or between 1e-60 and 1e60 in
        size.
        """
        precision, names = measured_eps(X) if eps is None else eps, column_names(X)
        X, Y, weight = check_rows(X, Y, sample_weight)
        (n, d), k = X.shape, Y.shape[1]
        measured = np.broadcast_to(np.asarray(precision, dtype=np.float64), (d,))
        if not ((measured > 0.0) & (measured < 1.0)).all():
            raise ValueError(f"eps must be between 0 and 1, got {eps!r}")
        sqrt_weight = None if weight is None else np.sqrt(weight)
        with np.errstate(over="ignore", invalid="ignore"):
            if n <= d + k:
                root = _root_of_few_rows(X, Y, sqrt_weight)
            else:
                root = _root_of_rows(X, Y, sqrt_weight, exact=bool(measured.min() <= EPS64))
        if not np.isfinite(root).all():
            raise ValueError(_describe_not_finite(X, Y))
        return cls.of_root(root, d, n, weight, measured, names)

    @classmethod
    def of_root(
        cls, root: Matrix, n_features: int, rows: int, weight: Vector | None, eps: Vector, names: tuple[str, ...] = ()
    ) -> Moments:
        """Return the moments of rows with these weights, or none, given their root; refuse extreme values."""
        total, total2 = (rows, rows) if weight is None else (weight.sum(), weight @ weight)
        moments = cls(root, n_features, rows, float(total), float(total2), eps, names)
        refuse_extremes(moments)
        return moments

    def __add__(self, other: Moments) -> Moments:
        """Return the Moments of both sets of rows together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if (self.n_features, self.n_outputs) != (other.n_features, other.n_outputs):
            raise ValueError(
                f"only Moments with the same columns can be added, got {self.n_features} features and "
                f"{self.n_outputs} outputs, plus {other.n_features} and {other.n_outputs}"
            )
        if self.names and other.names and self.names != other.names:
            raise ValueError("only Moments with the same feature names in the same order can be added")
        return Moments(
            merge_roots(self.root, other.root), self.n_features, self.rows + other.rows, self.weight + other.weight,
            self.weight2 + other.weight2, np.maximum(self.eps, other.eps), self.names or other.names,
        )  # fmt: skip

    def __radd__(self, other: Any) -> Moments:
        """Let ``sum`` start from zero."""
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        return f"Moments({self.rows:,} rows, {self.n_features} features, {self.n_outputs} outputs)"

    @property
    def n_outputs(self) -> int:
        return int(self.root.shape[1]) - 1 - self.n_features

    @property
    def mean(self) -> Vector:
        """The mean of the D features, then of the K outputs."""
        return np.asarray(self.root[0, 1:] / self.root[0, 0])

    @property
    def spread(self) -> Vector:
        """The standard deviation of the D features, then of the K outputs."""
        return np.asarray(column_norms(self.root_about(None)) / np.sqrt(self.weight))

    def with_root(self, root: Matrix) -> Moments:
        """Return the same Moments with another root. ``replace`` would be slower than many matrix products."""
        return Moments(root, self.n_features, self.rows, self.weight, self.weight2, self.eps, self.names)

    def without_outputs(self) -> Moments:
        """Return the Moments of the features alone."""
        return self.with_root(self.root[:, : self.n_features + 1])

    def subtract_prediction(self, coef: Matrix, intercept: Vector) -> Moments:
        """Return the Moments of the same rows with ``Y - X coef - intercept`` in place of Y.

        An output that the prediction explains up to rounding becomes zero.
        """
        d, root, lengths = self.n_features, self.root.copy(), self.column_lengths()
        root[:, d + 1 :] -= root[:, 1 : d + 1] @ coef + np.outer(root[:, 0], intercept)
        subtracted = lengths[:d] @ np.abs(coef) + np.abs(intercept) * np.sqrt(self.weight)
        explained = column_norms(root[:, d + 1 :]) <= ROUNDING_SLACK * EPS64 * (lengths[d:] + subtracted)
        root[:, d + 1 :][:, explained] = 0.0
        return self.with_root(root)

    def root_about(self, origin: Vector | None) -> Matrix:
        """Return a root of ``[X | Y] - origin``; with None, of the scatter about the mean of the data.

        For the mean the first row is dropped. Nothing is subtracted, so no digits are lost.
        """
        if origin is None:
            return self.root[1:, 1:]
        root = self.root[:, 1:].copy()
        root[0] -= self.root[0, 0] * origin  # below the first row the column of ones is zero
        return root

    def column_lengths(self) -> Vector:
        """Return the norms of the columns of ``[X | Y]`` as they were measured (not centred)."""
        return column_norms(self.root[:, 1:])

    def rounding(self) -> Vector:
        """Return the bound on the rounding error of each feature's column as it was measured."""
        return np.asarray(ROUNDING_SLACK * self.eps * self.column_lengths()[: self.n_features])


def column_norms(columns: Matrix) -> Vector:
    """Return the norm of each column.

    >>> column_norms(np.array([[3.0], [4.0]]))
    array([5.])
    """
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", columns, columns)))


# Roots ----------------------------------------------------------------------------------------------------------------

Block: TypeAlias = "tuple[Matrix, Any]"
"""Some rows times the roots of their weights: ``[1 | Y]``, and X, an array or a sparse matrix."""


def _root_of_rows(X: Any, Y: Any, sqrt_weight: Vector | None, *, exact: bool) -> Matrix:
    """Return a root of more rows than columns; with ``exact`` no direction has fewer digits than QR would give it."""
    shift = _typical_shift(X, Y, sqrt_weight)
    for _ in range(2):
        blocks = partial(_blocks, X, Y, sqrt_weight, shift)
        root, is_centred = root_of_product(product_of(blocks(), X.shape[1]), shift, blocks if exact else None)
        if is_centred:
            break
        shift = root[0, 1:] / root[0, 0]  # the first rows were not typical: read again about the mean
    return root


def _blocks(X: Any, Y: Any, sqrt_weight: Vector | None, shift: Vector) -> Iterator[Block]:
    """Yield the rows minus the shift, block by block. Both parts may be buffers that the next block overwrites."""
    n, d = X.shape
    is_shifted = shift[:d].any()
    in_place = X.dtype == np.float64 and sqrt_weight is None and not is_shifted
    # The buffer has the memory order of the rows: transposing them would cost more than multiplying them.
    by_columns = X.strides[0] < X.strides[1]
    buffer = np.empty((0, d))
    columns = 1 + d + Y.shape[1]
    step = max((_IN_PLACE_BYTES if in_place else _BLOCK_BYTES) // (8 * columns), columns)
    for start in range(0, n, step):
        rows, size = slice(start, start + step), min(step, n - start)
        border = np.ones((size, 1 + Y.shape[1]))
        np.subtract(Y[rows], shift[d:], out=border[:, 1:])
        if in_place:
            yield border, X[rows]
            continue
        if len(buffer) < size:
            buffer = np.empty((d, size)).T if by_columns else np.empty((size, d))
        block = buffer[:size]
        np.copyto(block, X[rows])  # converting and subtracting in one step would be three times slower
        if is_shifted:
            block -= shift[:d]
        if sqrt_weight is not None:
            block *= sqrt_weight[rows, None]
            border *= sqrt_weight[rows, None]
        yield border, block


def _typical_shift(X: Any, Y: Any, sqrt_weight: Vector | None) -> Vector:
    """Return the means of the first 1000 rows for columns with a large common offset, and zero for others."""
    d, weight = X.shape[1], None if sqrt_weight is None else sqrt_weight[:1000] ** 2
    head = np.hstack([X[:1000], Y[:1000]]).astype(np.float64, copy=False)
    mean = np.average(head, axis=0, weights=weight)
    spread = np.sqrt(np.average((head - mean) ** 2, axis=0, weights=weight))
    spread[d:] = 0.0  # outputs are always shifted, because they are copied anyway
    return np.where(np.isfinite(mean) & (np.abs(mean) > OFFSET_LIMIT * spread), mean, 0.0)


def root_of_product(
    product: Matrix, shift: Vector, blocks: Callable[[], Iterable[Block]] | None = None
) -> tuple[Matrix, bool]:
    """Return a root from ``A'A`` of ``A = [1 | [X | Y] - shift]``, and whether the shift was near the mean.

    Columns are scaled to unit length, and the root is a Cholesky factor. If the blocks of rows are given, directions
    that the product does not resolve are measured again.
    """
    if not np.isfinite(product).all():
        return product, True  # the caller raises an error
    lengths, unit, middle, constant, is_centred = _unit_scatter(product, shift)
    factor, condition = _cholesky(unit)
    if blocks is not None and is_centred and condition < GRAM_SPREAD**2:
        factor = _measure_again(blocks, middle, lengths, unit)
    elif factor is None:
        squares, V = np.linalg.eigh(unit)
        factor = np.sqrt(np.maximum(squares, EPS64**2))[:, None] * V.T
    root = np.zeros((len(factor) + 1, len(product)))
    root[0] = np.sqrt(product[0, 0]) * np.concatenate([[1.0], shift + middle])
    root[1:, 1:] = factor * np.where(constant, 0.0, lengths)
    return root, is_centred


def _unit_scatter(product: Matrix, shift: Vector) -> tuple[Vector, Matrix, Vector, Mask, bool]:
    """Return the columns' lengths, scatter at unit length, mean minus shift, which are constant, and if that is small.

    Constant columns have the length one and no overlaps, so that they do not make the scatter singular.
    """
    weight, offset = product[0, 0], product[0, 1:]
    middle = offset / weight
    scatter = product[1:, 1:] - np.outer(offset, middle)
    variation, offset2 = np.diag(scatter), weight * middle**2
    rounding = (ROUNDING_SLACK * EPS64) ** 2 * (weight * (shift + middle) ** 2 + np.maximum(variation, 0.0))
    # Subtracting a mean of a hundred times the spread costs four digits, unless the column is constant up to rounding.
    is_centred = bool(((offset2 <= 1e4 * variation) | (offset2 <= rounding)).all())
    constant = variation <= rounding
    lengths = np.sqrt(np.where(constant, 1.0, variation))
    unit = scatter / lengths[:, None] / lengths
    unit[constant] = unit[:, constant] = 0.0
    unit[constant, constant] = 1.0
    return lengths, unit, middle, constant, is_centred


def _measure_again(blocks: Callable[[], Iterable[Block]], middle: Vector, lengths: Vector, unit: Matrix) -> Matrix:
    """Return a root for columns of unit length, in which the directions that ``unit`` does not resolve are measured.

    Let V be the eigenvectors and ``lambda`` the singular values of the product, and V2 those with ``lambda`` below a
    thousandth of the largest. With ``C = V1' A' A V2 / lambda``, the combinations ``V2 - V1 C / lambda`` of columns are
    orthogonal to the others, and QR of the rows times these combinations gives a root R2 of what the product did not
    resolve. Then ``[[lambda V1' + C V2'], [R2 V2']]`` is a root. This reads the rows twice more, but multiplies them by
    V2 only, which is narrow for a few collinear columns.
    """
    squares, V = np.linalg.eigh(unit)
    weak = squares <= max(GRAM_SPREAD**2 * squares[-1], EPS64)
    lam, V1, V2 = np.sqrt(squares[~weak]), V[:, ~weak], V[:, weak]

    def times(directions: Matrix) -> Iterator[tuple[Block, Matrix]]:
        combinations = directions / lengths[:, None]
        for border, X in blocks():
            d = X.shape[1]
            along = X @ combinations[:d] + border[:, 1:] @ combinations[d:]
            yield (border, X), along - np.outer(border[:, 0], middle @ combinations)

    overlap = np.zeros_like(V2)
    for (border, X), along in times(V2):
        overlap += np.vstack([X.T @ along, border[:, 1:].T @ along]) - np.outer(middle, border[:, 0] @ along)
    C = (V1.T @ (overlap / lengths[:, None])) / lam[:, None]
    root = np.zeros((0, 1 + V2.shape[1]))
    for (border, _), along in times(V2 - V1 @ (C / lam[:, None])):
        root = fold_block(root, np.column_stack([border[:, :1], along]))
    return np.vstack([lam[:, None] * V1.T + C @ V2.T, root[1:, 1:] @ V2.T])


def product_of(blocks: Iterable[Block], d: int) -> Matrix:
    """Return ``A'A`` for ``A = [1 | X | Y]``, with one large product of the features per block."""
    XX, bX, bb = np.zeros((d, d)), np.zeros(()), np.zeros(())
    for border, X in blocks:
        square = X.T @ X
        XX += square if isinstance(square, np.ndarray) else square.toarray()
        bX = bX + (X.T @ border).T
        bb = bb + border.T @ border
    return np.block([[bb[:1, :1], bX[:1], bb[:1, 1:]], [bX[:1].T, XX, bX[1:].T], [bb[1:, :1], bX[1:], bb[1:, 1:]]])


def _cholesky(unit: Matrix) -> tuple[Matrix | None, float]:
    """Return the triangular factor and the reciprocal condition number; None and zero for a singular matrix."""
    try:
        factor: Matrix = np.asarray(np.linalg.cholesky(unit).T, dtype=np.float64)
    except np.linalg.LinAlgError:
        return None, 0.0
    return factor, float(lapack.dpocon(factor, np.abs(unit).sum(axis=0).max(initial=0.0))[0])


def _root_of_few_rows(X: Any, Y: Any, sqrt_weight: Vector | None) -> Matrix:
    """Return a root of no more rows than columns: the rows themselves, reflected."""
    shift = _typical_shift(X, Y, sqrt_weight)
    rows = np.column_stack([np.ones(len(X)), X, Y]).astype(np.float64, copy=False)
    rows[:, 1:] -= shift
    root = _reflect_rows(rows if sqrt_weight is None else rows * sqrt_weight[:, None])
    root[0, 1:] += root[0, 0] * shift
    return root


def fold_block(root: Matrix, block: Matrix) -> Matrix:
    """Return a root of the rows of a root and of further rows ``[1 | X | Y]``, which may be overwritten."""
    rows = np.vstack([root, block]) if len(root) else block
    if len(rows) <= rows.shape[1]:
        return _reflect_rows(rows)
    triangle: Matrix = np.linalg.qr(rows, mode="r")  # type: ignore[assignment]  # stubs miss "r"
    return triangle


def _reflect_rows(rows: Matrix) -> Matrix:
    """Reflect rows, in place, so that their first column is zero below the first row.

    >>> _reflect_rows(np.array([[1.0, 2.0], [1.0, 4.0]])).round(12) / np.sqrt(2.0)    # the weight, mean and scatter
    array([[1., 3.],
           [0., 1.]])
    """
    length = np.sqrt(rows[:, 0] @ rows[:, 0])
    # Householder's reflection I - 2 v v' / |v|^2 maps the first column to plus or minus its length, whichever does not
    # cancel in v. Here |v|^2 = 2 |v_0|.
    v = rows[:, 0] / length
    sign = np.copysign(1.0, v[0])
    v[0] += sign
    rows -= np.outer(v, (v @ rows) / abs(v[0]))
    rows[0] *= -sign
    rows[:, 0] = 0.0
    rows[0, 0] = length
    return rows


def merge_roots(one: Matrix, two: Matrix) -> Matrix:
    """Return the root of the rows of two roots, computed about the common mean so that an offset costs no digits."""
    weights = one[0, 0] ** 2 + two[0, 0] ** 2
    middle = one[0, 1:] * (one[0, 0] / weights) + two[0, 1:] * (two[0, 0] / weights)
    one, two = one.copy(), two.copy()
    for root in (one, two):
        root[0, 1:] -= root[0, 0] * middle
    merged = fold_block(one, two)
    merged[0, 1:] += merged[0, 0] * middle
    return merged


# Checks of rows -------------------------------------------------------------------------------------------------------


class WeightlessRows(ValueError):
    """The weights of all rows are zero. Everything else about the rows was checked before."""


class ExtremeValues(ValueError):
    """The values of a column are too large or too small.

    ``place`` is the number of the column among features and outputs, the number of features, and the size of the
    values. The message names the column if names are given, and the rows, such as "batch 3".

    >>> print(ExtremeValues((1, 2, 3e-70), ["rooms", "area"]))
    column 'area' of X must be zero or have values between 1e-60 and 1e+60 in size, got about 3e-70; divide it ...
    """

    def __init__(
        self, place: tuple[int, int, float], features: Sequence[str] = (), outputs: Sequence[str] = (), rows: str = ""
    ) -> None:
        self.place = place
        column, d, size = place
        names, at = (features, column) if column < d else (outputs, column - d)
        name = repr(str(names[at])) if at < len(names) else at
        shown = f"column {name} of X" if column < d else f"output {name} of Y"
        super().__init__(
            f"{rows + ': ' if rows else ''}{shown} must be zero or have values between "
            f"{VALUE_RANGE[0]:g} and {VALUE_RANGE[1]:g} in size, got about {size:.3g}; divide it by a constant first"
        )


def refuse_extremes(moments: Moments) -> None:
    """Raise ExtremeValues for columns whose values are too large or too small to compute with (``VALUE_RANGE``)."""
    largest = np.maximum(moments.root.max(axis=0), -moments.root.min(axis=0))[1:]  # squares could overflow
    sizes = largest / np.sqrt(moments.weight)
    extreme = np.flatnonzero((sizes > 0.0) & ((sizes < VALUE_RANGE[0]) | (sizes > VALUE_RANGE[1])))
    if extreme.size:
        column = int(extreme[0])
        raise ExtremeValues((column, moments.n_features, float(sizes[column])), moments.names)


def refuse_masked(name: str, values: Any) -> None:
    """Raise ValueError for masked entries, whose mask numpy would otherwise ignore."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries; fill them or drop their rows first")


def measured_eps(X: Any) -> float | Vector:
    """Return the machine epsilon of an array, or of each column of a frame (integers count as exact).

    >>> measured_eps(np.zeros(3, np.float32)) == float(np.finfo(np.float32).eps)
    True
    """
    if hasattr(X, "columns"):
        return np.array([_eps_of(dtype) for dtype in X.dtypes])
    return _eps_of(getattr(X, "dtype", None))


def _eps_of(dtype: Any) -> float:
    """Return the precision of a numpy, pandas, polars or arrow dtype by its name: Float32, float[pyarrow], >f4."""
    name = (dtype.name if isinstance(dtype, np.dtype) else str(dtype)).lower().removeprefix("sparse[")
    for kind, words in ((np.float16, ("float16", "halffloat", "half")), (np.float32, ("float32", "float[pyarrow]"))):
        if name.startswith(words):
            return float(np.finfo(kind).eps)
    return EPS64


def column_names(X: Any, *, integers: bool = False) -> tuple[Any, ...]:
    """Return the column names of a data frame if they are all strings, or all integers; otherwise an empty tuple."""
    names = tuple(getattr(X, "columns", ()))
    if integers and all(isinstance(name, int) for name in names):
        return names
    return tuple(str(name) for name in names) if all(isinstance(name, str) for name in names) else ()


def check_rows(X: Any, Y: Any, sample_weight: Any) -> tuple[Any, Any, Vector | None]:
    """Return X, Y and the weights as arrays without the rows of weight zero; X may also be a sparse matrix."""
    X = X if hasattr(X, "tocsr") else _as_rows(X, "X")
    Y = np.empty((X.shape[0], 0)) if Y is None else _as_rows(Y, "Y")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"X must have at least one row and one column, got shape {X.shape}")
    if Y.shape[0] != X.shape[0]:
        raise ValueError(f"X and Y must have the same number of rows, got {X.shape[0]} and {Y.shape[0]}")
    if sample_weight is None:
        return X, Y, None
    weight = check_weights(sample_weight, X.shape[0])
    if not weight.all():  # rows of weight zero are ignored, even if they contain NaN
        kept = np.flatnonzero(weight)
        X, Y, weight = X[kept], Y[kept], weight[kept]
    return X, Y, weight


def check_weights(sample_weight: Any, n: int) -> Vector:
    """Return the weights of n rows. Raise ValueError if they are invalid, and WeightlessRows if all are zero."""
    refuse_masked("sample_weight", sample_weight)
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"sample_weight must contain one number per row: {error}") from None
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weight.shape}")
    low, high, largest = *WEIGHT_RANGE, float(weight.max(initial=0.0))
    if 0.0 < largest < low or high < largest < np.inf:
        fix = f"between {low:g} and {high:g}, got {largest:g}; divide all weights by their maximum"
        raise ValueError(f"sample_weight must have a maximum {fix}")
    if not np.isfinite(weight.sum()) or (weight < 0).any() or not weight.any():
        kind = WeightlessRows if (weight == 0).all() else ValueError
        raise kind("sample_weight must be finite with a finite sum, at least 0, and not all zero")
    return weight


def _as_rows(values: Any, name: str) -> Any:
    refuse_masked(name, values)
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fc":
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must contain numbers without missing values: {error}") from None
    if array.ndim == 1 and name == "Y":
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"{name} must have rows and columns, got an array of shape {array.shape}")
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must be real, got dtype {array.dtype}; complex data not supported")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _describe_not_finite(X: Any, Y: Any) -> str:
    for name, rows in (("X", X), ("Y", Y)):
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            i, j = bad[0]
            return (
                f"{name} must be finite, got {rows[i, j]} in row {i}, column {j} "
                f"(entries with NaN or infinity: {len(bad)}); impute or drop them first"
            )
    return f"X and Y must have values up to {VALUE_RANGE[1]:g}, got values whose squares overflow float64; rescale them"

"""Moments: a mergeable summary of a data set in D x D numbers, sufficient for SpAR.

For ``A = [1 | X | Y]`` with row weights, Moments stores a root R with ``R'R = A'A``. Moments of batches, or of parts on
a cluster, can be added, and the rows are not needed again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from pyspar.core.arrays import EPS64, VALUE_RANGE, Matrix, Vector
from pyspar.core.extremes import ExtremeValues
from pyspar.core.roots import GRAM_BLUR, WeightedRows, cut_rows, gram_root, merge_roots, qr_root, root_sum_squares

Solver = Literal["auto", "gram", "qr"]
WeightMeaning = Literal["counts", "importance"]
"""The meaning of a row's weight: the number of copies of the row, or its importance relative to other rows."""

ROUNDING_SLACK = 8.0
"""The bound on the rounding error of a column, in eps times its length. Storing a column costs at most half an eps."""
CONSTANT_SHARE = ROUNDING_SLACK * EPS64
"""A feature whose spread is below this share of its root mean square is constant up to rounding."""


class Marginals(NamedTuple):
    """The distribution of each of D features by itself.

    ``spread`` is zero for constant features. ``tails`` (2, D) are skewness and kurtosis: the means of the third and
    fourth powers of the standardised values.
    """

    weight: float
    mean: Vector
    spread: Vector
    tails: Matrix

    def unit(self) -> tuple[Vector, Vector]:
        """Return what is subtracted from each feature, and the factor that it is multiplied by, to standardise it."""
        varies = self.spread > 0.0
        return self.mean, np.where(varies, 1.0 / np.where(varies, self.spread, 1.0), 0.0)

    def merge(self, other: Marginals) -> Marginals:
        """Return the distribution of the rows of both."""
        weight = self.weight + other.weight
        share = np.array([self.weight, other.weight]) / weight
        means, spreads = np.array([self.mean, other.mean]), np.array([self.spread, other.spread])
        mean = share @ means
        steps = means - mean
        spread = np.sqrt(share @ (np.square(spreads) + np.square(steps)))
        unit = np.where(spread > 0.0, spread, 1.0)
        s, e = spreads / unit, steps / unit
        skewness, kurtosis = np.array([self.tails, other.tails]).swapaxes(0, 1)
        third = share @ (skewness * s**3 + 3.0 * s**2 * e + e**3)
        fourth = share @ (kurtosis * s**4 + 4.0 * skewness * s**3 * e + 6.0 * s**2 * e**2 + e**4)
        return Marginals(weight, mean, spread, np.array([third, fourth]))


@dataclass(frozen=True, eq=False)
class Moments:
    """The mergeable statistic of ``[1 | X | Y]``.

    Attributes
    ----------
    root : array of shape (at most 1 + D + K, 1 + D + K)
        R with ``R'R = A'A``. The first column is zero below the first row.
    n_features : int
        D. The K columns after the features are the outputs.
    rows : int
        The number of rows that were read.
    weight : float
        The sum of the weights: N in the paper (M for a target).
    weight2 : float
        The sum of the squared weights; ``weight**2 / weight2`` is the effective number of rows.
    eps : array of shape (D,)
        The machine epsilon of the dtype in which each feature was *measured*.
    blur : float
        Directions shorter than this share of the rows' length are not resolved. Zero unless ``solver="gram"``.
    names : tuple of str
        The names of the features, if the rows had names.
    tails : array of shape (2, D), optional
        Skewness and kurtosis of each feature: the means of the third and fourth powers of the standardised values. Zero
        for constant features. None if unknown.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 2.0]])
    >>> whole = Moments.of(X)
    >>> halves = Moments.of(X[:1]) + Moments.of(X[1:])
    >>> np.allclose(whole.mean, [2, 2]), np.allclose(whole.second_moment(), halves.second_moment())
    (True, True)
    """

    root: Matrix
    n_features: int
    rows: int
    weight: float
    weight2: float
    eps: Vector
    blur: float = 0.0
    names: tuple[str, ...] = ()
    tails: Matrix | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        Y: Any = None,
        sample_weight: Any = None,
        *,
        solver: Solver = "auto",
        eps: float | Vector | None = None,
    ) -> Moments:
        """Summarise rows. A weight of 2 equals two copies of the row.

        ``solver="auto"`` computes the Gram matrix once and, for float64, again if the first product lost digits.
        ``"gram"`` computes it exactly once. ``"qr"`` processes blocks of rows by QR (see ``pyspar.core.roots``).
        ``eps`` is the relative precision of the features, one number or one per feature. Set it if the dtype is finer
        than the data (bfloat16 stored as float32).

        The values of each column must be zero, or between 1e-60 and 1e60 in size.
        """
        precision, names = measured_eps(X) if eps is None else eps, column_names(X)
        data = _as_weighted_rows(X, Y, sample_weight)
        measured = np.broadcast_to(np.asarray(precision, dtype=np.float64), (data.X.shape[1],))
        if not ((measured > 0.0) & (measured < 1.0)).all():
            raise ValueError(f"eps must be between 0 and 1, got {eps!r}")
        if solver == "qr" or (solver == "auto" and data.n_rows <= data.n_columns):
            root = qr_root(data)
        elif solver in ("auto", "gram"):
            root = gram_root(data, refine=solver == "auto" and measured.min() <= EPS64)
        else:
            raise ValueError(f"solver must be 'auto', 'gram' or 'qr', got {solver!r}")
        if not np.isfinite(root).all():
            raise ValueError(_describe_not_finite(data))
        weight = weight2 = float(data.n_rows)
        if sample_weight is not None:
            weights = np.asarray(sample_weight, dtype=np.float64)
            weight, weight2 = float(weights.sum()), float(np.square(weights).sum())
        blur = GRAM_BLUR if solver == "gram" else 0.0
        moments = cls(root, len(measured), data.n_rows, weight, weight2, measured, blur, names)
        refuse_extremes(moments)
        return replace(moments, tails=_measure_tails(data, moments.describe_features()))

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
        known = self.tails is not None and other.tails is not None
        tails = self.describe_features().merge(other.describe_features()).tails if known else None
        return Moments(
            merge_roots(self.root, other.root),
            self.n_features,
            rows=self.rows + other.rows,
            weight=self.weight + other.weight,
            weight2=self.weight2 + other.weight2,
            eps=np.maximum(self.eps, other.eps),
            blur=max(self.blur, other.blur),
            names=self.names or other.names,
            tails=tails,
        )

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
        return np.asarray(root_sum_squares(self.root_about(None)) / np.sqrt(self.weight))

    def without_outputs(self) -> Moments:
        """Return the Moments of the features alone."""
        return self.with_root(self.root[:, : self.n_features + 1])

    def with_root(self, root: Matrix) -> Moments:
        """Return the same Moments with another root. ``replace`` would be slower than many matrix products."""
        return Moments(
            root, self.n_features, self.rows, self.weight, self.weight2, self.eps, self.blur, self.names, self.tails
        )

    def describe_features(self) -> Marginals:
        """Return the distribution of each feature by itself; skewness and kurtosis must be known."""
        d = self.n_features
        length, spread = self.column_lengths()[:d], root_sum_squares(self.root[1:, 1 : d + 1])
        spread = np.where(spread > CONSTANT_SHARE * length, spread / np.sqrt(self.weight), 0.0)
        return Marginals(self.weight, self.mean[:d], spread, np.zeros((2, d)) if self.tails is None else self.tails)

    def discounted(self, share: float) -> Moments:
        """Return the Moments of the same rows with every weight multiplied by a share."""
        weight, weight2 = self.weight * share, self.weight2 * share**2
        return replace(self, root=self.root * np.sqrt(share), weight=weight, weight2=weight2)

    def counted(self, meaning: WeightMeaning) -> Moments:
        """Return the Moments with weights that sum to the effective number of rows.

        With "importance" the number is Kish's, the squared sum of the weights over the sum of their squares.

        >>> import numpy as np
        >>> halves = Moments.of(np.ones((4, 1)), sample_weight=np.full(4, 0.5))
        >>> halves.counted("counts").weight, halves.counted("importance").weight
        (2.0, 4.0)
        """
        return self if meaning == "counts" else self.discounted(self.weight / self.weight2)

    def subtract_prediction(self, coef: Matrix, intercept: Vector) -> Moments:
        """Return the Moments of the same rows with ``Y - X coef - intercept`` in place of Y.

        An output that the prediction explains up to rounding becomes zero.
        """
        d = self.n_features
        root = self.root.copy()
        root[:, d + 1 :] -= root[:, 1 : d + 1] @ coef + np.outer(root[:, 0], intercept)
        lengths = self.column_lengths()
        subtracted = lengths[:d] @ np.abs(coef) + np.abs(intercept) * np.sqrt(self.weight)
        explained = root_sum_squares(root[:, d + 1 :]) <= 8.0 * EPS64 * (lengths[d:] + subtracted)
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
        return root_sum_squares(self.root[:, 1:])

    def rounding(self) -> Vector:
        """Return the bound on the rounding error of each feature's column as it was measured."""
        return np.asarray(ROUNDING_SLACK * self.eps * self.column_lengths()[: self.n_features])

    def spread_about(self, origin: Vector) -> Vector:
        """Return the root mean square of each feature about an origin."""
        return np.asarray(root_sum_squares(self.without_outputs().root_about(origin)) / np.sqrt(self.weight))

    def second_moment(self) -> Matrix:
        """Return ``X'X`` of the features (not divided by N)."""
        R = self.root[:, 1 : self.n_features + 1]
        return R.T @ R


def _measure_tails(data: WeightedRows, features: Marginals) -> Matrix:
    """Return skewness and kurtosis of each feature, block by block."""
    mean, factor = features.unit()
    # Centring and scaling double the cost, so they are omitted where possible. For few values, the check itself costs
    # as much. Without centring, the relative error grows by (mean / spread)**4, here at most 81: less than two digits.
    scale = data.X.size < 20_000
    centre = scale or (np.abs(mean) * factor > 3.0).any()
    powers = np.zeros((2, len(mean)))
    for part in cut_rows(data.n_rows, len(mean)):
        rows = data.X[part].astype(np.float64, copy=False)
        rows = rows - mean if centre else rows
        rows = rows * factor if scale else rows
        squares = weighted = rows * rows
        if data.sqrt_weight is not None:
            weighted = squares * (np.square(data.sqrt_weight[part, None]) / features.weight)
        powers += np.einsum("ij,ij->j", weighted, rows), np.einsum("ij,ij->j", weighted, squares)
    if data.sqrt_weight is None:
        powers /= features.weight
    if not scale:
        powers *= factor**3, factor**4
    if not centre:
        step = mean * factor
        powers[0] -= step * (3.0 + step**2)
        powers[1] -= step * (4.0 * powers[0] + step * (6.0 + step**2))
    return powers


def refuse_extremes(moments: Moments) -> None:
    """Raise ExtremeValues for columns whose values are too large or too small to compute with (``VALUE_RANGE``)."""
    low, high = VALUE_RANGE
    sizes = np.abs(moments.root[:, 1:]).max(axis=0) / np.sqrt(moments.weight)  # squares would overflow or underflow
    extreme = np.flatnonzero((sizes > 0.0) & ((sizes < low) | (sizes > high)))
    if extreme.size:
        column = int(extreme[0])
        raise ExtremeValues(column, moments.n_features, float(sizes[column])).describe(moments.names)


class WeightlessRows(ValueError):
    """The weights of all rows are zero. Everything else about the rows was checked before."""


def refuse_masked(name: str, values: Any) -> None:
    """Raise ValueError for masked entries, whose mask numpy would otherwise ignore."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries; fill them or drop their rows first")


def measured_eps(X: Any) -> float | Vector:
    """Return the machine epsilon of an array, or of each column of a frame (integers count as exact).

    >>> import numpy as np
    >>> measured_eps(np.zeros(3, np.float32)) == float(np.finfo(np.float32).eps)
    True
    """
    if hasattr(X, "columns"):
        return np.array([_eps_of(dtype) for dtype in X.dtypes])
    return _eps_of(getattr(X, "dtype", None))


def _eps_of(dtype: Any) -> float:
    """Return the precision of a numpy, pandas, polars or arrow dtype by its name: Float32, float[pyarrow], >f4."""
    name = (dtype.name if isinstance(dtype, np.dtype) else str(dtype)).lower()
    for kind, words in ((np.float16, ("float16", "halffloat", "half")), (np.float32, ("float32", "float[pyarrow]"))):
        if name.startswith(words):
            return float(np.finfo(kind).eps)
    return EPS64


def column_names(X: Any) -> tuple[str, ...]:
    """Return the column names of a data frame, or an empty tuple if they are not all strings."""
    names = tuple(getattr(X, "columns", ()))
    return tuple(str(name) for name in names) if all(isinstance(name, str) for name in names) else ()


def _as_weighted_rows(X: Any, Y: Any, sample_weight: Any) -> WeightedRows:
    X = _as_rows(X, "X")
    Y = np.empty((X.shape[0], 0)) if Y is None else _as_rows(Y, "Y")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"X must have at least one row and one column, got shape {X.shape}")
    if Y.shape[0] != X.shape[0]:
        raise ValueError(f"X and Y must have the same number of rows, got {X.shape[0]} and {Y.shape[0]}")
    if sample_weight is None:
        return WeightedRows(X, Y)
    refuse_masked("sample_weight", sample_weight)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (X.shape[0],):
        raise ValueError(f"sample_weight must have shape ({X.shape[0]},), got {weight.shape}")
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total) or (weight < 0).any() or not weight.any():
        error = WeightlessRows if (weight == 0).all() else ValueError
        raise error("sample_weight must be finite with a finite sum, at least 0, and not all zero")
    if not weight.all():  # rows of weight zero are ignored, even if they contain NaN
        X, Y, weight = X[weight > 0], Y[weight > 0], weight[weight > 0]
    return WeightedRows(X, Y, np.sqrt(weight))


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


def _describe_not_finite(data: WeightedRows) -> str:
    for name, rows in (("X", data.X), ("Y", data.Y)):
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            i, j = bad[0]
            return (
                f"{name} must be finite, got {rows[i, j]} in row {i}, column {j} "
                f"(entries with NaN or infinity: {len(bad)}); impute or drop them first"
            )
    return f"X and Y must have values up to {VALUE_RANGE[1]:g}, got values whose squares overflow float64; rescale them"

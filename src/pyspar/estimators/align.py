"""Undo a changed measurement: map each numeric column of a target to the mean and spread that it had in the source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.estimators.validation import compare_columns
from pyspar.text import list_some

CONSTANT_SHARE = 1e-12
"""A column whose spread is below this share of its size is constant up to rounding."""
Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Number of known values, mean, sum of squared deviations, smallest and largest value of each column.

    They are NaN for a column that is not numeric.
    """

    rows: int
    known: Vector
    mean: Vector
    squares: Vector
    low: Vector
    high: Vector
    names: tuple[str, ...]

    @classmethod
    def of(cls, rows: Any, role: str) -> ColumnStatistics:
        """Describe an array, a data frame, Moments, or an iterable of arrays or frames. Missing values are ignored."""
        if isinstance(rows, Moments):
            d, mean, spread = rows.n_features, rows.mean[: rows.n_features], rows.spread[: rows.n_features]
            # The mean of the squares equals the mean of the values only for columns of zeros and ones.
            is_binary = np.abs(spread**2 + mean**2 - mean) <= 1e-9 * np.abs(mean)
            low, high = np.where(is_binary, 0.0, np.nan), np.where(is_binary, 1.0, np.nan)
            return cls(rows.rows, np.full(d, rows.weight), mean, rows.weight * spread**2, low, high, rows.names)
        if not _is_table(rows) and (isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable)):
            raise InputError(f"the {role} must be an array or a data frame, got {type(rows).__name__}")
        total: ColumnStatistics | None = None
        for number, batch in enumerate([rows] if _is_table(rows) else rows):
            name = role if batch is rows else f"batch {number} of the {role}"
            part = cls._of_table(batch, name)
            if total is not None:
                part.check_columns(total, name, "batch 0")
            total = part if total is None else total.merge(part)
        if total is None:
            raise InputError(f"the {role} must have at least one row, got none; it is empty or an exhausted iterator")
        return total

    @classmethod
    def _of_table(cls, rows: Any, role: str) -> ColumnStatistics:
        if not _is_table(rows) or hasattr(rows, "toarray"):
            raise TypeError(f"the {role} must be a dense array or data frame, got {type(rows).__name__} (Sparse data?)")
        rows = rows if hasattr(rows, "columns") else np.asarray(rows)
        if len(rows.shape) != 2:
            raise InputError(
                f"Expected 2D array, got shape {rows.shape} as the {role}. Reshape your data: case by case"
            )
        if rows.shape[1] == 0:
            raise InputError(f"Found 0 feature(s) (shape=({len(rows)}, 0)) while a minimum of 1 is required.")
        values = np.full((5, rows.shape[1]), np.nan)
        for i, column in enumerate(_columns_of(rows)):
            if _is_number(column):
                numbers = _as_floats(column)
                if np.isinf(numbers).any():
                    raise InputError(f"Input contains infinity in column {i} of the {role}; drop or impute such values")
                numbers = numbers[~np.isnan(numbers)]
                n = values[0, i] = len(numbers)
                if n:
                    values[1:, i] = numbers.mean(), n * numbers.var(), numbers.min(), numbers.max()
        parts: Any = (rows.shape[0], *values, tuple(map(str, getattr(rows, "columns", ()))))
        return cls(*parts)

    def merge(self, other: ColumnStatistics) -> ColumnStatistics:
        """Return the statistics of the rows of both."""
        known = self.known + other.known
        share = other.known / np.maximum(known, 1.0)
        first = np.where(np.isnan(self.mean), other.mean, self.mean)
        step = np.where(np.isnan(other.mean), 0.0, other.mean - first)
        between = step**2 * self.known * share
        squares = np.nansum([self.squares, other.squares, between], axis=0) + 0.0 * known  # NaN if not numeric
        low, high = np.fmin(self.low, other.low), np.fmax(self.high, other.high)
        return ColumnStatistics(self.rows + other.rows, known, first + step * share, squares, low, high, self.names)

    @property
    def spread(self) -> Vector:
        """The standard deviation of each column; zero for a column that is constant up to rounding."""
        spread = np.sqrt(self.squares / np.maximum(self.known, 1.0))
        return np.asarray(np.where(spread > CONSTANT_SHARE * (np.abs(self.mean) + spread), spread, 0.0))

    def is_code_like(self, other: ColumnStatistics) -> NDArray[np.bool_]:
        """Return whether a column has two values, such as 0 and 1, and no others in another set of rows."""
        # This is so if the variance is the largest possible between these values.
        gaps = [(s.mean - self.low) * (self.high - s.mean) - s.spread**2 for s in (self, other)]
        return np.asarray(np.abs(gaps).max(axis=0) <= 1e-9 * np.square(self.high - self.low))

    def check(self, role: str) -> None:
        """Raise InputError for too few rows, and for numeric columns without a known value."""
        if self.rows < 2:
            raise InputError(f"Found {self.rows} sample(s) in the {role} while a minimum of 2 is required for a spread")
        if (self.known == 0.0).any():
            names = self._names(self.known == 0.0)
            raise InputError(f"the {role} has no known value in {names}; drop or impute these columns")

    def check_columns(self, other: ColumnStatistics, role: str, of: str) -> None:
        """Raise InputError if the columns differ from those of other rows."""
        compare_columns(other.names, len(other.mean), self.names, len(self.mean), role, of)
        is_mixed = np.isnan(self.known) != np.isnan(other.known)
        if is_mixed.any():
            raise InputError(f"{self._names(is_mixed)} must be numeric in {role} and {of} or in none; convert them")

    def _names(self, chosen: Any) -> str:
        return list_some(self.names[i] if self.names else f"column {i}" for i in np.flatnonzero(chosen))


class ColumnAligner(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Map the numeric columns of a target to the mean and spread of the source.

    ``fit`` reads the source, ``adapt`` the target, and ``transform`` maps rows of the target. Before ``adapt`` it
    returns rows as they are. Use it if the same population was measured in another way. If the population changed, do
    not use it. :class:`pyspar.TargetCorrection` finds out with ten labels.

    Columns of text, categories, booleans and dates are not changed, nor are constant columns, and columns that have the
    same two values in source and target. Missing values are ignored and remain missing. Data frames remain data frames.
    After ``adapt`` a value z becomes ``scale_ * z + shift_``.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [3.0]])
    >>> ColumnAligner().fit(X).adapt(10.0 * X + 5.0).transform([[15.0]])
    array([[1.]])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the source: an array, a data frame, Moments, or an iterable of arrays or frames. y is ignored."""
        source = ColumnStatistics.of(X, "source")
        source.check("source")
        if _is_table(X):
            validate_data(self, X, skip_check_array=True)  # sets the number and the names of the columns
        else:
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = len(source.mean)
            if source.names:
                self.feature_names_in_ = np.array(source.names, dtype=object)
        self.source_ = source
        self.shift_, self.scale_ = np.zeros(len(source.mean)), np.ones(len(source.mean))
        return self

    def adapt(self, Z: Any) -> Self:
        """Read the target, in the same forms as the source."""
        check_is_fitted(self)
        target = ColumnStatistics.of(Z, "target")
        target.check_columns(self.source_, "the target", "the source")
        target.check("target")
        source = self.source_
        with np.errstate(invalid="ignore"):
            is_mapped = (source.spread > 0.0) & (target.spread > 0.0) & ~source.is_code_like(target)
        scale = np.where(is_mapped, source.spread / np.where(is_mapped, target.spread, 1.0), 1.0)
        self.scale_, self.shift_ = scale, np.where(is_mapped, source.mean - scale * target.mean, 0.0)
        return self

    def transform(self, X: Any) -> Any:
        """Return rows of the target with mapped columns, as a data frame if they are one."""
        check_is_fitted(self)
        changed = np.flatnonzero((self.scale_ != 1.0) | (self.shift_ != 0.0))
        if not hasattr(X, "columns"):
            if not np.isnan(self.source_.known).any():
                X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
                return (X * self.scale_ + self.shift_).astype(X.dtype)
            X = validate_data(self, X, reset=False, dtype=None, ensure_all_finite=False).copy()
            for i in changed:
                X[:, i] = _as_floats(X[:, i]) * self.scale_[i] + self.shift_[i]
            return X
        validate_data(self, X, reset=False, skip_check_array=True)
        columns = _columns_of(X)
        mapped = {i: columns[i] * float(self.scale_[i]) + float(self.shift_[i]) for i in changed}
        if hasattr(X, "with_columns"):  # polars
            return X.with_columns(*mapped.values())
        X = X.copy(deep=False)
        for i, column in mapped.items():
            X.isetitem(i, column)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class AlignedRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """A fitted model behind a fitted :class:`ColumnAligner`. It is final: ``fit`` and ``clone`` return it unchanged."""

    def __init__(self, model: Any, aligner: ColumnAligner) -> None:
        self.model = model
        self.aligner = aligner

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the regressor unchanged."""
        return self

    def predict(self, X: Any) -> Any:
        """Predict for target rows."""
        return self.model.predict(self.aligner.transform(X))

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        return self


def align(model: Any, *, source: Any, target: Any) -> AlignedRegressor:
    """Return a fitted regressor that maps target rows to the source's measurement before the model predicts.

    It assumes that the same population is measured differently. If the population changed, the result can be much worse
    than the model. With ten labels, ``TargetCorrection({"trained": model, "aligned": aligned})`` chooses between both.

    Parameters
    ----------
    model : any fitted regressor or pipeline with ``predict``; it is not changed, and the result refers to it
    source, target : array, data frame, Moments, or iterable of arrays or frames, as for the model's ``predict``

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = LinearRegression().fit(X, X[:, 0])
    >>> Z = 2.0 * X + 1.0  # the same rows, measured by another instrument
    >>> bool(np.allclose(align(model, source=X, target=Z).predict(Z), X[:, 0]))
    True
    """
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise TypeError(f"model must be a fitted regressor with predict, got {model!r}")
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    return AlignedRegressor(model, ColumnAligner().fit(source).adapt(target))


def _is_table(rows: Any) -> bool:
    """Return whether data are rows in memory rather than an iterable of batches or Moments."""
    if isinstance(rows, (list, tuple)):
        return not rows or (np.ndim(rows[0]) <= 1 and not hasattr(rows[0], "columns"))
    return hasattr(rows, "shape") or hasattr(rows, "__array__")


def _columns_of(rows: Any) -> list[Any]:
    if hasattr(rows, "with_columns"):  # polars
        return list(rows.get_columns())
    if hasattr(rows, "columns"):
        return [rows.iloc[:, i] for i in range(rows.shape[1])]
    return list(np.asarray(rows).T)


def _is_number(column: Any) -> bool:
    """Return whether a column is numeric. A column of objects is if each of them is a number or missing."""
    if hasattr(column.dtype, "is_numeric"):  # polars
        return bool(column.dtype.is_numeric())
    kind = getattr(column.dtype, "kind", "O")
    if kind == "c":
        raise ValueError("Complex data not supported; pass real numbers")
    if kind == "O" and isinstance(column, np.ndarray):
        return all(value is None or (isinstance(value, Real) and not isinstance(value, bool)) for value in column)
    return kind in "iuf"


def _as_floats(column: Any) -> Vector:
    """Return a numeric column with NaN for missing values."""
    if hasattr(column, "iloc"):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column, dtype=np.float64)

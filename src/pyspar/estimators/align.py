"""Undo a changed measurement: map each numeric column of a target to the mean and spread that it had in the source."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pyspar.core.moments import EPS64, Matrix, Moments, Vector, column_names, measured_eps, refuse_masked
from pyspar.errors import InputError
from pyspar.estimators.labels import check_model
from pyspar.estimators.validation import accepts_nan, check_order, compare_columns, has_numbers, is_missing
from pyspar.sources import kind_of, refuse_large
from pyspar.text import list_some

CONSTANT_SHARE = 1e-12  # a column whose spread is below this share of its size is constant up to rounding
MAX_CODES = 24  # a column with more distinct values does not contain codes of categories, such as months or hours


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Mean and spread of each column, NaN if it is not numeric.

    ``codes`` has the distinct values of each column, followed by NaN; only NaN if they are too many or unknown.
    """

    mean: Vector
    spread: Vector
    codes: Matrix  # MAX_CODES x columns
    names: tuple[Any, ...]  # text, or integers
    eps: Vector  # the precision of each column

    @classmethod
    def of(cls, rows: Any, role: str) -> ColumnStatistics:
        """Describe an array, a data frame or Moments. Missing values are ignored."""
        refuse_masked(f"the {role}", rows)
        is_moments = isinstance(rows, Moments)
        if not is_moments and not hasattr(rows, "columns"):
            rows = check_array(rows, ensure_all_finite=False, ensure_min_samples=0, input_name=f"the {role}")
        columns = [] if is_moments else _columns_of(rows)
        n, d = (rows.rows, rows.n_features) if is_moments else rows.shape
        if n < 2:
            raise InputError(f"Found {n} sample(s) in the {role} while a minimum of 2 is required for a spread")
        names = rows.names if is_moments else column_names(rows, integers=True)
        if repeated := [name for name, count in Counter(names).items() if count > 1]:
            raise InputError(f"the {role} has duplicate column names {list_some(repeated)}; rename the columns")
        mean, spread, codes = np.full(d, np.nan), np.full(d, np.nan), np.full((MAX_CODES, d), np.nan)
        if is_moments:
            mean, spread = rows.mean[:d], rows.spread[:d]
            # The mean of the squares equals the mean of the values only for columns of zeros and ones.
            codes[:2, np.abs(spread**2 + mean**2 - mean) <= 1e-9 * np.abs(mean)] = [[0.0], [1.0]]
        for i, column in enumerate(columns):
            if _is_numeric(column):
                numbers = _as_floats(column)
                numbers = numbers[~np.isnan(numbers)]
                if not len(numbers) or np.isinf(numbers).any():
                    problem = "contains infinity" if len(numbers) else "has no known value"
                    raise InputError(
                        f"column {repr(names[i]) if names else i} of the {role} {problem}; drop or impute it"
                    )
                refuse_large(f"the {role}", numbers)
                mean[i], spread[i], codes[:, i] = numbers.mean(), numbers.std(), _codes_of(numbers)
        eps = np.full(d, rows.eps if is_moments else measured_eps(rows))
        return cls(mean, np.where(spread <= CONSTANT_SHARE * np.abs(mean), 0.0, spread), codes, names, eps)


class ColumnAligner(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Map the numeric columns of a target to the mean and spread of the source.

    ``fit`` reads the source, ``adapt`` the target, and ``transform`` maps rows of the target. Use it only if the same
    population was measured in another way. :class:`pyspar.TargetCorrection` can test this with ten labels.

    Constant columns and those of text, categories, booleans and dates are not changed, nor is a numeric column with at
    most 24 distinct values in the source and no others in the target. These are probably codes of categories, such as
    months. Of Moments, only columns of zeros and ones are recognised. Missing values are ignored and remain missing.
    Data frames remain data frames. float32 remains float32 if the source has it too, and otherwise becomes float64.
    After ``adapt`` a value z becomes ``scale_ * z + shift_``.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [3.0]])
    >>> ColumnAligner().fit(X).adapt(10.0 * X + 5.0).transform([[15.0]])
    array([[1.]])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the source: an array, a data frame or Moments. y is ignored."""
        source = ColumnStatistics.of(X, "source")
        self.__dict__.pop("feature_names_in_", None)
        if source.names and isinstance(source.names[0], str):
            self.feature_names_in_ = np.array(source.names, dtype=object)
        self._column_order, self.source_, self.n_features_in_ = source.names, source, len(source.mean)
        self.shift_, self.scale_ = np.zeros(len(source.mean)), np.ones(len(source.mean))
        return self

    def adapt(self, Z: Any) -> Self:
        """Read the target, in the same forms as the source."""
        check_is_fitted(self)
        source, target = self.source_, ColumnStatistics.of(Z, "target")
        compare_columns(source.names, len(source.mean), target.names, len(target.mean), "the target")
        if mixed := np.flatnonzero(np.isnan(target.mean) != np.isnan(source.mean)).tolist():
            names = list_some(target.names[i] if target.names else f"column {i}" for i in mixed)
            raise InputError(f"{names} must be numeric in the target and the source or in none; convert them")
        is_known = (target.codes[:, None] == source.codes).any(axis=1)  # values that occur in the source
        has_codes = (is_known | np.isnan(target.codes)).all(axis=0) & is_known.any(axis=0)
        is_mapped = (source.spread > 0.0) & (target.spread > 0.0) & ~has_codes
        scale = np.where(is_mapped, source.spread / np.where(is_mapped, target.spread, 1.0), 1.0)
        self.scale_, self.shift_ = scale, np.where(is_mapped, source.mean - scale * target.mean, 0.0)
        return self

    def transform(self, X: Any) -> Any:
        """Return rows of the target with mapped columns, as a data frame if they are one."""
        check_is_fitted(self)
        refuse_masked("X", X)
        if not hasattr(X, "columns"):
            X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
            is_single = X.dtype == np.float32 and self.source_.eps.min() > EPS64
            return (X * self.scale_ + self.shift_).astype(np.float32 if is_single else np.float64)
        columns, changed = _columns_of(X), self._mapped()
        validate_data(self, X, reset=False, skip_check_array=True)
        check_order(self, X, "X")
        if text := [X.columns[i] for i in changed if not (_is_numeric(columns[i]) or all(map(is_missing, columns[i])))]:
            raise InputError(f"{list_some(text)} must be numeric in X, as in adapt; convert them")
        scale, shift, is_single = self.scale_.tolist(), self.shift_.tolist(), (self.source_.eps > EPS64).tolist()
        mapped = {i: _map_column(columns[i], scale[i], shift[i], is_single[i]) for i in changed}
        if hasattr(X, "with_columns"):  # polars
            return X.with_columns(*mapped.values())
        X = X.copy(deep=False)
        for i, column in mapped.items():
            X.isetitem(i, column)
        return X

    def _mapped(self) -> Any:  # the positions of the columns that change
        return np.flatnonzero((self.scale_ != 1.0) | (self.shift_ != 0.0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
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

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        mapped, names = self.aligner._mapped(), self.aligner.source_.names or range(self.aligner.n_features_in_)
        columns = f"{len(mapped)} of {len(names)} columns mapped: {list_some(names[i] for i in mapped)}"
        return f"AlignedRegressor({self.model!r}; {columns})"

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = accepts_nan(self.model)
        return tags

    def __sklearn_clone__(self) -> Self:
        return self


def align(model: Any, *, source: Any, target: Any) -> AlignedRegressor:
    """Return a fitted regressor that maps target rows to the source's measurement before the model predicts.

    It assumes that the same population is measured differently. If the population changed, the result can be much worse
    than the model. With ten labels, ``TargetCorrection({"trained": model, "aligned": aligned})`` chooses between both.

    Parameters
    ----------
    model : any fitted regressor or pipeline with ``predict``; it is not changed, and the result refers to it
    source, target : array, data frame or Moments, with the columns of the model's ``predict``

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = LinearRegression().fit(X, X[:, 0])
    >>> Z = 2.0 * X + 1.0  # the same rows, measured by another instrument
    >>> bool(np.allclose(align(model, source=X, target=Z).predict(Z), X[:, 0]))
    True
    """
    check_model(model)
    if not hasattr(model, "predict"):
        raise TypeError(f"model must have predict, got {type(model).__name__}; networks need pyspar.nn.align")
    return AlignedRegressor(model, ColumnAligner().fit(source).adapt(target))


def _columns_of(rows: Any) -> list[Any]:
    if kind_of(rows) == "dask":
        raise TypeError(f"expected rows in memory, got a Dask {type(rows).__name__}; call compute() first")
    if hasattr(rows, "with_columns"):  # polars
        return list(rows.get_columns())
    if hasattr(rows, "columns"):
        rows = rows.infer_objects()  # numbers with the dtype object
        return [rows.iloc[:, i] for i in range(rows.shape[1])]
    return list(rows.T)


def _is_numeric(column: Any) -> bool:
    if hasattr(column.dtype, "is_numeric"):  # polars
        return bool(column.dtype.is_numeric())
    return column.dtype.kind in "iuf" or has_numbers(column)


def _as_floats(column: Any) -> Vector:
    """Return a numeric column with NaN for missing values."""
    if hasattr(column, "iloc"):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column, dtype=np.float64)


def _map_column(column: Any, scale: float, shift: float, is_single: bool) -> Any:
    """Return a column of a frame times a scale plus a shift. It is computed in float64, as for arrays."""
    eps, is_polars = measured_eps(column), hasattr(column, "cast")
    if eps > EPS64 or (not is_polars and column.dtype.kind == "O"):
        plain = column.cast(float) if is_polars else type(column)(_as_floats(column), column.index, name=column.name)
        mapped = plain * scale + shift
        is_single &= eps == np.finfo(np.float32).eps  # float16 may be too small for the values of the source
        return getattr(mapped, "cast" if is_polars else "astype")(column.dtype) if is_single else mapped
    return column * scale + shift


def _codes_of(numbers: Vector) -> Vector:
    """Return the distinct values of a column, followed by NaN; only NaN if there are more than ``MAX_CODES``."""
    few = len(np.unique(numbers[:1000])) <= MAX_CODES  # sorting a long column with many values would be slow
    distinct = distinct if few and len(distinct := np.unique(numbers)) <= MAX_CODES else numbers[:0]
    return np.append(distinct, np.full(MAX_CODES - len(distinct), np.nan))

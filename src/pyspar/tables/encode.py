"""The steps of ours in the preprocessing: raw columns in, plain ones out.

scikit-learn's own steps fill, scale and encode; these only read what a file can hold, so that a saved pipeline takes a
raw data frame. Their state is numpy arrays, strings and numbers, which skops saves.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer

from pyspar.errors import InputError
from pyspar.sources.files.names import few, meant
from pyspar.tables.values import as_days, as_numbers, as_words, date_form

MISSING = "(missing)"
"""The category of rows without a value, where the source has such rows."""

_YEAR = 365.2425
_PARTS = ("days", "year_sin", "year_cos", "weekday_sin", "weekday_cos", "hour_sin", "hour_cos")


class TableEncoder(ColumnTransformer):  # type: ignore[misc]  # sklearn is untyped
    """The preprocessing of a table; a table without its columns is told which are missing, and what to do."""

    def transform(self, X: Any, **params: Any) -> Any:
        """Encode the rows of a data frame."""
        if not hasattr(X, "columns"):
            raise InputError(
                f"expected a data frame with the columns {few(self.feature_names_in_)}, which the model was fitted to. "
                f"Got {type(X).__name__}; give the rows names with pandas.DataFrame(rows, columns=...)."
            )
        missing = [name for name in self.feature_names_in_ if name not in set(X.columns)]
        if missing:
            raise InputError(
                f"expected the columns that the model was fitted to. Got a table without {few(missing)} "
                f"({len(missing)} of {len(self.feature_names_in_)} missing); {meant(missing[0], map(str, X.columns))}"
            )
        return super().transform(X, **params)


class Numbers(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Numbers, booleans, decimals and durations (in days) as floats of one precision.

    Parameters
    ----------
    dtype : {"float64", "float32"}
        float32 where a column was measured so: what is computed from it is then not taken for more exact than it is.
    """

    def __init__(self, dtype: str = "float64") -> None:
        self.dtype = dtype

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        self.n_features_in_ = X.shape[1]
        self.feature_names_in_ = np.asarray([str(c) for c in X.columns], dtype=object)
        return self

    def transform(self, X: pd.DataFrame) -> Any:
        plain = all(dtype in (np.float64, np.float32) for dtype in set(X.dtypes))
        if plain:
            return X.to_numpy(dtype=self.dtype)
        return np.column_stack([as_numbers(X.iloc[:, j]) for j in range(X.shape[1])]).astype(self.dtype)


class Words(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Categories as strings; a missing value is a category of its own if the source has any, else the most frequent."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        self.n_features_in_ = X.shape[1]
        self.feature_names_in_ = np.asarray([str(c) for c in X.columns], dtype=object)
        self.fill_ = [_fill_of(as_words(X.iloc[:, j])) for j in range(X.shape[1])]
        return self

    def transform(self, X: pd.DataFrame) -> Any:
        words = np.empty(X.shape, dtype=object)
        for j, fill in enumerate(self.fill_):
            column = as_words(X.iloc[:, j])
            column[pd.isna(column)] = fill
            words[:, j] = column
        return words


class DateParts(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """One date column as days since the source's mean date and the angles of year, week and day, as sine and cosine.

    A part that is the same in every source row is left out; a missing date is NaN in every part.
    """

    def __init__(self, dtype: str = "float64") -> None:
        self.dtype = dtype

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        self.n_features_in_ = 1
        self.name_ = str(X.columns[0])
        self.form_ = date_form(X.iloc[:, 0]) or ""  # none where the file holds dates as such
        days = as_days(X.iloc[:, 0], self.form_)
        self.origin_ = float(np.nanmean(days))
        parts = _parts_of(days, self.origin_)
        # A difference under 1e-9 is the rounding of an angle, not a part that varies.
        self.parts_ = [part for part in _PARTS if np.nanmax(parts[part]) - np.nanmin(parts[part]) > 1e-9]
        return self

    def transform(self, X: pd.DataFrame) -> Any:
        parts = _parts_of(as_days(X.iloc[:, 0], self.form_), self.origin_)
        return np.column_stack([parts[part] for part in self.parts_]).astype(self.dtype)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        return np.asarray([f"{self.name_}_{part}" for part in self.parts_], dtype=object)


def _fill_of(words: Any) -> str:
    gone = pd.isna(words)
    if gone.any():
        return MISSING
    values, counts = np.unique(words.astype(str), return_counts=True)
    return str(values[counts.argmax()])


def _parts_of(days: Any, origin: float) -> dict[str, Any]:
    # Day 0 of 1970 was a Thursday; only the phase depends on it.
    angles = {"year": days / _YEAR, "weekday": np.floor(days) / 7.0, "hour": days - np.floor(days)}
    parts = {"days": days - origin}
    for name, turns in angles.items():
        parts[f"{name}_sin"], parts[f"{name}_cos"] = np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)
    return parts

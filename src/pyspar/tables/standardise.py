"""Standardise Moments: choose, shift and scale the columns of the root instead of the rows that it summarises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer

from pyspar.core.arrays import EPS64, Mask, Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.sources.files.number_text import NumberFormat
from pyspar.tables.columns import Selection, build_encoder

_ROUNDING = 64.0 * EPS64
"""A spread below this share of the values is the rounding error of a constant column."""


@dataclass(frozen=True, eq=False)
class Scale:
    """The mean and the standard deviation of each feature in the source."""

    names: tuple[str, ...]
    mean: Vector
    spread: Vector

    def standardise(self, X: Matrix) -> Matrix:
        """Return raw rows in units of the standard deviation about the mean."""
        return np.asarray(np.subtract(X, self.mean, dtype=np.float64) / self.spread)

    def predict(self, X: Matrix, weights: Vector, intercept: float) -> Vector:
        """Predict raw rows with weights of standardised features."""
        return np.asarray(np.subtract(X, self.mean, dtype=np.float64) @ (weights / self.spread) + intercept)


def select_moments(moments: Moments, names: Sequence[str]) -> Moments:
    """Return the Moments of some features in the order of ``names``, with all outputs."""
    known = feature_names(moments)
    position = np.array([known.index(name) for name in names])
    columns = np.concatenate([[0], 1 + position, np.arange(1 + moments.n_features, moments.root.shape[1])])
    return replace(
        moments, root=moments.root[:, columns], n_features=len(position), eps=moments.eps[position], names=tuple(names)
    )


def feature_names(moments: Moments) -> tuple[str, ...]:
    """Return the names of the features; features without names are x0, x1, ..."""
    return moments.names or tuple(f"x{j}" for j in range(moments.n_features))


def measure_spread(moments: Moments) -> tuple[Vector, Mask]:
    """Return the standard deviations of features and outputs, and which of them are constant."""
    lengths = np.linalg.norm(moments.root_about(None), axis=0)
    return lengths / np.sqrt(moments.weight), lengths <= _ROUNDING * moments.column_lengths()


def measure_scale(source: Moments) -> Scale:
    """Return the mean and the standard deviation of each feature. No feature may be constant."""
    d = source.n_features
    return Scale(feature_names(source), source.mean[:d], measure_spread(source)[0][:d])


def standardise(moments: Moments, scale: Scale) -> Moments:
    r"""Return the Moments of ``(X - mean) / spread``. The outputs are unchanged.

    If ``R`` is a root of ``[1 | X | Y]``, then ``R T`` is a root of ``[1 | X | Y] T`` for every matrix T. Only the
    first row of ``R`` has an entry in the first column, so only this row is shifted.
    """
    root, features = moments.root.copy(), slice(1, 1 + moments.n_features)
    root[:, features] -= np.outer(root[:, 0], scale.mean)
    root[:, features] /= scale.spread
    return replace(moments, root=root, names=())


def root_mean_square_error(moments: Moments, weights: Vector, intercept: float) -> float:
    """Return the root mean squared error of a linear prediction from the Moments of labelled rows."""
    residual = moments.root @ np.concatenate([[-intercept], -weights, [1.0]])
    return float(np.linalg.norm(residual) / np.sqrt(moments.weight))


def build_fitted_encoder(
    scale: Scale, rows: int, *, single: bool, formats: dict[str, NumberFormat] | None = None
) -> ColumnTransformer:
    """Return the preprocessing that a fit to the rows of the source would give.

    It is fitted to two rows, mean - spread and mean + spread, and then gets the exact numbers.
    """
    dtype = np.float32 if single else np.float64
    two = np.vstack([scale.mean - scale.spread, scale.mean + scale.spread])
    frame = pd.DataFrame(two.astype(dtype), columns=list(scale.names))
    encoder = build_encoder(frame, Selection(scale.names, (), (), ())).fit(frame)
    steps = encoder.named_transformers_["numeric"]
    steps["fill"].statistics_ = scale.mean.astype(dtype)
    scaler = steps["scale"]
    scaler.mean_, scaler.scale_, scaler.var_ = scale.mean.copy(), scale.spread.copy(), scale.spread**2
    scaler.n_samples_seen_ = rows
    encoder.formats_ = formats or {}
    return encoder

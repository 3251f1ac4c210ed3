"""Standardising Moments: the columns of a root are chosen, shifted and scaled as the rows behind it would have been."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer

from pyspar.core.arrays import EPS64, Mask, Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.tables.columns import Selection, preprocessing

_ROUNDING = 64.0 * EPS64
"""A spread below this share of the values is what summing them leaves of a constant."""


@dataclass(frozen=True, eq=False)
class Standard:
    """The source's mean and spread of each feature."""

    names: tuple[str, ...]
    mean: Vector
    spread: Vector

    def predict(self, X: Matrix, weights: Vector, intercept: float) -> Vector:
        """Predict raw rows with weights that were fitted to standardised ones."""
        return np.asarray(np.subtract(X, self.mean, dtype=np.float64) @ (weights / self.spread) + intercept)


def features_of(moments: Moments, names: Sequence[str]) -> Moments:
    """Return the Moments of some of the features, in this order, and of all outputs."""
    known = feature_names(moments)
    place = np.array([known.index(name) for name in names])
    columns = np.concatenate([[0], 1 + place, np.arange(1 + moments.n_features, moments.root.shape[1])])
    return replace(
        moments, root=moments.root[:, columns], n_features=len(place), eps=moments.eps[place], names=tuple(names)
    )


def feature_names(moments: Moments) -> tuple[str, ...]:
    """Return the names of the features; those of an array without names are x0, x1, ..."""
    return moments.names or tuple(f"x{j}" for j in range(moments.n_features))


def spread_of(moments: Moments) -> tuple[Vector, Mask]:
    """Return the standard deviation of features and outputs, and which of them never vary."""
    lengths = np.linalg.norm(moments.root_about(None), axis=0)
    return lengths / np.sqrt(moments.weight), lengths <= _ROUNDING * moments.column_lengths()


def standard_of(source: Moments) -> Standard:
    """Return the mean and spread to standardise by; every feature must vary."""
    d = source.n_features
    return Standard(feature_names(source), source.mean[:d], spread_of(source)[0][:d])


def standardised(moments: Moments, standard: Standard) -> Moments:
    r"""Return the Moments of ``(X - mean) / spread``; the outputs stay.

    With ``R`` a root of ``[1 | X | Y]``, ``R T`` is one of ``[1 | X | Y] T`` for every matrix T. Only the first row has
    an entry in the first column, so only it is shifted.
    """
    root, features = moments.root.copy(), slice(1, 1 + moments.n_features)
    root[:, features] -= np.outer(root[:, 0], standard.mean)
    root[:, features] /= standard.spread
    return replace(moments, root=root, names=())


def root_mean_square(moments: Moments, weights: Vector, intercept: float) -> float:
    """Return the root mean squared error of a linear prediction, from the Moments of labelled rows."""
    residual = moments.root @ np.concatenate([[-intercept], -weights, [1.0]])
    return float(np.linalg.norm(residual) / np.sqrt(moments.weight))


def fitted_preprocessing(standard: Standard, rows: int, *, single: bool) -> ColumnTransformer:
    """Return the preprocessing that a source with this mean and spread would have taught.

    It learns from two rows, one spread below the mean and one above, and is then given the very numbers.
    """
    dtype = np.float32 if single else np.float64
    two = np.vstack([standard.mean - standard.spread, standard.mean + standard.spread])
    frame = pd.DataFrame(two.astype(dtype), columns=list(standard.names))
    fitted = preprocessing(frame, Selection(standard.names, (), (), ())).fit(frame)
    steps = fitted.named_transformers_["numeric"]
    steps["fill"].statistics_ = standard.mean.astype(dtype)
    scale = steps["scale"]
    scale.mean_, scale.scale_, scale.var_ = standard.mean.copy(), standard.spread.copy(), standard.spread**2
    scale.n_samples_seen_ = rows
    return fitted

"""The coordinates of a drift: features and predictions standardised by the target, and smooth features.

``pyspar.core.drift`` states the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from pyspar.core.arrays import Matrix, Vector

MAX_CENTRES = 600
"""The most labelled rows that are all centres of smooth features; with more, a fit would take several seconds."""

SOME_CENTRES = 300
"""The number of centres if there are more rows. At least as many rows are not centres, and so determine the noise."""

_NO_SPREAD = 1e-9  # relative to the largest value: a column with a smaller spread is constant up to rounding
_DEPENDENT = 1e-10  # smooth features along which the centres vary less, relative to the largest, are dropped
_BLOCK_ROWS = 4096
_ROOT_HALF = np.sqrt(0.5)


@dataclass(frozen=True, eq=False)
class TargetUnits:
    """Standardisation of features and predictions by the target, so that each drift component has mean variance 1.

    The factor of a centred feature is 1 / (spread * sqrt(number of features that vary)), and 0 for a constant feature.
    """

    feature_mean: Vector
    feature_scale: Vector
    prediction_mean: float
    prediction_scale: float

    @classmethod
    def of(cls, features: Matrix, prediction: Vector, counts: Vector | None = None) -> TargetUnits:
        """Return the standardisation by target rows. A count of 2 stands for two equal rows."""
        columns = np.column_stack([prediction, features])
        mean = np.average(columns, axis=0, weights=counts)
        spread = np.sqrt(np.average(np.square(columns - mean), axis=0, weights=counts))
        varies = spread > _NO_SPREAD * np.abs(columns).max(axis=0)
        scale = np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0)
        scale[1:] /= np.sqrt(max(int(varies[1:].sum()), 1))
        return cls(mean[1:], scale[1:], float(mean[0]), float(scale[0]))

    def standardise(self, features: Matrix, prediction: Vector) -> tuple[Matrix, Vector]:
        """Return features and predictions in these coordinates."""
        rows = (features - self.feature_mean) * self.feature_scale
        return rows, (prediction - self.prediction_mean) * self.prediction_scale


@dataclass(frozen=True, eq=False)
class SmoothFeatures:
    """Features of standardised rows whose inner products are exp(-d^2 / 2), where d is the distance between two rows.

    The inner products are exact for the centres, which are labelled rows, and the Nystroem approximation for others.
    """

    centres: Matrix  # of shape (c, D)
    weights: Matrix  # (c, r): the features of a row z are ``exp(-d(z, centres)^2 / 2) @ weights``
    exact: bool  # whether all labelled rows are centres

    @classmethod
    def of(cls, rows: Matrix) -> SmoothFeatures:
        """Return the features with distinct labelled rows as centres.

        Of more than ``MAX_CENTRES`` distinct rows, ``SOME_CENTRES`` at equal steps in the order of their lengths are
        used. This choice does not depend on the order of rows or columns, or on the sign of a column.
        """
        centres = np.unique(rows, axis=0)
        if exact := len(centres) <= MAX_CENTRES:
            steps = np.arange(len(centres))
        else:
            steps = np.linspace(0, len(centres) - 1, SOME_CENTRES).round().astype(int)
        centres = centres[np.argsort(np.square(centres).sum(axis=1), kind="stable")[steps]]
        values, vectors = np.linalg.eigh(_kernel(centres, centres))
        kept = values > _DEPENDENT * values[-1]
        return cls(centres, vectors[:, kept] / np.sqrt(values[kept]), exact)

    def transform(self, rows: Matrix) -> Matrix:
        """Return the features of standardised rows, of shape (m, r)."""
        return np.asarray(_kernel(rows, self.centres) @ self.weights)


def _kernel(rows: Matrix, centres: Matrix) -> Matrix:
    return np.asarray(np.exp(-0.5 * cdist(rows, centres, "sqeuclidean")))


@dataclass(frozen=True, eq=False)
class DriftFeatures:
    """The features that the weights of a drift apply to: the standardised features, and then the smooth ones, if any.

    If there are smooth features, both kinds are divided by the root of 2, so that rows have mean squared length 1.
    """

    units: TargetUnits
    smooth: SmoothFeatures | None

    def transform(self, features: Matrix, prediction: Vector) -> tuple[Matrix, Vector, Vector]:
        """Return features (m, F), standardised predictions, and the squared lengths of the rows.

        A squared length is the sum of squared features plus the variance that the labelled rows leave unknown. If not
        all of them are centres, nothing is added: the variance that the approximation misses is a part of the noise.
        """
        rows, q = self.units.standardise(features, prediction)
        length2 = np.square(rows).sum(axis=1)
        if self.smooth is None:
            return rows, q, length2
        smooth = self.smooth.transform(rows)
        smooth_length2 = 1.0 if self.smooth.exact else np.square(smooth).sum(axis=1)
        return np.hstack([rows, smooth]) * _ROOT_HALF, q, 0.5 * (length2 + smooth_length2)

    @property
    def centres(self) -> Matrix:
        """The centres of the smooth features, of shape (c, D)."""
        return np.empty((0, len(self.units.feature_scale))) if self.smooth is None else self.smooth.centres

    def split_weights(self, weights: Vector) -> tuple[Vector, Vector | None]:
        """Return the weights of the original features, and those of ``exp(-d^2 / 2)`` for each centre, or None."""
        if self.smooth is None:
            return weights * self.units.feature_scale, None
        plain, smooth = np.split(weights * _ROOT_HALF, [len(self.units.feature_scale)])
        return plain * self.units.feature_scale, self.smooth.weights @ smooth


@dataclass(frozen=True, eq=False)
class Basis:
    """The directions, in the space of its features, in which labels determine a drift."""

    features: DriftFeatures
    directions: Matrix  # orthonormal directions in which the labelled rows vary, of shape (F, r)

    def blocks(self, features: Matrix, prediction: Vector) -> Iterator[tuple[slice, Matrix, Vector]]:
        """Yield blocks of rows: their positions, (1, q, features along the directions), and their squared lengths
        outside the directions."""
        for start in range(0, len(prediction), _BLOCK_ROWS):
            at = slice(start, start + _BLOCK_ROWS)
            rows, q, length2 = self.features.transform(features[at], prediction[at])
            along = rows @ self.directions
            outside = np.maximum(length2 - np.square(along).sum(axis=1), 0.0)
            yield at, np.column_stack([np.ones(len(q)), q, along]), outside

    def moment(self, features: Matrix, prediction: Vector, counts: Vector | None) -> tuple[Matrix, float, float]:
        """Return the mean over rows of h h' for h = (1, q, features along the directions), the mean squared length
        outside the directions, and the number of rows."""
        counts = np.ones(len(prediction)) if counts is None else counts
        total = float(counts.sum())
        size = 2 + self.directions.shape[1]
        moment, outside_moment = np.zeros((size, size)), 0.0
        for at, basis, outside in self.blocks(features, prediction):
            share = counts[at] / total
            moment += (basis * share[:, None]).T @ basis
            outside_moment += float(share @ outside)
        return moment, outside_moment, total

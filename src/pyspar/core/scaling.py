"""Scale features to chosen units. The computation uses moments, so no row is read again.

A prior that treats all weights alike depends on the units of the features. Three choices are useful:

- "common": the features as they are, with the same unit for all of them.
- "source": the spread of each feature over the source.
- "target": the larger of its spreads over source and target.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from pyspar.core.arrays import Vector, root_sum_squares
from pyspar.core.moments import Moments
from pyspar.core.spectrum import ROUNDING_SLACK

Units = Literal["target", "source", "common"]


def units_of_features(
    source: Moments, target: Moments | None, units: Units, *, fit_intercept: bool, unknown: bool = False
) -> Vector:
    """Return the unit of each feature; zero for a feature that is constant in the source.

    Spreads are root mean squares about the source mean, or about the origin without an intercept. Without a target,
    "target" equals "source". The source carries no information about a feature that is constant in it, so decisions
    drop the feature. Forecasts include it: with ``unknown`` its unit is its spread over the target (or the common
    unit).

    >>> X, Z = np.array([[-1.0, -1.0], [1.0, 1.0]]), np.array([[-5.0, 0.1], [5.0, 0.1]])
    >>> units_of_features(Moments.of(X), Moments.of(Z), "target", fit_intercept=True)
    array([5., 1.])
    """
    spread = spread_of_features(source, fit_intercept=fit_intercept)
    origin = source.mean[: source.n_features] if fit_intercept else np.zeros(source.n_features)
    there = np.zeros_like(spread) if target is None else spread_about(target, origin)
    if units == "common":
        found = instead = np.ones_like(spread)
    else:
        found, instead = (np.maximum(spread, there) if units == "target" else spread), there
    return np.where(spread > 0.0, found, instead if unknown else 0.0)


def spread_of_features(source: Moments, *, fit_intercept: bool) -> Vector:
    """Return the standard deviation of each feature; zero if it does not exceed the rounding error.

    Without an intercept, return the root mean square about the origin.

    >>> spread_of_features(Moments.of(np.array([[1.0, 7.0], [3.0, 7.0]])), fit_intercept=True)
    array([1., 0.])
    """
    d = source.n_features
    origin = None if fit_intercept else np.zeros_like(source.mean)
    own = root_sum_squares(source.root_about(origin)[:, :d])
    noise = ROUNDING_SLACK * source.eps * source.column_lengths()[:d]
    return np.asarray(np.where(own > noise, own / np.sqrt(source.weight), 0.0))


def spread_about(data: Moments, origin: Vector) -> Vector:
    """Return the root mean square of each feature about an origin.

    >>> spread_about(Moments.of(np.array([[4.0], [2.0]])), np.array([1.0])) ** 2
    array([5.])
    """
    return np.asarray(root_sum_squares(data.without_outputs().root_about(origin)) / np.sqrt(data.weight))


def inverse(units: Vector) -> Vector:
    """Return the factor by which each feature is multiplied; zero for a feature without a unit, which drops it.

    >>> inverse(np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(units > 0.0, 1.0 / units, 0.0))


def in_units_of(moments: Moments, units: Vector) -> Moments:
    """Return the moments that the rows would have if each feature were divided by its unit."""
    root = moments.root.copy()
    root[:, 1 : len(units) + 1] *= inverse(units)
    return moments.with_root(root)

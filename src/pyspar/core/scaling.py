"""Scaling: features in units of the source's spread, inside the moments, so that no row is read again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from pyspar.core.arrays import Vector, root_sum_squares
from pyspar.core.moments import Moments
from pyspar.core.spectrum import ROUNDING_SLACK


def spread_of_features(source: Moments, *, fit_intercept: bool) -> Vector:
    """Return the standard deviation of each feature, zero where it does not vary beyond its rounding.

    Without an intercept it is the root mean square about the origin, where the model is centred too.

    >>> spread_of_features(Moments.of(np.array([[1.0, 7.0], [3.0, 7.0]])), fit_intercept=True)
    array([1., 0.])
    """
    d = source.n_features
    origin = None if fit_intercept else np.zeros_like(source.mean)
    own = root_sum_squares(source.root_about(origin)[:, :d])
    noise = ROUNDING_SLACK * source.eps * source.column_lengths()[:d]
    return np.asarray(np.where(own > noise, own / np.sqrt(source.weight), 0.0))


def inverse(spread: Vector) -> Vector:
    """Return what to multiply a feature by; zero for one that does not vary, which so disappears.

    >>> inverse(np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(spread > 0.0, 1.0 / spread, 0.0))


def in_units_of(moments: Moments, spread: Vector) -> Moments:
    """Return the moments that the rows would have, had each feature been divided by its spread."""
    return all_in_units_of([moments], spread)[0]


def all_in_units_of(parts: Sequence[Moments], spread: Vector) -> list[Moments]:
    """Return the same of several moments with the same features, in one go."""
    if not parts:
        return []
    every = np.concatenate([part.root for part in parts])
    every[:, 1 : len(spread) + 1] *= inverse(spread)
    starts = accumulate((len(part.root) for part in parts), initial=0)
    return [part.with_root(every[start : start + len(part.root)]) for part, start in zip(parts, starts, strict=False)]

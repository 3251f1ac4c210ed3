r"""Draw the partners of C-Mixup by the distance of their labels: exact, in O(N) memory.

.. math:: P(j \mid i) \propto \exp\left(-\frac{\|y_i - y_j\|^2}{2 h^2}\right)

The published implementation (Yao et al. 2022, "C-Mixup: Improving Generalization in Regression", NeurIPS) stores the
N x N matrix of these weights. This module sorts the labels once. The labels around each label form rings. A ring
consists of two runs of the sorted labels, found by bisection, and has an upper bound of the weights in it. A draw
chooses a ring with probability proportional to bound x count, a row in it uniformly, and accepts the row with
probability weight / bound. This is rejection sampling, so the distribution is exactly that of the kernel, also for
weights that underflow in ``exp``.

Weights are relative to that of the nearest candidate, so the nearest labels can be drawn with the smallest bandwidth.
With several label dimensions, one is sorted and the others enter in the acceptance probability. Rows without a partner
after many rounds are drawn directly, from a few rows of the N x N matrix at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_RING_WIDTH = 0.5  # in bandwidths; 83 % of the proposals are accepted where labels are dense
_MIN_TRIES = 16  # proposals per row before a direct draw; typically four in five are accepted
_MIN_PROPOSALS = 1 << 13  # proposals per call; fewer are not noticeably faster
_MAX_CELLS = 1 << 18  # entries of the N x N matrix that a direct draw holds in memory


@dataclass(frozen=True, eq=False)
class Partners:
    """The sorted labels of a training set and the rings around each label. Create it with ``Partners.of``.

    Attributes are indexed by the position in the sorted order. ``start`` and ``stop`` have one row more than there are
    rings. Their first row is the hole in the middle: the row itself if it is excluded, else empty.
    """

    rows: Indices
    """The training row at each position."""
    positions: Indices
    """The position of each training row."""
    labels: Floats
    """(K, N), scaled by a power of two, with the sorted dimension first."""
    bandwidth: float
    """In the scale of ``labels``."""
    nearest: Floats
    """Distance to the nearest candidate along the sorted dimension."""
    bounds: Floats
    """(rings,): the smallest deficit in each ring. A deficit is minus the log-weight relative to the nearest."""
    start: NDArray[np.int32]
    stop: NDArray[np.int32]
    mass: Floats
    """(rings, N): bound x count, summed over the rings up to each ring."""
    include_self: bool

    @classmethod
    def of(cls, y: NDArray[Any], bandwidth: float, *, include_self: bool = True) -> Partners:
        """Sort the labels (N,) or (N, K) and find the rings around each of them.

        >>> partners = Partners.of(np.array([0.0, 5.0, 0.0, 5.0]), bandwidth=0.1, include_self=False)
        >>> partners.draw(np.arange(4), np.random.default_rng(0)).tolist()
        [2, 3, 0, 1]
        """
        labels, h = _scale_labels(_transpose_labels(y), bandwidth)
        n = labels.shape[1]
        _check_candidates(n, include_self, "the training set")
        first = _choose_dimension(labels, h)
        rows = np.argsort(labels[first], kind="stable")
        labels = labels[np.r_[first, :first, first + 1 : len(labels)]][:, rows]
        positions = np.empty(n, dtype=np.int64)
        positions[rows] = np.arange(n)
        t = labels[0]
        nearest = np.zeros(n) if include_self else _gaps(t)
        # Beyond the last bound all candidates together weigh at most exp(-2) of the nearest, so one ring is enough.
        bounds = 0.5 * np.square(
            _RING_WIDTH * np.arange(2 + int(np.sqrt(2 * np.log(n) + 4) / _RING_WIDTH), dtype=np.float64)
        )
        start, stop = (np.empty((len(bounds) + 1, n), dtype=np.int32) for _ in range(2))
        start[0], stop[0] = np.arange(n), np.arange(n) + (not include_self)
        start[-1], stop[-1] = 0, n
        for k, bound in enumerate(bounds[1:], start=1):
            stop[k] = _find_end(t, nearest, h, bound)
            start[k] = n - _find_end(-t[::-1], nearest[::-1], h, bound)[::-1]
        mass = np.diff(stop - start, axis=0) * np.exp(-bounds)[:, None]
        np.cumsum(mass, axis=0, out=mass)
        return cls(rows, positions, labels, h, nearest, bounds, start, stop, mass, include_self)

    def draw(self, rows: Indices, rng: np.random.Generator) -> Indices:
        """Draw a partner for each of the training rows ``rows``, an array of any shape. Rows may repeat."""
        rows = np.asarray(rows)
        positions = self.positions[rows.ravel()]
        drawn = np.empty_like(positions)
        left = np.arange(len(positions))
        tries = max(_MIN_TRIES, len(self.rows) // 16)  # this many cost as much as a direct draw
        while tries > 0 and len(left):
            times = min(tries, max(1, _MIN_PROPOSALS // len(left)))
            proposed, accepted = self._propose(np.repeat(positions[left], times), rng)
            accepted, first = accepted.reshape(-1, times), accepted.reshape(-1, times).argmax(axis=1)
            done = accepted.any(axis=1)
            drawn[left[done]] = proposed.reshape(-1, times)[done, first[done]]
            left = left[~done]
            tries -= times
        step = max(1, _MAX_CELLS // len(self.rows))
        for part in (left[i : i + step] for i in range(0, len(left), step)):
            drawn[part] = self._draw_directly(positions[part], rng)
        return self.rows[drawn].reshape(rows.shape)

    def _propose(self, i: Indices, rng: np.random.Generator) -> tuple[Indices, NDArray[np.bool_]]:
        """Propose a partner for each position. Return the proposals and whether each is accepted."""
        n = len(self.rows)
        # u < 1 implies u * m < m in float64 also after rounding, so no index exceeds the last ring or position.
        level = rng.random(len(i)) * self.mass[-1][i]
        ring = np.zeros(len(i), dtype=np.int64)
        for mass in self.mass[:-1]:
            ring += mass[i] <= level
        hole = ring * n + i
        outer = hole + n
        start, stop = self.start.ravel(), self.stop.ravel()
        hole_start, hole_stop, outer_start = start[hole], stop[hole], start[outer]
        skipped = hole_stop - hole_start
        count = stop[outer] - outer_start - skipped
        j = outer_start + (rng.random(len(i)) * count).astype(np.int64)
        j += skipped * (j >= hole_start)
        t, h = self.labels[0], self.bandwidth
        deficit = _deficit(np.abs(t[j] - t[i]), self.nearest[i], h) - self.bounds[ring]
        for other in self.labels[1:]:
            deficit += _deficit(np.abs(other[j] - other[i]), 0.0, h)
        # An exponential variable exceeds x with probability exp(-x), so the test needs no exp and cannot underflow.
        return j, rng.standard_exponential(len(i)) >= deficit

    def _draw_directly(self, i: Indices, rng: np.random.Generator) -> Indices:
        itself = None if self.include_self else i[:, None] == np.arange(len(self.rows))
        return _choose(_distances(self.labels[:, i, None], self.labels[:, None, :]), itself, self.bandwidth, rng)


def draw_within_batches(
    y: NDArray[Any], order: Indices, bandwidth: float, rng: np.random.Generator, *, include_self: bool = True
) -> Indices:
    """Draw a partner from the same batch for each row of each batch. ``order`` has shape (steps, B)."""
    labels, h = _scale_labels(_transpose_labels(y), bandwidth)
    order = np.asarray(order)
    steps, size = order.shape
    _check_candidates(size, include_self, "a batch")
    itself = None if include_self else np.eye(size, dtype=bool)
    partners = np.empty_like(order)
    step = max(1, _MAX_CELLS // (4 * size**2))  # fits into the CPU caches
    for part in (slice(i, i + step) for i in range(0, steps, step)):
        batch = labels[:, order[part]]
        chosen = _choose(_distances(batch[..., :, None], batch[..., None, :]), itself, h, rng)
        partners[part] = np.take_along_axis(order[part], chosen, axis=1)
    return partners


def _choose(d: Floats, itself: NDArray[np.bool_] | None, h: float, rng: np.random.Generator) -> Indices:
    """Draw an index of the last axis by the kernel of the distances, excluding the entries marked in ``itself``."""
    if itself is None:
        nearest = np.zeros((*d.shape[:-1], 1))
    else:
        d = np.where(itself, np.inf, d)
        nearest = d.min(axis=-1, keepdims=True)
    weight = np.exp(-_deficit(d, nearest, h))
    np.cumsum(weight, axis=-1, out=weight)
    level = rng.random((*d.shape[:-1], 1)) * weight[..., -1:]
    chosen: Indices = (weight <= level).sum(axis=-1)
    return chosen


def _deficit(d: Floats, nearest: Floats | float, h: float) -> Floats:
    """Return minus the log-weight relative to the nearest candidate: (d^2 - nearest^2) / 2 h^2.

    The product form is accurate if both distances are large. It is monotonic in d also after rounding, so that a ring
    is exactly a run of the sorted labels.
    """
    with np.errstate(over="ignore"):  # infinity is never accepted
        return (d - nearest) / h * ((d + nearest) / h) * 0.5


def _find_end(t: Floats, nearest: Floats, h: float, bound: float) -> Indices:
    """Return for each position the first later position whose deficit is at least the bound."""
    n = len(t)
    position = np.arange(n)

    def inside(i: Indices, j: Indices) -> NDArray[np.bool_]:
        return _deficit(t[j] - t[i], nearest[i], h) < bound

    end: Indices = np.maximum(np.searchsorted(t, t + np.hypot(nearest, h * np.sqrt(2 * bound))), position + 1)
    # The sum above is rounded. Where that moved a label across the edge, bisect with the deficits.
    wrong = ((end < n) & inside(position, np.minimum(end, n - 1))) | ((end > position + 1) & ~inside(position, end - 1))
    i = position[wrong]
    low, high = i + 1, np.full(len(i), n)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        within = open_ & inside(i, np.minimum(middle, n - 1))
        low = np.where(within, middle + 1, low)
        high = np.where(open_ & ~within, middle, high)
    end[i] = low
    return end


def _choose_dimension(labels: Floats, h: float) -> int:
    """Return the dimension in which the fewest rows are near, so that the others reject the fewest proposals."""
    if len(labels) == 1:
        return 0
    near = [np.diff(np.searchsorted(np.sort(t), [t - h, t + h]), axis=0).sum() for t in labels]
    return int(np.argmin(near))


def _gaps(t: Floats) -> Floats:
    """Return the distance of each sorted label to the nearest other label."""
    gaps = np.concatenate([[np.inf], np.diff(t), [np.inf]])
    nearest: Floats = np.minimum(gaps[:-1], gaps[1:])
    return nearest


def _distances(a: Floats, b: Floats) -> Floats:
    d: Floats = np.abs(a[0] - b[0])
    if len(a) > 1:
        d *= d
        for one, other in zip(a[1:], b[1:], strict=True):
            d += np.square(one - other)
        np.sqrt(d, out=d)
    return d


def _transpose_labels(y: NDArray[Any]) -> Floats:
    return np.ascontiguousarray(np.asarray(y, dtype=np.float64).reshape(len(y), -1).T)


def _scale_labels(labels: Floats, h: float) -> tuple[Floats, float]:
    """Scale the largest label to about 1 by a power of two, which is exact and avoids overflow of squares."""
    exponent = -int(np.frexp(np.abs(labels).max())[1])
    with np.errstate(over="ignore"):  # of the bandwidth; a clipped bandwidth draws all rows with equal probability
        return np.ldexp(labels, exponent), float(np.clip(np.ldexp(h, exponent), 1e-300, 1e300))


def _check_candidates(n: int, include_self: bool, what: str) -> None:
    if n < 2 and not include_self:
        raise InputError(f"include_self=False requires at least two rows in {what}, got {n}; use include_self=True")

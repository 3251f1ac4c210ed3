r"""Partners: C-Mixup's draw of a second sample for each sample, by how close their labels are. Exact, in memory O(N).

.. math:: P(j \mid i) \propto \exp\left(-\frac{\|y_i - y_j\|^2}{2 h^2}\right)

The published way (Yao et al. 2022, "C-Mixup: Improving Generalization in Regression", NeurIPS) keeps the N x N matrix
of these weights. Here the labels are sorted once. Around each label, the others lie in rings; a ring is two runs of the
sorted labels, found by bisection, and has an upper bound of the weights in it. A draw picks a ring by bound x count, a
row in it uniformly, and accepts it with probability weight / bound. That is rejection sampling, so the distribution is
the kernel's own: no weight is cut, and what ``exp`` would underflow to zero has its true, vanishing chance.

Weights are taken relative to the nearest candidate, so the smallest bandwidth leaves something to draw: the nearest
labels. Of several label dimensions, one is sorted and the rest enter at acceptance; what is not accepted after many
rounds is drawn directly, a few rows of the N x N matrix at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_RING = 0.5  # width of a ring in bandwidths: 83 % of the proposals are accepted where labels lie densely
_TRIES = 16  # at least so many proposals for a row; of an ordinary label's, four in five are accepted
_WIDE = 1 << 13  # proposals at once that cost hardly more than one does
_CELLS = 1 << 18  # entries of the N x N matrix held at once by a direct draw


@dataclass(frozen=True, eq=False)
class Partners:
    """The labels of a training set, arranged so that partners can be drawn; make one with `Partners.of`.

    Attributes are indexed by the place in the sorted order; ``start`` and ``stop`` have one row more than there are
    rings, the first being the hole in the middle: the sample itself where it is excluded, else empty.
    """

    rows: Rows
    """The training row at each place."""
    places: Rows
    """The place of each training row."""
    labels: Floats
    """(K, N), scaled by a power of two; the sorted dimension first."""
    bandwidth: float
    """In the scale of ``labels``."""
    nearest: Floats
    """Distance to the nearest candidate along the sorted dimension."""
    bounds: Floats
    """(rings,): the least deficit, minus the log-weight relative to the nearest, in each ring."""
    start: NDArray[np.int32]
    stop: NDArray[np.int32]
    mass: Floats
    """(rings, N): bound x count, summed up to each ring."""
    include_self: bool

    @classmethod
    def of(cls, y: NDArray[Any], bandwidth: float, *, include_self: bool = True) -> Partners:
        """Sort the labels (N,) or (N, K) and find the rings around each of them.

        >>> partners = Partners.of(np.array([0.0, 5.0, 0.0, 5.0]), bandwidth=0.1, include_self=False)
        >>> partners.draw(np.arange(4), np.random.default_rng(0)).tolist()
        [2, 3, 0, 1]
        """
        labels, h = _scaled(_columns(y), _checked(bandwidth))
        n = labels.shape[1]
        _check_room(n, include_self, "the training set")
        first = _most_telling(labels, h)
        rows = np.argsort(labels[first], kind="stable")
        labels = labels[np.r_[first, :first, first + 1 : len(labels)]][:, rows]
        places = np.empty(n, dtype=np.int64)
        places[rows] = np.arange(n)
        t = labels[0]
        nearest = np.zeros(n) if include_self else _gaps(t)
        # Beyond the last bound all candidates together weigh at most exp(-2) of the nearest: one ring will do for them.
        bounds = 0.5 * np.square(_RING * np.arange(2 + int(np.sqrt(2 * np.log(n) + 4) / _RING), dtype=np.float64))
        start, stop = (np.empty((len(bounds) + 1, n), dtype=np.int32) for _ in range(2))
        start[0], stop[0] = np.arange(n), np.arange(n) + (not include_self)
        start[-1], stop[-1] = 0, n
        for k, bound in enumerate(bounds[1:], start=1):
            stop[k] = _reach(t, nearest, h, bound)
            start[k] = n - _reach(-t[::-1], nearest[::-1], h, bound)[::-1]
        mass = np.diff(stop - start, axis=0) * np.exp(-bounds)[:, None]
        np.cumsum(mass, axis=0, out=mass)
        return cls(rows, places, labels, h, nearest, bounds, start, stop, mass, include_self)

    def draw(self, rows: Rows, rng: np.random.Generator) -> Rows:
        """Draw a partner for each of the given training rows, an array of any shape; rows may repeat."""
        rows = np.asarray(rows)
        places = self.places[rows.ravel()]
        found = np.empty_like(places)
        left = np.arange(len(places))
        tries = max(_TRIES, len(self.rows) // 16)  # as many as cost what a direct draw does
        while tries > 0 and len(left):
            times = min(tries, max(1, _WIDE // len(left)))
            proposed, accepted = self._propose(np.repeat(places[left], times), rng)
            accepted, first = accepted.reshape(-1, times), accepted.reshape(-1, times).argmax(axis=1)
            done = accepted.any(axis=1)
            found[left[done]] = proposed.reshape(-1, times)[done, first[done]]
            left = left[~done]
            tries -= times
        step = max(1, _CELLS // len(self.rows))
        for part in (left[i : i + step] for i in range(0, len(left), step)):
            found[part] = self._draw_directly(places[part], rng)
        return self.rows[found].reshape(rows.shape)

    def _propose(self, i: Rows, rng: np.random.Generator) -> tuple[Rows, NDArray[np.bool_]]:
        """Propose a place for each place, and say which proposals are accepted."""
        n = len(self.rows)
        # u < 1 gives u * m < m in float64 also after rounding: no ring and no place past the last can be met.
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
        # An exponential exceeds x with probability exp(-x): the test needs no exp, and cannot underflow.
        return j, rng.standard_exponential(len(i)) >= deficit

    def _draw_directly(self, i: Rows, rng: np.random.Generator) -> Rows:
        itself = None if self.include_self else i[:, None] == np.arange(len(self.rows))
        return _choose(_distances(self.labels[:, i, None], self.labels[:, None, :]), itself, self.bandwidth, rng)


def within_batches(
    y: NDArray[Any], order: Rows, bandwidth: float, rng: np.random.Generator, *, include_self: bool = True
) -> Rows:
    """Draw for each row of each batch, ``order`` of shape (steps, B), a partner from the same batch by the kernel."""
    labels, h = _scaled(_columns(y), _checked(bandwidth))
    order = np.asarray(order)
    steps, size = order.shape
    _check_room(size, include_self, "a batch")
    itself = None if include_self else np.eye(size, dtype=bool)
    found = np.empty_like(order)
    step = max(1, _CELLS // (4 * size**2))  # small enough for the caches
    for part in (slice(i, i + step) for i in range(0, steps, step)):
        batch = labels[:, order[part]]
        chosen = _choose(_distances(batch[..., :, None], batch[..., None, :]), itself, h, rng)
        found[part] = np.take_along_axis(order[part], chosen, axis=1)
    return found


def _choose(d: Floats, itself: NDArray[np.bool_] | None, h: float, rng: np.random.Generator) -> Rows:
    """Draw an index of the last axis by the kernel of the distances, never one that is marked as itself."""
    if itself is None:
        nearest = np.zeros((*d.shape[:-1], 1))
    else:
        d = np.where(itself, np.inf, d)
        nearest = d.min(axis=-1, keepdims=True)
    weight = np.exp(-_deficit(d, nearest, h))
    np.cumsum(weight, axis=-1, out=weight)
    level = rng.random((*d.shape[:-1], 1)) * weight[..., -1:]
    chosen: Rows = (weight <= level).sum(axis=-1)
    return chosen


def _deficit(d: Floats, nearest: Floats | float, h: float) -> Floats:
    """Return minus the logarithm of a weight relative to that of the nearest: (d^2 - nearest^2) / 2 h^2.

    Written as a product it keeps its digits where both distances are large, and it grows with d also after rounding,
    which makes a ring exactly a run of the sorted labels.
    """
    with np.errstate(over="ignore"):  # to infinity, which is never accepted
        return (d - nearest) / h * ((d + nearest) / h) * 0.5


def _reach(t: Floats, nearest: Floats, h: float, bound: float) -> Rows:
    """Return for each place the first one after it whose deficit is at least the bound."""
    n = len(t)
    here = np.arange(n)

    def inside(i: Rows, j: Rows) -> NDArray[np.bool_]:
        return _deficit(t[j] - t[i], nearest[i], h) < bound

    reach: Rows = np.maximum(np.searchsorted(t, t + np.hypot(nearest, h * np.sqrt(2 * bound))), here + 1)
    # The sum above is rounded; where that moved a label across the edge, bisect with the deficits themselves.
    wrong = ((reach < n) & inside(here, np.minimum(reach, n - 1))) | ((reach > here + 1) & ~inside(here, reach - 1))
    i = here[wrong]
    low, high = i + 1, np.full(len(i), n)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        within = open_ & inside(i, np.minimum(middle, n - 1))
        low = np.where(within, middle + 1, low)
        high = np.where(open_ & ~within, middle, high)
    reach[i] = low
    return reach


def _most_telling(labels: Floats, h: float) -> int:
    """Return the dimension in which the fewest rows are near: the others then have least to reject."""
    if len(labels) == 1:
        return 0
    near = [np.diff(np.searchsorted(np.sort(t), [t - h, t + h]), axis=0).sum() for t in labels]
    return int(np.argmin(near))


def _gaps(t: Floats) -> Floats:
    """Return the distance of each sorted label to the nearest other one."""
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


def _columns(y: NDArray[Any]) -> Floats:
    y = np.asarray(y, dtype=np.float64)
    if y.ndim not in (1, 2) or not y.size:
        raise InputError(f"Labels must have shape (N,) or (N, K), with at least one row. Got shape {y.shape} instead.")
    return np.ascontiguousarray(y.reshape(len(y), -1).T)


def _scaled(labels: Floats, h: float) -> tuple[Floats, float]:
    """Bring the largest label near 1 by a power of two: that rounds nothing, and no squared distance overflows."""
    exponent = -int(np.frexp(np.abs(labels).max())[1])
    with np.errstate(over="ignore"):  # of the bandwidth, to what already draws all rows alike
        return np.ldexp(labels, exponent), float(np.clip(np.ldexp(h, exponent), 1e-300, 1e300))


def _checked(bandwidth: float) -> float:
    if not (isinstance(bandwidth, (int, float, np.number)) and 0 < bandwidth < np.inf):
        raise ValueError(
            f"bandwidth is a distance between labels and must be positive and finite. Got {bandwidth!r} instead; "
            "large values draw all rows alike."
        )
    return float(bandwidth)


def _check_room(n: int, include_self: bool, what: str) -> None:
    if n < 2 and not include_self:
        raise InputError(
            f"A partner other than the sample itself needs two rows in {what}. Got {n}; include_self=True."
        )

r"""Draw the partners of C-Mixup by the distance of their labels.

.. math:: P(j \mid i) \propto \exp\left(-\frac{\|y_i - y_j\|^2}{2 h^2}\right)

Yao et al. (2022), "C-Mixup: Improving Generalization in Regression", NeurIPS. Weights are relative to that of the
nearest candidate, so the nearest labels can be drawn with the smallest bandwidth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_MAX_STORED_ROWS = 4096  # an N x N matrix of 134 MB; larger sets are computed again in every epoch, in parts
_MAX_CELLS = 1 << 22  # entries of the N x N matrix that are in memory at a time


class Partners:
    """Partners from the whole training set."""

    def __init__(self, y: NDArray[Any], bandwidth: float, *, include_self: bool = True) -> None:
        self.labels = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        self.bandwidth, self.include_self = bandwidth, include_self
        _check_candidates(len(y), include_self, "the training set")
        self._stored = self._cumulate(np.arange(len(y))) if len(y) <= _MAX_STORED_ROWS else None

    def draw(self, rows: Indices, rng: np.random.Generator) -> Indices:
        flat = np.asarray(rows).ravel()
        step = max(1, _MAX_CELLS // len(self.labels))
        drawn = [self._draw_part(flat[i : i + step], rng) for i in range(0, len(flat), step)]
        return np.concatenate(drawn).reshape(np.shape(rows))

    def _draw_part(self, rows: Indices, rng: np.random.Generator) -> Indices:
        return _choose(self._cumulate(rows) if self._stored is None else self._stored[rows], rng)

    def _cumulate(self, rows: Indices) -> Floats:
        excluded = None if self.include_self else rows[:, None] == np.arange(len(self.labels))
        return _cumulative_weights(self.labels[rows, None], self.labels[None], excluded, self.bandwidth)


def draw_among_candidates(
    y: NDArray[Any],
    order: Indices,
    bandwidth: float,
    rng: np.random.Generator,
    *,
    extra: int = 0,
    include_self: bool = True,
) -> Indices:
    """Draw a partner for each row of each batch from its batch and from ``extra`` random training rows per batch row.

    ``order`` has shape (steps, B). With ``extra=1`` there are 2 B candidates.
    """
    labels = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    steps, size = order.shape
    _check_candidates(size * (1 + extra), include_self, "a batch")
    candidates = np.concatenate([order, rng.integers(len(labels), size=(steps, extra * size))], axis=1)
    excluded = None if include_self else order[..., :, None] == candidates[..., None, :]
    weights = _cumulative_weights(labels[order][:, :, None], labels[candidates][:, None], excluded, bandwidth)
    return np.take_along_axis(candidates, _choose(weights, rng), axis=1)


def _cumulative_weights(a: Floats, b: Floats, excluded: NDArray[np.bool_] | None, h: float) -> Floats:
    """Return the kernel weights of candidates ``b`` for rows ``a``, summed along the last axis."""
    with np.errstate(over="ignore"):
        distance = np.sqrt(np.square((a - b) / h).sum(axis=-1))
    if excluded is not None:
        distance[excluded] = np.inf
    nearest = np.minimum(distance.min(axis=-1, keepdims=True), np.finfo(np.float64).max)
    with np.errstate(over="ignore"):  # the product form is accurate if both distances are large
        weights = np.exp(-0.5 * (distance - nearest) * (distance + nearest))
    return np.cumsum(weights, axis=-1, out=weights)


def _choose(cumulative: Floats, rng: np.random.Generator) -> Indices:
    level = rng.random((*cumulative.shape[:-1], 1)) * cumulative[..., -1:]
    chosen: Indices = np.argmax(cumulative > level, axis=-1)
    return chosen


def _check_candidates(n: int, include_self: bool, what: str) -> None:
    if n < 2 and not include_self:
        raise InputError(f"include_self=False requires at least two rows in {what}, got {n}; use include_self=True")

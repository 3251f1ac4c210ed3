"""Order: which rows each step sees. Draws follow from (seed, epoch, purpose), so any epoch can be redone alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyspar.paper.training.config import Shuffle

_FEW = 64  # rows; a target with fewer goes round several times in one draw


def _sequence(seed: int, epoch: int, purpose: str) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed, epoch, *purpose.encode()])


def generator(seed: int, epoch: int, purpose: str) -> np.random.Generator:
    """Return the generator of one purpose in one epoch of one seed.

    >>> bool(generator(0, 3, "plan").random() == generator(0, 3, "plan").random())
    True
    >>> bool(generator(0, 3, "plan").random() == generator(0, 3, "target").random())
    False
    """
    return np.random.default_rng(_sequence(seed, epoch, purpose))


def torch_seed(seed: int, epoch: int, purpose: str) -> int:
    """Return a seed for torch's own generator, which dropout draws from."""
    return int(_sequence(seed, epoch, purpose).generate_state(1, np.uint64)[0])


def train_order(seed: int, epoch: int, n: int, batch_size: int, shuffle: Shuffle) -> NDArray[np.int64]:
    """Return the training rows of each step, shape (n // batch_size, batch_size); what is left over is dropped.

    >>> bool((train_order(1, 0, 10, 4, "once") == train_order(1, 7, 10, 4, "once")).all())
    True
    """
    steps = n // batch_size
    rows = generator(seed, epoch if shuffle == "epoch" else 0, "order").permutation(n)
    return rows[: steps * batch_size].reshape(steps, batch_size)


def target_order(seed: int, epoch: int, m: int, steps: int, batch_size: int) -> NDArray[np.int64]:
    """Return the target rows of each step, shape (steps, batch_size).

    They are one endless stream, cut into epochs: all m rows in some order, then all in another, and so on. No row comes
    again before every row has come once, and no epoch starts over.

    >>> sorted(target_order(0, 0, 3, 2, 3)[0]), sorted(target_order(0, 0, 3, 2, 3)[1])
    ([np.int64(0), np.int64(1), np.int64(2)], [np.int64(0), np.int64(1), np.int64(2)])
    """
    count = steps * batch_size
    together = -(-_FEW // m)  # orders from one generator: making one takes longer than drawing a few rows
    first, skip = divmod(epoch * count, together * m)
    blocks = range(first, first + -(-(skip + count) // (together * m)))
    stream = np.concatenate([_orders(generator(seed, block, "target"), m, together) for block in blocks])
    return stream[skip : skip + count].reshape(steps, batch_size)


def _orders(rng: np.random.Generator, m: int, count: int) -> NDArray[np.int64]:
    """Return several orders of m rows, one after the other."""
    if count == 1:
        return rng.permutation(m)
    return rng.permuted(np.tile(np.arange(m), (count, 1)), axis=1).ravel()

"""Keep the features of labelled target rows, and of a sample of the others, while a loader is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyspar.core.arrays import Matrix, Vector
from pyspar.errors import InputError
from pyspar.estimators.target_labels import read_labels

MAX_UNLABELLED = 5000
"""The number of unlabelled rows that are kept. They determine means and spreads of the target's features only."""

ARGUMENT = "target_labels"


class TargetRows:
    """The target rows for a correction with labels, in the order of a loader.

    Parameters
    ----------
    labels : array of shape (m,) or (m, K), or mapping
        One entry per row of the loader, NaN where the label is unknown, or ``{row position: label}``.
    """

    def __init__(self, labels: Any) -> None:
        if isinstance(labels, Mapping):
            labels = {row: _to_numpy(label) for row, label in labels.items()}
            self._known = np.array([key for key in labels if isinstance(key, (int, np.integer))], dtype=np.int64)
        else:
            # The number of rows is known only after the loader was read, so lengths are checked then.
            labels = _to_numpy(labels)
            values = read_labels(labels, np.shape(labels)[0] if np.ndim(labels) else 1, "adapt_head", ARGUMENT)[0]
            self._known = np.flatnonzero(np.isfinite(values).any(axis=1))
        self._labels = labels
        self._rng = np.random.default_rng(0)
        self._labelled: list[Matrix] = []
        self._positions: list[NDArray[np.int64]] = []
        self._others, self._keys = np.empty((0, 0)), np.empty(0)
        self.rows = 0

    def add(self, features: Tensor) -> None:
        """Add the features of the next rows of the loader."""
        values = features.detach().to("cpu", torch.float64).numpy()
        positions = np.arange(self.rows, self.rows + len(values), dtype=np.int64)
        self.rows += len(values)
        known = np.isin(positions, self._known)
        self._labelled.append(values[known])
        self._positions.append(positions[known])
        # The rows with the smallest random keys are a random sample of all rows.
        others = values[~known]
        self._others = np.vstack([self._others.reshape(-1, values.shape[1]), others])
        self._keys = np.append(self._keys, self._rng.random(len(others)))
        if len(self._keys) > 2 * MAX_UNLABELLED:
            self._reduce()

    def read(self, rows: int) -> Matrix:
        """Return the labels of shape (rows, K), NaN where unknown; raise ValueError if they do not match the rows."""
        return read_labels(self._labels, rows, "adapt_head", ARGUMENT)[0]

    def select(self) -> tuple[Matrix, Matrix, Vector]:
        """Return features, labels and counts of the rows that were kept; a count stands for several rows."""
        labels = self.read(self.rows)
        self._reduce()
        positions = np.concatenate(self._positions)
        unlabelled = len(self._others)
        share = (self.rows - len(positions)) / max(unlabelled, 1)
        return (
            np.vstack([*self._labelled, self._others]),
            np.vstack([labels[positions], np.full((unlabelled, labels.shape[1]), np.nan)]),
            np.concatenate([np.ones(len(positions)), np.full(unlabelled, share)]),
        )

    def _reduce(self) -> None:
        if len(self._keys) > MAX_UNLABELLED:
            kept = np.argpartition(self._keys, MAX_UNLABELLED)[:MAX_UNLABELLED]
            self._others, self._keys = self._others[kept], self._keys[kept]


def _to_numpy(values: Any) -> Any:
    """Return a tensor as an array; numpy does not read tensors of a GPU, with gradients or in bfloat16."""
    return values.detach().to("cpu", torch.float64).numpy() if isinstance(values, Tensor) else values


def check_order(target_loader: Any) -> None:
    """Raise InputError for a loader that shuffles, whose rows cannot be matched with labels by position."""
    if isinstance(getattr(target_loader, "sampler", None), torch.utils.data.RandomSampler):
        raise InputError(
            "target_loader shuffles its rows, so target_labels cannot be matched with them; use "
            "DataLoader(..., shuffle=False)"
        )

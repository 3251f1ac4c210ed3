"""What alignment needs to know of a source: the leading directions of its features, and a sample of them."""

from __future__ import annotations

import os
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.stats import betabinom
from torch import Tensor, nn

from pyspar.errors import InputError
from pyspar.nn.features import RowSample
from pyspar.persist import write_atomically

MAX_DIRECTIONS, MIN_VARIANCE = 100, 1e-6  # a share of the largest variance
NEIGHBOURS, SHARE_OUTSIDE = 5, 0.05  # of held-out source rows
MIN_SOURCE_ROWS, MAX_SOURCE_ROWS, SAMPLE = 50, 10_000, 4_000  # half of the sample is the support


@dataclass(frozen=True, eq=False)
class SourceSummary:
    """The features of a source, which are the inputs of a network's head: ``mean``, the leading principal
    ``directions`` (D, K) with their ``variances``, a sample (``support``), the distance of each of its rows to its
    nearest others (``scales``), the relative ``distances`` of other source rows in ascending order, and the weights of
    the ``head``, by which the network is recognised. ``outputs`` has mean and spread of each channel of the outputs of
    normalisation layers.
    """

    mean: NDArray[np.float32]
    directions: NDArray[np.float32]
    variances: NDArray[np.float32]
    support: NDArray[np.float32]
    scales: NDArray[np.float32]
    distances: NDArray[np.float32]
    head: NDArray[np.float32]
    outputs: NDArray[np.float32]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the summary to an ``.npz`` file."""
        if Path(path).suffix != ".npz":
            raise InputError(f"the file name must end in .npz, got {str(path)!r}")
        with write_atomically(path) as [temporary], temporary.open("wb") as file:
            np.savez_compressed(file, **asdict(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SourceSummary:
        """Read a file that ``save`` wrote. No code from the file is run."""
        if not Path(path).is_file():
            raise InputError(f"file not found: {str(path)!r}; write it with summarize(model, loader).save(path)")
        try:
            with Path(path).open("rb") as stream, np.lib.npyio.NpzFile(stream, allow_pickle=False) as file:
                parts = {name: np.asarray(file[name], dtype=np.float32) for name in cls.__dataclass_fields__}
            (d, k), (n, m, p) = parts["directions"].shape, (len(parts[x]) for x in ("support", "head", "distances"))
            shapes = {"mean": (d,), "directions": (d, k), "variances": (k,), "support": (n, d), "scales": (n,)}
            shapes |= {"distances": (p,), "head": (m, d), "outputs": (2, parts["outputs"].size // 2)}
            good = all(part.shape == shapes[name] and np.isfinite(part).all() for name, part in parts.items())
            if not good or not k * p or n < NEIGHBOURS or parts["variances"].min() <= 0.0:
                raise ValueError("its arrays do not belong together")
        except (KeyError, TypeError, ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"{str(path)!r} is not a summary ({error}); write it with summarize again") from None
        return cls(**parts)

    def check_head(self, head: nn.Linear) -> None:
        """Raise InputError if the summary is that of another network. The precision may differ."""
        weight = head.weight.detach().cpu().float().numpy()
        if weight.shape != self.head.shape or not np.allclose(weight, self.head, atol=0.01 * np.abs(weight).max()):
            got = "" if weight.shape == self.head.shape else f", of shape {self.head.shape} instead of {weight.shape}"
            raise InputError(f"the summary is of a network whose head has other weights{got}; write it with summarize")

    def test_outside(self, distances: Tensor) -> tuple[float, float]:
        """Return the share of target rows beyond the 95 % quantile, and the probability of it, or more, by chance."""
        others, rows = len(self.distances) + 1, len(distances)
        rank = max(int(SHARE_OUTSIDE * others), 1)
        outside = int((distances > float(self.distances[-rank])).sum())
        # The share of rows beyond an order statistic has a beta distribution.
        return outside / rows, float(betabinom.sf(outside - 1, rows, rank, others - rank))


def make_summary(sample: RowSample, head: nn.Linear, outputs: Tensor) -> SourceSummary:
    """Return the summary of a sample of features. Subnormal numbers, which are slow, become zero."""
    if sample.rows < MIN_SOURCE_ROWS:
        raise InputError(f"source must have at least {MIN_SOURCE_ROWS} rows, got {sample.rows}; pass training rows")
    features, _ = sample.select()
    rows = features.double()
    mean = rows.mean(dim=0)
    d, covariance = len(mean), torch.cov(rows.T, correction=0).reshape(len(mean), len(mean)).numpy()
    leading = eigh(covariance, subset_by_index=[max(d - MAX_DIRECTIONS, 0), d - 1])
    variances, directions = (torch.from_numpy(part).flip(-1) for part in leading)
    kept = variances > max(MIN_VARIANCE * float(variances[0]), 1e-12 * float(mean.square().max()))
    if not kept.any():
        raise InputError("the features of the source are constant; pass a trained network and rows that differ")
    support, held_out = features[:SAMPLE].tensor_split([min(SAMPLE, len(features)) // 2])
    between = torch.cdist(support, support).fill_diagonal_(torch.inf)
    scales = between.topk(NEIGHBOURS, largest=False).values.mean(dim=1)
    distances = relative_distance(held_out, support, scales).sort().values
    parts = mean, directions[:, kept], variances[kept], support, scales, distances, head.weight.detach(), outputs
    return SourceSummary(*(torch.hardshrink(part.cpu().float(), 1e-30).numpy() for part in parts))


def relative_distance(rows: Tensor, support: Tensor, scales: Tensor) -> Tensor:
    """Return the distance of each row to its nearest rows of the support, divided by these rows' own distance.

    Without the division, a target with more rows in a sparse place of the support would seem to be outside.
    """
    nearest = torch.cdist(rows, support).topk(NEIGHBOURS, largest=False)
    return nearest.values.mean(dim=1) / (scales[nearest.indices].mean(dim=1) + 1e-12)

"""Summaries of trained networks, from which a new head can be scored without training and without their features.

A summary has the moments of the source features with the labels, those of the test features with the labels and the
predictions of the trained head, and the trained head, along the directions of the features above the cutoff. For
example, ``one = read_summaries("results/rcf-mnist/summaries.npz")["ERM", 0]`` and
``one.rmse(SpARRegressor(fit_intercept=False).fit(one.source).adapt(one.target).coef_)``.

The coordinates are the right singular vectors of the source features, so the source moments are a few vectors. The root
of the test moments is a triangle, whose columns are stored as float16: an error is recomputed to three digits.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.core.moments import Matrix, Moments, Vector
from pyspar.core.spectrum import default_cutoff, directions_above
from pyspar.errors import InputError
from pyspar.paper.data.files import read_npz
from pyspar.paper.runs.store import Features
from pyspar.persist import write_atomically

FILE = "summaries.npz"


@dataclass(frozen=True, eq=False)
class Summary:
    """One trained network along the directions of its features above the cutoff. ``source`` has the labels, and
    ``test`` the labels and the predictions of the trained head along all directions.
    """

    source: Moments
    test: Moments
    head: Matrix

    @property
    def target(self) -> Moments:
        return self.test.without_outputs()

    def rmse(self, weights: Any) -> float:
        return self._size(np.concatenate([[0.0], -np.ravel(weights), [1.0, 0.0]]))

    @property
    def trained_rmse(self) -> float:
        """The test error of the trained head, with its weights along all directions."""
        return self._size(np.concatenate([np.zeros(1 + self.head.shape[1]), [1.0, -1.0]]))

    def _size(self, combination: Vector) -> float:
        return float(np.linalg.norm(self.test.root @ combination) / np.sqrt(self.test.weight))


def summarise(features: Features) -> Summary:
    """Return the summary of the features of one network."""
    moments = Moments.of(features.train)
    V = directions_above(moments, default_cutoff(moments)).T
    test = features.test.astype(np.float64)
    outputs = np.column_stack([features.y_test, test @ features.head[0]])
    source = Moments.of(features.train.astype(np.float64) @ V, features.y_train)
    return Summary(source, Moments.of(test @ V, outputs), features.head @ V)


def write_summaries(path: Path, summaries: dict[tuple[str, int], Summary]) -> None:
    """Write summaries by method and seed to one file."""
    arrays = {f"{m}/{seed}/{n}": v for (m, seed), one in summaries.items() for n, v in _pack(one).items()}
    with write_atomically(path) as (temporary,):
        np.savez_compressed(temporary, **arrays)


def read_summaries(path: str | os.PathLike[str]) -> dict[tuple[str, int], Summary]:
    """Read a file of :func:`write_summaries`."""
    packed: dict[tuple[str, int], dict[str, Any]] = {}
    try:
        for entry, array in read_npz(Path(path)).items():
            method, seed, name = entry.split("/")
            packed.setdefault((method, int(seed)), {})[name] = array
        return {network: _unpack(arrays) for network, arrays in packed.items()}
    except Exception as error:  # numpy and zipfile raise errors of many types for damaged files
        raise InputError(f"cannot read {str(path)!r} ({error}); train the suite's networks to create it") from error


def _pack(summary: Summary) -> dict[str, Any]:
    d = summary.head.shape[1]
    # The features of the source are orthogonal, U diag(lam): its moments are lam and the products with U.
    _, lam, turn = np.linalg.svd(summary.source.root[:, 1 : d + 1], full_matrices=False)
    gram = summary.source.root.T @ summary.source.root
    inner = turn @ gram[1 : d + 1] / lam[:, None]
    test = summary.test.root.copy()
    test[:, 1 : d + 1] = test[:, 1 : d + 1] @ turn.T
    triangle = np.asarray(np.linalg.qr(test, mode="r"))
    triangle = np.pad(triangle, ((0, d + 3 - len(triangle)), (0, 0)))  # few test rows have a short root
    lengths = np.maximum(np.abs(triangle).max(axis=0), np.finfo(np.float64).tiny)
    return {
        "lam": lam,
        "beside": inner[:, [0, -1]],
        "corner": gram[np.ix_([0, -1], [0, -1])],
        "triangle": (triangle / lengths)[np.triu_indices(d + 3)].astype(np.float16),
        "lengths": lengths,
        "rows": np.array([summary.source.rows, summary.test.rows]),
        "head": summary.head @ turn.T,
    }


def _unpack(arrays: dict[str, Any]) -> Summary:
    lam, beside = arrays["lam"], arrays["beside"]
    d = len(lam)
    # Columns 1, X, y: the part of 1 and y along U, and the root of the rest.
    root = np.zeros((d + 2, d + 2))
    root[:d, [0, -1]] = beside
    root[:d, 1 : d + 1] = np.diag(lam)
    values, vectors = np.linalg.eigh(arrays["corner"] - beside.T @ beside)
    root[d:, [0, -1]] = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    test = np.zeros((d + 3, d + 3))
    test[np.triu_indices(d + 3)] = arrays["triangle"]
    n, m = map(int, arrays["rows"])
    source = _make_moments(np.asarray(np.linalg.qr(root, mode="r")), d, n)
    return Summary(source, _make_moments(test * arrays["lengths"], d, m), arrays["head"])


def _make_moments(root: Matrix, d: int, rows: int) -> Moments:
    return Moments(root, d, rows, float(rows), float(rows), np.full(d, float(np.finfo(np.float32).eps)))

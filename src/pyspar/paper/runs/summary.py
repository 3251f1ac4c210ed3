"""Summaries of trained networks, tens of kilobytes each, from which heads can be scored again.

The features of an image network take gigabytes, and training it takes a GPU. A rule that depends on the features only
through their moments along directions that are not faint needs neither. A summary stores these moments and the labels
for the source and for the test rows, the trained head and its predictions for the test rows, and the source moments
weighted by its squared errors. Every run writes one per seed. After a change of a rule, ``python -m
pyspar.paper.runs.summary results/chair-angles`` scores the heads ``OLS`` and ``Bayes-SpAR`` of a suite again. SpAR
needs the target's other directions too; its rule is that of the paper and does not change.

The coordinates are the right singular vectors of the source features, so the source moments are a few vectors. The root
of the test moments is a triangle. Its columns are stored as 24-bit integers in units of their largest entry. This costs
three bytes for each of ``d (d + 1) / 2`` numbers: 40 kB for the 170 directions of a ResNet-34, and 2.5 MB if none of
1280 were faint. 16 bits would change the last printed digit of some scores. The weighted moments only decide which
directions are corrected, so 16 bits are enough for them: they are stored as correlations, which are small in these
coordinates and compress well.
"""

from __future__ import annotations

import argparse
import os
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from pyspar.core.arrays import Matrix, Vector
from pyspar.core.moments import Moments
from pyspar.core.refit import factor_of_sizes
from pyspar.core.spectrum import default_cutoff, directions_above
from pyspar.errors import InputError, collect_warnings
from pyspar.estimators.head_weights import HeadMethod, error_roots_of, fit_head
from pyspar.estimators.spar import BayesSpARRegressor
from pyspar.io.archives import check_entries
from pyspar.io.atomic import whole_file
from pyspar.paper.runs.heads import METHODS, Head
from pyspar.paper.runs.metrics import round_to_float32
from pyspar.paper.runs.records import Record, read_records, write_records
from pyspar.paper.runs.store import DamagedError, Features, RunFolder

HEADS = (Head("OLS"), Head("Bayes-SpAR"))
"""The heads that a summary scores."""
METRIC = "rmse"
FILE = "summaries.npz"
_STEPS = 2**23 - 1
_ERROR_STEPS = 2**15 - 1


@dataclass(frozen=True, eq=False)
class Summary:
    """One trained network, along the directions of its features that are not faint.

    Attributes
    ----------
    source : Moments
        Moments of the features along these directions, with the labels.
    test : Moments
        The same for the test rows, with the labels and the predictions of the trained head along all directions.
    head : array of shape (1, directions)
        The trained head along these directions.
    error_root : array of shape (any, directions)
        The ``error_roots`` of :func:`fit_head` for the one output.
    """

    source: Moments
    test: Moments
    head: Matrix
    error_root: Matrix

    def rmse(self, method: HeadMethod = "bayes") -> float:
        """Return the test error of the head that ``fit_head`` computes with a method, "bayes" or "ols"."""
        target = self.test.without_outputs()
        with collect_warnings():
            new = fit_head(self.source, target, method, coef=self.head, cutoff=0.0, error_roots=(self.error_root,))
        if method == "ols":
            return self._test_size(-new.coef[0], label=1.0)
        adaptation = cast(BayesSpARRegressor, new.estimator).adaptation_
        scale, w = 0.0, np.zeros(len(self.head[0]))
        if new.changed.directions:
            # As in fit_head, the change includes the removal of the trained weights along faint directions.
            w = (adaptation.w_proj / adaptation.scale)[:, 0]
            on_source = np.linalg.norm(self.source.root[:, 1:-1] @ w) / np.sqrt(self.source.weight)
            on_target = self._test_size(self.head[0] + w, trained=-1.0)
            (scale,) = factor_of_sizes(np.array([on_source]), np.array([on_target]))
        return self._test_size(-scale * (self.head[0] + w), label=1.0, trained=scale - 1.0)

    def _test_size(self, weights: Vector, *, label: float = 0.0, trained: float = 0.0) -> float:
        """Return the root mean square over the test rows of a combination of features, label and prediction."""
        combination = np.concatenate([[0.0], weights, [label, trained]])
        return float(np.linalg.norm(self.test.root @ combination) / np.sqrt(self.test.weight))


def summarise(features: Features) -> Summary:
    """Return the summary of one seed's features."""
    moments = Moments.of(features.train)
    loud = directions_above(moments, default_cutoff(moments)).T
    eps = float(moments.eps.max())
    test_rows = features.test.astype(np.float64)
    outputs = np.column_stack([features.y_test, test_rows @ features.head[0]])
    source = Moments.of(features.train.astype(np.float64) @ loud, features.y_train, eps=eps)
    (error_root,) = error_roots_of(features.train, features.y_train[:, None], features.head)
    return Summary(source, Moments.of(test_rows @ loud, outputs, eps=eps), features.head @ loud, error_root @ loud)


def pack_summary(summary: Summary) -> dict[str, Any]:
    """Return the arrays that store a summary."""
    d = summary.head.shape[1]
    # The features of the source are orthogonal, U diag(lam): its moments are lam and the products with U.
    _, lam, turn = np.linalg.svd(summary.source.root[:, 1 : d + 1], full_matrices=False)
    gram = summary.source.root.T @ summary.source.root
    inner = turn @ gram[1 : d + 1]
    test = np.zeros((d + 3, d + 3))  # a few test rows have a root with fewer rows
    test[: len(summary.test.root)] = summary.test.root
    test[:, 1 : d + 1] = test[:, 1 : d + 1] @ turn.T
    test = np.asarray(np.linalg.qr(test, mode="r"))
    columns = test[: d + 1, 1 : d + 1]
    lengths = np.abs(columns).max(axis=0)
    lengths[lengths == 0.0] = 1.0
    return {
        "lam": lam,
        "ones": inner[:, 0] / lam,
        "labels": inner[:, -1] / lam,
        "corner": gram[np.ix_([0, -1], [0, -1])],
        "triangle": _pack_integers(np.round(columns / lengths * _STEPS)[_triangle(d)]),
        "lengths": lengths,
        "test_outputs": test[:, [0, -2, -1]],
        "rows": np.array([summary.source.rows, summary.test.rows]),
        "head": summary.head @ turn.T,
        **_pack_errors(summary.error_root @ turn.T),
    }


def unpack_summary(arrays: dict[str, Any]) -> Summary:
    """Return the summary of arrays of :func:`pack_summary`."""
    lam, ones, labels, corner = (arrays[name] for name in ("lam", "ones", "labels", "corner"))
    d = len(lam)
    # Columns 1, X, y: the part of 1 and y along U, and the root of the rest.
    root = np.zeros((d + 2, d + 2))
    root[:d, 0], root[:d, -1] = ones, labels
    root[:d, 1 : d + 1] = np.diag(lam)
    beside = np.column_stack([ones, labels])
    values, vectors = np.linalg.eigh(corner - beside.T @ beside)
    root[d:, [0, -1]] = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    triangle = np.zeros((d + 1, d))
    triangle[_triangle(d)] = _unpack_integers(arrays["triangle"])
    test = np.zeros((d + 3, d + 3))
    test[: d + 1, 1 : d + 1] = triangle * (arrays["lengths"] / _STEPS)
    test[:, [0, -2, -1]] = arrays["test_outputs"]
    n, m = map(int, arrays["rows"])
    return Summary(
        _moments(np.asarray(np.linalg.qr(root, mode="r")), d, n),
        _moments(test, d, m),
        arrays["head"],
        _unpack_errors(arrays),
    )


def _triangle(d: int) -> tuple[Any, Any]:
    """Return the indices of the feature columns of an upper triangular root of [1 | X]: column j has j + 2 rows."""
    columns = np.repeat(np.arange(d), np.arange(2, d + 2))
    rows = np.concatenate([np.arange(j + 2) for j in range(d)])
    return rows, columns


def _pack_errors(root: Matrix) -> dict[str, Any]:
    """Return the lengths of the columns of a root, and the correlations of the columns as 16-bit integers."""
    lengths = np.linalg.norm(root, axis=0)
    columns = root / np.where(lengths > 0.0, lengths, 1.0)
    correlations = (columns.T @ columns)[np.tril_indices(len(lengths), -1)]
    return {"error_lengths": lengths, "errors": np.round(correlations * _ERROR_STEPS).astype("<i2")}


def _unpack_errors(arrays: dict[str, Any]) -> Matrix:
    lengths = arrays["error_lengths"]
    lower = np.zeros((len(lengths), len(lengths)))
    lower[np.tril_indices(len(lengths), -1)] = arrays["errors"] / _ERROR_STEPS
    values, vectors = np.linalg.eigh(lower + lower.T + np.eye(len(lengths)))
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * lengths)


def _pack_integers(values: Vector) -> Any:
    """Return integers below 2^23 as rows of three bytes."""
    return values.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3]


def _unpack_integers(three: Any) -> Any:
    sign = np.where(three[:, 2:] > 127, 255, 0).astype(np.uint8)  # the fourth byte of a negative integer
    return np.hstack([three, sign]).view("<i4")[:, 0]


def _moments(root: Matrix, d: int, rows: int) -> Moments:
    eps: Vector = np.full(d, float(np.finfo(np.float32).eps))
    return Moments(root, d, rows, float(rows), float(rows), eps)


def write_summaries(path: Path, summaries: dict[tuple[str, int], Summary]) -> None:
    """Write summaries by run and seed to one file."""
    arrays = {
        f"{run}/{seed}/{name}": value
        for (run, seed), summary in summaries.items()
        for name, value in pack_summary(summary).items()
    }
    with whole_file(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)


def read_summaries(path: str | os.PathLike[str]) -> dict[tuple[str, int], Summary]:
    """Read a file of :func:`write_summaries`."""
    if not Path(path).is_file():
        raise InputError(f"file not found: {str(path)!r}; train the suite's networks to create it.")
    try:
        with zipfile.ZipFile(path) as archive:
            check_entries(archive, Path(path).stat().st_size, str(path), compressed=True)
            damaged = archive.testzip()  # numpy may stop reading before the checksum of an entry is compared
        if damaged is not None:
            raise ValueError(f"{damaged} has the wrong checksum")
        by_network: dict[tuple[str, int], dict[str, Any]] = {}
        with np.load(path, allow_pickle=False) as arrays:
            for entry in arrays.files:
                run, seed, name = entry.split("/")
                by_network.setdefault((run, int(seed)), {})[name] = arrays[entry]
        return {network: unpack_summary(entries) for network, entries in by_network.items()}
    except Exception as error:  # numpy and zipfile raise errors of many types for damaged files
        raise InputError(f"cannot read {path} ({error}); create it again from the runs with --runs") from error


def rescore_records(records: Iterable[Record], summaries: dict[tuple[str, int], Summary]) -> list[Record]:
    """Return the records of a suite, with those of an older recipe recomputed where a summary exists."""
    by_name = {head.name: head for head in HEADS}
    rescored = []
    for record in records:
        summary = summaries.get((record.run, record.seed))
        head = by_name.get(record.method.partition(" + ")[2])
        if summary is not None and head is not None and record.metric == METRIC and record.recipe != head.recipe:
            value = summary.rmse(METHODS[head.name])
            record = replace(record, value=round_to_float32(value), recipe=head.recipe)
        rescored.append(record)
    return rescored


def update_summaries(file: Path, runs: Path, records: Iterable[Record]) -> None:
    """Write the summaries of the networks of records: from a folder of runs, or else from the existing file."""
    known = read_summaries(file) if file.is_file() else {}
    summaries = {}
    for run, seed in dict.fromkeys((record.run, record.seed) for record in records):
        folder = RunFolder(runs / run)
        if folder.summary_path(seed).is_file():
            summaries[run, seed] = read_summaries(folder.summary_path(seed))[run, seed]
        elif (run, seed) in known:
            summaries[run, seed] = known[run, seed]
        else:
            try:
                summaries[run, seed] = summarise(folder.read_features(seed))
            except DamagedError as error:
                raise InputError(f"{error}; run the suite again.") from error
    write_summaries(file, summaries)


def write_run_summary(folder: RunFolder, seed: int, features: Features) -> None:
    """Write the summary of one seed into the folder of its run, where it stays if the features are dropped."""
    write_summaries(folder.summary_path(seed), {(folder.path.name, seed): summarise(features)})


def main(arguments: list[str] | None = None) -> int:
    """Score heads of a suite again from its summaries, and write its records."""
    parser = argparse.ArgumentParser("python -m pyspar.paper.runs.summary", description=main.__doc__)
    parser.add_argument("folder", type=Path, help="a folder with records.jsonl, such as results/chair-angles")
    parser.add_argument("--runs", type=Path, help=f"first write {FILE} from this folder of runs")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    try:
        records = read_records(folder / "records.jsonl")
        if options.runs is not None:
            update_summaries(folder / FILE, options.runs, records)
        records = rescore_records(records, read_summaries(folder / FILE))
        write_records(folder / "records.jsonl", records)
    except (InputError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    labels = {head.name: head.recipe for head in HEADS}
    heads = [(record.method.partition(" + ")[2], record.recipe) for record in records]
    count = sum(labels.get(name) == recipe for name, recipe in heads)
    total = sum(name in labels for name, _ in heads)
    sys.stdout.write(f"{folder / 'records.jsonl'}: {count} of {total} records of {', '.join(labels)} are current\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

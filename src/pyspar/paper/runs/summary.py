"""Summaries of trained networks, a few hundred kilobytes each, from which a head can be scored again.

The features of an image network take gigabytes, and training it takes a GPU. A rule that depends on the features only
through their moments along directions that are not faint needs neither. A summary stores these moments and the labels
for the source and for the test rows, and the trained head. After a change of the rule,
``python -m pyspar.paper.runs.summary results/rcf-mnist`` scores the head ``Bayes-SpAR`` of a suite again.
"""

from __future__ import annotations

import argparse
import os
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.core.arrays import Matrix
from pyspar.core.cutoff import default_cutoff, directions_above
from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.estimators.heads import fit_head
from pyspar.io.atomic import whole_file
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.metrics import round_to_float32
from pyspar.paper.runs.records import Record, read_records, write_records
from pyspar.paper.runs.store import DamagedError, Features, RunFolder

HEAD = Head("Bayes-SpAR")
METRIC = "rmse"
FILE = "summaries.npz"


@dataclass(frozen=True, eq=False)
class Summary:
    """One trained network, along the directions of its features that are not faint.

    Attributes
    ----------
    source, test : Moments
        Moments of the features along these directions, with the labels.
    head : array of shape (1, directions)
        The trained head along them.
    trained_rmse : float
        The test error of the trained head, including all of its directions.
    """

    source: Moments
    test: Moments
    head: Matrix
    trained_rmse: float

    def rmse(self) -> float:
        """Return the test error of the head that ``adapt_head`` computes by default."""
        new = fit_head(self.source, self.test.without_outputs(), "bayes", coef=self.head, cutoff=0.0)
        if not new.changed.directions:
            return self.trained_rmse
        error = self.test.root @ np.concatenate([[0.0], -new.coef[0], [1.0]])
        return float(np.linalg.norm(error) / np.sqrt(self.test.weight))


def summarise(features: Features) -> Summary:
    """Return the summary of one seed's features."""
    moments = Moments.of(features.train)
    loud = directions_above(moments, default_cutoff(moments)).T
    eps = float(moments.eps.max())
    source, test = (
        Moments.of(rows.astype(np.float64) @ loud, labels, eps=eps)
        for rows, labels in ((features.train, features.y_train), (features.test, features.y_test))
    )
    error = features.test.astype(np.float64) @ features.head[0] - features.y_test
    return Summary(source, test, features.head @ loud, float(np.sqrt(np.mean(error**2))))


def write_summaries(path: Path, summaries: dict[tuple[str, int], Summary]) -> None:
    """Write summaries by run and seed to one file, in float32."""
    arrays: dict[str, Any] = {}
    for (run, seed), one in summaries.items():
        for name, moments in (("source", one.source), ("test", one.test)):
            arrays[f"{run}/{seed}/{name}"] = moments.root.astype(np.float32)
            arrays[f"{run}/{seed}/{name}_rows"] = np.array(moments.rows)
        arrays[f"{run}/{seed}/head"] = one.head
        arrays[f"{run}/{seed}/trained_rmse"] = np.array(one.trained_rmse)
    with whole_file(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)


def read_summaries(path: str | os.PathLike[str]) -> dict[tuple[str, int], Summary]:
    """Read a file of :func:`write_summaries`."""
    if not Path(path).is_file():
        raise InputError(f"file not found: {str(path)!r}; train the suite's networks to create it.")
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # numpy may stop reading before the checksum of an entry is compared
        if damaged is not None:
            raise ValueError(f"{damaged} has the wrong checksum")
        with np.load(path, allow_pickle=False) as arrays:
            return _parse_summaries(arrays)
    except Exception as error:  # numpy and zipfile raise errors of many types for damaged files
        raise InputError(f"cannot read {path} ({error}); create it again from the runs with --runs") from error


def _parse_summaries(arrays: Any) -> dict[tuple[str, int], Summary]:
    keys = dict.fromkeys(tuple(name.split("/")[:2]) for name in arrays.files)
    return {
        (run, int(seed)): Summary(
            source=_moments(arrays[f"{run}/{seed}/source"], int(arrays[f"{run}/{seed}/source_rows"])),
            test=_moments(arrays[f"{run}/{seed}/test"], int(arrays[f"{run}/{seed}/test_rows"])),
            head=arrays[f"{run}/{seed}/head"],
            trained_rmse=float(arrays[f"{run}/{seed}/trained_rmse"]),
        )
        for run, seed in keys
    }


def _moments(root: Matrix, rows: int) -> Moments:
    eps = np.full(root.shape[1] - 2, float(np.finfo(np.float32).eps))
    return Moments(root.astype(np.float64), len(eps), rows, float(rows), float(rows), eps)


def rescore_records(records: Iterable[Record], summaries: dict[tuple[str, int], Summary]) -> list[Record]:
    """Return the records of a suite, with those of the head recomputed where a summary exists."""
    rescored = []
    for record in records:
        summary = summaries.get((record.run, record.seed))
        if summary is not None and record.method.endswith(f" + {HEAD.name}") and record.metric == METRIC:
            record = replace(record, value=round_to_float32(summary.rmse()), recipe=HEAD.recipe)
        rescored.append(record)
    return rescored


def _summarise_runs(runs: Path, records: Iterable[Record]) -> dict[tuple[str, int], Summary]:
    """Return the summaries of every run and seed of the records, from the features in a folder of runs."""
    networks = dict.fromkeys((record.run, record.seed) for record in records)
    try:
        return {(run, seed): summarise(RunFolder(runs / run).read_features(seed)) for run, seed in networks}
    except DamagedError as error:
        raise InputError(f"{error}; run the suite again with its features kept.") from error


def main(arguments: list[str] | None = None) -> int:
    """Score the head of a suite again from its summaries, and write its records."""
    parser = argparse.ArgumentParser("python -m pyspar.paper.runs.summary", description=main.__doc__)
    parser.add_argument("folder", type=Path, help=f"a folder with records.jsonl and {FILE}, such as results/rcf-mnist")
    parser.add_argument("--runs", type=Path, help=f"first write {FILE} from the features in this folder of runs")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    try:
        records = read_records(folder / "records.jsonl")
        if options.runs is not None:
            write_summaries(folder / FILE, _summarise_runs(options.runs, records))
        records = rescore_records(records, read_summaries(folder / FILE))
        write_records(folder / "records.jsonl", records)
    except (InputError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    count = sum(record.recipe == HEAD.recipe for record in records)
    sys.stdout.write(f"{folder / 'records.jsonl'}: {count} records of {HEAD.name} use the current rule\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

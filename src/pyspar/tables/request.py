"""The request of ``adapt`` and ``inspect``: the files to read, whether to read them in batches, and output paths."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspar.errors import InputError, need
from pyspar.estimators.validation import check_alpha
from pyspar.io.moments import is_moments_file
from pyspar.sources.files import STREAM_SUFFIXES
from pyspar.sources.files.header import suffix_of
from pyspar.sources.files.predictions import OUTPUT_SUFFIXES
from pyspar.tables.memory import decoded_size, free_memory

Method = Literal["bayes", "spar", "ols", "ridge", "pcr"]
Features = Literal["all", "num"]
BadCells = Literal["stop", "impute"]

DEFAULT_ALPHA = 0.999
"""The confidence of the paper's rule."""

_MEMORY_DIVISOR = 4
"""A file is streamed if it needs more than 1/4 of free memory, because encoding takes several times its size."""


@dataclass(frozen=True)
class Request:
    """Two files and how to read them.

    ``source`` and ``target`` contain rows or Moments. ``label`` may be None if the source contains Moments. ``alpha``
    is the confidence of the paper's rule, by default 0.999; if it is set, ``bayes`` uses that rule as well.
    ``identity`` is the column with the ids of the rows, ``drop`` are columns to ignore, and ``categories`` are columns
    that are categories even if they contain numbers. ``stream`` reads the files in batches even if they fit into
    memory. ``bad_cells`` says what to do with text among numbers, and ``drop_unlabelled`` ignores source rows without
    a label. ``groups`` is the column with the groups of the rows, which is no feature. ``labels`` is a file with labels
    of target rows, as ``spar label`` writes it and a person fills it in. ``cost`` is the
    column with the cost of each label, which is no feature either.
    """

    source: Path
    target: Path
    label: str | None
    alpha: float | None = None
    features: Features = "all"
    identity: str | None = None
    drop: tuple[str, ...] = ()
    stream: bool = False
    categories: tuple[str, ...] = ()
    bad_cells: BadCells = "stop"
    drop_unlabelled: bool = False
    groups: str | None = None
    labels: Path | None = None
    cost: str | None = None

    def check(self) -> None:
        """Raise InputError if the confidence is not in [0, 1]."""
        try:
            check_alpha(self.confidence)
        except ValueError as error:
            raise InputError(str(error)) from error

    @property
    def confidence(self) -> float:
        """The confidence of the paper's rule."""
        return DEFAULT_ALPHA if self.alpha is None else self.alpha

    @property
    def is_streamed(self) -> bool:
        """Whether the files are read in batches: on request, for folders, large files and files of Moments."""
        paths = (self.source, self.target)
        if self.stream or any(path.is_dir() or contains_moments(path) for path in paths):
            return True
        return any(map(exceeds_memory, paths)) and all(suffix_of(path) in STREAM_SUFFIXES for path in paths)


def contains_moments(path: Path) -> bool:
    """Return whether ``spar summarize`` or ``pyspar.save`` wrote this file."""
    return path.suffix.lower() == ".npz" and is_moments_file(path)


def exceeds_memory(path: Path) -> bool:
    """Return whether a file needs more than a quarter of the free memory."""
    free = free_memory()
    return free is not None and path.is_file() and decoded_size(path) > free // _MEMORY_DIVISOR


def check_interval_level(level: float | None) -> None:
    """Raise InputError if the probability of intervals is not in (0, 1). None stands for no intervals."""
    if level is not None and not 0.0 < level < 1.0:
        raise InputError(f"--level must be in (0, 1), got {level:g}; try 0.9")


def check_outputs(
    output: Path | None, save: Path | None, *, inputs: tuple[Path, ...], identity: str | None, safe_csv: bool = False
) -> None:
    """Raise InputError for outputs of ``spar adapt`` that cannot be written."""
    if safe_csv and (output is None or output.suffix.lower() not in (".csv", ".tsv")):
        raise InputError("--safe-csv needs an output that ends in .csv or .tsv; add -o predictions.csv")
    if output is not None:
        check_path(output, "--output", OUTPUT_SUFFIXES, inputs)
        if output.suffix.lower() == ".npy" and identity is not None:
            raise InputError("--output must be .csv, .tsv or .parquet with --id; a .npy file has no id column")
        if output.suffix.lower() == ".parquet":
            need("pyarrow", "cli")
    if save is not None:
        check_path(save, "--save", (".skops",), inputs)
        need("skops.io", "cli")


def check_reports(paths: Sequence[Path], *, inputs: tuple[Path, ...]) -> None:
    """Raise InputError for reports of ``spar inspect`` that cannot be written."""
    for number, path in enumerate(paths):
        check_path(path, "--report", (".html", ".json"), inputs)
        if any(_is_same_file(path, other) for other in paths[:number]):
            raise InputError(f"--report {str(path)!r} is given twice; choose another name")
        if path.suffix.lower() == ".html":
            need("jinja2", "report")
            need("matplotlib", "report")


def check_path(path: Path, option: str, suffixes: tuple[str, ...], inputs: tuple[Path, ...]) -> None:
    """Raise InputError for a path that cannot be written, or that is an input file."""
    where = f"{option} {str(path)!r}"
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{where}: unsupported suffix {path.suffix or 'none'!r}; use {', '.join(suffixes)}")
    if path.is_dir():
        raise InputError(f"{where} is a folder; pass a file")
    if not path.parent.is_dir():
        raise InputError(f"{where}: folder not found: {str(path.parent)!r}; create it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{where}: the folder {str(path.parent)!r} is read-only; choose another")
    if any(_is_same_file(path, other) for other in inputs):
        raise InputError(f"{where} is an input file, which would be overwritten; choose another name")


def _is_same_file(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()

"""The request of a command: the files to read, how to read them, and whether to read them in batches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspar.errors import InputError
from pyspar.estimators.validation import check_alpha
from pyspar.io.moments import is_moments_file
from pyspar.sources.files import STREAM_SUFFIXES
from pyspar.sources.files.header import suffix_of
from pyspar.tables.read import exceeds_memory

Method = Literal["bayes", "spar", "ols", "ridge", "pcr"]
Features = Literal["all", "num"]
BadCells = Literal["stop", "impute"]

DEFAULT_ALPHA = 0.999
"""The confidence of the paper's rule."""


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

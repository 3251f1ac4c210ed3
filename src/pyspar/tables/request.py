"""What ``adapt`` and ``inspect`` are asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspar.errors import InputError
from pyspar.estimators.validation import check_alpha
from pyspar.io.moments import is_moments_file
from pyspar.sources.files import STREAMED, suffix_of
from pyspar.tables.columns import Features
from pyspar.tables.memory import too_large

Method = Literal["bayes", "spar", "ols", "ridge", "pcr"]


@dataclass(frozen=True)
class Request:
    """Two files and how to read them.

    Attributes
    ----------
    source, target : Path
        Rows, or a file of Moments.
    label : str or None
        None where the source is a file of Moments, which may name its label itself.
    alpha : float or None
        The confidence of the paper's rule: 0.999 where None. Given, ``bayes`` uses that rule too.
    features : {"all", "num"}
    identity : str or None
        The column that names the rows.
    drop : tuple of str
        Columns not to use.
    stream : bool
        Read in batches, also where the files would fit into memory.
    """

    source: Path
    target: Path
    label: str | None
    alpha: float | None = None
    features: Features = "all"
    identity: str | None = None
    drop: tuple[str, ...] = ()
    stream: bool = False

    def checked(self) -> Request:
        """Refuse a confidence that is none."""
        try:
            check_alpha(self.confidence)
        except ValueError as error:
            raise InputError(str(error)) from error
        return self

    @property
    def confidence(self) -> float:
        """The confidence of the paper's rule."""
        return 0.999 if self.alpha is None else self.alpha

    @property
    def summarised(self) -> bool:
        """Whether the files go through Moments: asked for, a folder, too large for memory, or Moments already."""
        paths = (self.source, self.target)
        if self.stream or any(path.is_dir() or holds_moments(path) for path in paths):
            return True
        return any(map(too_large, paths)) and all(suffix_of(path) in STREAMED for path in paths)


def holds_moments(path: Path) -> bool:
    """Say whether a file is one that ``spar summarize`` or ``pyspar.save`` wrote."""
    return path.suffix.lower() == ".npz" and is_moments_file(path)

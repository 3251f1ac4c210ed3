"""Row files larger than memory: opened without reading rows, then read once in batches and reduced to Moments.

The formats are Parquet (a file or a folder of files), delimited text, and ``.npy``. Reading and computing overlap.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np

from pyspar.core.moments import Moments
from pyspar.sources.files.formats import STREAM_SUFFIXES, check_file, format_of
from pyspar.sources.files.rows import BATCH_BYTES, ProgressCallback, RowFile
from pyspar.sources.stream import moments_of_batches


def open_rows(path: str | os.PathLike[str], *, role: str = "file", batch_bytes: int = BATCH_BYTES) -> RowFile:
    """Open a file of rows, or a folder of Parquet files; ``role`` is its name in messages. No rows are read."""
    path = Path(path)
    if not path.is_dir():
        check_file(path, role, STREAM_SUFFIXES)
    rows: RowFile = import_module(f"pyspar.sources.files.{format_of(path).opener}").open_file(path, role, batch_bytes)
    return rows


def moments_of_file(
    path: str | os.PathLike[str] | RowFile,
    *,
    features: Sequence[str] | None = None,
    label: str | int | None = None,
    progress: ProgressCallback | None = None,
) -> Moments:
    """Compute the Moments of the rows of a file in one pass and constant memory.

    Parameters
    ----------
    path : path, or the result of open_rows
    features : names, optional
        The columns to use. None uses all numeric columns except the label.
    label : name or number, optional
        The column of the labels. Without it the result describes a target.
    progress : function of (rows, bytes), optional
        Called after each batch with the rows and bytes that are finished.

    Returns
    -------
    Moments
        With the names of the features, for ``fit`` and ``adapt``.
    """
    rows = path if isinstance(path, RowFile) else open_rows(path)
    label = rows.columns[label].name if isinstance(label, int) else label
    names = tuple(name for name in rows.numeric if name != label) if features is None else tuple(features)
    with closing(rows.read(names, label=label, progress=progress)) as batches:
        parts = (batch.X if label is None else (batch.X, batch.y) for batch in batches)
        moments = moments_of_batches(parts, labelled=label is not None)
    return replace(moments, names=names, eps=np.array([rows.column(name).eps for name in names]))

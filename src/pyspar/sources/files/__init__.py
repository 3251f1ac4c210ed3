"""Row files larger than memory: opened without reading, read once in batches, folded into Moments.

Parquet (a file or a folder of files), delimited text, and ``.npy``. Everything that can be known without reading rows
is checked first; reading and multiplying overlap.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspar.core.moments import Moments, Solver
from pyspar.errors import InputError
from pyspar.sources.files.npy import open_npy
from pyspar.sources.files.parquet import open_parquet
from pyspar.sources.files.rows import BATCH_BYTES, Progress, Rows
from pyspar.sources.files.text import open_text
from pyspar.sources.stream import moments_of_batches, read_ahead

STREAMED = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".npy")

_OPENERS = {".parquet": open_parquet, ".npy": open_npy}


def open_rows(path: str | os.PathLike[str], *, role: str = "file", batch_bytes: int = BATCH_BYTES) -> Rows:
    """Open a file of rows, or a folder of Parquet files; only headers and footers are read.

    The result knows its columns, its size and, where the file says so, its number of rows; ``batches(columns, label)``
    yields its rows. ``role`` is what messages call the file.
    """
    path = Path(path)
    if path.is_dir():
        return open_parquet(path, role, batch_bytes)
    if not path.is_file():
        raise InputError(f"{role} {str(path)!r}: expected a file. Got a path where there is none; check the spelling.")
    suffix = suffix_of(path)
    if suffix not in STREAMED:
        raise InputError(
            f"{role} {str(path)!r}: expected one of {', '.join(STREAMED)} to read in a stream. Got the suffix "
            f"{suffix or 'none'!r}; rename or convert the file."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{role} {str(path)!r}: expected rows. Got an empty file (0 bytes).")
    return _OPENERS.get(suffix, open_text)(path, role, batch_bytes)


def moments_of_file(
    path: str | os.PathLike[str] | Rows,
    *,
    features: Sequence[str] | None = None,
    label: str | int | None = None,
    progress: Progress | None = None,
    solver: Solver = "auto",
) -> Moments:
    """Summarise the rows of a file in one pass and constant memory.

    Parameters
    ----------
    path : path, or what open_rows returned
    features : names, optional
        All numeric columns but the label where None; columns that are not numeric are then left out.
    label : name or number, optional
        The column to keep as output; without it the Moments are those of a target.
    progress : function of (rows, bytes), optional
        Told after each batch how far the work has come.
    solver : {"auto", "gram", "qr"}

    Returns
    -------
    Moments
        With the names of the features, for ``fit_moments`` and ``adapt``.
    """
    rows = path if isinstance(path, Rows) else open_rows(path)
    label = rows.columns[label].name if isinstance(label, int) else label
    chosen = tuple(name for name in rows.numeric if name != label) if features is None else tuple(features)
    with closing(_watched(rows.read(chosen, label=label), label, progress)) as batches:
        found = moments_of_batches(batches, labelled=label is not None, solver=solver)
    return replace(found, names=chosen, eps=rows.eps(chosen))


def suffix_of(path: Path) -> str:
    """Return the suffix that decides the format, a trailing ``.gz`` together with the one before it.

    >>> suffix_of(Path("rows.2024.CSV.gz"))
    '.csv.gz'
    """
    suffixes = [s.lower() for s in path.suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def _watched(batches: Iterator[Any], label: str | None, progress: Progress | None) -> Generator[Any]:
    with closing(read_ahead(batches)) as ahead:  # also when the one who asked gives up
        for batch in ahead:
            yield batch.X if label is None else (batch.X, batch.y)
            if progress is not None:
                progress(batch.rows, batch.n_bytes)

"""Read a file of rows into a data frame, by its suffix; what cannot be read is refused with the reason."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd

from pyspar.errors import InputError, need
from pyspar.sources.files import suffix_of
from pyspar.sources.files.names import check_names
from pyspar.tables.arrays import read_npy, read_npz
from pyspar.tables.delimited import read_delimited

INPUTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".npy", ".npz")


def check_input(path: Path, role: str) -> None:
    """Refuse a file that is not there, empty, or of a kind that is not known; nothing is read yet."""
    if path.is_dir():
        raise InputError(f"{role} {str(path)!r}: expected a file. Got a folder.")
    if not path.is_file():
        raise InputError(f"{role} {str(path)!r}: expected a file. Got a path where there is none; check the spelling.")
    suffix = suffix_of(path)
    if suffix not in INPUTS:
        raise InputError(
            f"{role} {str(path)!r}: expected one of {', '.join(INPUTS)}. Got the suffix {suffix or 'none'!r}; "
            "rename or convert the file."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{role} {str(path)!r}: expected rows. Got an empty file (0 bytes).")
    if suffix == ".parquet":
        need("pyarrow", "cli")


def read_table(path: Path, role: str, *, as_text: Collection[str] = (), verbatim: str | None = None) -> pd.DataFrame:
    """Read a file into a data frame with unique names, at least one row, and rows numbered from 0.

    Parameters
    ----------
    path : Path
    role : str
        What to call the file in messages: "source" or "target".
    as_text : names
        Columns of delimited text to keep as text though they look like numbers.
    verbatim : name
        A column of delimited text to keep to the letter, missing values included.
    """
    check_input(path, role)
    suffix = suffix_of(path)
    try:
        if suffix == ".parquet":
            frame = _read_parquet(path, role)
        elif suffix == ".npy":
            frame = read_npy(path, role)
        elif suffix == ".npz":
            frame = read_npz(path, role)
        else:
            frame = read_delimited(path, role, as_text=as_text, verbatim=verbatim)
    except PermissionError as error:
        raise InputError(f"{role} {str(path)!r}: expected a file that may be read. Got {error.strerror}.") from error
    frame.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
    check_names(frame.columns, f"{role} {str(path)!r}")
    if len(frame) == 0:
        raise InputError(f"{role} {str(path)!r}: expected rows. Got {len(frame.columns)} columns and no row.")
    return frame


def _read_parquet(path: Path, role: str) -> pd.DataFrame:
    parquet: Any = need("pyarrow.parquet", "cli")
    arrow: Any = need("pyarrow", "cli")
    try:
        file = parquet.ParquetFile(path)
        check_names(file.schema_arrow.names, f"{role} {str(path)!r}")
        frame = file.read().to_pandas()
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, PermissionError):
            raise
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{role} {str(path)!r}: expected a whole Parquet file. Got a broken one ({reason}); save it again."
        ) from error
    # A named index is a column that pandas put aside; one without a name only counts the rows.
    aside = [name for name in frame.index.names if name is not None]
    return frame.reset_index(drop=not aside)

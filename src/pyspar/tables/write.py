"""Write the files of the commands: predictions in all formats, and several files of which all or none are changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyspar.errors import InputError
from pyspar.io.atomic import whole_files
from pyspar.sources.files.predictions import make_safe, name_columns, prediction_file


@contextmanager
def write_files(*paths: Path | None) -> Iterator[list[Any]]:
    """Yield a temporary file for each path and None for None; in the end rename the files, or none if one fails."""
    requested = [path for path in paths if path is not None]
    try:
        with whole_files(requested) as temporaries:
            names = iter(temporaries)
            yield [None if path is None else next(names) for path in paths]
    except OSError as error:
        if error.filename not in map(str, requested):
            raise
        raise _write_error(error.filename, error) from error


@contextmanager
def report_write_errors(path: Path | None) -> Iterator[None]:
    """Raise InputError for an error of the operating system while ``path`` is written."""
    try:
        yield
    except OSError as error:
        if path is None:
            raise
        raise _write_error(path, error) from error


def _write_error(path: Path, error: OSError) -> InputError:
    reason = os.strerror(error.errno) if error.errno else str(error)  # the text of pyarrow is longer
    return InputError(f"cannot write {path}: {reason.lower()}; nothing was written")


def write_predictions(
    columns: Sequence[Any], ids: pd.Series[Any] | None, path: Path, *, safe_csv: bool = False
) -> None:
    """Write predictions and, if given, the ends of their intervals, in the format of the suffix.

    The first column is the id or the number of the row, counted from 0.
    """
    suffix = path.suffix.lower()
    if suffix == ".npy":
        with prediction_file(path, None) as write:  # np.save reports a full disk without its reason
            write(None, columns[0])
        return
    key, values = ("row", np.arange(len(columns[0]))) if ids is None else (str(ids.name), ids.to_numpy())
    table = pd.DataFrame({key: values, **dict(zip(name_columns(key), columns))})
    if suffix == ".parquet":
        table.to_parquet(path, index=False, write_page_checksum=True)
    else:
        table = make_table_safe(table) if safe_csv else table
        table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")


def make_table_safe(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose text and column names a spreadsheet does not read as formulas."""
    table = table.rename(columns=make_safe)
    return table.map(lambda cell: make_safe(cell) if isinstance(cell, str) else cell)

"""The column names of text files, for the completion of options in a shell. It imports no data frame library."""

from __future__ import annotations

import csv
from pathlib import Path

from pyspar.sources.files.header import open_text, separator_of, suffix_of


def list_column_names(path: Path) -> list[str]:
    """Return the names in the first line of a ``.csv`` or ``.tsv`` file; an empty list for any other file."""
    if suffix_of(path) not in (".csv", ".tsv", ".csv.gz", ".tsv.gz"):
        return []
    try:
        with open_text(path) as file:
            return next(csv.reader(file, delimiter=separator_of(path)), [])
    except (OSError, UnicodeDecodeError, csv.Error):  # the command itself reports what is wrong with the file
        return []

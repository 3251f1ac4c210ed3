"""Delimited text (CSV, TSV): every record must have as many fields as the header; the first that has not is named.

pandas fills short records with missing values and shifts long ones without a word, so the fields are counted first.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import IO

import pandas as pd

from pyspar.errors import InputError
from pyspar.sources.files.names import check_names
from pyspar.sources.files.text import MISSING, separator_of, text_of
from pyspar.tables.values import all_commas

_FIELD_LIMIT = 2**27
"""The longest field, in characters: free text is welcome, a quote that never closes is not."""


def read_delimited(
    path: Path, role: str, *, as_text: Collection[str] = (), verbatim: str | None = None
) -> pd.DataFrame:
    """Read CSV or TSV, gzipped or not.

    Columns of ``as_text`` stay text where they look like numbers, so that ``007`` in one file is ``007`` in another;
    the column ``verbatim`` is kept to the letter, with nothing read as missing.
    """
    try:
        separator = separator_of(path)
        header, records = _count_fields(path, role, separator)
        if records == 0:
            raise InputError(f"{role} {str(path)!r}: expected rows below the header. Got a header alone.")
        marks = {name: MISSING for name in header if name != verbatim}
        frame = pd.read_csv(
            path, sep=separator, encoding="utf-8-sig", index_col=False, low_memory=False,
            keep_default_na=False, na_values=marks,
            dtype={name: str for name in {*as_text, verbatim} if name in header},
        )  # fmt: skip
    except UnicodeDecodeError as error:
        raise InputError(
            f"{role} {str(path)!r}: expected text in UTF-8. Got byte 0x{error.object[error.start]:02x}, which is not; "
            "save the file as UTF-8."
        ) from error
    except (pd.errors.ParserError, csv.Error) as error:
        raise InputError(
            f"{role} {str(path)!r}: expected delimited text. Got an unreadable record ({_line(error)}); look for "
            "a quote that is never closed."
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{role} {str(path)!r}: expected a whole gzip file. Got a broken one ({_line(error)}); compress it again."
        ) from error
    return _with_points(frame, verbatim) if separator == ";" else frame


def separator_note(path: Path, role: str) -> tuple[str, ...]:
    """Say so where the fields are separated by something else than the file's name says."""
    if not {".csv", ".tsv"} & {suffix.lower() for suffix in path.suffixes[-2:]}:
        return ()
    said, found = ("\t" if ".tsv" in path.name.lower() else ","), separator_of(path)
    if found == said:
        return ()
    also = "; decimal commas are read as points" if found == ";" else ""
    return (f"{role}: its fields are separated by {found!r}, not by {said!r}{also}",)


def _with_points(frame: pd.DataFrame, verbatim: str | None) -> pd.DataFrame:
    """Read decimal commas, which is what a semicolon between fields is for."""
    for name in frame.columns:
        if name != verbatim and all_commas(frame[name]):
            frame[name] = pd.to_numeric(frame[name].str.replace(",", ".", regex=False))
    return frame


def _count_fields(path: Path, role: str, separator: str) -> tuple[list[str], int]:
    """Return the header and the number of records, or refuse the first record of another width."""
    before = csv.field_size_limit(_FIELD_LIMIT)
    try:
        with text_of(path) as file:
            return _count_open(file, path, role, separator)
    finally:
        csv.field_size_limit(before)


def _count_open(file: IO[str], path: Path, role: str, separator: str) -> tuple[list[str], int]:
    reader = csv.reader(file, delimiter=separator)
    header: list[str] | None = None
    records, line = 0, 1
    for fields in reader:
        start, line = line, reader.line_num + 1
        if not fields:  # a blank line, which pandas skips too
            continue
        if header is None:
            header = fields
            check_names([name for name in header if name], f"{role} {str(path)!r}")
        elif len(fields) != len(header):
            raise InputError(
                f"{role} {str(path)!r}, line {start}: expected {len(header)} fields, as in the header. "
                f"Got {len(fields)}; mend that line, and quote fields that hold the separator."
            )
        else:
            records += 1
    if header is None:
        raise InputError(f"{role} {str(path)!r}: expected a header and rows. Got an empty file.")
    return header, records


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())

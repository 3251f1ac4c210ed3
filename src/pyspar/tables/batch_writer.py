"""Write predictions in batches, in the format of the suffix."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError, need
from pyspar.tables.request import make_safe, name_columns

WriteBatch = Callable[..., None]
"""Writes the ids of some rows (None numbers the rows), their predictions, and the two ends of intervals, if any."""


@contextmanager
def prediction_file(path: Path, identity: str | None, *, safe_csv: bool = False) -> Iterator[WriteBatch]:
    """Open a file of predictions in the format of its suffix. ``safe_csv`` protects text ids (``make_safe``)."""
    with open(path, "wb") as file:
        writer = (
            _ArrayWriter(file) if path.suffix.lower() == ".npy" else _TableWriter(file, path.suffix, identity, safe_csv)
        )
        yield writer.write
        writer.finish()


class _ArrayWriter:
    """Write an array whose length is known at the end. The header of numpy has space for it."""

    def __init__(self, file: Any) -> None:
        self._file, self._rows = file, 0
        self._write_header()

    def write(self, ids: Any, predictions: Any, *ends: Any) -> None:
        self._file.write(np.ascontiguousarray(predictions, dtype="<f8").tobytes())
        self._rows += len(predictions)

    def finish(self) -> None:
        self._file.seek(0)
        self._write_header()

    def _write_header(self) -> None:
        head = {"descr": "<f8", "fortran_order": False, "shape": (self._rows,)}
        np.lib.format.write_array_header_1_0(self._file, head)


class _TableWriter:
    """Write ids and predictions with Arrow. The first batch determines the type of the ids."""

    def __init__(self, file: Any, suffix: str, identity: str | None, safe_csv: bool) -> None:
        self._file, self._suffix, self._identity, self._safe = file, suffix.lower(), identity, safe_csv
        self._rows = 0
        self._writer: Any = None
        self._schema: Any = None

    def write(self, ids: Any, predictions: Any, *ends: Any) -> None:
        arrow: Any = need("pyarrow", "cli")
        n = len(predictions)
        key = arrow.array(np.arange(self._rows, self._rows + n)) if ids is None else arrow.array(ids)
        if self._safe and (arrow.types.is_string(key.type) or arrow.types.is_large_string(key.type)):
            key = arrow.array([None if text is None else make_safe(text) for text in key.to_pylist()], key.type)
        if self._writer is None:
            self._open(arrow, key.type, len(ends) + 1)
        try:
            key = key.cast(self._schema.field(0).type)
        except arrow.ArrowException as error:
            raise InputError(
                f"column {self._identity!r} must have one type in all files, got {self._schema.field(0).type} and "
                f"{key.type}; write the files again"
            ) from error
        values = [arrow.array(np.asarray(column, dtype=np.float64)) for column in (predictions, *ends)]
        self._writer.write_batch(arrow.record_batch([key, *values], schema=self._schema))
        self._rows += n

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self, arrow: Any, kind: Any, n_values: int) -> None:
        types = arrow.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        key = "row" if self._identity is None else self._identity
        names = [key, *name_columns(key)[:n_values]]
        self._schema = arrow.schema([(key, kind), *((name, arrow.float64()) for name in names[1:])])
        if self._suffix == ".parquet":
            self._writer = need("pyarrow.parquet", "cli").ParquetWriter(
                self._file, self._schema, write_page_checksum=True
            )
            return
        if types.is_nested(kind):
            raise InputError(f"column {self._identity!r}: a text file cannot hold {kind}; choose another id column")
        mark = "\t" if self._suffix == ".tsv" else ","
        header = io.StringIO()
        shown = [make_safe(name) for name in names] if self._safe else names
        csv.writer(header, delimiter=mark, lineterminator="\n").writerow(shown)
        self._file.write(header.getvalue().encode())
        text: Any = need("pyarrow.csv", "cli")
        options = text.WriteOptions(include_header=False, delimiter=mark)
        self._writer = text.CSVWriter(self._file, self._schema, write_options=options)

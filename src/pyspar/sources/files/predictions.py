"""Write predictions batch by batch, with the ids or the numbers of the rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError, need

OUTPUT_SUFFIXES = (".csv", ".tsv", ".parquet", ".npy")

WriteBatch = Callable[[Any, Any], None]
"""Writes the ids of some rows (None numbers the rows) and their predictions."""


@contextmanager
def prediction_file(path: Path, identity: str | None) -> Iterator[WriteBatch]:
    """Open a file of predictions in the format of its suffix."""
    with open(path, "wb") as file:
        writer = _ArrayWriter(file) if path.suffix.lower() == ".npy" else _TableWriter(file, path.suffix, identity)
        yield writer.write
        writer.finish()


class _ArrayWriter:
    """Write an array whose length is known at the end. The header of numpy has space for it."""

    def __init__(self, file: Any) -> None:
        self._file, self._rows = file, 0
        self._write_header()

    def write(self, ids: Any, predictions: Any) -> None:
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

    def __init__(self, file: Any, suffix: str, identity: str | None) -> None:
        self._file, self._suffix, self._identity = file, suffix.lower(), identity
        self._rows = 0
        self._writer: Any = None
        self._schema: Any = None

    def write(self, ids: Any, predictions: Any) -> None:
        arrow: Any = need("pyarrow", "cli")
        n = len(predictions)
        key = arrow.array(np.arange(self._rows, self._rows + n)) if ids is None else arrow.array(ids)
        if self._writer is None:
            self._open(arrow, key.type)
        try:
            key = key.cast(self._schema.field(0).type)
        except arrow.ArrowException as error:
            raise InputError(
                f"column {self._identity!r} must have one type in all files, got {self._schema.field(0).type} and "
                f"{key.type}; write the files again"
            ) from error
        values = arrow.array(np.asarray(predictions, dtype=np.float64))
        self._writer.write_batch(arrow.record_batch([key, values], schema=self._schema))
        self._rows += n

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self, arrow: Any, kind: Any) -> None:
        types = arrow.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        key = "row" if self._identity is None else self._identity
        names = [key, "predicted" if key == "prediction" else "prediction"]
        self._schema = arrow.schema([(names[0], kind), (names[1], arrow.float64())])
        if self._suffix == ".parquet":
            self._writer = need("pyarrow.parquet", "cli").ParquetWriter(
                self._file, self._schema, write_page_checksum=True
            )
            return
        if types.is_nested(kind):
            raise InputError(f"column {self._identity!r}: a text file cannot hold {kind}; choose another id column")
        mark = "\t" if self._suffix == ".tsv" else ","
        header = io.StringIO()
        csv.writer(header, delimiter=mark, lineterminator="\n").writerow(names)
        self._file.write(header.getvalue().encode())
        text: Any = need("pyarrow.csv", "cli")
        options = text.WriteOptions(include_header=False, delimiter=mark)
        self._writer = text.CSVWriter(self._file, self._schema, write_options=options)

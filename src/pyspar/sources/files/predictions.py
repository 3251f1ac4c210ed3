"""Predictions for the rows of a file, batch by batch, into a file that appears whole or not at all."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError, need
from pyspar.io.atomic import whole_file
from pyspar.sources.files import open_rows
from pyspar.sources.files.rows import Progress, Rows
from pyspar.sources.stream import read_ahead

OUTPUTS = (".csv", ".tsv", ".parquet", ".npy")

Write = Callable[[Any, Any], None]
"""Takes the column that names some rows (None: they are numbered) and the predictions for them."""


def predict_file(
    model: Any,
    path: str | os.PathLike[str] | Rows,
    output: str | os.PathLike[str],
    *,
    keep: str | None = None,
    progress: Progress | None = None,
) -> int:
    """Predict the rows of a file with a fitted linear model of one output, and return their number.

    Parameters
    ----------
    model : a fitted SpARRegressor, PCRRegressor or LinearRegression
        Its ``feature_names_in_`` are the columns that are read; without names, all numeric columns.
    path : path, or what open_rows returned
    output : path
        ``.csv``, ``.tsv`` and ``.parquet`` name each row by its number, or by the column ``keep``; ``.npy`` holds the
        predictions alone.
    progress : function of (rows, bytes), optional
    """
    rows = path if isinstance(path, Rows) else open_rows(path)
    columns = tuple(getattr(model, "feature_names_in_", [name for name in rows.numeric if name != keep]))
    if len(columns) != len(np.ravel(model.coef_)):
        raise InputError(
            f"{str(rows.path)!r}: expected the model's {np.size(model.coef_)} features. Got {len(columns)} numeric "
            "columns; fit on named columns, or leave the others out of the file."
        )
    if Path(output).suffix.lower() not in OUTPUTS:
        raise InputError(f"expected an output that ends in one of {', '.join(OUTPUTS)}. Got {str(output)!r}.")
    batches = rows.read(columns, keep=keep)
    done = 0
    with ExitStack() as stack, whole_file(output) as temporary, prediction_file(temporary, keep) as write:
        ahead = stack.enter_context(closing(read_ahead(batches)))
        for batch in ahead:
            write(batch.kept, batch.X @ np.ravel(model.coef_) + float(np.ravel(model.intercept_)[0]))
            done = batch.rows
            if progress is not None:
                progress(batch.rows, batch.n_bytes)
    return done


@contextmanager
def prediction_file(path: Path, keep: str | None) -> Iterator[Write]:
    """Open a file of predictions, in the form that its suffix says."""
    with open(path, "wb") as file:
        writer = _Npy(file) if path.suffix.lower() == ".npy" else _Columns(file, path.suffix.lower(), keep)
        yield writer.write
        writer.finish()


class _Npy:
    """An array whose length is known at the end: numpy leaves room in the header for it to grow."""

    def __init__(self, file: Any) -> None:
        self._file, self._rows = file, 0
        self._header()

    def write(self, kept: Any, predictions: Any) -> None:
        self._file.write(np.ascontiguousarray(predictions, dtype="<f8").tobytes())
        self._rows += len(predictions)

    def finish(self) -> None:
        self._file.seek(0)
        self._header()

    def _header(self) -> None:
        head = {"descr": "<f8", "fortran_order": False, "shape": (self._rows,)}
        np.lib.format.write_array_header_1_0(self._file, head)


class _Columns:
    """Two columns, the row and its prediction, through Arrow; the first batch decides the type of the row's name."""

    def __init__(self, file: Any, suffix: str, keep: str | None) -> None:
        self._file, self._suffix, self._keep = file, suffix, keep
        self._rows = 0
        self._writer: Any = None
        self._schema: Any = None

    def write(self, kept: Any, predictions: Any) -> None:
        arrow: Any = need("pyarrow", "cli")
        n = len(predictions)
        key = arrow.array(np.arange(self._rows, self._rows + n)) if kept is None else arrow.array(kept)
        if self._writer is None:
            self._open(arrow, key.type)
        try:
            key = key.cast(self._schema.field(0).type)
        except arrow.ArrowException as error:
            raise InputError(
                f"column {self._keep!r}: expected {self._schema.field(0).type} in every file. Got {key.type}."
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
        names = [
            "row" if self._keep is None else self._keep,
            "prediction" if self._keep != "prediction" else "predicted",
        ]
        self._schema = arrow.schema([(names[0], kind), (names[1], arrow.float64())])
        if self._suffix == ".parquet":
            self._writer = need("pyarrow.parquet", "cli").ParquetWriter(self._file, self._schema)
            return
        if types.is_nested(kind):
            raise InputError(f"column {self._keep!r}: expected values that text can hold. Got {kind}; name another.")
        mark = "\t" if self._suffix == ".tsv" else ","
        header = io.StringIO()
        csv.writer(header, delimiter=mark, lineterminator="\n").writerow(names)
        self._file.write(header.getvalue().encode())
        text: Any = need("pyarrow.csv", "cli")
        options = text.WriteOptions(include_header=False, delimiter=mark)
        self._writer = text.CSVWriter(self._file, self._schema, write_options=options)

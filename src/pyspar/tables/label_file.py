"""Files of rows to label: ``spar label`` writes them, a person fills in the labels, and ``spar adapt`` reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyspar.errors import InputError
from pyspar.sources.files.header import describe_file, describe_rows, separator_of, suffix_of
from pyspar.tables.bad_cells import check_cells, convert_text_columns
from pyspar.tables.encode import as_numbers
from pyspar.tables.read import check_input, read_table
from pyspar.tables.write import make_table_safe

ROW, REASON = "row", "reason"
"""The columns with the position of a row in the target, counted from 0, and with the reason to label it."""


def add_labels(labels: Any, path: Path, label: str, n_rows: int) -> Any:
    """Return the labels of the target with those of a file, which has the columns ``row`` and the label."""
    check_input(path, "labels")
    frame, _ = read_table(path, "labels")
    for name in (ROW, label):
        if name not in frame.columns:
            raise InputError(f"{describe_file('labels', path)}: no column {name!r}; write the file with spar label")
    frame, text = convert_text_columns(frame)
    check_cells(text, (ROW, label), path, "labels", "stop", label=label)
    rows, values = as_numbers(frame[ROW]), as_numbers(frame[label]).astype(np.float64)
    wrong = np.flatnonzero(~((rows >= 0) & (rows < n_rows) & (rows == np.floor(rows))))
    if wrong.size:
        raise InputError(
            f"{describe_file('labels', path, ROW)}: row numbers of the target must be in [0, {n_rows - 1}], got "
            f"{rows[wrong[0]]:g} in {describe_rows([int(wrong[0])], path)}; pass the target of spar label"
        )
    repeated = np.flatnonzero(pd.Series(rows).duplicated().to_numpy())
    if repeated.size:
        raise InputError(f"{describe_file('labels', path, ROW)}: row {rows[repeated[0]]:g} occurs twice; keep one")
    if np.isinf(values).any():
        raise InputError(f"{describe_file('labels', path, label)}: labels must be finite")
    merged = np.full(n_rows, np.nan) if labels is None else np.array(labels, dtype=np.float64)
    known = ~np.isnan(values)
    merged[rows[known].astype(np.int64)] = values[known]
    return merged if known.any() or labels is not None else None


def write_rows_to_label(
    target: Path, table: pd.DataFrame, rows: Any, reasons: Any, label: str, output: Path, *, safe_csv: bool
) -> None:
    """Write the chosen rows of a target with an empty label column, their positions, and the reasons."""
    if label in (ROW, REASON):
        raise InputError(f"the label must not be named {label!r}, which is a column of the output; rename it")
    if suffix_of(target) in (".csv", ".tsv", ".csv.gz", ".tsv.gz"):  # the cells as they are in the file
        table = pd.read_csv(
            target, sep=separator_of(target), dtype=str, keep_default_na=False, encoding="utf-8-sig", index_col=False
        )
    chosen = table.iloc[list(rows)].reset_index(drop=True)
    others = chosen.drop(columns=[name for name in (ROW, REASON, label) if name in chosen.columns])
    first = pd.DataFrame({ROW: np.asarray(rows, dtype=np.int64), label: "", REASON: list(reasons)})
    written = pd.concat([first, others], axis=1)
    if output.suffix.lower() == ".parquet":
        written.assign(**{label: pd.Series(np.nan, written.index)}).to_parquet(output, index=False)
        return
    written = make_table_safe(written) if safe_csv else written
    written.to_csv(output, index=False, sep="\t" if output.suffix.lower() == ".tsv" else ",")

"""The work of ``spar summarize``: reduce the rows of a file to Moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspar.errors import InputError
from pyspar.io.moments import write_moments
from pyspar.sources.files.formats import check_unique
from pyspar.sources.files.messages import suggest_column
from pyspar.sources.files.rows import RowFile
from pyspar.tables.columns import check_drop, find_label
from pyspar.tables.inputs import BadCells, Ignored
from pyspar.tables.reduce import open_input
from pyspar.tables.streamed import choose_features, describe_rows_read
from pyspar.tables.write import check_path, report_write_errors
from pyspar.terminal import SILENT, Progress


@dataclass(frozen=True)
class SummaryAccount:
    """The result of ``spar summarize``."""

    rows: int
    features: int
    label: str | None
    n_bytes_in: int
    n_bytes_out: int
    ignored: tuple[Ignored, ...]
    notes: tuple[str, ...]
    output: Path


def summarize_file(
    path: Path,
    output: Path,
    *,
    label: str | None = None,
    features: Sequence[str] = (),
    drop: tuple[str, ...] = (),
    bad_cells: BadCells = "stop",
    drop_unlabelled: bool = False,
    progress: Progress = SILENT,
) -> SummaryAccount:
    """Read a file once, and write its Moments with the names of features and label.

    If bad cells are imputed, missing values are imputed too, with the means of the file, which is read twice.
    """
    check_path(output, "--output", (".npz",), (path,))
    source = open_input(path, "source")
    if source.rows is None:
        raise InputError(f"{source.where} is a summary already; pass a file of rows")
    rows = source.rows
    label = None if label is None else find_label(rows.names, path, label)
    check_drop(drop, rows.names, label=label or "", identity=None)
    selection = choose_features(source, label, drop=drop)
    names = _split_names(features, rows, label) if features else selection.names
    impute = bad_cells == "impute"
    read = source.reduce_source(names, label, progress, impute=impute, drop_unlabelled=drop_unlabelled)
    moments, outputs = read.moments, () if label is None else (label,)
    with report_write_errors(output):
        write_moments(moments, output, outputs)
    return SummaryAccount(
        rows=moments.rows,
        features=moments.n_features,
        label=label,
        n_bytes_in=rows.n_bytes,
        n_bytes_out=output.stat().st_size,
        ignored=(*(() if features else selection.ignored), *read.empty),
        notes=(*describe_rows_read(source, [*moments.names, *outputs]), *read.notes),
        output=output,
    )


def _split_names(features: Sequence[str], rows: RowFile, label: str | None) -> list[str]:
    """Return the names of ``--features``. One option may have several names separated by commas."""
    names: list[str] = []
    for text in features:
        names += [text] if text in rows.names else [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name == label:
            raise InputError(f"--features must not contain the label {name!r}")
        if name not in rows.names:
            raise InputError(
                f"--features: {str(rows.path)!r} has no column {name!r}; {suggest_column(name, rows.names)}"
            )
    check_unique(names, "--features")
    return names

"""``spar summarize``: the Moments of a file's numeric columns, as a file of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspar.errors import InputError
from pyspar.io.moments import write_moments
from pyspar.sources.files import moments_of_file, open_rows
from pyspar.sources.files.names import check_names, meant
from pyspar.sources.files.rows import Rows
from pyspar.tables.account import SummaryAccount
from pyspar.tables.checks import check_drop, label_name
from pyspar.tables.inputs import Given, usable
from pyspar.tables.watch import NOBODY, Watch
from pyspar.tables.write import check_path, writing


def summarize_file(
    path: Path,
    output: Path,
    *,
    label: str | None = None,
    features: Sequence[str] = (),
    drop: tuple[str, ...] = (),
    watch: Watch = NOBODY,
) -> SummaryAccount:
    """Read a file once and write its Moments, with the names of features and label."""
    check_path(output, "--output", (".npz",), (path,))
    rows = open_rows(path, role="source")
    name = None if label is None else label_name(rows.names, path, label)
    check_drop(drop, rows.names, label=name or "", identity=None)
    chosen, ignored = usable(Given(path, "source", rows), label=name or "", identity=None, drop=drop)
    if features:
        chosen, ignored = _listed(features, rows, name), []
    progress = watch.reading("reading the source", rows.n_bytes)
    found = moments_of_file(rows, features=chosen, label=name, progress=progress)
    with writing(output):
        write_moments(found, output, outputs=() if name is None else (name,))
    return SummaryAccount(
        rows=found.rows,
        features=found.n_features,
        label=name,
        n_bytes_in=rows.n_bytes,
        n_bytes_out=output.stat().st_size,
        ignored=tuple(ignored),
        output=output,
    )


def _listed(features: Sequence[str], rows: Rows, label: str | None) -> list[str]:
    """Return names that were given one by one, or several with commas between."""
    names: list[str] = []
    for given in features:
        names += [given] if given in rows.names else [part.strip() for part in given.split(",") if part.strip()]
    for name in names:
        if name not in rows.names or name == label:
            what = "the label" if name == label else f"no such column; {meant(name, rows.names)}"
            raise InputError(f"expected --features to name columns of {str(rows.path)!r}. Got {name!r}, {what}")
    check_names(names, "--features")
    return names

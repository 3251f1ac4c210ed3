"""Predictions and models out: every path is checked before any work, and all files appear together or none does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyspar.errors import InputError, need
from pyspar.io import models as persist
from pyspar.io.atomic import whole_file
from pyspar.sources.files.predictions import OUTPUTS


def check_outputs(output: Path | None, save: Path | None, *, inputs: tuple[Path, ...], identity: str | None) -> None:
    """Refuse an output that cannot or must not be written."""
    if output is not None:
        check_path(output, "--output", OUTPUTS, inputs)
        if output.suffix.lower() == ".npy" and identity is not None:
            raise InputError(
                "--output: expected .csv, .tsv or .parquet with --id. Got .npy, which holds predictions alone."
            )
        if output.suffix.lower() == ".parquet":
            need("pyarrow", "cli")
    if save is not None:
        check_path(save, "--save", (".skops",), inputs)
        need("skops.io", "cli")


def predictions_table(predictions: Any, identity: pd.Series[Any] | None) -> pd.DataFrame:
    """Return predictions beside the rows they belong to: the id column, or the number of the row from 0."""
    if identity is None:
        return pd.DataFrame({"row": np.arange(len(predictions)), "prediction": predictions})
    name = "prediction" if identity.name != "prediction" else "predicted"
    return pd.DataFrame({str(identity.name): identity.to_numpy(), name: predictions})


def write_all(write: Callable[[Path], None], output: Path | None, model: Any, save: Path | None) -> None:
    """Write predictions and model, each where a path is given: both whole, or neither."""
    with writing(output or save), ExitStack() as files:
        if output is not None:
            write(files.enter_context(whole_file(output)))
        if save is not None:
            persist.save(model, files.enter_context(whole_file(save)))


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table in the form that the suffix says."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        table.to_parquet(path, index=False)
    elif suffix == ".npy":
        np.save(path, table.iloc[:, -1].to_numpy(dtype=np.float64))
    else:
        table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")


@contextmanager
def writing(path: Path | None) -> Iterator[None]:
    """Say what a disk that fails means."""
    try:
        yield
    except OSError as error:
        raise InputError(f"expected to write {path}. Got {error.strerror or error}; nothing was written.") from error


def check_path(path: Path, option: str, suffixes: tuple[str, ...], inputs: tuple[Path, ...]) -> None:
    """Refuse a path that cannot be written, or that would take an input's place."""
    if path.suffix.lower() not in suffixes:
        raise InputError(
            f"{option} {str(path)!r}: expected the suffix {' or '.join(suffixes)}. Got {path.suffix or 'none'!r}."
        )
    if path.is_dir():
        raise InputError(f"{option} {str(path)!r}: expected a file. Got a folder.")
    if not path.parent.is_dir():
        raise InputError(
            f"{option} {str(path)!r}: expected a folder that exists. Got {str(path.parent)!r}; create it first."
        )
    if not os.access(path.parent, os.W_OK):
        raise InputError(
            f"{option} {str(path)!r}: expected a folder to write to. Got {str(path.parent)!r}, which is read-only."
        )
    if any(_same(path, other) for other in inputs):
        raise InputError(
            f"{option} {str(path)!r}: expected a file of its own. Got an input file, which would be lost; name another."
        )


def _same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()

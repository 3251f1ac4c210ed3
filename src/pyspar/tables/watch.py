"""The work of ``spar watch``: read each file of a growing target as a batch, and judge the recent batches."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.errors import InputError, collect_warnings
from pyspar.estimators.correction import TargetCorrection
from pyspar.estimators.pipelines import list_layers
from pyspar.estimators.spar import BayesSpARRegressor
from pyspar.estimators.watch import TargetWatch, WatchState
from pyspar.io.models import load as load_model
from pyspar.sources.files.formats import INPUT_SUFFIXES, suffix_of
from pyspar.sources.files.messages import suggest_column
from pyspar.tables.encode import as_numbers
from pyspar.tables.inputs import Request
from pyspar.tables.load import check_input, fit_source
from pyspar.tables.predict import find_label_of, load_rows_for
from pyspar.wording import list_some


@dataclass(frozen=True)
class WatchAccount:
    """One batch of ``spar watch``: its file, and the state after it, or the error that made it unusable."""

    path: Path
    state: WatchState | None
    error: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class WatchRequest:
    """The model or labelled source, the files or folders to watch, and how.

    ``once`` reads the files that exist and stops. Otherwise the folders are read again every ``seconds`` seconds. A new
    file is used when its size has not changed between two readings of its folder. Batches with the column ``label`` are
    labelled; the default is the label of the model.
    """

    model: Path
    paths: tuple[Path, ...]
    label: str | None = None
    limit: float | None = None
    window: int = 1
    once: bool = False
    seconds: float = 10.0
    identity: str | None = None
    drop: tuple[str, ...] = ()
    groups: str | None = None

    def check(self) -> None:
        """Raise InputError for options and paths that cannot be used."""
        if self.model.suffix.lower() != ".skops":
            check_input(self.model, "source")
        elif self.groups is not None:
            raise InputError("--groups needs labelled rows as the source; a saved model has its groups already")
        elif not self.model.is_file():
            raise InputError(f"file not found: {str(self.model)!r}")
        for path in self.paths:
            if not path.exists():
                raise InputError(f"file or folder not found: {str(path)!r}")
            if path.is_file():
                check_input(path, "target")
        if self.limit is not None and not self.limit > 0.0:
            raise InputError(f"--limit must be above 0, got {self.limit:g}")
        if self.window < 1:
            raise InputError(f"--window must be at least 1, got {self.window}")
        if not self.seconds > 0.0:
            raise InputError(f"--seconds must be above 0, got {self.seconds:g}")


def watch_files(request: WatchRequest) -> Iterator[WatchAccount]:
    """Yield an account of each batch, in the order of the file names; files that appear later come later.

    A file that cannot be used is reported and left out. Without ``once`` the iterator ends only if it is stopped, or
    if there is no folder to watch.
    """
    request.check()
    model = _fit_model(request)
    with collect_warnings() as warnings:
        watch = TargetWatch(model, limit=request.limit, window=request.window)
    for path in _wait_for_files(request):
        try:
            batch, labels, notes = _read_batch(model, path, request)
            with collect_warnings() as found:
                state = watch.update(batch, labels)
        except (InputError, ValueError, TypeError) as error:
            yield WatchAccount(path, None, str(error))
        else:
            yield WatchAccount(path, state, notes=(*warnings, *notes, *found))
            warnings = []


def _wait_for_files(request: WatchRequest) -> Iterator[Path]:
    """Yield each file once, when its size has not changed between two readings of its folder."""
    used: set[Path] = set()
    sizes: dict[Path, int] = {}
    while True:
        for path in list_files(request.paths):
            size = path.stat().st_size if path.exists() else 0
            is_settled = request.once or path in request.paths or sizes.get(path) == size
            sizes[path] = size
            if is_settled and path not in used:
                used.add(path)
                yield path
        if request.once or not any(path.is_dir() for path in request.paths):
            return
        time.sleep(request.seconds)


def describe_empty_folders(request: WatchRequest) -> str:
    """Return what the watch waits for if its folders contain no files that it can read, otherwise an empty text."""
    if list_files(request.paths):
        return ""
    kinds = f"no files to read in {list_some(list(map(str, request.paths)))} ({', '.join(INPUT_SUFFIXES)})"
    if request.once:
        return kinds
    return f"{kinds}; checking again every {request.seconds:g} seconds; stop with Ctrl-C"


def list_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files among the paths, and the files of known formats in the folders, sorted by name.

    Names that begin with a dot are left out.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = (file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
            files += sorted(file for file in inside if suffix_of(file) in INPUT_SUFFIXES)
        else:
            files.append(path)
    return files


def _fit_model(request: WatchRequest) -> Any:
    """Return the saved model, or a fit on the source."""
    if request.model.suffix.lower() == ".skops":
        model = load_model(request.model)
        if isinstance(model, TargetCorrection) or hasattr(list_layers(model)[-1], "drift_"):
            raise InputError(
                f"{str(request.model)!r} is corrected by target labels; spar watch needs a model saved without "
                "--use-target-labels"
            )
        return model
    source = Request(
        request.model, request.paths[0], request.label, identity=request.identity, drop=request.drop,
        groups=request.groups,
    )  # fmt: skip
    return fit_source(source, BayesSpARRegressor())


def _read_batch(model: Any, path: Path, request: WatchRequest) -> tuple[Any, Any, tuple[str, ...]]:
    """Return the rows of a file, read as ``spar predict`` reads them, their labels or None, and notes."""
    label = request.label or find_label_of(model)
    frame, used, _ = load_rows_for(model, path, "batch", identity=request.identity, label=label)
    rows = frame[used] if set(used) <= set(frame.columns) else frame
    if label in used:
        raise InputError(f"--label {label!r} is a feature of the model; choose another column")
    if label not in frame.columns:
        is_wrong = request.label is not None and request.model.suffix.lower() == ".skops"
        return rows, None, (f"no label column {label!r}; {suggest_column(str(label), frame.columns)}",) * is_wrong
    labels = as_numbers(frame[label]).astype(np.float64)
    return rows, None if np.isnan(labels).all() else labels, ()

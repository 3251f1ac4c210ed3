"""The work of ``spar predict``: predict the rows of a file with a saved model, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from pyspar.core.mean_square import SquaredErrors
from pyspar.errors import InputError
from pyspar.estimators.correction import TargetCorrection
from pyspar.estimators.pipelines import predict_interval
from pyspar.inspection.unseen_categories import describe_columns, find_unseen
from pyspar.io.models import load
from pyspar.progress import SILENT, Progress
from pyspar.sources.files.header import describe_file, suggest_column
from pyspar.sources.files.number_text import NumberFormat
from pyspar.tables.account import Writing
from pyspar.tables.bad_cells import check_cells, check_formats, convert_text_columns
from pyspar.tables.encode import TableEncoder, as_numbers
from pyspar.tables.read import check_input, read_table
from pyspar.tables.request import BadCells, check_interval_level, check_outputs
from pyspar.tables.write import report_write_errors, write_files, write_predictions


@dataclass(frozen=True)
class PredictAccount:
    """The result of ``spar predict``. ``level`` is None if the model has no intervals or none were requested."""

    rows: int
    level: float | None
    errors: SquaredErrors | None
    notes: tuple[str, ...]
    output: Path


def predict_file(
    model_path: Path,
    path: Path,
    output: Path,
    *,
    label: str | None = None,
    identity: str | None = None,
    bad_cells: BadCells = "stop",
    writing: Writing,
    progress: Progress = SILENT,
) -> PredictAccount:
    """Predict the rows of a file with a model that ``spar adapt --save`` or ``pyspar.save`` wrote."""
    check_interval_level(writing.level)
    check_outputs(output, None, inputs=(model_path, path), identity=identity, safe_csv=writing.safe_csv)
    check_input(path, "file")
    if model_path.suffix.lower() != ".skops":
        raise InputError(f"the model must be a .skops file, got {str(model_path)!r}; write one with spar adapt --save")
    model = load(model_path)
    progress.start("read", "reading the rows")
    categorical, used = list_model_columns(model)
    frame, notes = read_table(path, "file", as_text=categorical, verbatim=identity)
    for option, name in (("--id", identity), ("--label", label)):
        if name is not None and name not in frame.columns:
            where = describe_file("file", path)
            raise InputError(f"{where}: no {option} column {name!r}; {suggest_column(name, frame.columns)}")
    formats = get_formats(model)
    frame, text, own = convert_text_columns(frame, path, skip={*categorical, identity or ""}, expected=formats)
    check_formats(formats, own, [*used, *([] if label is None else [label])], path, "file")
    used = used or [name for name in frame.columns if name not in (identity, label)]
    notes += check_cells(text, {*used, label or ""}, path, "file", bad_cells, label=label)
    missing = [name for name in used if name in frame.columns and frame[name].isna().any()]
    if missing:
        cells = int(sum(frame[name].isna().sum() for name in missing))
        notes += (f"{cells:,} missing values in {', '.join(missing[:5])}: imputed as the model does",)
    progress.finish("read")
    progress.start("write", "predicting and writing")
    rows: Any = frame[used] if set(used) <= set(frame.columns) else frame
    try:
        prediction = np.asarray(model.predict(rows), dtype=np.float64)
        notes += describe_unseen(model, rows)
        ends, level = _predict_ends(model, rows, writing.level)
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{model_path} cannot predict {path}: {error}") from error
    if prediction.ndim != 1:
        raise InputError(f"{model_path} predicts {prediction.shape[1]} labels for each row; spar predict supports one")
    ids = None if identity is None else frame[identity]
    with write_files(output) as (temporary,), report_write_errors(output):
        write_predictions((prediction, *ends), ids, temporary, safe_csv=writing.safe_csv)
    progress.finish("write")
    errors = None if label is None else _score(prediction, frame[label])
    return PredictAccount(len(prediction), level, errors, notes, output)


def list_model_columns(model: Any) -> tuple[list[str], list[str]]:
    """Return the categorical columns and all columns of a model with the preprocessing of ``spar adapt``."""
    model = model.model if isinstance(model, TargetCorrection) else model
    encoder = model.steps[0][1] if isinstance(model, Pipeline) else None
    if not isinstance(encoder, TableEncoder):
        return [], [str(name) for name in getattr(model, "feature_names_in_", ())]
    categorical = [name for step, _, names in encoder.transformers_ if step.startswith("category") for name in names]
    return categorical, [str(name) for name in encoder.feature_names_in_]


def get_formats(model: Any) -> dict[str, NumberFormat]:
    """Return the formats of the numbers in the file that a model of ``spar adapt`` was fitted on, if it has them."""
    model = model.model if isinstance(model, TargetCorrection) else model
    encoder = model.steps[0][1] if isinstance(model, Pipeline) else None
    return dict(getattr(encoder, "formats_", {}))


def describe_unseen(model: Any, rows: Any) -> tuple[str, ...]:
    """Return a note about rows with categories that do not occur in the source, if there are any."""
    model = model.model if isinstance(model, TargetCorrection) else model
    if not isinstance(model, Pipeline):
        return ()
    unseen = find_unseen(model[:-1], rows)
    if not unseen.rows:
        return ()
    return (
        f"{unseen.rows:,} of {unseen.n_target:,} rows have categories that do not occur in the source "
        f"({describe_columns(unseen.columns)}); forecasts and intervals do not cover these rows",
    )


def _predict_ends(model: Any, rows: Any, level: float | None) -> tuple[tuple[Any, ...], float | None]:
    """Return the ends of the intervals and their level, or nothing for a model without intervals."""
    if level is None:
        return (), None
    if isinstance(model, TargetCorrection):
        return tuple(model.predict_interval(rows, level)), level
    try:
        return predict_interval(model, rows, level), level
    except TypeError:  # a regressor of another library
        return (), None


def _score(prediction: Any, labels: pd.Series[Any]) -> SquaredErrors | None:
    values = as_numbers(labels, "correct the values to score the predictions").astype(np.float64)
    return None if np.isnan(values).all() else SquaredErrors.of(prediction - values)

"""The work of ``spar predict``: predict the rows of a file with a saved model, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from pyspar.core.mean_square import SquaredErrors
from pyspar.errors import InputError, collect_warnings
from pyspar.estimators.correction import TargetCorrection
from pyspar.estimators.pipelines import predict_interval
from pyspar.estimators.unseen_categories import describe_unseen_rows
from pyspar.io.models import load
from pyspar.sources.files.formats import describe_file
from pyspar.sources.files.messages import check_column
from pyspar.tables.columns import check_numbers, check_signs
from pyspar.tables.encode import TableEncoder, as_numbers
from pyspar.tables.inputs import BadCells
from pyspar.tables.load import check_input, load_table
from pyspar.tables.write import Output, check_outputs, prediction_file, report_write_errors, write_files
from pyspar.terminal import SILENT, Progress
from pyspar.wording import count_noun

_SCORE_FIX = "correct the values to score the predictions"


@dataclass(frozen=True)
class PredictAccount:
    """The result of ``spar predict``. ``level`` is None if the model has no intervals or none were requested."""

    rows: int
    level: float | None
    errors: SquaredErrors | None
    notes: tuple[str, ...]
    output: Path | None


def predict_file(
    model_path: Path,
    path: Path,
    output: Output,
    *,
    label: str | None = None,
    identity: str | None = None,
    bad_cells: BadCells = "stop",
    progress: Progress = SILENT,
) -> PredictAccount:
    """Predict the rows of a file with a model that ``spar adapt --save`` or ``pyspar.save`` wrote."""
    check_outputs(output, None, inputs=(model_path, path), identity=identity)
    check_input(path, "file")
    if model_path.suffix.lower() != ".skops":
        raise InputError(f"the model must be a .skops file, got {str(model_path)!r}; write one with spar adapt --save")
    model = load(model_path)
    progress.start("read", "reading the rows")
    frame, used, notes = load_rows_for(model, path, "file", identity=identity, label=label, bad_cells=bad_cells)
    for option, name in (("--id", identity), ("--label", label)):
        check_column(name, option, frame.columns, describe_file("file", path))
    rows: Any = frame[used] if set(used) <= set(frame.columns) else frame
    n_missing = rows.isna().sum()
    if n_missing.any():
        names = ", ".join(n_missing.index[n_missing > 0][:5])
        notes += (f"{count_noun(int(n_missing.sum()), 'missing value')} in {names}: imputed by the model",)
    progress.finish("read")
    progress.start("write", "predicting and writing")
    try:
        prediction = np.asarray(model.predict(rows), dtype=np.float64)
        pipeline = _without_correction(model)
        unseen = describe_unseen_rows(pipeline[:-1], rows) if isinstance(pipeline, Pipeline) else ""
        notes += (unseen,) if unseen else ()
        with collect_warnings() as warnings:
            ends, level = _predict_ends(model, rows, output.level)
        notes += tuple(text for text in warnings if text not in notes)
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{model_path} cannot predict {path}: {error}") from error
    if prediction.ndim != 1:
        raise InputError(f"{model_path} predicts {prediction.shape[1]} labels for each row; spar predict supports one")
    ids = None if identity is None else frame[identity]
    with (
        write_files(output.path) as (temporary,),
        report_write_errors(output.path),
        prediction_file(temporary, identity, safe_csv=output.safe_csv) as write,
    ):
        write(ids, prediction, *ends)
    progress.finish("write")
    labels = np.full(len(frame), np.nan) if label is None else as_numbers(frame[label], _SCORE_FIX).astype(np.float64)
    errors = None if np.isnan(labels).all() else SquaredErrors.of(prediction - labels)
    return PredictAccount(len(prediction), level, errors, notes, output.path)


def load_rows_for(
    model: Any,
    path: Path,
    role: str,
    *,
    identity: str | None,
    label: str | None,
    bad_cells: BadCells = "stop",
) -> tuple[pd.DataFrame, list[str], tuple[str, ...]]:
    """Read a file as the source of a model was read; return its rows, the columns that the model uses, and notes.

    The ``role`` is "file" for ``spar predict`` and "batch" for ``spar watch``; error messages name its options only.
    """
    encoder = _find_encoder(model)
    used = [str(name) for name in getattr(encoder or _without_correction(model), "feature_names_in_", ())]
    steps = () if encoder is None else encoder.transformers_
    categorical = [name for step, _, names in steps if step.startswith("category") for name in names]
    table = load_table(path, role, as_text=categorical, verbatim=identity)
    check_signs(find_signs_of(model), table.signs, [*used, *([] if label is None else [label])], path, role, label)
    used = used or [name for name in table.frame.columns if name not in (identity, label)]
    notes = table.check_cells({*used, label or ""}, bad_cells, label=label)
    frame = table.frame
    numbers = [name for name in used if name in frame and pd.api.types.is_float_dtype(frame[name].dtype)]
    check_numbers(frame, numbers, path, role)
    return frame, used, (*table.notes, *notes)


def find_label_of(model: Any) -> str | None:
    """Return the label column of the source of a model of ``spar adapt``, or None."""
    return getattr(_find_encoder(model), "label_", None)


def find_signs_of(model: Any) -> dict[str, str]:
    """Return the signs of the numbers in the source of a model of ``spar adapt``."""
    return dict(getattr(_find_encoder(model), "signs_", {}))


def _find_encoder(model: Any) -> TableEncoder | None:
    pipeline = _without_correction(model)
    encoder = pipeline.steps[0][1] if isinstance(pipeline, Pipeline) else None
    return encoder if isinstance(encoder, TableEncoder) else None


def _without_correction(model: Any) -> Any:
    return model.model if isinstance(model, TargetCorrection) else model


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

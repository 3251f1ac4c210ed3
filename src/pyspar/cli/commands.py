"""The work of the commands: fit, adapt, correct and predict tables. Each returns its result as plain data."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from pyspar import BayesSpARRegressor, SpARRegressor, TargetCorrection, adapt_pipeline, align, expected_rmse
from pyspar import inspect as inspect_model
from pyspar.cli import files
from pyspar.cli.files import Inputs, Request, Table
from pyspar.core.drift import MIN_LABELS
from pyspar.errors import InputError, collect_warnings
from pyspar.estimators.labels import rows_to_label
from pyspar.estimators.pipelines import split_model
from pyspar.persist import load, write_atomically, write_model
from pyspar.progress import progress_bar
from pyspar.report.judge import SourceLabel
from pyspar.sources.files import RowFile
from pyspar.text import count_noun

MAX_DISTANCE = 10.0  # of labels and predictions, in standard deviations; as in ``pyspar.nn.head``
MIN_SPREAD = 0.02  # of labels outside the range of the source labels, as a share of the spread of these
Result = dict[str, Any]
Batch = tuple[Any, Any, Any]  # features of rows, labels or None, and ids or None


def adapt(
    request: Request, *, method: str, alpha: float | None, assume: str | None, use_labels: bool, output: Path | None,
    save_model: Path | None, level: float,
) -> Result:  # fmt: skip
    """Fit on the source, adapt to the target, correct with labels, predict and write."""
    files.check_output(output, "--output", files.WRITERS, request)
    files.check_output(save_model, "--save-model", (".skops",), request)
    inputs = files.load_inputs(request)
    if inputs.is_streamed and (assume == "measurement" or use_labels):
        raise InputError("--assume measurement and target labels need rows in memory; use fewer rows")
    n_labels = 0 if inputs.labels is None else int(np.isfinite(inputs.labels).sum())
    if use_labels and n_labels < MIN_LABELS:
        fix = f"at least {MIN_LABELS} are needed: choose rows with spar label, and pass them with --labels"
        raise InputError(f"{inputs.target.where}: {count_noun(n_labels, 'label')} in {inputs.label!r}; {fix}")
    with progress_bar("fitting and adapting"), collect_warnings() as notes:
        trained = fit(inputs, method, alpha)
        before = forecast(trained, inputs)
        models: dict[str, Any] = {}
        if assume != "measurement":
            models["relation"] = adapt_model(trained, inputs)
        if assume == "measurement" or (use_labels and assume is None):
            models["measurement"] = align(trained, source=inputs.X, target=inputs.Z)
        assumed, model = next(iter(models.items()))
        correction = measured = implausible = None
        if use_labels:
            check_scale([each.predict(inputs.Z) for each in (trained, *models.values())], inputs)
            model = TargetCorrection(models if len(models) > 1 else model).fit(inputs.Z, inputs.labels)
            assumed, chosen = (model.chosen_, model.chosen_) if len(models) > 1 else (assumed, None)
            errors = {name: root_mean_square(each.predict(inputs.Z) - inputs.labels) for name, each in models.items()}
            correction = {"labels": model.n_labels_, "candidates": errors, "chosen": chosen}
        after = forecast(model, inputs)
        before = getattr(after, "rmse_uncorrected", before and before.rmse)
        if after is None:
            notes.append("an aligned model has no forecast and no intervals; label rows, and pass --labels")
    fields = ("rmse", "interval80", "interval95", "source_rmse")
    expected = {"before": before} | {name: getattr(after, name, None) for name in fields}
    identity, label = request.identity, inputs.label if inputs.label in inputs.target.names else None
    if inputs.is_streamed and label and files.has_text(next(files.read_batches(inputs.target, [label])), label, notes):
        label = None
    ids = None if identity is None or inputs.is_streamed else inputs.target_cells[identity]
    batches: Any = [(inputs.Z, inputs.labels, ids)]
    batches = read_rows(inputs.target, inputs.columns.kinds, label, request) if inputs.is_streamed else batches
    is_scored = not use_labels and (inputs.labels is not None or (inputs.is_streamed and label is not None))
    with write_atomically(*(path for path in (output, save_model) if path is not None)) as parts:
        if output is not None or is_scored or not inputs.is_streamed:
            both = (trained, model) if is_scored else (model,)
            predicted = write_predictions(batches, both, identity, parts[0] if output is not None else None, level)
            measured = predicted.measure() if is_scored else None
            implausible = SourceLabel.of(trained[-1]).check_predictions("this model", predicted.values)
        if save_model is not None:
            write_model(Pipeline([("columns", inputs.columns), ("model", model)]), parts[-1])
    rows, own = count_noun(inputs.n_target, "prediction"), [] if identity is None else ["--id", identity]
    command = shlex.join(["spar", "predict", str(save_model), str(request.target), *own, "-o", "again.csv"])
    return {
        "data": describe_data(inputs), "method": method,
        "assumes": "relation" if assumed == "relation" else "population",
        "expected": after and expected, "measured": measured, "correction": correction,
        "findings": [] if implausible is None else [str(implausible)],
        "notes": [*inputs.notes, *notes], "output": output, "model_file": save_model,
        "wrote": f"{output} ({rows})" if output is not None else "no predictions; use -o predictions.csv to write them",
        "saved": save_model and f"{save_model} (use it with spar predict or pyspar.load)",
        "next step": save_model and f"predict these or other rows:\n{command}",
    }  # fmt: skip


def inspect(request: Request, *, alpha: float | None, html: Path | None) -> Result:
    """Inspect a fit on the source at the target, and write the report."""
    files.check_output(html, "--html", (".html",), request)
    inputs = files.load_inputs(request)
    with progress_bar("fitting and forecasting"), collect_warnings() as notes:
        model = fit(inputs, "bayes", alpha)
        inspected = model[-1] if inputs.is_streamed else model
        columns = list_columns(model[0], inputs.columns.kinds)
        report = inspect_model(inspected, inputs.Z, y=inputs.labels, columns=columns, outputs=[inputs.label])
    if inputs.is_streamed and inputs.label in inputs.target.names:
        notes.append(f"target: its column {inputs.label!r} is not used with --stream; spar adapt --stream scores it")
    report = replace(report, notes=(*inputs.notes, *notes))
    if html is not None:
        replace(report, title=f"{inputs.label}: {request.source.name} → {request.target.name}").save(html)
    return {"report": report, "data": describe_data(inputs), "notes": report.notes, "wrote": html and str(html)}


def label(request: Request, *, rows: int, output: Path | None) -> Result:
    """Choose rows of the target to label, and write them."""
    files.check_output(output, "--output", files.WRITERS, request)
    for option, name in (("--label", request.label), ("--id", request.identity)):
        if name in (files.ROW, files.REASON):
            raise InputError(f"{option} must not be {name!r}, a column that spar label writes; rename the column")
    inputs = files.load_inputs(request)
    model = adapt_model(fit(inputs, "bayes", None), inputs)
    known = np.flatnonzero(~np.isnan(np.full(inputs.n_target, np.nan) if inputs.labels is None else inputs.labels))
    if rows > (free := inputs.n_target - len(known)):
        raise InputError(f"--rows must be at most the number of target rows without a label, {free}, got {rows}")
    with collect_warnings() as notes:
        choice = rows_to_label(model, inputs.Z, rows, exclude=known)
    chosen = [int(row) for row in choice.rows]
    if output is not None:
        with write_atomically(output) as (part,):
            files.write_label_rows(part, inputs.target_cells, inputs.label, chosen, choice.reasons)
    key, cells = request.identity, Table(inputs.target, inputs.target_cells)
    names = [f"row {row}" for row in chosen] if key is None else [f"{key} {word}" for word in cells.words(key)[chosen]]
    wrote = "nothing; use -o to_label.csv to write these rows" if output is None else f"{output} ('row' counts from 0)"
    label_rows = [{"row": row, "name": name, "reason": why} for row, name, why in zip(chosen, names, choice.reasons)]
    next_step = f"fill in {inputs.label!r}, and run spar adapt with the same options and --labels {output}"
    return {
        "rows": inputs.n_target, "rows_with_label": len(known), "label_rows": label_rows,
        "notes": [*inputs.notes, *notes], "output": output, "wrote": wrote, "next step": output and next_step,
    }  # fmt: skip


def predict(request: Request, *, output: Path, level: float) -> Result:
    """Predict the rows of a file in batches with a saved model."""
    files.check_output(output, "--output", files.WRITERS, request)
    path, label, identity = request.source, request.label, request.identity
    if path.suffix.lower() != ".skops":
        raise InputError(f"the model must be a .skops file, got {str(path)!r}; write one with spar adapt --save-model")
    model = load(path)
    rows, columns = files.open_for_model(model, path, request.target, request.options)
    files.check_column(label, "--label", rows.names, rows.where)
    files.check_column(identity, "--id", rows.names, rows.where)
    with collect_warnings() as notes, write_atomically(output) as (part,):
        batches = read_rows(rows, columns.kinds, label, request)
        predicted = write_predictions(batches, [model[-1]], identity, part, level)
    n, shown = len(predicted.values), f"intervals at level {level:g}" if predicted.has_intervals else "no intervals"
    imputed = [f"{count_noun(predicted.n_missing, 'missing value')}: imputed by the model"] * bool(predicted.n_missing)
    return {
        "rows": n, "measured": predicted.measure(), "level": level if predicted.has_intervals else None,
        "notes": [*imputed, *notes], "output": output, "wrote": f"{output} ({count_noun(n, 'prediction')}, {shown})",
    }  # fmt: skip


def fit(inputs: Inputs, method: str, alpha: float | None) -> Any:
    """Return the fitted pipeline of encoder and regressor."""
    groups = {} if inputs.groups is None else {"regressor__groups": inputs.groups}
    least_squares = SpARRegressor(0.999 if alpha is None else alpha)
    regressor: Any = BayesSpARRegressor(alpha=alpha) if method == "bayes" else least_squares
    if inputs.is_streamed:
        regressor.fit(inputs.X).label_range_ = np.array([[inputs.y.min()], [inputs.y.max()]])  # not in the Moments
        return Pipeline([("encode", inputs.encoder), ("regressor", regressor)])
    return Pipeline([("encode", inputs.encoder), ("regressor", regressor)]).fit(inputs.X, inputs.y, **groups)


def check_scale(predictions: Sequence[Any], inputs: Inputs) -> None:
    """Raise InputError if the target labels are on another scale than all predictions, or than the source labels."""
    spread, distances = inputs.y.std(), [np.nanmedian(np.abs(inputs.labels - each)) for each in predictions]
    is_far = min(far / max(spread, each.std()) for far, each in zip(distances, predictions)) > MAX_DISTANCE
    low, median, high = inputs.y.min(), np.nanmedian(inputs.labels), inputs.y.max()
    if is_far or (np.nanstd(inputs.labels) < MIN_SPREAD * spread and not low <= median <= high):
        fix = f"the source labels are from {low:.4g} to {high:.4g}; write them in the unit of the source"
        raise InputError(f"target labels are on another scale than the predictions: the median is {median:.4g}; {fix}")


def list_columns(encoder: Any, kinds: dict[str, str]) -> list[str]:
    """Return the column of each encoded feature; those of one category column have the same name."""
    names = [name for name, kind in kinds.items() if kind != "category"]
    one_hot = encoder.named_transformers_.get("category")
    for j, name in enumerate(() if one_hot is None else one_hot.feature_names_in_):
        rare = one_hot.infrequent_categories_[j] if hasattr(one_hot, "infrequent_categories_") else None
        names += [name] * (len(one_hot.categories_[j]) - (0 if rare is None else len(rare) - 1))
    return names


def adapt_model(trained: Any, inputs: Inputs) -> Any:
    """Return the trained pipeline with its regressor adapted to the target."""
    if not inputs.is_streamed:
        return adapt_pipeline(trained, inputs.Z)
    return Pipeline([trained.steps[0], ("regressor", copy.copy(trained[-1]).adapt(inputs.Z))])


def forecast(model: Any, inputs: Inputs) -> Any:
    """Return the expected error on the target, or None for an aligned model."""
    if inputs.is_streamed:
        return model[-1].expected_rmse(inputs.Z)
    return expected_rmse(model, inputs.Z) if hasattr(split_model(model)[1], "expected_rmse") else None


class Predicted(NamedTuple):
    """The predictions of the last model, a row of errors for each model, and what a command reports about them."""

    values: Any
    errors: Any
    has_intervals: bool
    n_missing: int

    def measure(self) -> Result | None:
        """Return the measured error of the last model, and that of the first of two; None without labels."""
        known = ~np.isnan(self.errors[-1])
        if not known.any():
            return None
        rmse = [root_mean_square(each[known]) for each in self.errors]
        return {"rows": int(known.sum()), "rmse": rmse[-1], "before": rmse[0] if len(rmse) > 1 else None}


def write_predictions(
    batches: Iterable[Batch], models: Sequence[Any], identity: str | None, path: Path | None, level: float
) -> Predicted:
    """Predict batches of rows, and write the predictions of the last model."""
    values, errors, ends, n, n_missing = [], [], None, 0, 0
    with files.table_writer(path) as write:
        for rows, labels, ids in batches:
            predictions = np.array([model.predict(rows) for model in models], dtype=np.float64)
            ends = None if path is None else predict_interval(models[-1], rows, level)
            write(name_columns(ids, identity, n, predictions[-1], ends))
            values.append(predictions[-1])
            errors.append(predictions - (np.nan if labels is None else labels))
            n, n_missing = n + len(rows), n_missing + int(rows.isna().sum().sum())
    return Predicted(np.concatenate(values), np.concatenate(errors, axis=1), ends is not None, n_missing)


def read_rows(file: RowFile, kinds: Mapping[str, str], label: str | None, request: Request) -> Iterator[Batch]:
    """Yield the rows of a file in batches."""
    identity = request.identity
    extra = [name for name in (label, identity) if name is not None]
    for table in files.read_batches(file, list(dict.fromkeys([*kinds, *extra]))):
        rows, _ = files.convert(table, kinds, impute=request.impute)
        yield rows, None if label is None else table.labels(label), None if identity is None else table.cells[identity]


def name_columns(ids: Any, identity: str | None, first: int, prediction: Any, ends: Any) -> dict[str, Any]:
    """Return the columns of predictions by name; a name that is the id's is changed."""
    key = identity or "row"
    columns = {key: np.arange(first, first + len(prediction)) if ids is None else ids}
    for name, values in zip(("prediction", "low", "high"), (prediction, *(ends or ()))):
        columns[f"{name}_" if name == key else name] = values
    return columns


def predict_interval(model: Any, rows: Any, level: float) -> Any:
    """Return the ends of the interval of each row, or None for a model without intervals."""
    steps, regressor = split_model(model)
    rows = rows if steps is None else steps.transform(rows)
    return regressor.predict_interval(rows, level) if hasattr(regressor, "predict_interval") else None


def root_mean_square(values: Any) -> float:
    """Return the root mean square of the values that are not NaN."""
    return float(np.sqrt(np.nanmean(np.square(np.asarray(values, dtype=np.float64)))))


def describe_data(inputs: Inputs) -> Result:
    """Return the rows and columns of both files."""
    kinds = list(inputs.columns.kinds.values())
    n_dates, n_categories = kinds.count("date"), kinds.count("category")
    counts = {"numeric": len(kinds) - n_dates - n_categories, "categorical": n_categories, "date": n_dates}
    rows = {"source_rows": len(inputs.y), "target_rows": inputs.n_target}
    return {"label": inputs.label, **rows, "columns": counts, "imputed": inputs.imputed, "ignored": inputs.ignored}

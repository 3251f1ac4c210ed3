"""The work of the commands: fit, adapt, correct and predict tables. Each returns its result as plain data."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline

from pyspar import (
    BayesSpARRegressor,
    SpARRegressor,
    TargetCorrection,
    adapt_pipeline,
    align,
    expected_rmse,
    rows_to_label,
)
from pyspar import inspect as inspect_model
from pyspar.cli import files
from pyspar.cli.files import Inputs, Request, Table
from pyspar.errors import InputError, collect_warnings, need
from pyspar.persist import load, write_atomically, write_model
from pyspar.progress import progress_bar
from pyspar.text import count_noun

Result = dict[str, Any]
RIDGE_PENALTIES = np.logspace(-4, 8, 49)


def adapt(
    request: Request, *, method: str, alpha: float | None, assume: str | None, use_labels: bool, output: Path | None,
    save_model: Path | None, level: float,
) -> Result:  # fmt: skip
    """Fit on the source, adapt to the target, correct with labels, predict and write."""
    check_outputs(request, output, level)
    files.check_output(save_model, "--save-model", (".skops",), request)
    if save_model is not None:
        need("skops.io", "cli")
    inputs = files.load_inputs(request)
    if inputs.is_streamed and (assume == "measurement" or use_labels or method == "ridge"):
        raise InputError("--assume measurement, target labels and --method ridge need rows in memory; use fewer rows")
    if use_labels and inputs.labels is None:
        fix = "choose rows with spar label, and pass them with --labels"
        raise InputError(f"{inputs.target.where}: no labels in the column {inputs.label!r}; {fix}")
    with progress_bar("fitting and adapting"), collect_warnings() as notes:
        trained = fit(inputs, method, alpha)
        before = forecast(trained, inputs)
        models: dict[str, Any] = {}
        if assume != "measurement":
            models["relation"] = adapt_model(trained, inputs) if method in ("bayes", "spar") else trained
        if assume == "measurement" or (use_labels and assume is None):
            models["measurement"] = align(trained, source=inputs.X, target=inputs.Z)
        assumed, model = next(iter(models.items()))
        correction = None
        if use_labels:
            model = TargetCorrection(models if len(models) > 1 else model).fit(inputs.Z, inputs.labels)
            assumed = model.chosen_ if len(models) > 1 else assumed
            errors = {name: root_mean_square(each.predict(inputs.Z) - inputs.labels) for name, each in models.items()}
            chosen = assumed if len(models) > 1 else None
            correction = {"labels": model.n_labels_, "candidates": errors, "chosen": chosen}
        after = before if model is trained else forecast(model, inputs)
    expected = None
    if after is not None:
        expected = {name: getattr(after, name, None) for name in ("rmse", "interval80", "interval95", "source_rmse")}
        expected["before"] = before.rmse if before is not None and model is not trained else None
    is_scored = not use_labels and (
        inputs.labels is not None or (inputs.is_streamed and inputs.label in inputs.target.names)
    )
    measured, n_outside = None, 0
    with write_atomically(*(path for path in (output, save_model) if path is not None)) as parts:
        if output is not None or is_scored:
            both = (trained, model) if is_scored and model is not trained else (model,)
            residuals, n_outside = predict_target(inputs, both, parts[0] if output is not None else None, level)
            n_known = int((~np.isnan(residuals[-1])).sum())
            if is_scored and n_known:
                first = root_mean_square(residuals[0]) if len(both) > 1 else None
                measured = {"rows": n_known, "rmse": root_mean_square(residuals[-1]), "before": first}
        if save_model is not None:
            write_model(Pipeline([("columns", inputs.columns), ("model", model)]), parts[-1])
    outside = f"{n_outside:,} of {inputs.n_target:,} predictions are far outside the range of the source's labels"
    rows = count_noun(inputs.n_target, "prediction")
    return {
        "data": describe_data(inputs), "method": method,
        "assumes": "relation" if assumed == "relation" else "population",
        "expected": expected, "measured": measured, "correction": correction,
        "findings": [f"serious: {outside}; do not use them without target labels"] if n_outside else [],
        "notes": [*inputs.notes, *notes], "output": output, "model_file": save_model,
        "wrote": f"{output} ({rows})" if output is not None else "no predictions; use -o predictions.csv to write them",
        "saved": None if save_model is None else f"{save_model} (use it with spar predict or pyspar.load)",
    }  # fmt: skip


def inspect(request: Request, *, alpha: float | None, html: Path | None) -> Result:
    """Inspect a fit on the source at the target, and write the report."""
    files.check_output(html, "--html", (".html",), request)
    inputs = files.load_inputs(request)
    with progress_bar("fitting and forecasting"), collect_warnings() as notes:
        model = fit(inputs, "bayes", alpha)
        inspected = model[-1] if inputs.is_streamed else model
        columns = list_columns(model[0], inputs.kinds)
        report = inspect_model(inspected, inputs.Z, y=inputs.labels, columns=columns, outputs=[inputs.label])
    with write_atomically(*([] if html is None else [html])) as parts:
        for part in parts:
            title = f"{inputs.label}: {request.source.name} → {request.target.name}"
            replace(report, title=title, notes=(*inputs.notes, *notes)).save(part)
    wrote = None if html is None else str(html)
    return {"report": report, "data": describe_data(inputs), "notes": [*inputs.notes, *notes], "wrote": wrote}


def label(request: Request, *, rows: int, output: Path | None) -> Result:
    """Choose rows of the target to label, and write them."""
    files.check_output(output, "--output", (".csv", ".tsv", ".parquet"), request)
    inputs = files.load_inputs(request)
    if inputs.is_streamed:
        raise InputError("spar label needs the rows in memory; pass fewer rows")
    model = adapt_model(fit(inputs, "bayes", None), inputs)
    target = Table(inputs.target, inputs.target_cells)
    known = np.flatnonzero(~np.isnan(np.full(inputs.n_target, np.nan) if inputs.labels is None else inputs.labels))
    if rows > (free := inputs.n_target - len(known)):
        raise InputError(f"--rows must be at most {free}, the rows without a label, got {rows}")
    groups = None if request.ignore is None else target.groups(request.ignore)
    with collect_warnings() as notes:
        choice = rows_to_label(model, inputs.Z, rows, groups=groups, exclude=known)
    chosen = [int(row) for row in choice.rows]
    with write_atomically(*([] if output is None else [output])) as parts:
        for part in parts:
            files.write_label_rows(part, inputs.target_cells, inputs.label, chosen, choice.reasons)
    words = None if request.identity is None else target.words(request.identity)
    names = [f"row {row}" if words is None else f"{request.identity} {words[row]}" for row in chosen]
    wrote = "nothing; use -o to_label.csv to write these rows" if output is None else f"{output} (rows count from 0)"
    label_rows = [{"row": row, "name": name, "reason": why} for row, name, why in zip(chosen, names, choice.reasons)]
    next_step = None if output is None else f"fill in {inputs.label!r}, and run spar adapt with --labels {output}"
    return {
        "rows": inputs.n_target, "rows_with_label": len(known), "label_rows": label_rows,
        "notes": [*inputs.notes, *notes], "output": output, "wrote": wrote, "next step": next_step,
    }  # fmt: skip


def predict(request: Request, *, output: Path, level: float) -> Result:
    """Predict the rows of a file in batches with a saved model."""
    check_outputs(request, output, level)
    path, label, identity = request.source, request.label, request.identity
    if path.suffix.lower() != ".skops":
        raise InputError(f"the model must be a .skops file, got {str(path)!r}; write one with spar adapt --save-model")
    extra = [name for name in (label, identity) if name is not None]
    rows, columns, model = files.open_for_model(load(path), request.target, request.options, extra)
    files.check_column(label, "--label", rows.names, rows.where)
    files.check_column(identity, "--id", rows.names, rows.where)
    n, n_missing, shown = 0, 0, "no intervals"
    errors = []
    with collect_warnings() as notes, write_atomically(output) as (part,), files.table_writer(part) as write:
        for Z, table in files.read_batches(rows, columns, impute=request.impute, extra=extra):
            prediction = np.asarray(model.predict(Z), dtype=np.float64)
            if prediction.ndim != 1:
                raise InputError(f"{path} predicts {prediction.shape[1]} labels for each row; only one is supported")
            ends = predict_interval(model, Z, level)
            shown = shown if ends is None else f"intervals at level {level:g}"
            write(name_columns(None if identity is None else table.cells[identity], identity, n, prediction, ends))
            errors.append(prediction - (np.nan if label is None else table.labels(label)))
            n, n_missing = n + len(prediction), n_missing + int(Z.isna().sum().sum())
    residuals = np.concatenate(errors)
    n_known = int((~np.isnan(residuals)).sum())
    imputed = [f"{count_noun(n_missing, 'missing value')}: imputed by the model"] if n_missing else []
    return {
        "rows": n, "measured": {"rows": n_known, "rmse": root_mean_square(residuals)} if n_known else None,
        "level": None if shown == "no intervals" else level, "notes": [*imputed, *notes], "output": output,
        "wrote": f"{output} ({count_noun(n, 'prediction')}, {shown})",
    }  # fmt: skip


def check_outputs(request: Request, output: Path | None, level: float) -> None:
    """Raise InputError for predictions that cannot be written."""
    if not 0.0 < level < 1.0:
        raise InputError(f"--level must be in (0, 1), got {level:g}; try 0.9")
    files.check_output(output, "--output", files.OUTPUTS, request)
    if output is not None and output.suffix.lower() == ".npy" and request.identity is not None:
        raise InputError("--output must be .csv, .tsv or .parquet with --id; a .npy file has no id column")


def fit(inputs: Inputs, method: str, alpha: float | None) -> Any:
    """Return the fitted pipeline of encoder and regressor. Only the chosen method is fitted."""
    groups = {} if inputs.groups is None else {"regressor__groups": inputs.groups}
    regressor: Any
    if method == "bayes":
        regressor = BayesSpARRegressor(alpha=alpha)
    elif method == "ridge":
        n_folds = 0 if inputs.groups is None else min(10, len(set(inputs.groups)))
        splits = list(GroupKFold(n_folds).split(inputs.X, groups=inputs.groups)) if n_folds else None
        regressor, groups = RidgeCV(alphas=RIDGE_PENALTIES, cv=splits), {}
    else:
        regressor = SpARRegressor(0.999 if alpha is None else alpha)
    if inputs.is_streamed:
        return Pipeline([("encode", inputs.encoder), ("regressor", regressor.fit(inputs.X))])
    return Pipeline([("encode", inputs.encoder), ("regressor", regressor)]).fit(inputs.X, inputs.y, **groups)


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
    """Return the expected error on the target, or None for a regressor of another library."""
    try:
        if inputs.is_streamed:
            return model[-1].expected_rmse(inputs.Z)
        own = getattr(model, "expected_rmse", None)
        return expected_rmse(model, inputs.Z) if own is None else own(inputs.Z)
    except TypeError:
        return None


def predict_target(inputs: Inputs, models: tuple[Any, ...], path: Path | None, level: float) -> tuple[list[Any], int]:
    """Write the predictions of the last model; return the errors of each model, and how many predictions are far off.

    Far off is more than the range of the source's labels outside this range, or ten spreads if only Moments are known.
    """
    identity, n = inputs.request.identity, 0
    if inputs.is_streamed:
        low, high = (float(inputs.X.mean[-1] + sign * 10.0 * inputs.X.spread[-1]) for sign in (-1, 1))
    else:
        low, high = 2.0 * inputs.y.min() - inputs.y.max(), 2.0 * inputs.y.max() - inputs.y.min()
    errors: list[list[Any]] = [[np.empty(0)] for _ in models]
    n_outside = 0
    with files.table_writer(path) as write:
        for rows, labels, ids in _target_batches(inputs):
            predictions = [np.asarray(model.predict(rows), dtype=np.float64) for model in models]
            n_outside += int(((predictions[-1] < low) | (predictions[-1] > high)).sum())
            for own, values in zip(errors, [] if labels is None else predictions):
                own.append(values - labels)
            if path is not None:
                write(name_columns(ids, identity, n, predictions[-1], predict_interval(models[-1], rows, level)))
            n += len(rows)
    return [np.concatenate(each) for each in errors], n_outside


def _target_batches(inputs: Inputs) -> Iterator[tuple[Any, Any, Any]]:
    """Yield rows of the target, their labels or None, and their ids or None."""
    identity, label = inputs.request.identity, inputs.label
    if not inputs.is_streamed:
        yield inputs.Z, inputs.labels, None if identity is None else inputs.target_cells[identity]
        return
    extra = [name for name in (label, identity) if name in inputs.target.names]
    for rows, table in files.read_batches(inputs.target, inputs.columns, impute=inputs.request.impute, extra=extra):
        ids = None if identity is None else table.cells[identity]
        yield rows, table.labels(label) if label in extra else None, ids


def name_columns(ids: Any, identity: str | None, first: int, prediction: Any, ends: Any) -> dict[str, Any]:
    """Return the columns of predictions by name; a name that is the id's is changed."""
    key = identity or "row"
    columns = {key: np.arange(first, first + len(prediction)) if ids is None else ids}
    for name, values in zip(("prediction", "low", "high"), (prediction, *(ends or ()))):
        columns[f"{name}_" if name == key else name] = values
    return columns


def predict_interval(model: Any, rows: Any, level: float) -> Any:
    """Return the ends of the interval of each row, or None for a model without intervals."""
    while isinstance(model, Pipeline):
        rows, model = model[:-1].transform(rows), model[-1]
    return model.predict_interval(rows, level) if hasattr(model, "predict_interval") else None


def root_mean_square(values: Any) -> float:
    """Return the root mean square of the values that are not NaN."""
    return float(np.sqrt(np.nanmean(np.square(np.asarray(values, dtype=np.float64)))))


def describe_data(inputs: Inputs) -> Result:
    """Return the rows and columns of both files."""
    kinds = ["date" if kind.startswith("date") else kind for kind in inputs.kinds.values()]
    n_dates, n_categories = kinds.count("date"), kinds.count("category")
    counts = {"numeric": len(kinds) - n_dates - n_categories, "categorical": n_categories, "date": n_dates}
    rows = {"source_rows": inputs.n_source, "target_rows": inputs.n_target}
    return {"label": inputs.label, **rows, "columns": counts, "imputed": inputs.imputed, "ignored": inputs.ignored}

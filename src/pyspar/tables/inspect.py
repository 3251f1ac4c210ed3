"""The work of ``spar inspect``: forecast the error on the target, and write the reports."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sklearn.linear_model import LinearRegression

from pyspar.errors import collect_warnings
from pyspar.inspection import Inspection, build_inspection
from pyspar.inspection.compare import compare_weights
from pyspar.reporting import Report
from pyspar.tables.adapt import check_confidence, make_bayes
from pyspar.tables.inputs import DataAccount, Request
from pyspar.tables.load import load_files
from pyspar.tables.write import NO_OUTPUT, check_reports, report_write_errors, write_files
from pyspar.terminal import SILENT, Progress
from pyspar.wording import describe_new_categories


@dataclass(frozen=True)
class InspectAccount:
    """The result of ``spar inspect``; ``written`` are the reports."""

    data: DataAccount
    document: Report
    notes: tuple[str, ...]
    written: tuple[Path, ...] = ()

    @property
    def inspection(self) -> Inspection:
        return self.document.inspection


def inspect_files(
    request: Request,
    *,
    reports: Sequence[Path] = (),
    title: str | None = None,
    progress: Progress = SILENT,
) -> InspectAccount:
    """Inspect a fit on the source at the target, and write the reports, each in the format of its suffix."""
    check_confidence(request.alpha)
    check_reports(reports, inputs=(request.source, request.target, request.labels))
    inputs = load_files(request, progress)
    progress.start("fit", "fitting and forecasting")
    with collect_warnings() as warned:
        estimator = inputs.fit(make_bayes(request))
    target = inputs.target.moments()
    comparison = compare_weights(estimator, target, inputs.columns, has_model=False)
    progress.finish("fit")
    linear_models = [LinearRegression() for _ in comparison.candidates]
    for model, (coef, intercept) in zip(linear_models, comparison.candidates.values()):
        model.coef_, model.intercept_ = coef[:, 0], float(intercept[0])
    errors = inputs.target.predict_and_score(linear_models, NO_OUTPUT, progress) or ()
    inspection = build_inspection(
        comparison,
        inputs.target.features,
        outputs=[inputs.data.label],
        description=repr(estimator),
        unseen=inputs.data.unseen,
        errors={name: [squares] for name, squares in zip(comparison.candidates, errors)},
        labels=None if inputs.target.labels is None else inputs.target.labels[:, None],
        is_command=True,
    )
    notes = (*inputs.notes, *warned)
    document = Report(
        inspection,
        title or f"{inputs.data.label}: {request.source.name} → {request.target.name}",
        _format_command(request, inputs.data.label, reports, title),
        (*_describe_data(inputs.data), *notes),
    )
    progress.start("write", "writing the report")
    _write_reports(document, reports)
    progress.finish("write")
    return InspectAccount(inputs.data, document, notes, tuple(reports))


def _write_reports(document: Report, paths: Sequence[Path]) -> None:
    """Write pages and JSON, either all that were requested or none."""
    texts = [document.html() if path.suffix.lower() == ".html" else document.json() for path in paths]
    with write_files(*paths) as temporaries:
        for temporary, path, text in zip(temporaries, paths, texts):
            with report_write_errors(path):
                temporary.write_text(text, encoding="utf-8")


def _format_command(request: Request, label: str, reports: Sequence[Path], title: str | None) -> str:
    """Return the command line of an inspection. Absolute paths are replaced by file names."""
    words = ["spar", "inspect", _format_path(request.source), _format_path(request.target), "--label", label]
    values: list[tuple[str, str | None]] = [
        ("--alpha", None if request.alpha is None else f"{request.alpha:g}"),
        ("--features", None if request.features == "all" else request.features),
        ("--id", request.identity),
        *(("--drop", name) for name in request.drop),
        *(("--category", name) for name in request.categories),
        ("--groups", request.groups),
        ("--labels", None if request.labels is None else _format_path(request.labels)),
        ("--bad-cells", None if request.bad_cells == "stop" else request.bad_cells),
    ]
    words += [word for option, value in values if value is not None for word in (option, value)]
    words += ["--drop-unlabelled"] * request.drop_unlabelled + ["--stream"] * request.stream
    words += [] if title is None else ["--title", title]
    words += [word for path in reports for word in ("--report", _format_path(path))]
    return shlex.join(words)


def _format_path(path: Path) -> str:
    return path.name if path.is_absolute() else str(path)


def _describe_data(data: DataAccount) -> list[str]:
    notes = [f"{column.column}: {column.reason}" for column in data.ignored]
    notes += [
        f"{column.column}: {column.source:,} source and {column.target:,} target values imputed with {column.value}"
        for column in data.imputed
    ]
    notes += [
        f"{column.column}: {describe_new_categories(column.rows, column.categories)}" for column in data.unseen.columns
    ]
    return notes

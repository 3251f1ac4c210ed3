"""The result of ``inspect``: frozen dataclasses of numbers, and every sentence about them.

``print``, notebooks, the JSON file and the HTML page show the sentences of this module and compose none of their own.
"""

from __future__ import annotations

import json
import math
import os
import string
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from html import escape
from pathlib import Path
from typing import Any, Literal, Self

from pyspar.core.forecast import Interval
from pyspar.core.separation import Separation
from pyspar.errors import InputError, need
from pyspar.estimators.calibration import Outcome
from pyspar.persist import write_atomically
from pyspar.text import count_noun, format_number, format_percent, list_some, printable

Shares = tuple[tuple[str, float], ...]  # names of columns with their shares, the largest first
OUTCOMES: tuple[Outcome, ...] = ("no-shift", "unverified", "unknown", "hurts")  # from the mildest to the worst
Severity = Literal["serious", "warning", "info", "good"]
SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "info", "good")  # in the order in which findings are listed
HEADLINES = ("SPAR001", "SPAR002", "SPAR015", "SPAR016", "SPAR017", "SPAR022")  # each output has exactly one of them
LABELS_TO_DECIDE = 10  # the number of labels that is recommended and that may decide
LINE_LENGTH = 110
MAX_NAMED_COLUMNS, MIN_NAMED_SHARE = 3, 0.1


class Advice(Enum):
    """What to do with the model. ``OutputReport.advice_text`` is the sentence."""

    KEEP = "keep"  # use the model as it is
    ADAPT = "adapt"  # adapt it to the target
    LABEL = "label"  # label ten target rows before relying on its predictions
    CORRECT = "correct"  # correct it with the known target labels


@dataclass(frozen=True)
class Finding:
    """One finding. The code does not change between versions; ``numbers`` are what ``text`` reports.

    ``output`` is the label that the finding concerns, or None if it concerns the features and so all labels.
    """

    code: str
    severity: Severity
    numbers: Mapping[str, Any] = field(default_factory=dict)
    output: str | None = None

    @property
    def text(self) -> str:
        """What was found."""
        return Sentence().vformat(TEXTS[self.code], (), self.numbers)

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """The place in all views: serious findings, then the headline, then by severity."""
        return self.severity != "serious", self.code not in HEADLINES, SEVERITIES.index(self.severity)

    def __str__(self) -> str:
        return f"{self.severity}: {self.text} ({self.code})"


@dataclass(frozen=True)
class ColumnDrift:
    """How one column differs between source and target; of a category, the feature that differs most."""

    name: str
    mean_shift: float  # in source standard deviations; infinite if the column is constant in the source
    spread_ratio: float  # target over source
    share: float  # of the divergence of all columns, as if they were normal

    @property
    def is_constant(self) -> bool:
        """Whether the column is constant in the source and has other values in the target."""
        return math.isinf(self.mean_shift) or math.isinf(self.spread_ratio)


@dataclass(frozen=True)
class ModelErrors:
    """The expected RMSE of one model on the target, and the measured one if there are labels."""

    name: str
    rmse: float
    interval80: Interval
    interval95: Interval
    measured: float | None = None
    measured95: Interval | None = None


@dataclass(frozen=True)
class Correction:
    """The expected RMSE after ``TargetCorrection`` with the known labels, and that before it given the same labels."""

    rmse: float
    interval80: Interval
    interval95: Interval
    rmse_uncorrected: float
    n_labels: float
    change_probability: float | None = None  # that the relation between features and label has changed


@dataclass(frozen=True, kw_only=True)
class OutputReport:
    """The numbers of one output (label). ``recommended`` is the name of one of ``models``.

    ``responsible`` are columns with their shares of the expected increase of the error, or of the shift if no increase
    is expected.
    """

    name: str
    outcome: Outcome
    severity: Severity
    source_rmse: float  # the in-distribution RMSE; on new groups if the source has groups
    models: tuple[ModelErrors, ...]
    recommended: str
    advice: Advice
    n_labels: int = 0
    confirmed: bool = False  # whether target labels show an error of at most 1.3 times the source RMSE
    correction: Correction | None = None
    responsible: Shares = ()
    findings: tuple[Finding, ...] = ()

    @property
    def forecast(self) -> ModelErrors:
        """The errors of the recommended model."""
        return next(model for model in self.models if model.name == self.recommended)

    @property
    def headline(self) -> Finding:
        """The finding that states the outcome."""
        return next(finding for finding in self.findings if finding.code in HEADLINES)

    @property
    def advice_text(self) -> str:
        """What to do. No other sentence gives advice about the model as a whole."""
        more = max(LABELS_TO_DECIDE - self.n_labels, 0) or LABELS_TO_DECIDE
        noun = f"{'more ' * bool(self.n_labels)}target row"
        rows = count_noun(more, noun) if more < LABELS_TO_DECIDE else f"ten {noun}s"
        label = f"label {rows} (pyspar.rows_to_label chooses them) and correct the model with pyspar.TargetCorrection."
        text, adapted, forecast, first = f"use {self.recommended}.", "", self.forecast, self.models[0]
        if forecast is not first:
            adapted = "use the model adapted to the target (adapt, or pyspar.adapt_pipeline)"
            after, before = (format_number(m.rmse if m.measured is None else m.measured) for m in (forecast, first))
            gain = "; the RMSE remains the same" if after == before else f" for an RMSE of {after} instead of {before}"
            text = f"{adapted}{gain}."
        if self.advice is Advice.LABEL:
            return f"do not rely on these predictions yet; {label}{adapted and f' Until then, {adapted}.'}"
        if self.advice is Advice.CORRECT:
            gain = "" if self.correction is None else f"; expect an RMSE of {format_number(self.correction.rmse)}"
            return f"correct {self.recommended} with these labels, pyspar.TargetCorrection(model).fit(Z, y){gain}."
        return text if self.confirmed else f"{text} To verify it, {label}"

    @property
    def limits(self) -> str:
        """What the target rows cannot show, and what each possibility implies; "" if labels have shown it."""
        has_enough, is_equal = self.n_labels >= LABELS_TO_DECIDE, self.outcome == "no-shift"
        return "" if self.confirmed or (has_enough and is_equal) else LIMITS[2 if has_enough else is_equal]

    def list_errors(self) -> list[str]:
        """Return the errors of all models and the advice, one line each."""
        lines = [] if math.isnan(self.source_rmse) else [f"RMSE on the source: {format_number(self.source_rmse)}"]
        is_far = any((finding.code, finding.severity) == ("SPAR018", "serious") for finding in self.findings)
        for model in self.models:
            text = f"RMSE of {model.name}: expected {_expect(model.rmse, model.interval95)}"
            text += ", which does not hold for this target" * (is_far or self.outcome == "unknown")
            if model.measured is not None:
                text += f", measured {_expect(model.measured, model.measured95)}"
            lines.append(text)
        return [*lines, f"Advice: {self.advice_text}"]

    def __str__(self) -> str:
        return _wrap([*map(str, self.findings), *self.list_errors(), self.limits])

    __repr__ = __str__


@dataclass(frozen=True, kw_only=True)
class ShiftReport:
    """The result of :func:`pyspar.inspect`.

    ``outcome`` is the worst outcome of the outputs. ``findings`` are sorted, serious ones first. ``print`` shows them
    with the expected errors and the advice, ``to_dict`` returns plain Python for JSON, and ``save`` writes an HTML page
    or a JSON file. The page also shows ``title`` and ``notes``, which ``dataclasses.replace`` changes.
    """

    model: str
    outcome: Outcome
    n_source: float
    n_target: float
    separation: Separation | None  # None for a TargetCorrection, which does not store the source
    outputs: tuple[OutputReport, ...]
    findings: tuple[Finding, ...]
    title: str
    notes: tuple[str, ...] = ()
    columns: tuple[ColumnDrift, ...] = ()
    outside: float = 0.0  # the share of the target's variation outside the span of the source

    @classmethod
    def of(cls, model: str, outputs: list[OutputReport], further: Iterable[Finding] = (), **numbers: Any) -> Self:
        """Return the report of several outputs, with further findings about the features."""
        source = f"{numbers['n_source']:,.0f} source rows and " if math.isfinite(numbers["n_source"]) else ""
        title = f"{model}, {source}{count_noun(round(numbers['n_target']), 'target row')}"
        outcome = max((output.outcome for output in outputs), key=OUTCOMES.index)
        found = [*(finding for output in outputs for finding in output.findings), *further]
        ordered = tuple(sorted(found, key=lambda finding: finding.rank))
        return cls(model=model, outcome=outcome, outputs=tuple(outputs), findings=ordered, title=title, **numbers)

    def __str__(self) -> str:
        lines, is_single = [f"Shift report: {self.title}"], len(self.outputs) == 1
        for finding in self.findings:
            if is_single or finding.output is None:
                lines.append(str(finding))
            elif finding.severity != "info" or finding.code in HEADLINES:
                lines.append(f"{finding.output}: {finding}")
        for output in self.outputs:
            lines += [line if is_single else f"{output.name}: {line}" for line in output.list_errors()]
        return _wrap([*lines, *dict.fromkeys(output.limits for output in self.outputs)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the printed report for a notebook, red if a finding is serious."""
        colour = "#b0221a" if any(finding.severity == "serious" for finding in self.findings) else "#57606a"
        return f'<pre style="border-left: 4px solid {colour}; padding-left: 1em">{escape(str(self))}</pre>'

    def to_dict(self) -> dict[str, Any]:
        """Return numbers, text, lists and dicts; numbers that are not finite become None."""
        return {"format": "pyspar-report-2", **_to_plain(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML page or a JSON file, by the suffix of the path. On failure no file is changed."""
        suffix = Path(path).suffix.lower()
        if suffix == ".html":
            need("jinja2", "report")
            from pyspar.report.page import render_page

            text = render_page(self)
        elif suffix == ".json":
            text = json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=1) + "\n"
        else:
            raise InputError(f"the name of a report must end in .html or .json, got {os.fspath(path)!r}")
        with write_atomically(path) as (temporary,):
            # Names may contain unpaired surrogates; the escape is that of JSON.
            temporary.write_bytes(text.encode("utf-8", "backslashreplace"))


LIMITS = (
    "Not known: unlabelled rows do not show whether the measurement or the population changed. If the measurement "
    "changed (another sensor, instrument or unit), pyspar.align(model, source=X, target=Z) removes it; if the "
    "population changed and the relation stayed, SpAR applies (adapt); if you do not know, ten labels decide.",
    "Not known: unlabelled rows do not show whether the relation between features and label changed; ten labels do.",
    "Not known: whether the measurement or the population changed. If the measurement may have changed, let the labels "
    "choose: TargetCorrection({'trained': model, 'aligned': pyspar.align(model, source=X, target=Z)}).fit(Z, y).",
)
"""What unlabelled rows cannot show after a shift and without one, and what labels do not show after a shift."""

CORRECTED = (
    "After a correction with {n_labels:count} target labels, expect an RMSE of {expected} on the target. Without it "
    "the RMSE would be {rmse_uncorrected:number}.{changed}"
)
TEXTS = {
    "SPAR001": "The shift hurts {model}: expect an RMSE of {expected} on the target, {comparison}{columns_to_blame}.",
    "SPAR002": "No covariate shift was found (two-sample test, p = {p_value:number}){matched_rows}. Expect an RMSE of "
    "{expected} on the target, {comparison}.",
    "SPAR003": "{outside:percent} of the target's variation is in directions that do not occur in the source.",
    "SPAR004": "These columns are constant in the source only, so it does not show their effect: {columns:names}.",
    "SPAR008": "Adapting removes {n_removed:count} of {n_directions:count} directions, shrinks {n_shrunk:others} "
    "by more than half, and changes the predictions by {change:number} (root mean square).",
    "SPAR009": "The mean moved by more than {limit:number} source standard deviations: {columns:distances}. Check that "
    "units and encodings agree.",
    "SPAR014": "{rows:count} of {total:count} target rows have categories that do not occur in the source "
    "({columns:categories}), and no forecast covers these rows.",
    "SPAR015": "A shift was found{columns_to_blame}. Expect an RMSE of {expected} on the target, {comparison}; no "
    "label has verified it.",
    "SPAR016": "The error on the target is unknown, and the forecast does not hold: its values, "
    "combinations of values or predictions are unlike those of the source{missing_columns}{columns_to_blame}.",
    "SPAR017": "{verdict_text}: on {labelled_rows} the RMSE of {model} is {observed}, {comparison}{columns_to_blame}.",
    "SPAR018": "{n:count} of {total:count} predictions of {model} ({share:percent}) are implausible by the source "
    "labels: outside {limits:between}, up to {worst:number}. If the labels are within, the RMSE is at least "
    "{floor:number}. Check the rows {rows:rows} (counted from 0).",
    "SPAR020": CORRECTED,
    "SPAR021": "{model} cannot be fitted again, so its RMSE on the source is that on the given source rows. It is too "
    "low if the model was fitted on them; pass held-out rows.",
    "SPAR022": CORRECTED,
    "SPAR023": "Check the labels: {problem}.",
    "SPAR024": "The share of missing values differs between source and target: {columns:changes}.",
}
"""The sentence of each finding. ``Sentence`` fills in numbers (``FORMATS``) and phrases (``PHRASES``)."""
VERDICTS = {
    "confirmed": "The labels confirm the model",
    "hurts": "The labels show that the shift hurts the model",
    "few": "The labels are too few to decide",
    "easy": "The labels are inconclusive, because the labelled rows may be unusually easy",
    "inconclusive": "The labels do not decide",
}
FORMATS: dict[str, Callable[[Any], str]] = {
    "": str,
    "number": format_number,
    "percent": format_percent,
    "count": "{:,.0f}".format,
    "others": lambda n: count_noun(round(n), "other"),
    "between": lambda ends: " to ".join(map(format_number, ends)),
    "names": lambda names: list_some(names, 5),
    "rows": lambda rows: ", ".join(map(str, rows)),
    "distances": lambda pairs: ", ".join(f"{list_some([name])} by {format_number(size)}" for name, size in pairs[:3]),
    "changes": lambda shares: "; ".join(
        f"{list_some([name])} {format_percent(old)} and {format_percent(new)}"
        for name, (old, new) in list(shares.items())[:5]
    ),
    "categories": lambda new: "; ".join(f"{name} {list_some(values, 3)}" for name, values in list(new.items())[:3]),
}
CHANGED = " The relation has changed with probability {} (67 % before any label)."
MATCHED = ", but the rows are matched: their means agree better than those of random samples"
PHRASES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "expected": lambda n: _expect(n["rmse"], n["interval95"]),
    "observed": lambda n: _expect(n["measured"], n["measured95"]),
    "comparison": lambda n: _compare(n),
    "columns_to_blame": lambda n: _blame(n["responsible"], n["responsible_for"]),
    "missing_columns": lambda n: f"; missing values changed in {list_some(n['missing'], 3)}" if n["missing"] else "",
    "matched_rows": lambda n: MATCHED if n["matched"] else "",
    "verdict_text": lambda n: VERDICTS[n["verdict"]],
    "labelled_rows": lambda n: (
        f"{'all ' * (n['is_all'] and n['n_labels'] > 1)}{count_noun(n['n_labels'], 'labelled target row')}"
    ),
    "changed": lambda n: CHANGED.format(format_percent(p)) if (p := n["change_probability"]) is not None else "",
}


class Sentence(string.Formatter):
    """Fill a sentence with formatted numbers and with phrases that depend on several numbers."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return PHRASES[str(key)](kwargs) if key in PHRASES else kwargs[str(key)]

    def format_field(self, value: Any, format_spec: str) -> str:
        return FORMATS[format_spec](value)


def _expect(rmse: float, interval: Interval | None) -> str:
    if interval is None or interval[0] == interval[1]:
        return format_number(rmse)
    return f"{format_number(rmse)} (95 %: {FORMATS['between'](interval)})"


def _compare(n: Mapping[str, Any]) -> str:
    """Return the comparison of an error with that on the source."""
    if n.get("is_rounding"):
        return "which is rounding"
    times = "equal to" if abs(n["ratio"] - 1.0) < 0.005 else f"{format_number(n['ratio'])} times"
    return f"{times} the {format_number(n['source_rmse'])} on the source{' (new groups)' * n['new_groups']}"


def _blame(responsible: Shares, what: str) -> str:
    """Return the columns that are responsible, as the end of a headline; "" if there are none."""
    named = [pair for i, pair in enumerate(responsible[:MAX_NAMED_COLUMNS]) if i == 0 or pair[1] >= MIN_NAMED_SHARE]
    if not named:
        return ""
    listed = ", ".join(f"{list_some([name])} ({format_percent(share)})" for name, share in named)
    start = "the expected increase comes from" if what == "increase" else "the largest changes are in"
    return f"; {start} {'column' if len(named) == 1 else 'columns'} {listed}"


def _wrap(texts: Iterable[str]) -> str:
    """Return lines of at most ``LINE_LENGTH`` characters. Numbers are not separated from their per cent sign."""
    kept = [printable(text).replace(" %", "\0%") for text in texts if text]
    options: Any = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}
    return "\n".join(textwrap.fill(text, LINE_LENGTH, **options) for text in kept).replace("\0", " ")


def _to_plain(value: Any) -> Any:
    """Return a value as plain Python for JSON, with the sentences of findings and outputs."""
    if is_dataclass(value) and not isinstance(value, type):
        names = [item.name for item in fields(value)]
        names += [name for name in ("text", "advice_text", "limits") if name not in names and hasattr(value, name)]
        return {name: _to_plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(name): _to_plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_plain(item) for item in value]
    value = value.value if isinstance(value, Enum) else value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""Reproduce Table 1, the authors' 100-dimensional experiment, and the two figures that synthetic data can show."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pyspar.atomic import whole_file
from pyspar.bench.comparison import Cell, as_csv, as_markdown, compare, scientific, whole
from pyspar.bench.published import published
from pyspar.bench.records import Record, write_records
from pyspar.bench.synthetic import HUNDRED, TABLE_1, Draw, Experiment
from pyspar.estimators import PCRRegressor, SpARRegressor


class Track(Protocol):
    """Wraps an iterable in a progress bar."""

    def __call__(self, items: Iterable[Any], *, label: str, total: int) -> Iterable[Any]: ...


def silent(items: Iterable[Any], *, label: str, total: int) -> Iterable[Any]:
    """Show no progress."""
    return items


@dataclass(frozen=True)
class Table1:
    """What the suite found and where it was written."""

    synthetic: list[Cell]
    hundred: list[Cell]
    files: list[Path]

    @property
    def cells(self) -> list[Cell]:
        return self.synthetic + self.hundred


def run(out: Path, track: Track = silent) -> Table1:
    """Run the suite and write ``records.jsonl``, ``table.md``, ``table.csv`` and the figures into a folder."""
    from pyspar.bench.figures import inflation_figure, labels_figure

    records: list[Record] = []
    for experiment in TABLE_1:
        records += measure(experiment, track)
    synthetic = compare(published("synthetic"), records, scientific)
    records += measure(HUNDRED, track)
    hundred = compare(published("synthetic-100d"), records, whole)

    out.mkdir(parents=True, exist_ok=True)
    result = Table1(synthetic, hundred, [out / n for n in ("records.jsonl", "table.md", "table.csv")])
    write_records(result.files[0], records)
    _write(result.files[1], as_markdown(result.cells))
    _write(result.files[2], as_csv(result.cells))
    result.files.append(labels_figure(TABLE_1[1].draw(123), out / "figure1.png"))
    result.files.append(inflation_figure(out / "spectral_inflation.png"))
    return result


def measure(experiment: Experiment, track: Track = silent) -> list[Record]:
    """Return the summed squared target error of each method, for each seed of an experiment."""
    records = []
    for seed, draw in track(experiment.draws(), label=experiment.name, total=experiment.repeats):
        for method, error in squared_errors(draw).items():
            records.append(Record(experiment.name, method, seed, "squared_error", error))
    return records


def squared_errors(draw: Draw) -> dict[str, float]:
    """Return the summed squared target error of the paper's three methods on one draw."""
    ols = SpARRegressor(fit_intercept=False).fit(draw.X, draw.y)
    # Paper: "their first principal component", of the centred source; its labels are not centred.
    pcr = PCRRegressor(1, fit_intercept=False).fit(draw.X, draw.y)
    predictors = {"ERM": ols, "PCR": pcr, "ERM + SpAR": ols.adapted(draw.Z)}
    return {name: float(((est.predict(draw.Z) - draw.y_target) ** 2).sum()) for name, est in predictors.items()}


def _write(path: Path, text: str) -> None:
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


SUITES: dict[str, Callable[..., Table1]] = {"table1": run}

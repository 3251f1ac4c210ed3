"""Reproduce Table 1, the authors' 100-dimensional experiment, and the two figures that synthetic data can show."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from pyspar.estimators.pcr import PCRRegressor
from pyspar.estimators.spar import SpARRegressor
from pyspar.paper.experiments.comparison import Cell, compare, scientific, whole
from pyspar.paper.experiments.published import published
from pyspar.paper.experiments.suite import Suite
from pyspar.paper.experiments.synthetic import HUNDRED, TABLE_1, Draw, Experiment
from pyspar.paper.output.tables import Sheet
from pyspar.paper.runs.machine import machine, versions
from pyspar.paper.runs.parallel import Progress
from pyspar.paper.runs.records import Record, append_records, recorded
from pyspar.paper.runs.registry import recipe_of
from pyspar.paper.runs.run_suite import Gathered, Options

METHODS = {"ERM": "OLS", "PCR": "PCR", "ERM + SpAR": "SpAR"}
"""The paper's methods here, and by which name ``RECIPES`` knows what each computes."""


def gather(suite: Suite, options: Options, progress: Progress) -> Gathered:
    """Draw every experiment as often as the paper does, or as --seeds says; a miniature, once.

    Each is recorded as soon as it is measured, and one that is recorded is not measured again.
    """
    file = options.out / suite.name / "records.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    notices = append_records(file, [])
    asked = 1 if options.mini else options.seeds
    experiments = [replace(e, repeats=asked or e.repeats) for e in (*TABLE_1, HUNDRED)]
    progress.planned(len(experiments))
    wanted: list[Record] = []
    reused = 0
    for experiment in experiments:
        progress.started(experiment.name, experiment.name, "draw")
        numbers = blanks(experiment)
        there = file.exists() and len(recorded(file, numbers)) == len(numbers)
        if not there:
            append_records(file, measure(experiment, progress))
        wanted += numbers
        reused += there
        progress.ended(experiment.name, "reused, measured before" if there else "done")
    if reused:
        notices.append(f"{reused} of {len(experiments)} experiments had been measured before and were reused.")
    if options.seeds and not options.mini:
        notices.append(f"--seeds {options.seeds}: so many draws of each experiment; the published digits take all.")
    return Gathered(recorded(file, wanted), notices=notices)


def measure(experiment: Experiment, progress: Progress | None = None) -> list[Record]:
    """Return the summed squared target error of each method, for each seed of an experiment."""
    records = []
    left = iter(blanks(experiment))
    for done, (_, draw) in enumerate(experiment.draws(), start=1):
        errors = squared_errors(draw)
        records += [replace(blank, value=errors[blank.method]) for blank in islice(left, len(METHODS))]
        if progress is not None:
            progress.advanced(experiment.name, done, experiment.repeats)
    return records


def blanks(experiment: Experiment) -> list[Record]:
    """Return the records of an experiment without their numbers."""
    stamp = partial(
        Record,
        metric="squared error",
        value=float("nan"),
        run=f"{experiment.name}, {experiment.repeats} draws",
        spec={"experiment": experiment.name, "repeats": experiment.repeats},
        versions=versions(),
        machine=machine(),
    )
    return [
        stamp(experiment.name, method, seed, recipe=recipe_of(head))
        for seed in experiment.seeds
        for method, head in METHODS.items()
    ]


def squared_errors(draw: Draw) -> dict[str, float]:
    """Return the summed squared target error of the paper's three methods on one draw."""
    ols = SpARRegressor(fit_intercept=False).fit(draw.X, draw.y)
    # Paper: "their first principal component", of the centred source; its labels are not centred.
    pcr = PCRRegressor(1, fit_intercept=False).fit(draw.X, draw.y)
    predictors = {"ERM": ols, "PCR": pcr, "ERM + SpAR": ols.adapted(draw.Z)}
    return {name: float(((est.predict(draw.Z) - draw.y_target) ** 2).sum()) for name, est in predictors.items()}


def cells_of(records: list[Record]) -> list[Cell]:
    """Return published cells beside ours."""
    return compare(published("synthetic"), records, scientific) + compare(published("synthetic-100d"), records, whole)


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return the table, and how many of its cells print the published digits."""
    cells = cells_of(records)
    rows = [(c.task, c.method, " ± ".join(c.published), " ± ".join(c.ours), c.verdict) for c in cells]
    same = sum(cell.verdict == "same" for cell in cells)
    title = "Squared error summed over the target, mean ± standard deviation over draws"
    return (
        [Sheet(title, ("task", "method", "published", "ours", "difference"), rows)],
        [*suite.differs, f"{same} of {len(cells)} cells print the published digits, mean and spread."],
    )


def draw(suite: Suite, records: list[Record], folder: Path) -> list[Path]:
    """Draw the data and the predictions of the second experiment, and spectral inflation."""
    from pyspar.paper.output.figures import inflation_figure, labels_figure

    return [
        labels_figure(TABLE_1[1].draw(123), folder / "figure1.png"),
        inflation_figure(folder / "spectral_inflation.png"),
    ]

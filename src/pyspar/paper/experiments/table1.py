"""Table 1, the authors' 100-dimensional experiment, and the two figures that use synthetic data.

Authors: the numbers were drawn with NumPy's legacy global generator, seeded 123 + repeat, in the order source, noise,
target. We use a separate ``RandomState`` with the same seed, which yields the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.core.moments import Matrix, Vector
from pyspar.estimators.spar import SpARRegressor
from pyspar.paper.experiments.methods import Comparison
from pyspar.paper.experiments.suite import Suite, published
from pyspar.paper.output.tables import Sheet
from pyspar.paper.runs.records import Record, append_records, current_provenance, find_records, group_values
from pyspar.paper.runs.run_suite import Options, SuiteRecords, prepare_records_file
from pyspar.paper.runs.spec import RunSpec, recipe_of
from pyspar.progress import progress_bar

FIRST_SEED = 123
ROWS = 4000


@dataclass(frozen=True)
class Draw:
    """One draw of an experiment. The labels of the target have no noise (``eq:x_data_generation``)."""

    X: Matrix
    y: Vector
    Z: Matrix
    w_star: Vector

    @property
    def y_target(self) -> Vector:
        return np.asarray(self.Z @ self.w_star)


@dataclass(frozen=True)
class Experiment:
    """A synthetic experiment: how to sample it, and how often the paper repeats it."""

    name: str
    repeats: int
    sample: Callable[[np.random.RandomState], Draw]

    @property
    def seeds(self) -> range:
        return range(FIRST_SEED, FIRST_SEED + self.repeats)

    def draw(self, seed: int) -> Draw:
        return self.sample(np.random.RandomState(seed))


def make_plane_sampler(
    w_star: tuple[float, float], source: tuple[float, float], target: tuple[float, float]
) -> Callable[[np.random.RandomState], Draw]:
    """Return a two-dimensional sampler, from the true weights (scaled to unit length) and two diagonal covariances."""
    w = np.asarray(w_star) / np.linalg.norm(w_star)

    return lambda random: _sample(random, w, (np.zeros(2), source), (np.zeros(2), target))


def _sample(random: np.random.RandomState, w: Vector, source: Any, target: Any) -> Draw:
    X = random.multivariate_normal(source[0], np.diag(source[1]), ROWS)
    noise = random.normal(size=ROWS)
    Z = random.multivariate_normal(target[0], np.diag(target[1]), ROWS)
    return Draw(X, X @ w + noise, Z, w)


def sample_hundred_dimensions(random: np.random.RandomState) -> Draw:
    """Sample the 100-dimensional experiment of the authors' code. Source variances fall tenfold from block to block.
    The numbers depend on the order of the five parameter draws, and on scaling the true weights to unit length.
    """
    D, block = 100, 10
    w, source_mean, target_mean = (random.normal(size=D) for _ in range(3))
    target_variance, source_variance = (np.abs(random.normal(size=D)) for _ in range(2))
    w = w / np.linalg.norm(w)
    source_variance = source_variance * 10.0 ** (7 - np.arange(D) // block)
    return _sample(random, w, (source_mean, source_variance), (target_mean, target_variance))


_SOURCE, _TARGET = (5.0, 1e-5), (1.0, 40.0)

# Paper: the text gives 0.01 as the small entry of the first two weight vectors; only 0.001 reproduces the table.
TABLE_1 = (
    Experiment("experiment-1", 10, make_plane_sampler((0.001, 1.0), _SOURCE, _TARGET)),
    Experiment("experiment-2", 10, make_plane_sampler((1.0, 0.001), _SOURCE, _TARGET)),
    Experiment("experiment-3", 10, make_plane_sampler((1.0, 2.0), _SOURCE, _TARGET)),
    Experiment("experiment-4", 10, make_plane_sampler((1.0, 2.0), _TARGET, _TARGET)),
)
HUNDRED = Experiment("100-dimensional", 100, sample_hundred_dimensions)


METRIC = "squared error"
METHODS = {"ERM": "OLS", "PCR": "PCR", "ERM + SpAR": "SpAR"}
"""The paper's methods, and their names in ``RECIPES``."""


def gather(suite: Suite, options: Options) -> SuiteRecords:
    """Measure every experiment as often as in the paper, or as often as ``--seeds`` requires. Each experiment is
    recorded as soon as it is measured, and recorded experiments are not measured again.
    """
    file = prepare_records_file(suite, options)
    repeats = 1 if options.mini else options.seeds
    experiments = [replace(e, repeats=repeats or e.repeats) for e in (*TABLE_1, HUNDRED)]
    wanted: list[Record] = []
    n_reused = 0
    with progress_bar(suite.name, total=len(experiments), unit="experiments", show=options.show) as advance:
        for done, experiment in enumerate(experiments, start=1):
            blanks = make_blank_records(experiment)
            reused = file.exists() and len(find_records(file, blanks)) == len(blanks)
            if not reused:
                append_records(file, measure_experiment(experiment))
            wanted += blanks
            n_reused += reused
            advance(done)
    notices = [f"{n_reused} of {len(experiments)} experiments were measured before and were reused."] * bool(n_reused)
    if options.seeds and not options.mini:
        notices.append(f"--seeds {options.seeds} limits the draws; the published digits require all of them.")
    return SuiteRecords(find_records(file, wanted), notices=notices)


def measure_experiment(experiment: Experiment) -> list[Record]:
    """Return the summed squared target error of each method, for each seed of an experiment."""
    errors = {seed: compute_errors(experiment.draw(seed)) for seed in experiment.seeds}
    return [replace(blank, value=errors[blank.seed][blank.method]) for blank in make_blank_records(experiment)]


def make_blank_records(experiment: Experiment) -> list[Record]:
    """Return the records of an experiment with nan as their values."""
    run = f"{experiment.name}, {experiment.repeats} draws"
    spec = {"experiment": experiment.name, "repeats": experiment.repeats}
    origin = {"run": run, "spec": spec, **current_provenance()}
    return [
        Record(experiment.name, method, seed, METRIC, math.nan, recipe=recipe_of(head), **origin)  # type: ignore[arg-type]
        for seed in experiment.seeds
        for method, head in METHODS.items()
    ]


def expect(suite: Suite, specs: list[RunSpec], records: list[Record]) -> list[Record]:
    """Return the records of every draw, with nan as their values. These experiments train nothing."""
    return [record for experiment in (*TABLE_1, HUNDRED) for record in make_blank_records(experiment)]


def compute_errors(draw: Draw) -> dict[str, float]:
    """Return the summed squared target error of the paper's three methods on one draw."""
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline

    ols = SpARRegressor(fit_intercept=False).fit(draw.X, draw.y)
    # Paper: "their first principal component" refers to the centred source; the labels are not centred.
    pcr = make_pipeline(PCA(1), LinearRegression(fit_intercept=False))
    predictions = {"ERM": ols.predict(draw.Z), "PCR": pcr.fit(draw.X, draw.y).predict(draw.Z)}
    predictions["ERM + SpAR"] = ols.adapt(draw.Z).predict(draw.Z)
    return {name: float(((values - draw.y_target) ** 2).sum()) for name, values in predictions.items()}


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return the table, and how many of its cells have the published digits."""
    cells = compare_cells(records)
    rows = [(c.task, c.method, " ± ".join(c.published or ()), " ± ".join(c.ours), c.verdict) for c in cells]
    same = sum(cell.verdict == "same" for cell in cells)
    title = "Squared error summed over the target, mean ± standard deviation over draws"
    return (
        [Sheet(title, ("task", "method", "published", "ours", "difference"), rows)],
        [*suite.differs, f"{same} of {len(cells)} cells have the published digits, both in mean and in spread."],
    )


def draw_figures(suite: Suite, records: list[Record], folder: Path) -> list[Path]:
    """Draw the data and the predictions of the second experiment, and the spectral inflation."""
    from pyspar.paper.output.figures import draw_inflation, draw_labels

    return [
        draw_labels(TABLE_1[1].draw(123), folder / "figure1.png"),
        draw_inflation(folder / "spectral_inflation.png"),
    ]


@dataclass(frozen=True)
class Cell(Comparison):
    """A cell of the synthetic tables, with our numbers in the published format."""

    @property
    def ours(self) -> tuple[str, str]:
        """Our mean and spread in the published format: integers, or a mantissa with an exponent."""
        format_value = format_scientific if self.published and "e" in self.published[0] else "{:.0f}".format
        return format_value(self.mean), format_value(self.spread)

    @property
    def verdict(self) -> str:
        """``same`` if every printed digit agrees, otherwise the difference of the means in joint standard errors."""
        if self.ours == self.published:
            return "same"
        return "differs" if self.difference is None else f"{self.difference:+.1f} SE"


def format_scientific(value: float) -> str:
    """Format a number as in the paper's synthetic table: two decimals, and an exponent that is not negative."""
    exponent = max(0, math.floor(math.log10(abs(value)))) if value else 0
    if round(abs(value) / 10**exponent, 2) >= 10:
        exponent += 1
    return f"{value / 10**exponent:.2f}e{exponent}"


def compare_cells(records: Iterable[Record]) -> list[Cell]:
    """Return the cells of both published tables for the experiments of records."""
    values = group_values(records, "task", "method")
    return [
        Cell(task, method, METRIC, printed, len(values[task, method]), tuple(values[task, method]))
        for table in (published("synthetic"), published("synthetic-100d"))
        for task, methods in table.cells.items()
        for method, printed in methods.items()
        if (task, method) in values
    ]

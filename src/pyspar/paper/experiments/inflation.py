"""Spectral inflation in a trained network: held-out source rows compared with target rows.

Paper: ``fig:spectral_inflation``. The source rows are held out before training.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.core.moments import Moments, Vector
from pyspar.core.spectrum import Spectrum, default_cutoff, directions_above, rotate_features
from pyspar.paper.experiments.suite import Suite
from pyspar.paper.output.tables import Sheet
from pyspar.paper.runs.heads import round_to_float32
from pyspar.paper.runs.records import Record, group_values
from pyspar.paper.runs.run import Outcome
from pyspar.paper.runs.run_suite import Options, SuiteRecords, make_blank_record, run_specs
from pyspar.paper.runs.spec import RunSpec
from pyspar.paper.runs.store import RunFolder
from pyspar.theory import spectral_inflation

METRIC = "spectral inflation"
INSIDE, OUTSIDE = "in distribution", "out of distribution"


def gather(suite: Suite, options: Options) -> SuiteRecords:
    """Train, and measure Var_zj / M along every direction of both samples."""

    def make_records(spec: RunSpec, outcome: Outcome) -> Iterable[Record]:
        features = RunFolder.of(options.out, spec).read_features("held_out")
        if features is not None:
            for name, Z in ((INSIDE, features.held_out), (OUTSIDE, features.test)):
                for index, value in enumerate(compute_inflation(features.train, Z), start=1):
                    yield Record(spec.task, name, spec.seed, METRIC, round_to_float32(value), at=index)

    return run_specs(suite, options.specs(suite), [], options, make_records=make_records, needs_features=True)


def expect(suite: Suite, specs: list[RunSpec], records: list[Record]) -> list[Record]:
    """Return the records of both curves, with nan as their values. The recorded network decides their length."""
    expected = []
    for spec in specs:
        for name in (INSIDE, OUTSIDE):
            blank = make_blank_record(spec, name, METRIC)
            places = [r.at or 0.0 for r in records if (r.task, r.method, r.seed) == (spec.task, name, spec.seed)]
            expected += [replace(blank, at=place) for place in range(1, int(max(places, default=1.0)) + 1)]
    return expected


def compute_inflation(X: Any, Z: Any) -> Vector:
    """Return Var_zj / M for noise of variance 1, in decreasing order."""
    source = Moments.of(X)
    # The same cutoff of directions as for a head.
    kept = directions_above(source, default_cutoff(source))
    rotated = Spectrum.of(rotate_features(source, kept))
    x = Spectrum(rotated.lam, kept.T @ rotated.V, source.rounding())
    return np.sort(spectral_inflation(x, Spectrum.of(Z), np.array([1.0]), len(Z))[:, 0])[::-1]


def present(suite: Suite, records: list[Record]) -> tuple[list[Sheet], list[str]]:
    """Return the maximum and the sum of each curve."""
    curves = _group_curves(records)
    rows = []
    for task in dict.fromkeys(task for task, _ in curves):
        inside, outside = curves[task, INSIDE], curves[task, OUTSIDE]
        for name, reduce in (("largest", np.max), ("sum over directions", np.sum)):
            a, b = float(reduce(inside)), float(reduce(outside))
            rows.append((task, name, f"{a:.3g}", f"{b:.3g}", f"{b / a:.3g}"))
    header = ("data", "Var_zj / M", INSIDE, OUTSIDE, "ratio")
    return [Sheet("Spectral inflation of the features", header, rows, ("Noise variance 1.",))], list(suite.differs)


def _group_curves(records: list[Record]) -> dict[tuple[str, str], Vector]:
    tasks = dict.fromkeys(r.task for r in records)
    first = {task: min(r.seed for r in records if r.task == task) for task in tasks}
    ordered = sorted(records, key=lambda r: r.at or 0)
    curves = group_values((r for r in ordered if r.seed == first[r.task]), "task", "method")
    return {(t, m): np.array(curves[t, m]) for t in tasks for m in (INSIDE, OUTSIDE) if (t, m) in curves}


def draw_figures(suite: Suite, records: list[Record], folder: Path) -> list[Path]:
    """Draw the curves."""
    from pyspar.paper.output.figures import draw_inflation_curves

    return [draw_inflation_curves(_group_curves(records), folder / "inflation-networks.png")] if records else []

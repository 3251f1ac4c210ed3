"""Expected against actual: how many times the noise the RMSE on the target was forecast to be, and was."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shifts.records import Key, Record

# Three maps, three colours that stay apart for the colour-blind, and three markers for print.
NEAR = 30.0
"""Where most forecasts lie, in noises; drawn once more by itself."""

LOOK = {"raw": ("#0072b2", "o"), "poly2": ("#d55e00", "s"), "fourier": ("#009e73", "^")}


@dataclass(frozen=True)
class Calibration:
    """One method's forecasts: the inflation of the noise's RMSE that was expected on each task, and the actual one."""

    method: str
    records: list[Record]
    expected: np.ndarray
    actual: np.ndarray

    @classmethod
    def of(cls, records: dict[Key, Record], method: str, half: str | None = None) -> Calibration:
        mine = [r for (_, m), r in sorted(records.items()) if m == method and half in (None, r["half"]) and r["rmse"]]
        told = [r for r in mine if r["expected"] and r["noise"] and r.get("low") is not None]
        expected = np.array([r["expected"] / r["noise"] for r in told])
        actual = np.array([r["rmse"] / r["noise"] for r in told])
        return cls(method, told, expected, actual)

    @property
    def rank_correlation(self) -> float:
        """Spearman's, over tasks."""
        return _spearman(self.expected, self.actual)

    @property
    def rank_correlation_of_sets(self) -> float:
        """Spearman's over data sets, each the geometric mean of its tasks."""
        names = np.array([r["set"] for r in self.records])
        each = [names == name for name in sorted(set(names))]
        expected, actual = ([np.log(v[own]).mean() for own in each] for v in (self.expected, self.actual))
        return _spearman(np.array(expected), np.array(actual))

    @property
    def rank_correlation_in_spreads(self) -> float:
        """Spearman's over tasks of the RMSE in units of the labels' spread in the source, instead of the noise."""
        unit = np.array([r["noise"] / r["spread"] for r in self.records])
        return _spearman(self.expected * unit, self.actual * unit)

    @property
    def covered(self) -> float:
        """The share of tasks whose RMSE lay in its 95 % interval."""
        return float(np.mean([r["low"] <= r["rmse"] <= r["high"] for r in self.records]))

    def __str__(self) -> str:
        tasks, sets, spreads = self.rank_correlation, self.rank_correlation_of_sets, self.rank_correlation_in_spreads
        return (
            f"rank correlation of expected and actual RMSE / noise {tasks:.3f} over {len(self.records)} tasks, "
            f"{sets:.3f} over sets (geometric means of their tasks); of RMSE / spread of the labels {spreads:.3f} over "
            f"tasks; {self.covered:.0%} of the tasks lie in their 95 % interval"
        )

    @property
    def surprises(self) -> list[tuple[Record, float, float]]:
        """The forecasts that were furthest off, as factors, worst first."""
        order = np.argsort(-np.abs(np.log(self.actual / self.expected)), kind="stable")
        return [(self.records[i], float(self.expected[i]), float(self.actual[i])) for i in order]


def draw(calibrations: list[Calibration], path: Path) -> None:
    """Plot each method's forecasts beside the line on which a perfect one would lie."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = Figure(figsize=(5.2 * len(calibrations), 9.0), layout="constrained")
    FigureCanvasAgg(picture)
    panels = picture.subplots(2, len(calibrations), squeeze=False)
    for (whole, near), found in zip(panels.T, calibrations, strict=True):
        _panel(whole, found)
        whole.set_title(f"{found.method}: rank correlation {found.rank_correlation:.3f}", fontsize=11)
        whole.legend(frameon=False, title="features")
        _panel(near, found)
        near.set(xlim=(0.5, NEAR), ylim=(0.5, NEAR))
        near.set_title(f"{found.method}, forecasts below {NEAR:g} times the noise", fontsize=11)
    picture.savefig(path, dpi=100)


def _panel(axes: Any, found: Calibration) -> None:
    maps = np.array([r["map"] for r in found.records])
    for name, (colour, marker) in LOOK.items():
        own = maps == name
        axes.scatter(found.expected[own], found.actual[own], s=16, c=colour, marker=marker, alpha=0.5, label=name)
    most = 2.0 * max(found.actual.max(initial=1.0), found.expected.max(initial=1.0))
    axes.plot([0.5, most], [0.5, most], color="0.5", linewidth=1, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="expected RMSE / noise, before any label", ylabel="actual RMSE / noise")
    axes.spines[["top", "right"]].set_visible(False)


def _spearman(a: np.ndarray, b: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic) if len(a) > 2 else float("nan")

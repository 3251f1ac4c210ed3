"""The figures. Each function that draws one writes one PNG and returns its path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyspar.core.moments import Vector
from pyspar.core.spectrum import Spectrum
from pyspar.errors import need
from pyspar.estimators.spar import SpARRegressor
from pyspar.paper.experiments.table1 import HUNDRED, Draw
from pyspar.paper.runs.heads import metric_title
from pyspar.paper.runs.records import Record
from pyspar.persist import write_atomically
from pyspar.theory import spectral_inflation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pyspar.paper.experiments.methods import Comparison

SOURCE, TARGET, REMOVED = "#4c72b0", "#dd8452", "#c44e52"
"""Colours that colour-blind readers can distinguish, also in grey scale."""

PUBLISHED = "0.6"


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, independent of window systems and of matplotlib's global state."""
    need("matplotlib", "paper")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure whole or not at all."""
    with write_atomically(path) as (temporary,):
        figure.savefig(temporary, dpi=150)
    return path


def draw_labels(draw: Draw, path: Path) -> Path:
    """Draw the paper's first figure: the data, the true labels, and the predictions of least squares and SpAR. Paper:
    ``fig:labels_vs_predictions``.
    """
    ols = SpARRegressor(fit_intercept=False).fit(draw.X, draw.y)
    panels = [
        ("(b) true labels of Z", draw.y_target),
        ("(c) least squares", ols.predict(draw.Z)),
        ("(d) SpAR", SpARRegressor(fit_intercept=False).fit(draw.X, draw.y).adapt(draw.Z).predict(draw.Z)),
    ]
    figure = new_figure(12.0, 3.6)
    axes = figure.subplots(1, 4, sharex=True, sharey=True)
    axes[0].scatter(*draw.Z.T, s=3, color=TARGET, label="target Z", rasterized=True)
    axes[0].scatter(*draw.X.T, s=3, color=SOURCE, label="source X", rasterized=True)
    axes[0].set_title("(a) the data")
    axes[0].legend(loc="upper left", markerscale=3, fontsize=8, handletextpad=0.1, borderpad=0.2)
    # One colour scale for all panels, that of the true labels; the predictions of least squares exceed it.
    limit = float(np.abs(draw.y_target).max())
    for axis, (title, values) in zip(axes[1:], panels, strict=True):
        points = axis.scatter(*draw.Z.T, c=values, s=3, cmap="coolwarm", vmin=-limit, vmax=limit, rasterized=True)
        rms = float(np.sqrt(np.mean((values - draw.y_target) ** 2)))
        axis.set_title(title if rms == 0 else f"{title}, RMSE {rms:.2g}")
    for axis in axes:
        axis.set_xlabel("horizontal")
    axes[0].set_ylabel("vertical")
    figure.colorbar(points, ax=axes[1:], label="label", extend="both")
    return save_figure(figure, path)


def draw_inflation(path: Path, seed: int = 123) -> Path:
    """Draw the spectral inflation of held-out source rows and of target rows in the 100-dimensional experiment."""
    draw = HUNDRED.draw(seed)
    half = draw.X.shape[0] // 2
    x = Spectrum.of(draw.X[:half])
    samples = {"in distribution (held-out source)": draw.X[half:], "out of distribution (target)": draw.Z}
    curves = {
        (HUNDRED.name, name): np.sort(spectral_inflation(x, Spectrum.of(Z), np.array([1.0]), len(Z))[:, 0])[::-1]
        for name, Z in samples.items()
    }
    return draw_inflation_curves(curves, path)


def draw_methods(cells: list[Comparison], metrics: tuple[str, ...], path: Path) -> Path:
    """Draw our mean and spread of every method below the published ones. Paper: ``fig:Tabular10Seeds``."""
    tasks = list(dict.fromkeys(c.task for c in cells))
    columns = [m for m in metrics if any(c.metric == m and c.published for c in cells)] or list(metrics)
    n_rows = max(sum((c.task, c.metric) == (t, columns[0]) for c in cells) for t in tasks)
    figure = new_figure(5.6 * len(columns), 0.8 + max(3.4, 0.28 * n_rows) * len(tasks))
    axes = figure.subplots(len(tasks), len(columns), squeeze=False)
    style = {"ms": 4.5, "lw": 1.2}
    for i, task in enumerate(tasks):
        for j, metric in enumerate(columns):
            axis = axes[i, j]
            panel = [c for c in cells if (c.task, c.metric) == (task, metric)]
            for position, c in enumerate(panel):
                if c.published:
                    mean, spread = map(float, c.published)
                    axis.errorbar(mean, position - 0.18, xerr=spread, fmt="D", **style, color=PUBLISHED)
                colour = SOURCE if " + " not in c.method else TARGET if c.method.endswith(" OLS") else REMOVED
                axis.errorbar(c.mean, position + 0.18, xerr=c.spread, fmt="o", **style, color=colour)
            axis.set_yticks(range(len(panel)), [c.method for c in panel], fontsize=8)
            axis.invert_yaxis()
            axis.set_title(f"{task}: {metric_title(metric)}", fontsize=10)
            axis.grid(alpha=0.3)
    from matplotlib.lines import Line2D

    keys = [(PUBLISHED, "published"), (SOURCE, "ours, trained head"), (TARGET, "ours, OLS"), (REMOVED, "ours, adapted")]
    keys = keys if any(c.published for c in cells) else keys[1:]
    handles = [Line2D([], [], color=c, label=t, ls="", marker="D" if c == PUBLISHED else "o") for c, t in keys]
    figure.legend(handles=handles, loc="outside lower center", ncols=2 * min(len(columns), 2))
    return save_figure(figure, path)


def draw_alpha(records: list[Record], metrics: tuple[str, ...], path: Path) -> Path:
    """Draw the error against alpha, with least squares and the trained head as lines. Paper: ``fig:spar_alpha_search``.
    The axis is -log10(1 - alpha), because the interesting values are close to 1. Alpha = 1 is left out: it removes
    everything, and the error of predicting zero is far above the others.
    """
    tasks = list(dict.fromkeys(r.task for r in records))
    figure = new_figure(5.2 * len(metrics), 0.4 + 3.2 * len(tasks))
    axes = figure.subplots(len(tasks), len(metrics), squeeze=False)
    alphas = sorted({r.at for r in records if r.at is not None and r.at < 1})
    positions = {a: -np.log10(1 - a) for a in alphas}
    for i, task in enumerate(tasks):
        for j, metric in enumerate(metrics):
            axis = axes[i, j]
            panel = [r for r in records if (r.task, r.metric) == (task, metric)]
            curve = np.array([[r.value for r in panel if r.at == a] for a in alphas])
            x = np.array([positions[a] for a in alphas])
            mean, error = curve.mean(axis=1), curve.std(axis=1) / np.sqrt(max(curve.shape[1] - 1, 1))
            axis.plot(x, mean, ".-", color=REMOVED, label="ERM + SpAR, ± one standard error")
            axis.fill_between(x, mean - error, mean + error, color=REMOVED, alpha=0.2, lw=0)
            for colour, method in zip((SOURCE, TARGET), dict.fromkeys(r.method for r in panel if r.at is None)):
                level = float(np.mean([r.value for r in panel if r.method == method and r.at is None]))
                axis.axhline(level, ls="--", lw=1, color=colour, label=method)
            if 0.999 in positions:
                axis.axvline(positions[0.999], lw=1, color="0.7")
            axis.set_title(f"{task}: {metric_title(metric)}", fontsize=10)
            axis.set_xlabel(r"$\alpha$ (the paper's 0.999 in grey)")
            ticks = [a for a in (0.0, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999) if a in positions]
            axis.set_xticks([positions[a] for a in ticks], [f"{a:.10g}" for a in ticks], fontsize=7, rotation=30)
            axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=8)
    return save_figure(figure, path)


def draw_inflation_curves(curves: dict[tuple[str, str], Vector], path: Path) -> Path:
    """Draw Var_zj / M of two samples in decreasing order. Paper: ``fig:spectral_inflation``."""
    tasks = list(dict.fromkeys(task for task, _ in curves))
    figure = new_figure(5.6 * len(tasks), 4.0)
    axes = figure.subplots(1, len(tasks), squeeze=False)[0]
    for axis, task in zip(axes, tasks, strict=True):
        samples = [(name, values) for (t, name), values in curves.items() if t == task]
        for (name, values), colour in zip(samples, (SOURCE, TARGET), strict=True):
            axis.plot(np.arange(1, values.size + 1), values, ".-", ms=4, lw=1, color=colour, label=name)
        axis.set_yscale("log")
        axis.set_ylim(bottom=1e-5 * max(values.max() for _, values in samples))  # smaller values are negligible
        axis.set_title(task)
        axis.set_xlabel("direction of the sample, worst first")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel(r"$\mathrm{Var}_{z,j} / M$ (noise variance 1)")
    axes[0].legend()
    return save_figure(figure, path)

"""The figures of the synthetic experiments. Each function writes one PNG and returns its path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyspar.core.spectrum import Spectrum
from pyspar.errors import need
from pyspar.estimators.spar import SpARRegressor
from pyspar.io.atomic import whole_file
from pyspar.paper.experiments.synthetic import HUNDRED, Draw
from pyspar.theory import spectral_inflation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE, TARGET, REMOVED = "#4c72b0", "#dd8452", "#c44e52"
"""Colours that colour-blind readers can distinguish, also in grey scale."""


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
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=150)
    return path


def draw_labels(draw: Draw, path: Path) -> Path:
    """Draw the paper's first figure: the data, the true labels, and the predictions of least squares and SpAR.

    Paper: ``fig:labels_vs_predictions``.
    """
    ols = SpARRegressor(fit_intercept=False).fit(draw.X, draw.y)
    panels = [
        ("(b) true labels of Z", draw.y_target),
        ("(c) least squares", ols.predict(draw.Z)),
        ("(d) SpAR", ols.adapted(draw.Z).predict(draw.Z)),
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
    """Draw the spectral inflation of held-out source rows and of target rows in the 100-dimensional experiment.

    Paper: ``fig:spectral_inflation``, for a network on satellite images.
    """
    draw = HUNDRED.draw(seed)
    half = draw.X.shape[0] // 2
    source, inside = draw.X[:half], draw.X[half:]
    x = Spectrum.of(source)
    samples = {
        "in distribution (held-out source)": (inside, SOURCE),
        "out of distribution (target)": (draw.Z, TARGET),
    }
    figure = new_figure(7.0, 4.2)
    axis = figure.subplots()
    for name, (Z, colour) in samples.items():
        inflation = spectral_inflation(x, Spectrum.of(Z), np.array([1.0]), Z.shape[0])[:, 0]
        place = np.arange(1, inflation.size + 1)
        axis.plot(place, np.sort(inflation)[::-1], ".-", ms=5, lw=1, color=colour, label=name)
    axis.set_yscale("log")
    axis.set_xlabel("target direction, worst first")
    axis.set_ylabel(r"spectral inflation $\mathrm{Var}_{z,j} / M$ (noise variance 1)")
    axis.legend()
    axis.grid(alpha=0.3)
    return save_figure(figure, path)

"""Repair each network without one mechanism of ``refit_head`` at a time: ``python -m benchmarks.networks --ablation``.

A mechanism is kept if the worst ratio rises above 1.03 without it. The heads of networks that stopped early are changed
much more often than those of well-trained ones, so the ablation is also run with ``--epochs 3``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.networks.scoring import ROWS
from benchmarks.networks.training import TrainedNetwork, trained_network
from pyspar import Moments
from pyspar.core.adapt import Adaptation
from pyspar.core.moments import Matrix
from pyspar.core.refit import error_roots_of, refit_head

VARIANTS: dict[str, tuple[dict[str, Any], Callable[[Adaptation], Matrix]]] = {
    "all mechanisms": ({}, lambda new: new.w_proj),
    "no cutoff of faint directions": ({"cutoff": 0.0}, lambda new: new.w_proj),
    "equal noise of all rows": ({"error_roots": ()}, lambda new: new.w_proj),
    "no second test": ({"alpha_again": 0.0}, lambda new: new.w_proj),
    "no scale": ({}, lambda new: new.w_proj / new.scale),
}
"""The options of ``refit_head``, and the change of the weights from what it returns."""


def ablate(
    names: Sequence[str], networks: Sequence[str], epochs: int | None = None
) -> tuple[list[str], list[list[Any]]]:
    """Return the number of changed networks and the ratios of each variant, for all sets and networks."""
    torch.set_num_threads(1)
    ratios: dict[tuple[str, str], dict[str, float]] = {}
    for network in networks:
        for name in names:
            trained = trained_network(name, network, epochs)
            for rows in ROWS:
                for variant, ratio in repair(trained, rows):
                    ratios.setdefault((rows, variant), {})[f"{name}, {network}"] = ratio
    table = []
    for (rows, variant), of in ratios.items():
        values, worst = np.array(list(of.values())), max(of, key=lambda one: of[one])
        changed, mean = int((values != 1.0).sum()), float(np.exp(np.log(values).mean()))
        table.append([variant, rows, len(values), changed, f"{mean:.4f}", f"{values.max():.4f}", worst])
    return ["variant", "source rows", "networks", "changed", "mean", "worst", "at"], table


def repair(trained: TrainedNetwork, rows: str) -> Iterator[tuple[str, float]]:
    """Yield each variant with the ratio of the target RMSE after and before the repair."""
    body, head = trained.model[:-1], trained.model[-1]  # type: ignore[index]  # every network is a Sequential
    data = trained.data
    with torch.inference_mode():
        source = data.train if rows == ROWS[0] else data.validation
        H, T = body(source[0]).numpy(), body(data.target[0]).numpy()
        w0, b0 = (parameter.double().numpy() for parameter in (head.weight, head.bias))
    y, target_y = source[1].double().numpy(), data.target[1].double().numpy()
    moments, target, roots = Moments.of(H, y), Moments.of(T), error_roots_of(H, y, w0, b0)
    error = target_y - T @ w0.T - b0
    for variant, (options, change_of) in VARIANTS.items():
        change = change_of(refit_head(moments, target, w0, b0, **{"error_roots": roots, **options}))
        yield variant, float(np.sqrt(np.mean(np.square(error - T @ change)) / np.mean(np.square(error))))

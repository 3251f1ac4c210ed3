"""The data of a run: a named data set, perhaps with some training rows kept back, or a miniature that is generated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.paper.data import Part, ShiftTask, load
from pyspar.paper.data.registry import state_of
from pyspar.paper.runs.spec import RunSpec

_SHAPES = {"mlp": (6,), "resnet18": (3, 16, 16), "resnet34": (3, 16, 16), "multispectral-resnet18": (8, 16, 16)}

_SOURCE, _TARGET = 0.3, 3.0  # how much a miniature varies along its weak direction


@dataclass(frozen=True, eq=False)
class RunData:
    """A task, and the training rows that were kept back from it: the same world, never trained on."""

    task: ShiftTask
    held_out: Any = None


def run_data(spec: RunSpec, folder: Path | None) -> RunData:
    """Load what a run learns from and is judged on."""
    options = dict(spec.options)
    share = options.pop("hold_out", 0.0)
    mini = options.pop("mini", "")
    options.pop("timed", None)  # tells runs apart, not data
    task = miniature(spec, pool=mini == "pool") if mini else load(spec.task, folder=folder, **options)
    if not share:
        return RunData(task)
    # One draw for all seeds: they are trained as one computation, on one set of rows.
    order = np.random.default_rng(0).permutation(len(task.train))
    back = round(share * order.size)
    kept, held = np.sort(order[back:]), np.sort(order[:back])
    train = Part(task.train.X[kept], task.train.y[kept], task.train.group[kept])
    return RunData(replace(task, train=train), task.train.X[held])


def at_hand(names: tuple[str, ...], folder: Path | None) -> str:
    """Return the first data set that can be found; where none can, the first, whose loading then says why."""
    for name in names:
        if state_of(name, folder) == "found":
            return name
    return names[0]


def miniature(spec: RunSpec, *, pool: bool) -> ShiftTask:
    """Return a few generated rows in the shape that the run's network takes, with groups and perhaps a pool.

    Along one direction the source hardly varies and the target varies much, so that there is something to adapt to.
    """
    rng = np.random.default_rng(len(spec.task))
    shape = _SHAPES[spec.network]
    size = int(np.prod(shape))
    direction = rng.normal(size=(size, 1)) / np.sqrt(size)
    weak = rng.normal(size=size)
    weak /= np.linalg.norm(weak)

    def inputs(rows: int, along: float) -> Any:
        X = rng.normal(size=(rows, size))
        X += (along - 1.0) * np.outer(X @ weak, weak)
        return X.reshape(rows, *shape).astype(np.float32)

    def part(rows: int, along: float) -> Part:
        X = inputs(rows, along)
        y = (X.reshape(rows, -1) @ direction)[:, 0] + 0.1 * rng.normal(size=rows)
        return Part(X, y.astype(np.float64), np.arange(rows) % 2)

    # Features of images are more than the rows of a miniature, so there adaptation has no noise to go by.
    images = len(shape) > 1
    return ShiftTask(
        name=spec.task,
        train=part(16 if images else 256, _SOURCE),
        val=part(12, _SOURCE),
        test=part(16 if images else 40, _TARGET),
        group_kind="group",
        source="generated",
        licence="",
        unlabeled=inputs(16, _TARGET) if pool else None,
    )

"""The data of a run: a data set, from which training rows may be held out, or a small generated task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pyspar.paper.data import Part, ShiftTask, load
from pyspar.paper.data.registry import state_of
from pyspar.paper.runs.spec import RunSpec

_SHAPES = {
    "mlp": (6,),
    "resnet18": (3, 16, 16),
    "resnet34": (3, 16, 16),
    "efficientnet-lite0": (3, 16, 16),
    "multispectral-resnet18": (8, 16, 16),
}

_SOURCE_SCALE, _TARGET_SCALE = 0.3, 3.0  # standard deviations of a generated task along its shifted direction


def load_run_data(spec: RunSpec, folder: Path | None) -> tuple[ShiftTask, Any]:
    """Return the task of a run, and the inputs of the training rows that are held out, or None."""
    options = dict(spec.options)
    share = options.pop("hold_out", 0.0)
    mini = options.pop("mini", "")
    options.pop("timed", None)  # distinguishes runs, not data
    task = generate_task(spec, pool=mini == "pool") if mini else load(spec.task, folder=folder, **options)
    if not share:
        return task, None
    # All seeds hold out the same rows, because they are trained as one computation.
    order = np.random.default_rng(0).permutation(len(task.train))
    n_held_out = round(share * order.size)
    kept, held_out = np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
    train = Part(task.train.X[kept], task.train.y[kept], task.train.group[kept])
    return replace(task, train=train), task.train.X[held_out]


def choose_available(names: tuple[str, ...], folder: Path | None) -> str:
    """Return the first data set that is available, or the first one, whose loading then explains what is missing."""
    for name in names:
        if state_of(name, folder) == "found":
            return name
    return names[0]


def generate_task(spec: RunSpec, *, pool: bool) -> ShiftTask:
    """Return a small random task with the input shape of the run's network, with groups and an optional pool.

    Along one direction the source has little variance and the target much, so that adaptation has an effect.
    """
    rng = np.random.default_rng(len(spec.task))
    shape = _SHAPES[spec.network]
    size = int(np.prod(shape))
    direction = rng.normal(size=(size, 1)) / np.sqrt(size)
    shifted = rng.normal(size=size)
    shifted /= np.linalg.norm(shifted)

    def draw_inputs(rows: int, scale: float) -> Any:
        X = rng.normal(size=(rows, size))
        X += (scale - 1.0) * np.outer(X @ shifted, shifted)
        return X.reshape(rows, *shape).astype(np.float32)

    def draw_part(rows: int, scale: float) -> Part:
        X = draw_inputs(rows, scale)
        y = (X.reshape(rows, -1) @ direction)[:, 0] + 0.1 * rng.normal(size=rows)
        return Part(X, y.astype(np.float64), np.arange(rows) % 2)

    # A network has more image features than a small task has rows, so on images the noise cannot be estimated.
    images = len(shape) > 1
    return ShiftTask(
        name=spec.task,
        train=draw_part(16 if images else 256, _SOURCE_SCALE),
        val=draw_part(12, _SOURCE_SCALE),
        test=draw_part(16 if images else 40, _TARGET_SCALE),
        group_kind="group",
        source="generated",
        licence="",
        unlabeled=draw_inputs(16, _TARGET_SCALE) if pool else None,
    )

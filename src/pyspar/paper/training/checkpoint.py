"""Checkpoints of training: the complete state of a run in one file, written atomically and checked when read.

The file is the output of ``torch.save`` followed by a SHA-256 digest of it, because torch's reader does not detect
every flipped bit. It also contains the fingerprint of its run: a file of another run is not continued.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from pyspar.errors import InputError
from pyspar.io.atomic import whole_file
from pyspar.paper.networks.stacked import describe_network
from pyspar.paper.training.config import TrainConfig
from pyspar.paper.training.inference import copy_to_device
from pyspar.paper.training.replica import Replica, copy_tensors
from pyspar.paper.training.results import EpochRecord

_MAX_WRITING_SHARE = 0.05  # of the run time; the first epoch and the last are always written
_DIGEST_MARK = b"\npyspar checkpoint sha256 "
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Checkpoint:
    """The checkpoint file of a run. All methods do nothing if ``path`` is None."""

    def __init__(self, path: str | os.PathLike[str] | None, run: dict[str, str]) -> None:
        self.path = None if path is None else Path(path)
        if self.path is not None and (self.path.is_dir() or not self.path.parent.is_dir()):
            raise InputError(f"checkpoint must be a file in an existing folder, got {str(path)!r}")
        self._run = run
        self._written_at, self._writing_seconds = -math.inf, 0.0

    @property
    def is_written(self) -> bool:
        return self.path is not None and self.path.exists()

    def load(self, replicas: Sequence[Replica]) -> tuple[int, list[list[EpochRecord]], list[int]]:
        """Restore the replicas from the file, if it exists. Return the next epoch, the history and the best epochs."""
        if self.path is None or not self.path.exists():
            count = sum(len(replica.seeds) for replica in replicas)
            return 0, [[] for _ in range(count)], [0] * count
        saved = _read(self.path, replicas[0].device)
        different = [name for name in self._run if saved["run"].get(name) != self._run[name]]
        if different:
            name = different[0]
            raise InputError(
                f"{str(self.path)!r} is the checkpoint of another run. Different: {', '.join(different)}. {name} in "
                f"the file: {saved['run'].get(name)}; in this run: {self._run[name]}. Use another path, or delete the "
                "file to start over."
            )
        if len(saved["replicas"]) != len(replicas):
            raise InputError(
                f"{str(self.path)!r} was written on another kind of device: it contains {len(saved['replicas'])} "
                f"replicas, this run has {len(replicas)}; resume on that device, or delete the file to start over"
            )
        for replica, state in zip(replicas, saved["replicas"], strict=True):
            replica.set_state(state)
        history = [[EpochRecord(**record) for record in records] for records in saved["history"]]
        return saved["epoch"], history, saved["best_epochs"]

    def save(
        self, replicas: Sequence[Replica], epoch: int, history: Any, best_epochs: Sequence[int], *, final: bool
    ) -> None:
        """Write the state after an epoch, unless writing would take too large a share of the run time."""
        now = time.monotonic()
        if self.path is None or (not final and now - self._written_at < self._writing_seconds / _MAX_WRITING_SHARE):
            return
        content = io.BytesIO()  # torch's writer cannot handle an error of a full disk
        torch.save(
            {
                "run": self._run,
                "epoch": epoch,
                "replicas": [replica.get_state() for replica in replicas],
                "history": [[asdict(record) for record in records] for records in history],
                "best_epochs": list(best_epochs),
            },
            content,
        )
        with whole_file(self.path) as temporary, temporary.open("wb") as file:
            file.write(content.getbuffer())
            file.write(_DIGEST_MARK + hashlib.sha256(content.getbuffer()).hexdigest().encode())
        self._written_at = time.monotonic()
        self._writing_seconds = self._written_at - now


def load_checkpoint(path: str | os.PathLike[str], model: nn.Module, *, seed: int | None = None) -> nn.Module:
    """Return a copy of a model with the best weights in a checkpoint of :func:`pyspar.paper.train`.

    Use it for a run that cannot be resumed, such as one that diverged and should continue with another learning rate,
    or to inspect a run while it trains. Only the layers of the model have to match. The settings, data and initial
    weights of the run do not matter.

    Parameters
    ----------
    path : path of the checkpoint
    model : torch.nn.Module
        A model with the layers that were trained. It is not changed. The copy is on its device, in evaluation mode.
    seed : int, optional
        The seed to load. Required if :func:`~pyspar.paper.train_seeds` trained several.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"file not found: {str(path)!r}")
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    states = {s: (state, i) for state in _read(path, device)["replicas"] for i, s in enumerate(state["seeds"])}
    if seed is None and len(states) == 1:
        seed = next(iter(states))
    if seed not in states:
        raise InputError(f"seed must be one of {sorted(states)}, the seeds in {str(path)!r}, got {seed}")
    state, number = states[seed]
    best = {name: tensor[number] if state["stacked"] else tensor for name, tensor in state["best"].items()}
    clone = copy_to_device(model, device)
    own = {name: tensor.detach() for name, tensor in [*clone.named_parameters(), *clone.named_buffers()]}
    try:
        copy_tensors(own, best)
    except ValueError as error:
        raise InputError(
            f"{type(model).__name__} does not have the layers in {str(path)!r}: {error}; use the model that was trained"
        ) from error
    return clone.eval()


def _read(path: Path, device: torch.device) -> dict[str, Any]:
    """Return the content of a checkpoint after comparing its digest."""
    content, _, digest = path.read_bytes().rpartition(_DIGEST_MARK)
    if digest != hashlib.sha256(content).hexdigest().encode():
        raise InputError(
            f"cannot read the checkpoint {str(path)!r} (no digest that matches the content: damaged, or another file); "
            "delete the file to start over, or use another path"
        )
    saved: dict[str, Any] = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
    return saved


def fingerprint(
    config: TrainConfig, objective: Any, seeds: Sequence[int], task: Any, models: Sequence[nn.Module]
) -> dict[str, str]:
    """Return short texts that identify a run, also in another process. Two runs are the same if all are equal."""
    arrays = [task.train.X, task.train.y, task.val.X, task.val.y, task.val.group]
    arrays += [task.target_inputs] if objective.uses_target else []
    parameters = (f"{name}={_describe(value)}" for name, value in sorted(vars(objective).items()))
    layers = [describe_network(model) for model in models]
    return {
        "config": json.dumps(config.result_settings(), sort_keys=True),
        "objective": f"{type(objective).__name__}({', '.join(parameters)})",
        "seeds": ", ".join(map(str, seeds)),
        "model": f"{type(models[0]).__name__} with layers {_digest([repr(layers).encode()])}",
        "initial weights": _digest_weights(models),
        "data": " ".join(map(_digest_array, arrays)),
    }


def _describe(value: Any) -> str:
    """Return a text for a parameter of an objective: its value, the weights of a network, the name of a function."""
    if isinstance(value, nn.Module):
        return f"{describe_network(value)}: {_digest_weights([value])}"
    return _ADDRESS.sub("", repr(value))


def _digest(contents: Iterable[Any]) -> str:
    """Return a digest of twelve hexadecimal digits."""
    hashed = hashlib.blake2b(digest_size=6)
    for content in contents:
        hashed.update(content)
    return hashed.hexdigest()


def _digest_weights(models: Iterable[nn.Module]) -> str:
    tensors = (t for model in models for t in [*model.parameters(), *model.buffers()])
    return _digest(t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy() for t in tensors)


def _digest_array(values: Any) -> str:
    """Return the shape and digest of an array. If rows are read from files, only eight are hashed."""
    if not isinstance(values, (np.ndarray, torch.Tensor)) and hasattr(values, "shape"):
        shape, values = values.shape, values[np.linspace(0, len(values) - 1, 8).astype(int)]
    else:
        values = np.asarray(values.cpu() if isinstance(values, torch.Tensor) else values)
        shape = values.shape
    # The bytes of an object array are addresses, which differ between processes.
    content = repr(values.tolist()).encode() if values.dtype.hasobject else np.ascontiguousarray(values)
    return f"{tuple(shape)}:{_digest([content])}"

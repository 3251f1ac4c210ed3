"""Checkpoint: a run's whole state in one file, written whole or not at all, and refused by any run but its own."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pyspar.atomic import whole_file
from pyspar.errors import InputError
from pyspar.nn.config import TrainConfig
from pyspar.nn.lane import Lane
from pyspar.nn.outcome import EpochRecord

_SHARE = 0.05  # of the time that may go into writing; the first epoch and the last are always written
_HASHED = 2**26  # bytes; of larger arrays, and of rows that are read as needed, only some rows are looked at


def fingerprint(
    config: TrainConfig, objective: Any, seeds: Sequence[int], task: Any, model: nn.Module
) -> dict[str, str]:
    """Return what makes a run the one it is. Initial weights are no part of it: a resumed run goes on from its own."""
    shapes = [(name, tuple(tensor.shape), str(tensor.dtype)) for name, tensor in model.state_dict().items()]
    parts = [task.train.X, task.train.y, task.val.X, task.val.y, task.val.group]
    parts += [task.target_inputs] if objective.uses_target else []
    return {
        "config": json.dumps(config.described(), sort_keys=True),
        "objective": f"{type(objective).__name__}({_parameters(objective)})",
        "seeds": ", ".join(map(str, seeds)),
        "model": f"{type(model).__name__} with tensors {_digest(repr(shapes).encode())}",
        "data": " ".join(_data_digest(part) for part in parts),
    }


class Checkpoint:
    """One file; does nothing where none was asked for."""

    def __init__(self, path: str | os.PathLike[str] | None, run: dict[str, str]) -> None:
        self.path = None if path is None else Path(path)
        self._run = run
        self._last = -np.inf  # when it was written, and what that cost
        self._cost = 0.0
        self.written = self.path is not None and self.path.exists()
        if self.path is not None and not self.path.parent.is_dir():
            raise InputError(f"checkpoint must lie in a folder that exists. Got {str(path)!r}; make the folder first.")

    def load(self, lanes: Sequence[Lane]) -> tuple[int, list[list[EpochRecord]], list[int]]:
        """Put lanes into the state of the file, if it exists; return the next epoch, the history, the best epochs."""
        count = sum(len(lane.seeds) for lane in lanes)
        if self.path is None or not self.path.exists():
            return 0, [[] for _ in range(count)], [0] * count
        try:
            found = torch.load(self.path, map_location=lanes[0].device, weights_only=True)
            saved, epoch = dict(found["run"]), int(found["epoch"])
        except OSError:
            raise
        except Exception as error:  # torch names many kinds, none of them its own
            raise InputError(
                f"checkpoint must be a file that train() wrote. Got {str(self.path)!r}, which cannot be read "
                f"({type(error).__name__}); delete it to start over, or give another path."
            ) from error
        self._refuse_another(saved)
        if len(found["lanes"]) != len(lanes):
            raise InputError(
                f"{str(self.path)!r} holds {len(found['lanes'])} computations, this run has {len(lanes)}: it was "
                "trained on another kind of device. Resume there, or delete it to start over."
            )
        for lane, state in zip(lanes, found["lanes"], strict=True):
            lane.restore(state)
        return epoch, [[EpochRecord(**e) for e in seed] for seed in found["history"]], list(found["best_epochs"])

    def offer(
        self, lanes: Sequence[Lane], epoch: int, history: Any, best_epochs: Sequence[int], *, final: bool
    ) -> None:
        """Write the state after an epoch, unless that would take more of the run's time than it is worth."""
        now = time.monotonic()
        if self.path is None or (not final and now - self._last < self._cost / _SHARE):
            return
        state = {
            "run": self._run,
            "epoch": epoch,
            "lanes": [lane.state() for lane in lanes],
            "history": [[asdict(record) for record in seed] for seed in history],
            "best_epochs": list(best_epochs),
        }
        with whole_file(self.path) as temporary:
            torch.save(state, temporary)
        self._last = time.monotonic()
        self._cost = self._last - now
        self.written = True

    def _refuse_another(self, saved: dict[str, str]) -> None:
        differ = [name for name in self._run if saved.get(name) != self._run[name]]
        if differ:
            name = differ[0]
            raise InputError(
                f"{str(self.path)!r} is the checkpoint of another run: fingerprint {_digest_run(saved)}, this run has "
                f"{_digest_run(self._run)}. They differ in {', '.join(differ)}; {name} there: {saved.get(name)}; here: "
                f"{self._run[name]}. Give another path, or delete the file to start over."
            )


def _digest_run(run: dict[str, str]) -> str:
    return _digest(json.dumps(run, sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=6).hexdigest()


def _data_digest(values: Any) -> str:
    """Return shape and digest of an array; of a large one, rows at equal distances stand for all."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    if not isinstance(values, np.ndarray) or values.nbytes > _HASHED:
        values_shape = tuple(values.shape)
        values = np.asarray(values[np.unique(np.linspace(0, len(values) - 1, 8).astype(int))]) if len(values) else ""
    else:
        values_shape = values.shape
    return f"{values_shape}:{_digest(np.ascontiguousarray(values).tobytes())}"


def _parameters(objective: Any) -> str:
    return ", ".join(f"{name}={_told(value)}" for name, value in sorted(getattr(objective, "__dict__", {}).items()))


def _told(value: Any) -> str:
    """Return a text that is the same for the same value in another process."""
    if isinstance(value, (np.ndarray, Tensor)):
        return _data_digest(value)
    if isinstance(value, nn.Module):
        return f"{type(value).__name__}:{' '.join(_data_digest(tensor) for tensor in value.state_dict().values())}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_told, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_told(each)}' for name, each in value.items())}}}"
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text

"""Checkpoint: a run's whole state in one file, written whole or not at all, and refused by any run but its own.

The file is what ``torch.save`` writes, and after it a digest of all those bytes: torch's own reader takes some flipped
bits for weights. Both are streamed, so a state of many gigabytes is never held twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import nn

from pyspar.errors import InputError
from pyspar.io.atomic import whole_file
from pyspar.paper.training.fingerprint import digest
from pyspar.paper.training.inference import copied
from pyspar.paper.training.outcome import EpochRecord
from pyspar.paper.training.replica import Lane, put

_SHARE = 0.05  # of the time that may go into writing; the first epoch and the last are always written
_MARK = b"\npyspar checkpoint sha256 "
_TAIL = len(_MARK) + 64
_CHUNK = 2**22  # bytes


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
        if self.path is not None and self.path.is_dir():
            raise InputError(f"checkpoint must be the path of a file. Got the folder {str(path)!r}; add a file's name.")

    def load(self, lanes: Sequence[Lane]) -> tuple[int, list[list[EpochRecord]], list[int]]:
        """Put lanes into the state of the file, if it exists; return the next epoch, the history, the best epochs."""
        count = sum(len(lane.seeds) for lane in lanes)
        if self.path is None or not self.path.exists():
            return 0, [[] for _ in range(count)], [0] * count
        found = _read(self.path, lanes[0].device)
        self._refuse_another(found["run"])
        if len(found["lanes"]) != len(lanes):
            raise InputError(
                f"{str(self.path)!r} holds {len(found['lanes'])} computations, this run has {len(lanes)}: it was "
                "trained on another kind of device. Resume there, or delete it to start over."
            )
        try:
            for lane, state in zip(lanes, found["lanes"], strict=True):
                lane.restore(state)
        except (KeyError, ValueError) as error:
            raise InputError(
                f"{str(self.path)!r} does not fit this run: {error}. Give another path, or delete it to start over."
            ) from error
        return found["epoch"], found["history"], found["best_epochs"]

    def probe(self) -> None:
        """Refuse a folder that cannot be written to, before an epoch is spent."""
        if self.path is None:
            return
        try:
            with tempfile.TemporaryFile(dir=Path(os.path.realpath(self.path)).parent):
                pass
        except OSError as error:
            raise _unwritten(self.path, "before training", error) from error

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
        try:
            with whole_file(self.path) as temporary, temporary.open("wb") as file:
                _write(state, file)
        except OSError as error:
            raise _unwritten(self.path, f"after epoch {epoch - 1}", error) from error
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


def load_checkpoint(path: str | os.PathLike[str], model: nn.Module, *, seed: int | None = None) -> nn.Module:
    """Return a copy of a model with the best weights in a checkpoint of :func:`pyspar.paper.train`.

    For a run that is not to be resumed: one that diverged and shall go on with another rate, or one to be looked at
    while it trains. The run's settings, data and initial weights do not matter, only the model's layers.

    Parameters
    ----------
    path : the checkpoint
    model : torch.nn.Module
        Of the layers that were trained; it is not changed, and the copy is on its device, in evaluation mode.
    seed : int, optional
        Which of the seeds, where the file is of :func:`~pyspar.paper.train_seeds` with several.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module. Got {type(model).__name__} instead; build the one trained.")
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"path must be a file that train() wrote. Got {str(path)!r}, which is no file; check the name."
        )
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    places = {s: (lane, i) for lane in _read(path, device)["lanes"] for i, s in enumerate(lane["seeds"])}
    if seed is None and len(places) == 1:
        seed = next(iter(places))
    if seed not in places:
        raise InputError(f"seed must be one of {sorted(places)}, the seeds of {str(path)!r}. Got {seed}; pass seed=.")
    lane, number = places[seed]
    best = {name: tensor[number] if lane["stacked"] else tensor for name, tensor in lane["best"].items()}
    found = copied(model, device)
    own = {name: tensor.detach() for name, tensor in [*found.named_parameters(), *found.named_buffers()]}
    try:
        put(own, best)
    except ValueError as error:
        raise InputError(
            f"{type(model).__name__} is not the model of {str(path)!r}: {error}. Build that one."
        ) from error
    return found.eval()


class _Hashed:
    """A file for torch to write to. It keeps an error for later: torch's writer does not outlive one."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seen = hashlib.sha256()
        self.error: OSError | None = None

    def write(self, content: Any) -> int:
        content = memoryview(content).cast("B")
        if self.error is None:
            try:
                self._file.write(content)
                self.seen.update(content)
            except OSError as error:
                self.error = error
        return len(content)

    def flush(self) -> None:
        """Leave it to the file's end."""


def _write(state: dict[str, Any], file: IO[bytes]) -> None:
    hashed = _Hashed(file)
    torch.save(state, hashed)  # type: ignore[arg-type]  # it asks for write and flush only
    if hashed.error is not None:
        raise hashed.error
    file.write(_MARK + hashed.seen.hexdigest().encode())


def _read(path: Path, device: torch.device) -> dict[str, Any]:
    """Return what a file holds, after a look at every byte of it."""
    _refuse_damaged(path)
    try:
        found = torch.load(path, map_location=device, weights_only=True)
        return {
            "run": dict(found["run"]),
            "epoch": int(found["epoch"]),
            "lanes": list(found["lanes"]),
            "history": [[EpochRecord(**record) for record in seed] for seed in found["history"]],
            "best_epochs": list(found["best_epochs"]),
        }
    except Exception as error:  # torch names many kinds, none of them its own
        raise _unreadable(path, type(error).__name__) from error


def _refuse_damaged(path: Path) -> None:
    size = path.stat().st_size - _TAIL
    seen = hashlib.sha256()
    with path.open("rb") as file:
        left = max(size, 0)
        while left and (chunk := file.read(min(_CHUNK, left))):
            seen.update(chunk)
            left -= len(chunk)
        tail = file.read()
    if not tail.startswith(_MARK):
        raise _unreadable(path, "no digest at its end: it is cut off, or something else wrote it")
    if tail != _MARK + seen.hexdigest().encode():
        raise _unreadable(path, "its digest is that of another content: it was damaged after it was written")


def _unreadable(path: Path, why: str) -> InputError:
    return InputError(
        f"checkpoint must be a file that train() wrote. Got {str(path)!r}, which cannot be read ({why}); delete it to "
        "start over, or give another path."
    )


def _unwritten(path: Path, when: str, error: OSError) -> OSError:
    return type(error)(
        error.errno,
        f"the checkpoint could not be written {when}: {error.strerror or error}; make room or choose another folder, "
        "and start the run again",
        str(path),
    )


def _digest_run(run: dict[str, str]) -> str:
    return digest(json.dumps(run, sort_keys=True).encode())

"""Checkpoints of training: the complete state of a run in one file, written atomically and checked when read.

The file is the output of ``torch.save`` followed by a SHA-256 digest of it, because torch's reader does not detect
every flipped bit. Both are streamed, so the state is never held in memory twice.
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
from pyspar.paper.training.inference import copy_to_device
from pyspar.paper.training.replica import Replica, copy_tensors
from pyspar.paper.training.results import EpochRecord

_MAX_WRITING_SHARE = 0.05  # of the run time; the first epoch and the last are always written
_DIGEST_MARK = b"\npyspar checkpoint sha256 "
_TAIL_BYTES = len(_DIGEST_MARK) + 64
_CHUNK_BYTES = 2**22


class Checkpoint:
    """The checkpoint file of a run. All methods do nothing if ``path`` is None."""

    def __init__(self, path: str | os.PathLike[str] | None, run: dict[str, str]) -> None:
        self.path = None if path is None else Path(path)
        self._run = run
        self._written_at = -np.inf
        self._writing_seconds = 0.0
        self.is_written = self.path is not None and self.path.exists()
        if self.path is not None and not self.path.parent.is_dir():
            raise InputError(f"checkpoint {str(path)!r} is in a folder that does not exist; create the folder first")
        if self.path is not None and self.path.is_dir():
            raise InputError(f"checkpoint must be the path of a file, got the folder {str(path)!r}; add a file name")

    def load(self, replicas: Sequence[Replica]) -> tuple[int, list[list[EpochRecord]], list[int]]:
        """Restore the replicas from the file, if it exists. Return the next epoch, the history and the best epochs."""
        count = sum(len(replica.seeds) for replica in replicas)
        if self.path is None or not self.path.exists():
            return 0, [[] for _ in range(count)], [0] * count
        saved = _read(self.path, replicas[0].device)
        self._check_run(saved["run"])
        if len(saved["replicas"]) != len(replicas):
            raise InputError(
                f"{str(self.path)!r} was written on another kind of device: it contains {len(saved['replicas'])} "
                f"replicas, this run has {len(replicas)}; resume on that device, or delete the file to start over"
            )
        try:
            for replica, state in zip(replicas, saved["replicas"], strict=True):
                replica.set_state(state)
        except (KeyError, ValueError) as error:
            raise InputError(
                f"{str(self.path)!r} does not fit this run: {error}; use another path, or delete the file to start over"
            ) from error
        return saved["epoch"], saved["history"], saved["best_epochs"]

    def check_folder(self) -> None:
        """Raise before the first epoch if the folder is not writable."""
        if self.path is None:
            return
        try:
            with tempfile.TemporaryFile(dir=Path(os.path.realpath(self.path)).parent):
                pass
        except OSError as error:
            raise _write_error(self.path, "before training", error) from error

    def save(
        self, replicas: Sequence[Replica], epoch: int, history: Any, best_epochs: Sequence[int], *, final: bool
    ) -> None:
        """Write the state after an epoch, unless writing would take too large a share of the run time."""
        now = time.monotonic()
        if self.path is None or (not final and now - self._written_at < self._writing_seconds / _MAX_WRITING_SHARE):
            return
        state = {
            "run": self._run,
            "epoch": epoch,
            "lanes": [replica.get_state() for replica in replicas],  # the key that existing files have
            "history": [[asdict(record) for record in records] for records in history],
            "best_epochs": list(best_epochs),
        }
        try:
            with whole_file(self.path) as temporary, temporary.open("wb") as file:
                _write(state, file)
        except OSError as error:
            raise _write_error(self.path, f"after epoch {epoch - 1}", error) from error
        self._written_at = time.monotonic()
        self._writing_seconds = self._written_at - now
        self.is_written = True

    def _check_run(self, saved: dict[str, str]) -> None:
        different = [name for name in self._run if saved.get(name) != self._run[name]]
        if different:
            name = different[0]
            raise InputError(
                f"{str(self.path)!r} is the checkpoint of another run (fingerprint {_digest_run(saved)}, this run has "
                f"{_digest_run(self._run)}). Different: {', '.join(different)}. {name} in the file: {saved.get(name)}; "
                f"in this run: {self._run[name]}. Use another path, or delete the file to start over."
            )


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
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"model must be a torch.nn.Module, got {type(model).__name__}; build the model that was trained"
        )
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


class _HashingFile:
    """A file for ``torch.save`` that hashes its content. An error is kept, because torch's writer cannot handle one."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()
        self.error: OSError | None = None

    def write(self, content: Any) -> int:
        content = memoryview(content).cast("B")
        if self.error is None:
            try:
                self._file.write(content)
                self.sha256.update(content)
            except OSError as error:
                self.error = error
        return len(content)

    def flush(self) -> None:
        """Do nothing. Closing the file flushes it."""


def _write(state: dict[str, Any], file: IO[bytes]) -> None:
    hashing = _HashingFile(file)
    torch.save(state, hashing)  # type: ignore[arg-type]  # it calls only write and flush
    if hashing.error is not None:
        raise hashing.error
    file.write(_DIGEST_MARK + hashing.sha256.hexdigest().encode())


def _read(path: Path, device: torch.device) -> dict[str, Any]:
    """Return the content of a checkpoint after comparing its digest."""
    _check_digest(path)
    try:
        saved = torch.load(path, map_location=device, weights_only=True)
        return {
            "run": dict(saved["run"]),
            "epoch": int(saved["epoch"]),
            "replicas": list(saved["lanes"]),
            "history": [[EpochRecord(**record) for record in records] for records in saved["history"]],
            "best_epochs": list(saved["best_epochs"]),
        }
    except Exception as error:  # torch.load raises many types
        raise _read_error(path, type(error).__name__) from error


def _check_digest(path: Path) -> None:
    size = path.stat().st_size - _TAIL_BYTES
    sha256 = hashlib.sha256()
    with path.open("rb") as file:
        left = max(size, 0)
        while left and (chunk := file.read(min(_CHUNK_BYTES, left))):
            sha256.update(chunk)
            left -= len(chunk)
        tail = file.read()
    if not tail.startswith(_DIGEST_MARK):
        raise _read_error(path, "no digest at the end: it is truncated, or not a checkpoint of train()")
    if tail != _DIGEST_MARK + sha256.hexdigest().encode():
        raise _read_error(path, "wrong digest: it was damaged after it was written")


def _read_error(path: Path, reason: str) -> InputError:
    return InputError(
        f"cannot read the checkpoint {str(path)!r} ({reason}); delete the file to start over, or use another path"
    )


def _write_error(path: Path, when: str, error: OSError) -> OSError:
    return type(error)(
        error.errno,
        f"cannot write the checkpoint {when}: {error.strerror or error}; free some space or choose another "
        "folder, then start the run again",
        str(path),
    )


def _digest_run(run: dict[str, str]) -> str:
    return digest(json.dumps(run, sort_keys=True).encode())

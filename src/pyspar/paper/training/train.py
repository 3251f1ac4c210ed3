"""The training loop for any objective and network. A run that was interrupted continues from its checkpoint."""

from __future__ import annotations

import copy
import io
import math
import os
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn

from pyspar.errors import InputError
from pyspar.paper.objectives.base import Batch, Objective
from pyspar.paper.training.batches import (
    Inputs,
    TrainingData,
    apply_to_rows,
    as_columns,
    draw_epoch,
    iterate_batches,
    make_generator,
    replay_steps,
)
from pyspar.paper.training.config import TrainConfig
from pyspar.persist import write_atomically
from pyspar.text import list_some

if TYPE_CHECKING:
    from pyspar.paper.data.task import ShiftTask

_MAX_WRITING_SHARE = 0.05  # of the run time that checkpoints may take; an epoch on a table is shorter than a write


class TrainingError(InputError):
    """Training diverged: a loss, a weight or the validation metric is not finite. The message names the epoch."""


@dataclass(frozen=True)
class EpochRecord:
    """One epoch: the terms of the training loss, averaged over the steps, and the metric that ``select`` names."""

    epoch: int
    losses: Mapping[str, float]
    validation: float
    lr: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Trained:
    """A copy of the initial model with the weights of ``best_epoch`` (from 0), in evaluation mode, and its history."""

    model: nn.Module
    seed: int
    best_epoch: int
    history: tuple[EpochRecord, ...] = field(repr=False)

    @property
    def seconds(self) -> float:
        return sum(record.seconds for record in self.history)

    @property
    def validation(self) -> float:
        return self.history[self.best_epoch].validation


def train(
    model: nn.Module,
    objective: Objective,
    task: ShiftTask,
    config: TrainConfig,
    seed: int,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    on_epoch: Callable[[int], None] | None = None,
) -> Trained:
    """Train a copy of a model on a task. The original model is not changed.

    Parameters
    ----------
    model : torch.nn.Module
        The initial model. It returns (n, K) predictions for n rows. Objectives that use features require ``stem``,
        ``trunk``, ``features`` and ``head`` as in :class:`~pyspar.paper.MLP`.
    task : ShiftTask
        ``train`` and ``val`` are used, and ``target_inputs`` by objectives that use them. Test labels are never read.
    seed : int
        Determines all random draws: the order of rows, the draws of the objective, dropout. It does not determine the
        initial weights, which are those of ``model``.
    checkpoint : path, optional
        A file that is written while training. If it exists, training continues from it and ends with the same weights.
    on_epoch : function of an int, optional
        Called with the number of finished epochs after each epoch.

    Steps on a table are short, and several threads can take ten times as long as one: call
    ``torch.set_num_threads(1)`` first.
    """
    if isinstance(seed, bool) or int(seed) != seed or seed < 0:
        raise InputError(f"seed must be an integer of at least 0, got {seed!r}")
    objective.check(config)
    check_task(task, objective, config)
    dtype = check_model(model, config)
    data = TrainingData.load(task, objective, config, dtype)
    devices = [config.torch_device] if config.torch_device.type == "cuda" else []
    with torch.random.fork_rng(devices), torch.inference_mode(False), torch.enable_grad():
        run = _Run(model, objective, data, config, int(seed))
        if checkpoint is not None:
            run.load(Path(checkpoint))
        written_at, writing_seconds = -math.inf, 0.0
        while run.epoch < config.epochs:
            run.train_epoch()
            now, final = time.monotonic(), run.epoch == config.epochs
            if checkpoint is not None and (final or now - written_at > writing_seconds / _MAX_WRITING_SHARE):
                run.save(Path(checkpoint))
                written_at = time.monotonic()
                writing_seconds = written_at - now
            if on_epoch is not None:
                on_epoch(run.epoch)
    return run.result()


class _Run:
    """The state of one training run: the network, its optimisers, the best weights and the history."""

    def __init__(
        self, model: nn.Module, objective: Objective, data: TrainingData, config: TrainConfig, seed: int
    ) -> None:
        self.objective, self.data, self.config, self.seed = objective, data, config, seed
        device = config.torch_device
        self.net = copy.deepcopy(model).to(device)
        if device.type == "cuda":
            self.net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's types lack it
        torch.manual_seed(_torch_seed(seed, 0, "module"))
        module = objective.module(count_features(self.net, objective, data))
        self.parts = {"model": self.net}
        if module is not None:
            self.parts["module"] = module.to(device, data.y.dtype)
        self.trainable = {name: [p for p in part.parameters() if p.requires_grad] for name, part in self.parts.items()}
        self.base_lr = {"model": config.lr, "module": objective.module_lr(config.lr)}
        self.optimizers = {
            name: torch.optim.Adam(
                parameters, lr=self.base_lr[name], fused=True, foreach=False, capturable=device.type == "cuda"
            )
            for name, parameters in self.trainable.items()
            if parameters
        }
        self.epoch, self.best_epoch, self.best_score = 0, 0, math.inf
        self.best = _copy_state(self.net)
        self.history: list[EpochRecord] = []
        self.identity = repr([config.epochs, config.batch_size, config.lr, config.shuffle, config.select, seed])
        self.identity += f" {objective.name} {type(model).__name__}"

    def train_epoch(self) -> None:
        """Train all phases of one epoch, compute the validation metric and keep the best weights."""
        start, epoch, config = time.monotonic(), self.epoch, self.config
        torch.manual_seed(_torch_seed(self.seed, epoch, "torch"))
        tables = draw_epoch(self.data, self.objective, config, self.seed, epoch)
        losses: dict[str, float] = {}
        phases = self.objective.phases(epoch)
        for phase in phases:
            losses |= self._train_phase(phase, tables)
        metric = compute_validation(self.net, self.data, config)
        weights = [p for parameters in self.trainable.values() for p in parameters]
        if (len(self.data.val_y) and not math.isfinite(metric)) or not all(bool(p.isfinite().all()) for p in weights):
            self._fail(f"the validation metric or a weight of the model or objective is not finite after epoch {epoch}")
        score = {"mse": metric, "worst-group-r": -metric}.get(config.select, -float(epoch))
        eligible = all(self.objective.judged(phase) for phase in phases)
        if (eligible and score < self.best_score) or (not eligible and math.isinf(self.best_score)):
            self.best, self.best_epoch = _copy_state(self.net), epoch
            self.best_score = score if eligible else math.inf
        self.history.append(EpochRecord(epoch, losses, metric, config.lr_at(epoch), time.monotonic() - start))
        self.epoch += 1

    def _train_phase(self, phase: str, tables: dict[str, Tensor]) -> dict[str, float]:
        updates = self.objective.updates(phase)
        for name, part in self.parts.items():
            part.train()
            for parameter in self.trainable[name]:
                parameter.requires_grad_(name in updates)
        active = [optimizer for name, optimizer in self.optimizers.items() if name in updates]
        for name, optimizer in self.optimizers.items():
            optimizer.param_groups[0]["lr"] = self.config.lr_at(self.epoch, self.base_lr[name])
        # A part that this phase does not train still processes batches, which changes its running statistics.
        fixed = [(b, b.clone()) for name, part in self.parts.items() if name not in updates for b in part.buffers()]
        step = partial(self._step, phase, active)
        if self.objective.capturable and getattr(self.net, "capturable", False) and self.data.is_on_device:
            names, steps = replay_steps(step, self.data, tables, self.net)
        else:
            results = [step(batch) for batch in iterate_batches(self.data, tables, self.net)]
            names, steps = results[0][0], [values for _, values in results]
        for buffer, before in fixed:
            buffer.copy_(before)
        losses = torch.stack(steps).double().cpu()
        bad = (~torch.isfinite(losses)).nonzero()
        if len(bad):
            step, term = bad[0].tolist()
            self._fail(f"the loss ({names[term]}) is not finite in epoch {self.epoch}, step {step} of {len(losses)}")
        return dict(zip(names, losses.mean(dim=0).tolist(), strict=True))

    def _step(self, phase: str, active: list[torch.optim.Adam], batch: Batch) -> tuple[tuple[str, ...], Tensor]:
        """Take one training step, and return the names and values of the terms of the loss."""
        for optimizer in active:
            optimizer.zero_grad(set_to_none=True)
        with self.config.autocast_on(self.data.y.device):
            terms = self.objective.loss(self.net, batch, self.parts.get("module"), phase)  # type: ignore[arg-type]
        values = list(terms.values())
        sum(values[1:], values[0]).backward()  # type: ignore[no-untyped-call]
        for optimizer in active:
            optimizer.step()
        return tuple(terms), torch.stack([value.detach() for value in values])

    def _fail(self, where: str) -> NoReturn:
        lr = self.config.lr_at(self.epoch)
        raise TrainingError(
            f"{self.objective.name} diverged: {where} (seed {self.seed}, lr {lr:.3g}). Lower lr, or check the scale of "
            "inputs and labels."
        )

    def save(self, path: Path) -> None:
        state = {
            "run": self.identity,
            "parts": {name: part.state_dict() for name, part in self.parts.items()},
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()},
            "best": self.best,
            "progress": [self.epoch, self.best_epoch, self.best_score],
            "history": [asdict(record) for record in self.history],
        }
        content = io.BytesIO()  # torch's writer does not report a full disk as an OSError
        torch.save(state, content)
        with write_atomically(path) as (temporary,):
            temporary.write_bytes(content.getbuffer())

    def load(self, path: Path) -> None:
        if path.is_dir() or not path.parent.is_dir():
            raise InputError(f"checkpoint must be a file in an existing folder, got {str(path)!r}")
        if not path.exists():
            return
        state = _read(path, self.data.y.device)
        try:
            if state["run"] != self.identity:
                raise ValueError(f"it has {state['run']}, this run has {self.identity}")
            for name, part in self.parts.items():
                part.load_state_dict(state["parts"][name])
            for name, optimizer in self.optimizers.items():
                optimizer.load_state_dict(state["optimizers"][name])
        except (KeyError, ValueError, RuntimeError) as error:
            raise InputError(
                f"{str(path)!r} is the checkpoint of another run: {error}. Use another path, or delete the file to "
                "start over."
            ) from error
        self.best = state["best"]
        self.epoch, self.best_epoch, self.best_score = state["progress"]
        self.history = [EpochRecord(**record) for record in state["history"]]

    def result(self) -> Trained:
        """Return the network with the best weights, in evaluation mode and without gradients."""
        self.net.load_state_dict(self.best)
        for parameter in self.trainable["model"]:
            parameter.requires_grad_(True)
            parameter.grad = None
        return Trained(self.net.eval(), self.seed, self.best_epoch, tuple(self.history))


def compute_validation(model: nn.Module, data: TrainingData, config: TrainConfig) -> float:
    """Return the metric that ``select`` names, the worst-group r or else the mean squared error; NaN without rows."""
    if not len(data.val_y):
        return float("nan")
    with config.autocast_on(data.val_y.device):
        prediction = apply_to_rows(model, model, data.val_x, config.eval_batch_size).double()
    if config.select == "worst-group-r":
        return float(compute_worst_group_r(prediction, data.val_y, data.val_groups))
    return float((prediction - data.val_y).square().mean())


def compute_worst_group_r(prediction: Tensor, y: Tensor, groups: Sequence[Tensor]) -> Tensor:
    """Return the lowest Pearson correlation over groups and outputs. The correlation of a constant prediction is 0."""
    correlations = []
    for rows in groups:
        a, b = (values[rows] - values[rows].mean(dim=0) for values in (prediction, y))
        size = (a.square().sum(dim=0) * b.square().sum(dim=0)).sqrt()
        correlations.append(torch.where(size == 0, 0.0, (a * b).sum(dim=0) / size).amin())
    return torch.stack(correlations).amin()


def _copy_state(net: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in net.state_dict().items()}


def _torch_seed(seed: int, epoch: int, purpose: str) -> int:
    return int(make_generator(seed, epoch, purpose).integers(2**63))


def _read(path: Path, device: torch.device) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch's reader does not compare checksums
        if damaged is not None:
            raise ValueError(f"{damaged} has the wrong checksum")
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        if not {"run", "parts", "best", "progress"} <= state.keys():
            raise ValueError("it has other entries")
    except Exception as error:  # torch and zipfile raise errors of many types for damaged files
        raise InputError(
            f"cannot read the checkpoint {str(path)!r} ({error}); delete the file to start over, or use another path"
        ) from error
    return state


def check_task(task: Any, objective: Objective, config: TrainConfig) -> None:
    """Raise if labels or inputs are not finite or do not fit together. The message lists the rows."""
    inputs = {"train.X": task.train.X, "val.X": task.val.X}
    for name, part in {"train": task.train, "val": task.val}.items():
        if len(part.X) != len(part.y) or as_columns(part.y).ndim > 2:
            shape = np.shape(part.y)
            raise InputError(f"{name} must have one row of labels for each of {len(part.X)} rows, got {shape}")
        _check_finite(as_columns(part.y), f"{name}.y", "drop these rows")
    n, n_val = len(task.train.y), len(task.val.y)
    if config.batch_size > n:
        raise InputError(f"batch_size must not exceed the {n} training rows, got {config.batch_size}")
    if objective.uses_target:
        inputs["target_inputs"] = task.target_inputs
        if not len(task.target_inputs):
            raise InputError(f"{objective.name} requires target_inputs, got no rows; add target rows, or use ERM")
    _check_inputs({name: X for name, X in inputs.items() if len(X)})
    outputs, val_outputs = as_columns(task.train.y).shape[1], as_columns(task.val.y).shape[1]
    if n_val and val_outputs != outputs:
        raise InputError(f"val.y must have as many outputs as train.y, {outputs}, got {val_outputs}")
    if config.select != "last" and not n_val:
        raise InputError(f"select={config.select!r} requires validation rows, got none; use select='last'")
    if config.select == "worst-group-r":
        group, y = np.asarray(task.val.group), as_columns(task.val.y)
        if group.shape != (n_val,) or any((np.ptp(y[group == g], axis=0) == 0).any() for g in np.unique(group)):
            raise InputError(
                f"select='worst-group-r' requires a group for each of {n_val} rows in val.group, and labels that vary "
                "within each group; merge groups, or use select='mse'"
            )


def _check_inputs(inputs: dict[str, Any]) -> None:
    shape = tuple(inputs["train.X"].shape[1:])
    for name, X in inputs.items():
        if tuple(X.shape[1:]) != shape:
            raise InputError(f"rows of {name} must have the shape {shape} of train.X, got {tuple(X.shape[1:])}")
        _check_finite(X, name, "impute or drop these rows")
    uint8 = [name for name, X in inputs.items() if "uint8" in str(getattr(X, "dtype", ""))]
    if 0 < len(uint8) < len(inputs):
        raise InputError(
            f"inputs must be uint8 in all parts or in none, got uint8 only in {', '.join(uint8)}; convert all parts to "
            "one dtype, because uint8 images are scaled and floats are not"
        )


def _check_finite(values: Any, name: str, fix: str) -> None:
    """Raise if values contain NaN or infinity. Rows that are read as needed are not checked; their loss will be."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return
    if np.isfinite(values.sum(dtype=np.float64)):  # one pass without a copy; a finite sum has only finite terms
        return
    rows = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if rows.size:
        raise InputError(f"{name} must be finite, got NaN or infinity in {len(rows)} rows: {list_some(rows)}; {fix}")


def check_model(model: nn.Module, config: TrainConfig) -> torch.dtype:
    """Return the dtype of a model. Raise if it cannot be trained. On a CPU, torch 2.13 does not write those entries of
    a bfloat16 gradient of a convolution that only see padding, so the step uses arbitrary memory.
    """
    has_convolutions = any(isinstance(layer, nn.modules.conv._ConvNd) for layer in model.modules())
    if config.autocast is not None and config.torch_device.type == "cpu" and has_convolutions:
        raise InputError(
            f"autocast={config.autocast!r} with convolutions requires a GPU, because torch computes wrong gradients on "
            "a CPU; use autocast=None"
        )
    dtypes = {p.dtype for p in model.parameters() if p.requires_grad}
    if len(dtypes) != 1:
        got = ", ".join(sorted(map(str, dtypes))) or "no trainable parameter"
        raise InputError(f"the model must have trainable parameters of one dtype, got {got}")
    return dtypes.pop()


def count_features(model: nn.Module, objective: Objective, data: TrainingData) -> int:
    """Return the number of inputs of the head, or 0 if the objective has no module of its own. Raise if predictions do
    not have the shape of the labels; the loss would broadcast them silently.
    """
    count = min(2, len(data.y))
    rows = data.x.rows[:count] if isinstance(data.x.rows, torch.Tensor) else data.x.rows[np.arange(count)]
    first = Inputs.load(rows, data.x.device, data.x.dtype)
    shape, expected = tuple(apply_to_rows(model, model, first).shape), (count, data.y.shape[1])
    if shape != expected:
        raise InputError(
            f"{type(model).__name__} must return shape {expected} for {count} rows, got {shape}; change the number of "
            "outputs of its last layer, or remove a squeeze"
        )
    if type(objective).module is Objective.module:
        return 0
    return int(apply_to_rows(model, model.features, first).shape[-1])  # type: ignore[arg-type]

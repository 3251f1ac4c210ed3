"""Train: the one loop. Any objective, any network, one seed or many; a killed run goes on where it was."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pyspar.nn.progress import training_bar
from pyspar.paper.networks.stacked import can_stack, stack, unstack
from pyspar.paper.objectives.base import Objective
from pyspar.paper.training import checks as gate
from pyspar.paper.training.checkpoint import Checkpoint
from pyspar.paper.training.config import TrainConfig
from pyspar.paper.training.epoch_data import Feed, World
from pyspar.paper.training.epochs import EagerEpochs
from pyspar.paper.training.fingerprint import fingerprint
from pyspar.paper.training.graphs import GraphEpochs, can_capture
from pyspar.paper.training.inference import copied, validation
from pyspar.paper.training.order import torch_seed
from pyspar.paper.training.outcome import EpochRecord, Trained, TrainingError
from pyspar.paper.training.replica import Lane

if TYPE_CHECKING:
    from pyspar.paper.data.task import ShiftTask

Models = Sequence[nn.Module] | Callable[[int], nn.Module]


def train(
    model: nn.Module,
    objective: Objective,
    task: ShiftTask,
    config: TrainConfig,
    seed: int,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Trained:
    """Train a copy of a model on a task; the model given is not changed.

    Parameters
    ----------
    model : torch.nn.Module
        Initialised. Any will do for objectives that only call it; others need ``stem``, ``trunk``, ``features`` and
        ``head`` as in :class:`~pyspar.paper.MLP`. It predicts (n, K) for n rows.
    objective : Objective
    task : ShiftTask
        ``train`` and ``val`` are read, and ``target_inputs`` by objectives that use them; test labels never.
    config : TrainConfig
    seed : int
        Decides every draw: the orders of rows, the objective's draws, dropout. The model's initial weights are yours.
    checkpoint : path, optional
        Written while training. If the file exists, training goes on from it, and ends with the same weights, bit for
        bit, as if it had never stopped. The file of another run is refused: of other settings, seeds, data, another
        objective, other layers or other initial weights. :func:`~pyspar.paper.load_checkpoint` reads weights from any.
    progress : bool, optional
        A bar with loss and rate; by default on a terminal, where rich is installed.
    """
    return train_seeds([model], objective, task, config, [seed], checkpoint=checkpoint, progress=progress)[0]


def train_seeds(
    models: Models,
    objective: Objective,
    task: ShiftTask,
    config: TrainConfig,
    seeds: Sequence[int],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> list[Trained]:
    """Train one model for each seed; each result is that of :func:`train`, to rounding.

    ``models`` are one for each seed, or a function of the seed, called with torch's generator seeded by it. Networks
    made of linear layers, such as :class:`~pyspar.paper.MLP`, are trained as one computation with an axis of seeds;
    others take turns, and on a GPU share the graph of a step. All of them are in memory at once.

    One computation adds its numbers in another order, and training magnifies the last digit: Adam's first steps divide
    a gradient by its own size, so a gradient that is zero but for rounding takes a full step; RSD's mismatch divides by
    the gaps between singular values; DARE-GRAM jumps where the number of eigenvalues it keeps changes. In float32 the
    first epochs agree to 1e-4 or so, less with heavy penalties and high rates, and long runs are equal in distribution;
    in float64 they agree much longer.
    """
    seeds = gate.check_seeds(seeds)
    gate.check_kinds(task, objective, config)
    gate.check_task(task, objective, config)
    device = config.torch_device
    with _settings(config):
        built = _built(models, seeds)
        dtype = gate.check_models(built, seeds)
        gate.check_precision(built, config)
        if device.type == "cpu" and len(task.train.X.shape) == 2:
            torch.set_num_threads(1)  # a step on a table is too short to share: two threads can take ten times as long
        world = World.of(task, objective, config, dtype)
        known = {} if checkpoint is None else fingerprint(config, objective, seeds, task, built)
        file = Checkpoint(checkpoint, known)
        lanes = _lanes([copied(model, device) for model in built], seeds, objective, world, config)
        for lane in gate.unlike(lanes):
            gate.try_step(lane, _feed(lane, world, 0), objective.phase(0), config)
        return _fit(lanes, world, config, file, progress)


def _lanes(
    models: list[nn.Module], seeds: list[int], objective: Objective, world: World, config: TrainConfig
) -> list[Lane]:
    """Return one stacked lane if everything can be stacked, else one lane for each seed."""
    modules = []
    for model, seed in zip(models, seeds, strict=True):
        width = gate.feature_count(model, objective, world)
        torch.manual_seed(torch_seed(seed, 0, "module"))
        module = objective.module(width)
        modules.append(None if module is None else module.to(world.y.device, world.y.dtype))
    known = [module for module in modules if module is not None]
    if (
        len(seeds) > 1
        and objective.stackable
        and config.autocast != "float16"
        and can_stack(models)
        and (not known or can_stack(known))
    ):
        pair = stack(models), stack(known) if known else None
        return [Lane(*pair, seeds, stacked=True, objective=objective, config=config)]
    return [
        Lane(model, module, [seed], stacked=False, objective=objective, config=config)
        for model, module, seed in zip(models, modules, seeds, strict=True)
    ]


def _fit(
    lanes: list[Lane], world: World, config: TrainConfig, file: Checkpoint, progress: bool | None
) -> list[Trained]:
    objective = lanes[0].objective
    start, history, best_epochs = file.load(lanes)
    if start < config.epochs:
        file.probe()
    epochs: Any = GraphEpochs(lanes) if can_capture(lanes, objective, world, config) else EagerEpochs(lanes)
    steps = len(world.labels) // config.batch_size
    ticks = steps * epochs.ticks_a_step
    with training_bar(objective.name, config.epochs, ticks, start, progress) as bar:
        for epoch in range(start, config.epochs):
            began = time.monotonic()
            phase = objective.phase(epoch)
            for lane in lanes:
                lane.begin(epoch, phase)
            losses = epochs.run([_feed(lane, world, epoch) for lane in lanes], phase, bar.step)
            for lane in lanes:
                lane.end()
            judged = [_judged(lane, world, config, epoch, objective.judged(phase)) for lane in lanes]
            # Once an epoch the host waits for the device, and looks at what it did.
            found = [[tensor.cpu().reshape(-1) for tensor in one] for one in judged]
            seconds = time.monotonic() - began
            number = 0
            for lane, loss, (metric, lost, better) in zip(lanes, losses, found, strict=True):
                loss = loss.double().cpu().reshape(steps, -1, len(lane.seeds))
                _refuse_divergence(lane, loss, lost, epoch, config, file)
                for i, improved in enumerate(better.tolist()):
                    means = dict(zip(lane.names, loss[..., i].mean(dim=0).tolist(), strict=True))
                    history[number].append(EpochRecord(epoch, means, float(metric[i]), config.lr_at(epoch), seconds))
                    best_epochs[number] = epoch if improved else best_epochs[number]
                    number += 1
            bar.epoch(sum(sum(seed[-1].losses.values()) for seed in history) / len(history))
            file.offer(lanes, epoch + 1, history, best_epochs, final=epoch + 1 == config.epochs)
    return _outcomes(lanes, history, best_epochs)


def _judged(lane: Lane, world: World, config: TrainConfig, epoch: int, counts: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return the validation metric of each seed, whether the seed is lost, and whether it is at its best."""
    lost = ~lane.is_finite()  # the objective's own part as well, which no metric shows
    if len(world.val_y):
        metric = validation(lane.net, world, config)
        lost |= ~torch.isfinite(metric)
    else:
        metric = torch.full(lane.shape, math.nan, dtype=torch.float64, device=lane.device)
    return metric, lost, lane.judge(metric, epoch, counts=counts)


def _outcomes(lanes: list[Lane], history: list[list[EpochRecord]], best_epochs: list[int]) -> list[Trained]:
    models: list[nn.Module] = []
    for lane in lanes:
        lane.finish()
        models += unstack(lane.net) if lane.stacked else [lane.net]
    seeds = [seed for lane in lanes for seed in lane.seeds]
    return [
        Trained(model.eval(), seed, best, tuple(records))
        for model, seed, best, records in zip(models, seeds, best_epochs, history, strict=True)
    ]


def _refuse_divergence(
    lane: Lane, loss: Tensor, lost: Tensor, epoch: int, config: TrainConfig, file: Checkpoint
) -> None:
    """Stop where a loss (steps, parts, seeds) is not finite, or an epoch left a seed lost (seeds,)."""
    bad = ~torch.isfinite(loss).all(dim=1)
    if not bad.any() and not lost.any():
        return
    place = int((bad.any(dim=0) | lost).nonzero()[0])
    if bad[:, place].any():
        step = int(bad[:, place].nonzero()[0])
        parts = [name for name, fine in zip(lane.names, torch.isfinite(loss[step, :, place])) if not fine]
        where = f"the loss ({', '.join(parts)}) of epoch {epoch}, step {step} of {len(loss)},"
    else:
        where = f"the validation metric, or the weights of the model or of the objective's part, after epoch {epoch},"
    kept = "No checkpoint was written"
    if file.written:
        kept = (
            f"The last good checkpoint is {str(file.path)!r}: pyspar.paper.load_checkpoint(path, model) gives its best "
            "weights, to be trained on with other settings and another checkpoint"
        )
    raise TrainingError(
        f"{lane.objective.name} diverged: {where} must be finite, and is not (seed {lane.seeds[place]}, lr "
        f"{config.lr_at(epoch):.3g}). {kept}. Lower lr, or look at the scale of inputs and labels."
    )


def _feed(lane: Lane, world: World, epoch: int) -> Feed:
    return Feed.of(world, lane.objective, lane.config, lane.seeds, lane.stacked, epoch)


def _built(models: Models, seeds: Sequence[int]) -> list[nn.Module]:
    if isinstance(models, Sequence):
        return list(models)
    found = []
    for seed in seeds:
        torch.manual_seed(seed)
        found.append(models(seed))
    return found


@contextmanager
def _settings(config: TrainConfig) -> Iterator[None]:
    """Compute gradients, whatever is around us; leave torch's generators, kernels and threads as they were found."""
    on_gpu = config.torch_device.type == "cuda"
    found = torch.get_num_threads(), torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    devices = range(torch.cuda.device_count()) if on_gpu else []
    with torch.random.fork_rng(devices=devices), torch.inference_mode(False), torch.enable_grad():
        try:
            fastest = config.kernels == "fastest"
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = not fastest, fastest
            yield
        finally:
            torch.set_num_threads(found[0])
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = found[1:]

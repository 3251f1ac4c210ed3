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

from pyspar.nn import gate
from pyspar.nn.checkpoint import Checkpoint, fingerprint
from pyspar.nn.config import TrainConfig
from pyspar.nn.evaluate import copied, validation
from pyspar.nn.feed import Feed, World
from pyspar.nn.graphs import GraphEpochs, can_capture
from pyspar.nn.lane import Lane
from pyspar.nn.objective import Objective
from pyspar.nn.order import torch_seed
from pyspar.nn.outcome import EpochRecord, Trained, TrainingError
from pyspar.nn.progress import training_bar
from pyspar.nn.stacked import can_stack, stack, unstack

if TYPE_CHECKING:
    from pyspar.data.task import ShiftTask

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
        ``head`` as in :class:`~pyspar.nn.MLP`. It predicts (n, K) for n rows.
    objective : Objective
    task : ShiftTask
        ``train`` and ``val`` are read, and ``target_inputs`` by objectives that use them; test labels never.
    config : TrainConfig
    seed : int
        Decides every draw: the orders of rows, the objective's draws, dropout. The model's initial weights are yours.
    checkpoint : path, optional
        Written while training. If the file exists, training goes on from it, and ends with the same weights, bit for
        bit, as if it had never stopped. The file of another run is refused.
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
    made of linear layers, such as :class:`~pyspar.nn.MLP`, are trained as one computation with an axis of seeds; others
    take turns, and on a GPU share the graph of a step. All of them are in memory at once.
    """
    seeds = gate.check_seeds(seeds)
    gate.check_task(task, objective, config)
    device = config.torch_device
    with _settings(config):
        built = _built(models, seeds)
        dtype = gate.check_models(built, seeds)
        if device.type == "cpu" and len(task.train.X.shape) == 2:
            torch.set_num_threads(1)  # a step on a table is too short to share: two threads can take ten times as long
        world = World.of(task, objective, device, dtype)
        known = {} if checkpoint is None else fingerprint(config, objective, seeds, task, built[0])
        file = Checkpoint(checkpoint, known)
        lanes = _lanes([copied(model, device) for model in built], seeds, objective, world, config)
        gate.try_step(lanes[0], _feed(lanes[0], world, 0), objective.phase(0), config)
        return _fit(lanes, world, config, file, progress)


def _lanes(
    models: list[nn.Module], seeds: list[int], objective: Objective, world: World, config: TrainConfig
) -> list[Lane]:
    """Return one stacked lane if everything can be stacked, else one lane for each seed."""
    modules = []
    width = gate.feature_count(models[0], objective, world)
    for seed in seeds:
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
    epochs: Any = GraphEpochs(lanes) if can_capture(lanes, objective, world, config) else _EagerEpochs(lanes)
    steps = len(world.labels) // config.batch_size
    ticks = steps * epochs.ticks_a_step
    with training_bar(objective.name, config.epochs, ticks, start, progress) as bar:
        for epoch in range(start, config.epochs):
            began = time.monotonic()
            phase = objective.phase(epoch)
            for lane in lanes:
                lane.begin(epoch, phase)
            losses = epochs.run([_feed(lane, world, epoch) for lane in lanes], phase, bar.step)
            judged = [_judged(lane, world, config, epoch) for lane in lanes]
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


def _judged(lane: Lane, world: World, config: TrainConfig, epoch: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the validation metric of each seed, whether the seed is lost, and whether it is at its best."""
    if len(world.val_y):
        metric = validation(lane.net, world, config)
        lost = ~torch.isfinite(metric)
    else:
        metric = torch.full(lane.shape, math.nan, dtype=torch.float64, device=lane.device)
        lost = ~lane.is_finite()
    return metric, lost, lane.judge(metric, epoch)


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


class _EagerEpochs:
    """Trains lane after lane, each epoch under a generator seeded for it."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self.ticks_a_step = len(lanes)

    def run(self, feeds: Sequence[Feed], phase: str, tick: Callable[[], None]) -> list[Tensor]:
        found = []
        for lane, feed in zip(self._lanes, feeds, strict=True):
            torch.manual_seed(torch_seed(lane.seeds[0], feed.epoch, "torch"))
            losses = []
            for batch in feed.batches(lane.net):
                losses.append(lane.step(batch, phase))
                tick()
            found.append(torch.stack(losses))
        return found


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
        where = f"the validation metric, or the weights, after epoch {epoch}"
    kept = f"The last good checkpoint is {str(file.path)!r}" if file.written else "No checkpoint was written"
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
    """Leave torch's generators, kernels and threads as they were found."""
    on_gpu = config.torch_device.type == "cuda"
    found = torch.get_num_threads(), torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if on_gpu else []):
        try:
            fastest = config.kernels == "fastest"
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = not fastest, fastest
            yield
        finally:
            torch.set_num_threads(found[0])
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = found[1:]

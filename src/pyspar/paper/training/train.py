"""The training loop, for any objective and network and for one or several seeds. Interrupted runs can be resumed."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pyspar.paper.networks.stacked import can_stack, stack, unstack
from pyspar.paper.objectives.base import Objective
from pyspar.paper.training import checks
from pyspar.paper.training.checkpoint import Checkpoint, fingerprint
from pyspar.paper.training.config import TrainConfig
from pyspar.paper.training.epoch_data import EpochData, TrainingData, make_torch_seed
from pyspar.paper.training.epochs import EagerEpochs, GraphEpochs, can_capture
from pyspar.paper.training.inference import compute_validation, copy_to_device
from pyspar.paper.training.random_numbers import OwnRandomNumbers
from pyspar.paper.training.replica import Replica
from pyspar.paper.training.results import EpochRecord, Trained, TrainingError
from pyspar.terminal import Progress, show_progress

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
    on_epoch: Callable[[int], None] | None = None,
) -> Trained:
    """Train a copy of a model on a task. The original model is not changed.

    Parameters
    ----------
    model : torch.nn.Module
        The initial model. It returns (n, K) predictions for n rows. Objectives that use features require ``stem``,
        ``trunk``, ``features`` and ``head`` as in :class:`~pyspar.paper.MLP`.
    objective : Objective
    task : ShiftTask
        ``train`` and ``val`` are used, and ``target_inputs`` by objectives that use them. Test labels are never read.
    config : TrainConfig
    seed : int
        Determines all random draws: the order of rows, the draws of the objective, dropout. It does not determine the
        initial weights, which are those of ``model``.
    checkpoint : path, optional
        A file that is written while training. If it exists, training continues from it and ends with bit-identical
        weights. A file of another run (other settings, seeds, data, objective, layers or initial weights) raises an
        error. :func:`~pyspar.paper.load_checkpoint` reads the weights of any run.
    progress : bool, optional
        Show a progress bar with the loss. By default it is shown on a terminal if rich is installed.
    on_epoch : function of an int, optional
        Called after each epoch with the number of finished epochs, after the checkpoint is written.

    Notes
    -----
    Random numbers come from generators of the run, so other threads may draw from torch's generator. The number of
    torch's threads is not changed. Steps on a table are short, and several threads can take ten times as long as one:
    call ``torch.set_num_threads(1)`` first. On a GPU the choice of cuDNN kernels is a setting of the process while
    training runs.
    """
    options: dict[str, Any] = {"checkpoint": checkpoint, "progress": progress, "on_epoch": on_epoch}
    return train_seeds([model], objective, task, config, [seed], **options)[0]


def train_seeds(
    models: Models,
    objective: Objective,
    task: ShiftTask,
    config: TrainConfig,
    seeds: Sequence[int],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    on_epoch: Callable[[int], None] | None = None,
) -> list[Trained]:
    """Train one model for each seed. Each result equals that of :func:`train`, up to rounding.

    ``models`` has one model per seed, or is a function of the seed; torch draws from a generator with that seed while
    the function runs, also after ``torch.manual_seed``. Networks of
    linear layers, such as :class:`~pyspar.paper.MLP`, are trained as one computation with an axis of seeds. Other
    networks are trained in turn, and on a GPU share the graph of a step. All models are in memory at the same time.

    The joint computation adds numbers in another order, and training magnifies differences in the last digit: the first
    steps of Adam divide a gradient by its own size, so a gradient that consists of rounding errors causes a full step;
    the base mismatch of RSD divides by gaps between singular values; DARE-GRAM jumps when its number of eigenvalues
    changes. In float32 the first epochs agree to about 1e-4, less for large penalties and learning rates, and long runs
    are equal in distribution. In float64 they agree for much longer.
    """
    seeds = checks.check_seeds(seeds)
    objective.check(config)
    checks.check_task(task, objective, config)
    device = config.torch_device
    with _torch_settings(config):
        initial = _build_models(models, seeds)
        dtype = checks.check_models(initial, seeds, config)
        data = TrainingData.load(task, objective, config, dtype)
        run = {} if checkpoint is None else fingerprint(config, objective, seeds, task, initial)
        file = Checkpoint(checkpoint, run)
        copies = [copy_to_device(model, device) for model in initial]
        replicas = _make_replicas(copies, seeds, objective, data, config)
        for replica in replicas:
            with OwnRandomNumbers(make_torch_seed(replica.seeds[0], 0, "trial")):
                checks.check_outputs(replica, data)
        with show_progress(progress) as reporter:
            return _fit(replicas, data, config, file, reporter, on_epoch)


def _make_replicas(
    models: list[nn.Module], seeds: list[int], objective: Objective, data: TrainingData, config: TrainConfig
) -> list[Replica]:
    """Return one stacked replica if all networks can be stacked, else one replica per seed."""
    modules = []
    for model, seed in zip(models, seeds, strict=True):
        width = checks.count_features(model, objective, data)
        with OwnRandomNumbers(make_torch_seed(seed, 0, "module")):
            module = objective.module(width)
        modules.append(None if module is None else module.to(data.y.device, data.y.dtype))
    own_modules = [module for module in modules if module is not None]
    if len(seeds) > 1 and objective.stackable and can_stack(models) and (not own_modules or can_stack(own_modules)):
        pair = stack(models), stack(own_modules) if own_modules else None
        return [Replica(*pair, seeds, stacked=True, objective=objective, config=config)]
    return [
        Replica(model, module, [seed], stacked=False, objective=objective, config=config)
        for model, module, seed in zip(models, modules, seeds, strict=True)
    ]


def _fit(
    replicas: list[Replica],
    data: TrainingData,
    config: TrainConfig,
    file: Checkpoint,
    progress: Progress,
    on_epoch: Callable[[int], None] | None,
) -> list[Trained]:
    objective = replicas[0].objective
    start, history, best_epochs = file.load(replicas)
    can_replay = can_capture(replicas, objective, data, config)
    runner: EagerEpochs | GraphEpochs = GraphEpochs(replicas) if can_replay else EagerEpochs(replicas)
    steps = len(data.labels) // config.batch_size
    progress.start("training", f"training {objective.name}", total=config.epochs, unit="epochs")
    for epoch in range(start, config.epochs):
        started = time.monotonic()
        phase = objective.phase(epoch)
        for replica in replicas:
            replica.start_epoch(epoch, phase)
        losses = runner.run([_draw_epoch(replica, data, epoch) for replica in replicas], phase)
        for replica in replicas:
            replica.end_epoch()
        on_device = [_evaluate(replica, data, config, epoch, objective.judged(phase)) for replica in replicas]
        # The only place in an epoch where the host waits for the device.
        evaluated = [[tensor.cpu().reshape(-1) for tensor in tensors] for tensors in on_device]
        seconds = time.monotonic() - started
        number = 0
        for replica, loss, (metric, not_finite, better) in zip(replicas, losses, evaluated, strict=True):
            loss = loss.double().cpu().reshape(steps, -1, len(replica.seeds))
            _check_divergence(replica, loss, not_finite, epoch, config, file)
            for i, improved in enumerate(better.tolist()):
                means = dict(zip(replica.loss_names, loss[..., i].mean(dim=0).tolist(), strict=True))
                history[number].append(EpochRecord(epoch, means, float(metric[i]), config.lr_at(epoch), seconds))
                best_epochs[number] = epoch if improved else best_epochs[number]
                number += 1
        progress.advance("training", epoch + 1, loss=f"{_mean_loss(history):.4g}", lr=f"{config.lr_at(epoch):.3g}")
        file.save(replicas, epoch + 1, history, best_epochs, final=epoch + 1 == config.epochs)
        if on_epoch is not None:
            on_epoch(epoch + 1)
    progress.finish("training", f"{config.epochs} of {config.epochs} epochs, loss {_mean_loss(history):.4g}")
    return _collect_results(replicas, history, best_epochs)


def _mean_loss(history: list[list[EpochRecord]]) -> float:
    """Return the loss of the last epoch, averaged over the seeds."""
    return sum(sum(records[-1].losses.values()) for records in history) / len(history)


def _evaluate(
    replica: Replica, data: TrainingData, config: TrainConfig, epoch: int, eligible: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return for each seed the validation metric, whether it or a weight is not finite, and whether it improved."""
    not_finite = ~replica.is_finite()  # also of the objective's module, which the metric does not depend on
    if len(data.val_y):
        metric = compute_validation(replica.net, data, config)
        not_finite |= ~torch.isfinite(metric)
    else:
        metric = torch.full(replica.seed_shape, math.nan, dtype=torch.float64, device=replica.device)
    return metric, not_finite, replica.keep_best(metric, epoch, eligible=eligible)


def _collect_results(
    replicas: list[Replica], history: list[list[EpochRecord]], best_epochs: list[int]
) -> list[Trained]:
    models: list[nn.Module] = []
    for replica in replicas:
        replica.load_best()
        models += unstack(replica.net) if replica.stacked else [replica.net]
    seeds = [seed for replica in replicas for seed in replica.seeds]
    return [
        Trained(model.eval(), seed, best, tuple(records))
        for model, seed, best, records in zip(models, seeds, best_epochs, history, strict=True)
    ]


def _check_divergence(
    replica: Replica, loss: Tensor, not_finite: Tensor, epoch: int, config: TrainConfig, file: Checkpoint
) -> None:
    """Raise if a loss (steps, terms, seeds) is not finite, or if ``not_finite`` (seeds,) is set for a seed."""
    bad = ~torch.isfinite(loss).all(dim=1)
    if not bad.any() and not not_finite.any():
        return
    seed = int((bad.any(dim=0) | not_finite).nonzero()[0])
    if bad[:, seed].any():
        step = int(bad[:, seed].nonzero()[0])
        terms = [name for name, finite in zip(replica.loss_names, torch.isfinite(loss[step, :, seed])) if not finite]
        where = f"the loss ({', '.join(terms)}) is not finite in epoch {epoch}, step {step} of {len(loss)}"
    else:
        where = f"the validation metric or a weight (of the model or the objective) is not finite after epoch {epoch}"
    kept = f" The last good checkpoint is {str(file.path)!r}." if file.is_written else ""
    raise TrainingError(
        f"{replica.objective.name} diverged: {where} (seed {replica.seeds[seed]}, lr {config.lr_at(epoch):.3g}).{kept} "
        "Lower lr, or check the scale of inputs and labels."
    )


def _draw_epoch(replica: Replica, data: TrainingData, epoch: int) -> EpochData:
    return EpochData.draw(data, replica.objective, replica.config, replica.seeds, replica.stacked, epoch)


def _build_models(models: Models, seeds: Sequence[int]) -> list[nn.Module]:
    if isinstance(models, Sequence):
        return list(models)
    built = []
    for seed in seeds:
        with OwnRandomNumbers(seed):
            built.append(models(seed))
    return built


@contextmanager
def _torch_settings(config: TrainConfig) -> Iterator[None]:
    """Enable gradients, and on a GPU set its kernels, which is a setting of the process. Restore both afterwards."""
    with torch.inference_mode(False), torch.enable_grad():
        if config.torch_device.type != "cuda":
            yield
            return
        before = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
        try:
            fastest = config.kernels == "fastest"
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = not fastest, fastest
            yield
        finally:
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = before

"""Two ways to run an epoch: call by call, or by replaying a CUDA graph of the step.

A graph holds every call of one step of all replicas, and each replica has its own stream in it, so that the networks of
several seeds run at the same time. This helps where the images are small and a large GPU would wait for the next call.
The rows, the row indices of the epoch and the step number are on the device, so a replay copies nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from pyspar.errors import InputError
from pyspar.paper.objectives.base import Objective
from pyspar.paper.training.config import TrainConfig
from pyspar.paper.training.epoch_data import EpochData, TrainingData, make_torch_seed
from pyspar.paper.training.random_numbers import OwnRandomNumbers
from pyspar.paper.training.replica import Replica, copy_tensors

_WARM_UP_STEPS = 3  # before the capture; libraries choose kernels and allocate memory in them


class EagerEpochs:
    """Train one replica after the other, call by call.

    Each epoch has its own random numbers. A model that draws none in the first step of an epoch draws none in others.
    """

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self._replicas = replicas

    def run(self, epochs: Sequence[EpochData], phase: str) -> list[Tensor]:
        """Train an epoch. Return the losses of each replica, shape (steps, terms, *seed_shape)."""
        records = []
        for replica, epoch in zip(self._replicas, epochs, strict=True):
            numbers = OwnRandomNumbers(make_torch_seed(replica.seeds[0], epoch.epoch, "torch"))
            losses: list[Tensor] = []
            for batch in epoch.batches(replica.net):
                # Outside of the block operations are faster.
                with numbers if not losses or numbers.drawn else nullcontext():
                    losses.append(replica.take_step(batch, phase))
            records.append(torch.stack(losses))
        return records


def can_capture(replicas: Sequence[Replica], objective: Objective, data: TrainingData, config: TrainConfig) -> bool:
    """Return whether a step can be captured: a GPU, rows on it, and no draws or decisions on the host."""
    return (
        config.graph == "auto"
        and config.torch_device.type == "cuda"
        and objective.capturable
        and data.on_device
        and not any(_is_dropout(layer) for replica in replicas for layer in replica.net.modules())
    )


def _is_dropout(layer: nn.Module) -> bool:
    return isinstance(layer, nn.modules.dropout._DropoutNd) and layer.p > 0


class RandomStepError(Exception):
    """A step draws from torch's generator, for example in ``functional.dropout``. A graph would ignore the seed."""


class CapturedStep:
    """The captured step of one phase: the streams, the tables that it reads, the losses and the graph."""

    def __init__(self, replicas: Sequence[Replica], epochs: Sequence[EpochData], phase: str) -> None:
        self._replicas, self._phase = replicas, phase
        self._steps = len(epochs[0])
        self._epochs = [
            EpochData(e.data, e.epoch, {name: table.clone() for name, table in e.tables.items()}) for e in epochs
        ]
        self._counters = [torch.zeros(1, dtype=torch.int64, device=replica.device) for replica in replicas]
        self._streams = [torch.cuda.Stream() for _ in replicas]  # type: ignore[no-untyped-call]
        self._records: list[Tensor] = []
        snapshots = [_save(replica) for replica in replicas]
        try:
            before = torch.cuda.get_rng_state(replicas[0].device)
            self._warm_up()
            is_random = not torch.equal(before, torch.cuda.get_rng_state(replicas[0].device))
            for replica, snapshot in zip(replicas, snapshots, strict=True):
                _restore(replica, snapshot)
            if is_random:
                raise RandomStepError
            self._reset_counters()
            self._loss_names = replicas[0].loss_names
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._take_step()
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise InputError(
                f"cannot capture the step of {replicas[0].objective.name} with {type(replicas[0].net).__name__} as a "
                f"CUDA graph: {error}\nUse TrainConfig(graph='never')."
            ) from error

    def run(self, epochs: Sequence[EpochData]) -> list[Tensor]:
        """Replay an epoch. Return the losses of each replica, shape (steps, terms, *seed_shape)."""
        for own, new in zip(self._epochs, epochs, strict=True):
            copy_tensors(own.tables, new.tables)
        for replica in self._replicas:
            replica.loss_names = self._loss_names  # a replay runs no Python code that would set them
        self._reset_counters()
        for _ in range(self._steps):
            self._graph.replay()
        return [record.clone() for record in self._records]

    def _reset_counters(self) -> None:
        for counter in self._counters:
            counter.zero_()

    def _warm_up(self) -> None:
        outer = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        outer.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(outer):
            for _ in range(_WARM_UP_STEPS):
                self._reset_counters()
                self._take_step()
        torch.cuda.current_stream().wait_stream(outer)
        torch.cuda.synchronize()

    def _take_step(self) -> None:
        """Fork from the current stream into one stream per replica, take a step in each, and join them."""
        current = torch.cuda.current_stream()
        # All streams fork before the first replica starts; else each replica would wait for the one before it.
        for stream in self._streams:
            stream.wait_stream(current)
        work = zip(self._replicas, self._epochs, self._counters, self._streams, strict=True)
        for number, (replica, epoch, counter, stream) in enumerate(work):
            with torch.cuda.stream(stream):
                losses = replica.take_step(epoch.batch_at(counter, replica.net), self._phase)
                if number == len(self._records):  # the first warm-up step determines the number of loss terms
                    self._records.append(losses.new_zeros((self._steps, *losses.shape)))
                self._records[number].index_copy_(0, counter, losses.unsqueeze(0))
                counter.add_(1)
        for stream in self._streams:
            current.wait_stream(stream)


class GraphEpochs:
    """Capture the step of each phase at its first epoch and replay it afterwards. Random steps run call by call."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self._replicas = replicas
        self._captured: dict[str, CapturedStep | None] = {}

    def run(self, epochs: Sequence[EpochData], phase: str) -> list[Tensor]:
        """Train an epoch. Return the losses of each replica, shape (steps, terms, *seed_shape)."""
        if phase not in self._captured:
            try:
                self._captured[phase] = CapturedStep(self._replicas, epochs, phase)
            except RandomStepError:
                self._captured[phase] = None
        captured = self._captured[phase]
        if captured is None:
            return EagerEpochs(self._replicas).run(epochs, phase)
        return captured.run(epochs)


def _save(replica: Replica) -> dict[str, Any]:
    """Return copies of everything that a step changes."""
    return {
        "tensors": {
            part: {name: tensor.clone() for name, tensor in replica.get_tensors(part).items()} for part in replica.parts
        },
        "moments": {
            part: {p: {k: v.clone() for k, v in state.items()} for p, state in optimizer.state.items()}
            for part, optimizer in replica.optimizers.items()
        },
    }


def _restore(replica: Replica, snapshot: dict[str, Any]) -> None:
    """Undo steps in place, because the graph refers to the addresses of these tensors."""
    for part, tensors in snapshot["tensors"].items():
        copy_tensors(replica.get_tensors(part), tensors)
    with torch.no_grad():
        for part, optimizer in replica.optimizers.items():
            for parameter, state in optimizer.state.items():
                before = snapshot["moments"][part].get(parameter)
                for name, value in state.items():
                    if before is None:
                        value.zero_()  # the initial state of Adam: step 0, both moments zero
                    else:
                        value.copy_(before[name])
    for optimizer in replica.optimizers.values():
        optimizer.zero_grad(set_to_none=True)  # so that the capture allocates gradients in the graph's memory

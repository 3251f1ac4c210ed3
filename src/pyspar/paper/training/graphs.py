"""Graphs: one training step of all lanes, captured once by CUDA and replayed.

Small images leave a large GPU waiting for the next call. A graph holds every call of a step, and each lane has a stream
of its own in it, so that the networks of different seeds run side by side. The rows, the epoch's row numbers and the
number of the step all lie on the device: a replay copies nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pyspar.errors import InputError
from pyspar.paper.objectives.base import Objective
from pyspar.paper.training.config import TrainConfig
from pyspar.paper.training.epoch_data import Feed, World
from pyspar.paper.training.epochs import EagerEpochs
from pyspar.paper.training.replica import Lane, put

_WARM_UP = 3  # steps before the capture, in which libraries choose kernels and allocate what they keep


def can_capture(lanes: Sequence[Lane], objective: Objective, world: World, config: TrainConfig) -> bool:
    """Say whether a step can be captured: on a GPU, rows on it, nothing drawn or looked at by the host on the way."""
    return (
        config.graph == "auto"
        and config.torch_device.type == "cuda"
        and objective.capturable
        and world.on_device
        and config.autocast != "float16"  # whether a step is skipped is then decided on the host
        and not any(_draws(layer) for lane in lanes for layer in lane.net.modules())
    )


def _draws(layer: nn.Module) -> bool:
    return isinstance(layer, nn.modules.dropout._DropoutNd) and layer.p > 0


class DrawsError(Exception):
    """A step draws from torch's generator, such as by ``functional.dropout``: a graph would not follow the seed."""


class Captured:
    """The step of one phase: its streams, the tables it reads, what it writes, and the graph."""

    def __init__(self, lanes: Sequence[Lane], feeds: Sequence[Feed], phase: str) -> None:
        self._lanes, self._phase = lanes, phase
        self._steps = len(feeds[0])
        self._feeds = [Feed(f.world, f.epoch, {name: table.clone() for name, table in f.tables.items()}) for f in feeds]
        self._counters = [torch.zeros(1, dtype=torch.int64, device=lane.device) for lane in lanes]
        self._streams = [torch.cuda.Stream() for _ in lanes]  # type: ignore[no-untyped-call]
        self._records: list[Tensor] = []
        saved = [_snapshot(lane) for lane in lanes]
        try:
            before = torch.cuda.get_rng_state(lanes[0].device)
            self._warm_up()
            drawn = not torch.equal(before, torch.cuda.get_rng_state(lanes[0].device))
            for lane, state in zip(lanes, saved, strict=True):
                _put_back(lane, state)
            if drawn:
                raise DrawsError
            self._restart()
            self._names = lanes[0].names
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._step()
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise InputError(
                f"The step of {lanes[0].objective.name} with {type(lanes[0].net).__name__} cannot be captured as a "
                f"CUDA graph: {error}\nUse TrainConfig(graph='never')."
            ) from error

    def run(self, feeds: Sequence[Feed], tick: Callable[[], None]) -> list[Tensor]:
        """Replay an epoch; return each lane's losses, shape (steps, parts, *lanes)."""
        for own, new in zip(self._feeds, feeds, strict=True):
            put(own.tables, new.tables)
        for lane in self._lanes:
            lane.names = self._names  # a replay runs no Python that would say them
        self._restart()
        for _ in range(self._steps):
            self._graph.replay()
            tick()
        return [record.clone() for record in self._records]

    def _restart(self) -> None:
        for counter in self._counters:
            counter.zero_()

    def _warm_up(self) -> None:
        outer = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        outer.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(outer):
            for _ in range(_WARM_UP):
                self._restart()
                self._step()
        torch.cuda.current_stream().wait_stream(outer)
        torch.cuda.synchronize()

    def _step(self) -> None:
        """Fork from the current stream into one for each lane, take a step in each, and join them again."""
        current = torch.cuda.current_stream()
        for stream in self._streams:  # all before the first lane starts, or each lane would wait for the one before it
            stream.wait_stream(current)
        work = zip(self._lanes, self._feeds, self._counters, self._streams, strict=True)
        for number, (lane, feed, counter, stream) in enumerate(work):
            with torch.cuda.stream(stream):
                losses = lane.step(feed.at(counter, lane.net), self._phase)
                if number == len(self._records):  # the first step of the warm-up tells how many parts a loss has
                    self._records.append(losses.new_zeros((self._steps, *losses.shape)))
                self._records[number].index_copy_(0, counter, losses.unsqueeze(0))
                counter.add_(1)
        for stream in self._streams:
            current.wait_stream(stream)


class GraphEpochs:
    """Captures each phase when it first comes, and replays it from then on; one that draws is taken call by call."""

    ticks_a_step = 1

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self._captured: dict[Any, Captured | None] = {}

    def run(self, feeds: Sequence[Feed], phase: str, tick: Callable[[], None]) -> list[Tensor]:
        """Train an epoch."""
        shapes = tuple(tuple((name, table.shape) for name, table in feed.tables.items()) for feed in feeds)
        if (phase, shapes) not in self._captured:
            try:
                self._captured[phase, shapes] = Captured(self._lanes, feeds, phase)
            except DrawsError:
                self._captured[phase, shapes] = None
        captured = self._captured[phase, shapes]
        if captured is None:
            return EagerEpochs(self._lanes).run(feeds, phase, _each(len(self._lanes), tick))
        return captured.run(feeds, tick)


def _each(count: int, tick: Callable[[], None]) -> Callable[[], None]:
    """Return a function that ticks once for so many calls: the lanes of one step."""
    calls = itertools.count(1)
    return lambda: tick() if next(calls) % count == 0 else None


def _snapshot(lane: Lane) -> dict[str, Any]:
    """Return copies of all that a step changes."""
    return {
        "tensors": {part: {name: tensor.clone() for name, tensor in lane.tensors(part).items()} for part in lane.parts},
        "moments": {
            part: {p: {k: v.clone() for k, v in state.items()} for p, state in optimizer.state.items()}
            for part, optimizer in lane.optimizers.items()
        },
    }


def _put_back(lane: Lane, saved: dict[str, Any]) -> None:
    """Undo steps in place: the graph will hold the addresses of these tensors."""
    for part, tensors in saved["tensors"].items():
        put(lane.tensors(part), tensors)
    with torch.no_grad():
        for part, optimizer in lane.optimizers.items():
            for parameter, state in optimizer.state.items():
                before = saved["moments"][part].get(parameter)
                for name, value in state.items():
                    if before is None:
                        value.zero_()  # as Adam starts: no step taken, both moments zero
                    else:
                        value.copy_(before[name])
    for optimizer in lane.optimizers.values():
        optimizer.zero_grad(set_to_none=True)  # so that the capture gives gradients memory of the graph's own

"""Eager: an epoch taken call by call, lane after lane; every draw of torch's follows from the seed and the epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from pyspar.paper.training.epoch_data import Feed
from pyspar.paper.training.order import torch_seed
from pyspar.paper.training.replica import Lane


class EagerEpochs:
    """Trains lane after lane, each epoch under a generator seeded for it."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self.ticks_a_step = len(lanes)

    def run(self, feeds: Sequence[Feed], phase: str, tick: Callable[[], None]) -> list[Tensor]:
        """Train an epoch; return each lane's losses, shape (steps, parts, *lanes)."""
        found = []
        for lane, feed in zip(self._lanes, feeds, strict=True):
            torch.manual_seed(torch_seed(lane.seeds[0], feed.epoch, "torch"))
            losses = []
            for batch in feed.batches(lane.net):
                losses.append(lane.step(batch, phase))
                tick()
            found.append(torch.stack(losses))
        return found

"""Undo what a changed measurement does to a network: align its features on the target with those of the source.

First the outputs of normalisation layers get the mean and spread of the source. Then gradient steps on their scales and
offsets match the features along leading principal directions, as proposed by Adachi et al. (ICLR 2025), without labels.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from pyspar.errors import InputError
from pyspar.nn.batches import ARRAYS, Function, check_loader, shuffle_batches, split_batch
from pyspar.nn.features import FeatureReader, RowSample, open_reader
from pyspar.nn.layer_statistics import affine, collect_channels, find_layers
from pyspar.nn.models import copy_model, keep_random_state
from pyspar.nn.source_summary import MAX_SOURCE_ROWS, SourceSummary, make_summary, relative_distance
from pyspar.progress import Advance, progress_bar
from pyspar.text import format_number, format_percent

MIN_OUTSIDE, LEVEL, MIN_SPREAD = 0.10, 0.01, 0.7  # the rules that leave a network alone: docs/alignment.md
MIN_TARGET_ROWS, GATE_ROWS, CHECK_ROWS, LOADER_ROWS, READ_BATCH, PROBE_ROWS = 10, 2_000, 500, 2_000, 250, 16
BATCH, RATE, RATES = 64, 1.6, (1e-3, 1e-2)  # the learning rate is 1.6 / steps, within these limits
FLOOR = 1e-6  # added to the variance of a direction, as a share of the source's, so that the loss is finite


@dataclass(frozen=True, eq=False, repr=False)
class Alignment:
    """An aligned copy of a network: ``model``, in which only normalisation layers differ from the given model.

    Nothing differs if ``changed`` is False. ``outside`` is the share of target rows outside the support of the source,
    0.05 without a shift, and ``p_value`` the probability of such a share, or a larger one, without a shift.
    ``distance`` is that of the target to the source after the steps, divided by that before (NaN without steps).
    ``spread`` is that of the given network's predictions, divided by the source's. ``losses`` are means of the passes.
    """

    model: nn.Module
    outside: float
    p_value: float
    changed: bool
    distance: float
    spread: float
    losses: tuple[float, ...]

    def __repr__(self) -> str:
        share = f"{format_percent(self.outside)} of the target is outside the source's support (5 % without a shift)"
        if self.changed:
            return f"aligned: {share}; this is valid if the measurement changed, not the population"
        tried = "the steps did not bring the target closer to the source, so the population may have changed"
        reason = tried if np.isfinite(self.distance) else "a changed measurement can also stay inside"
        return f"not aligned: {share}; {reason}: if you know that the measurement changed, use force=True"


def align(
    model: nn.Module, source: Any, target: Any, passes: int = 5, *, force: bool = False, head: str | None = None,
    inputs: Function = None, seed: int | None = 0, progress: bool | None = None,
) -> Alignment:  # fmt: skip
    """Return a copy of a network that is aligned with a target whose measurement changed.

    It assumes that the same population is measured differently, for example by another camera. If the population
    changed, the result can be much worse than the given network: with ten labels, :class:`pyspar.TargetCorrection`
    chooses. The network is not changed if too few target rows are outside the support of the source, or if the steps
    do not bring the target closer and its predictions vary about as much as on the source.

    Parameters
    ----------
    model : torch.nn.Module
        A trained network with normalisation layers, whose prediction is the output of a ``torch.nn.Linear``.
    source : iterable of batches, tensor, array, SourceSummary or path
        Rows like those that the network was trained on (labels are ignored), or the result of :func:`summarize` or its
        file. Of a plain ``DataLoader`` or an array, at most 2,000 random rows are read, by :func:`summarize` 10,000.
    target : iterable of batches, tensor or array
        It is read several times. A plain ``DataLoader`` is shuffled; other iterables should yield rows in random order.
    passes : int, default 5; 0 takes no gradient steps
    force : bool, default False; True changes the network in both cases, if the measurement is known to have changed
    seed : int or None, determines the order of the rows (None: random); the caller's random state is not changed
    head, inputs, progress : as for :func:`pyspar.nn.adapt_head`
    """
    if isinstance(passes, bool) or not isinstance(passes, (int, np.integer)) or passes < 0:
        raise ValueError(f"passes must be a whole number of at least 0, got {passes!r}")
    source = SourceSummary.load(source) if isinstance(source, (str, os.PathLike)) else source
    source = source if isinstance(source, SourceSummary) else _as_loader(source, "source")
    target = _as_loader(target, "target")
    with (
        _open_copy(model, target, "target", head, inputs, seed, source) as net,
        progress_bar("aligning", show=progress) as advance,
    ):
        layers = find_layers(net.run.model)
        if not layers:
            fix = "map its inputs, with pyspar.ColumnAligner or for images with a mean and a spread per channel"
            raise InputError(f"{type(model).__name__} has no normalisation layer with statistics or weights; {fix}")
        summary = source if isinstance(source, SourceSummary) else net.summarize(source, LOADER_ROWS)
        summary.check_head(net.layer)
        before, spread = net.compare(summary, target, GATE_ROWS)
        outside, p_value = summary.test_outside(before)
        changed = force or (p_value < LEVEL and outside >= MIN_OUTSIDE)
        losses, distance = list[float](), float("nan")
        if changed:
            used = net.replace_statistics(summary, target)
            rate = float(np.clip(RATE * BATCH / max(passes * used, 1), *RATES))
            losses = Descent(net, summary, layers, rate).run(target, passes, min(used, BATCH // 2), advance)
            distance = float(net.compare(summary, target, CHECK_ROWS)[0].median()) / max(float(before.median()), 1e-30)
            changed = force or distance < 1.0 or spread < MIN_SPREAD
        aligned = net.run.model if changed else copy_model(model)
    return Alignment(aligned, outside, p_value, changed, distance, spread, tuple(losses))


def summarize(
    model: nn.Module, loader: Any, *, head: str | None = None, inputs: Function = None, seed: int | None = 0
) -> SourceSummary:
    """Return what :func:`align` needs to know of the source. ``summary.save("source.npz")`` writes a small file."""
    loader = _as_loader(loader, "source")
    with _open_copy(model, loader, "source", head, inputs, seed) as net:
        return net.summarize(loader, MAX_SOURCE_ROWS)


@dataclass(frozen=True)
class Network(FeatureReader):
    """A network in evaluation mode whose features can be computed for rows in random order."""

    generator: torch.Generator

    def read(self, loader: Any, role: str, size: int = READ_BATCH, rows: int | None = None) -> Iterator[Tensor]:
        """Yield the features of batches of about the given size."""
        for number, batch in enumerate(shuffle_batches(loader, size, rows, self.generator)):
            where = f"batch {number} of {role}"
            for arguments in split_batch(self.reader.read_arguments(batch, where), size):
                features = self.features_of(arguments, where)
                yield features.reshape(-1, features.shape[-1]).float()

    def summarize(self, source: Any, rows: int) -> SourceSummary:
        """Return the summary of the loader's rows; of a plain DataLoader, at most this number of them are read."""
        batches, sample = 0, RowSample(MAX_SOURCE_ROWS, seed=self.generator.initial_seed())
        with collect_channels(find_layers(self.run.model)) as sums:
            for features in self.read(source, "source", rows=rows):
                sample.add(features)
                batches += 1
        return make_summary(sample, self.layer, sums.joined(batches))

    def compare(self, summary: SourceSummary, target: Any, rows: int) -> tuple[Tensor, float]:
        """Return the relative distances of target rows to the source, and the relative spread of their predictions."""
        support, scales = (torch.from_numpy(part).to(self.run.device) for part in (summary.support, summary.scales))
        head = self.layer.weight.detach().float().T
        known, parts, squares = support @ head, list[Tensor](), list[Tensor]()
        for features in self.read(target, "target", rows=rows):
            parts.append(relative_distance(features, support, scales))
            squares.append((features @ head - known.mean(dim=0)).square())
        distances = torch.cat(parts or [torch.zeros(0)])
        if (n := len(distances)) < MIN_TARGET_ROWS:
            raise InputError(f"target must have at least {MIN_TARGET_ROWS} rows, got {n}; pass more target rows")
        if bool((distances - distances[0]).abs().max() <= 1e-6 * distances[0]):
            raise InputError("the features of all target rows are equal; check the inputs of the target")
        varies = known.var(dim=0) > 1e-10 * known.square().mean(dim=0)  # a constant output has no spread
        spread = (torch.cat(squares).mean(dim=0) / known.var(dim=0))[varies].mean().sqrt()
        return distances, float(spread)

    def replace_statistics(self, summary: SourceSummary, target: Any) -> int:
        """Give the outputs of normalisation layers the mean and spread of the source; return the number of rows."""
        with collect_channels(find_layers(self.run.model), wanted=summary.outputs) as sums:
            rows = sum(map(len, self.read(target, "target")))
        sums.write()
        return rows


class Descent:
    """Gradient steps on the scales and offsets of normalisation layers."""

    def __init__(self, net: Network, summary: SourceSummary, layers: list[nn.Module], rate: float) -> None:
        self._net = replace(net, run=replace(net.run, needs_grad=True))
        self._parameters = list({id(p): p for layer in layers for p in affine(layer)}.values())
        # A step is below the precision of 16-bit weights, so they are rounded from weights in float32.
        self._exact = [p.detach().to(torch.promote_types(p.dtype, torch.float32)) for p in self._parameters]
        self._optimizer = torch.optim.Adam(self._exact or [torch.zeros(1)], lr=rate, fused=True)
        parts = summary.mean, summary.directions, np.sqrt(summary.variances)
        self._mean, directions, spread = (torch.from_numpy(part).to(net.run.device) for part in parts)
        self._directions = directions / spread
        slopes = (net.layer.weight.detach().float() @ directions).abs()
        spreads = torch.cat([torch.ones_like(slopes), slopes]) * spread  # of features and predictions
        self._weights = nn.functional.normalize(spreads, p=1.0, dim=1, eps=1e-30).mean(dim=0)

    def loss(self, features: Tensor) -> Tensor:
        """Return the symmetric divergence plus a penalty on covariances: their products in two halves of the batch."""
        with torch.autocast(features.device.type, enabled=False):
            scores, w = (features - self._mean) @ self._directions, self._weights
            mean = scores.mean(dim=0)
            first, second = (scores - mean).tensor_split(2)
            a, b, m2 = first.square().sum(dim=0), second.square().sum(dim=0), mean.square()
            s2 = (a + b) / (len(scores) - 1) + FLOOR
            divergence = torch.dot(w, 0.5 * (s2 + m2 + (1.0 + m2) / s2) - 1.0)
            pairs = ((first * w) @ second.T).square().sum() - torch.dot(w * w, a * b)  # sum of w_i w_j A_ij B_ij
            return divergence + pairs / (2 * len(first) * len(second) * torch.dot(w, w))

    def run(self, target: Any, passes: int, least: int, advance: Advance) -> list[float]:
        """Go over the target, in steps of at least this number of rows; return the mean loss of each pass."""
        flags = [(p, p.requires_grad) for p in self._net.run.model.parameters()]
        for parameter, _ in flags:
            parameter.requires_grad_(any(parameter is p for p in self._parameters))
        means = []
        for number in range(passes if self._parameters else 0):
            losses, held = [], list[Tensor]()
            for features in self._net.read(target, "target", BATCH):
                held.append(features)
                if sum(map(len, held)) >= least:  # moments of a few rows are mostly noise
                    losses.append(self._step(self.loss(torch.cat(held))))
                    held.clear()
                    advance(number, passes, loss=format_number(losses[-1]))
            means.append(sum(losses) / len(losses) if losses else float("nan"))
        if not np.isfinite(means).all():
            raise InputError("the loss is not finite; the target must yield its rows in each pass, without overflow")
        for parameter, flag in flags:
            parameter.requires_grad_(flag)
        return means

    def _step(self, loss: Tensor) -> float:
        if not loss.requires_grad:
            fix = "remove torch.no_grad and detach from forward, or use passes=0, which replaces statistics only"
            raise InputError(f"no gradient reaches scales and offsets of the normalisation layers; {fix}")
        gradients = torch.autograd.grad(loss, self._parameters, allow_unused=True)
        for exact, gradient in zip(self._exact, gradients, strict=True):
            exact.grad = None if gradient is None else gradient.to(exact.dtype)
        self._optimizer.step()
        with torch.no_grad():
            for parameter, exact in zip(self._parameters, self._exact, strict=True):
                parameter.copy_(exact)
        return float(loss.detach())


@contextmanager
def _open_copy(
    model: nn.Module, loader: Any, name: str, head: str | None, inputs: Function, seed: int | None, source: Any = None
) -> Iterator[Network]:
    """Yield a copy of a model in evaluation mode with its head. The random state of the caller is restored."""
    generator = torch.Generator().manual_seed(torch.Generator().seed() if seed is None else operator.index(seed))
    with torch.inference_mode(False), torch.enable_grad(), keep_random_state(model, loader, source):
        torch.manual_seed(generator.initial_seed())  # a loader may shuffle
        with open_reader(copy_model(model), loader, name, head, probe_rows=PROBE_ROWS, inputs=inputs) as reader:
            yield Network(**vars(reader), generator=generator)


def _as_loader(rows: Any, name: str) -> Any:
    """Return a loader; refuse what can be read only once."""
    if isinstance(rows, ARRAYS) and rows.ndim:
        parts: Any = (TensorDataset(rows), None) if isinstance(rows, Tensor) else (rows, np.stack)
        return DataLoader(parts[0], batch_size=READ_BATCH, collate_fn=parts[1])
    check_loader(rows, name)
    if hasattr(rows, "__next__"):
        raise InputError(f"{name} is an iterator, which can be read only once; pass a DataLoader, a list or a tensor")
    return rows

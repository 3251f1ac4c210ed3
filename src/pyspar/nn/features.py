"""Read the features of a loader, which are the inputs of the head, and add them to Moments in one pass."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from operator import length_hint
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from pyspar.core.moments import Matrix, Moments, Vector
from pyspar.errors import InputError
from pyspar.estimators.labels import read_labels
from pyspar.nn.batches import Arguments, BatchReader, move_to_device, split_batch
from pyspar.nn.find_head import describe_layer, find_head
from pyspar.nn.models import ModelRunner, prepare_runner
from pyspar.progress import progress_bar
from pyspar.sources.torch import TensorSums

MAX_TESTED, MAX_INPUTS = 1000, 1024  # rows and inputs of the test for training rows
MAX_UNLABELLED = 5000  # rows that are kept; they determine means and spreads of the target's features only


@dataclass(frozen=True)
class FeatureReader:
    """Reads the features of a model: the inputs of its linear layer ``head``, for the ``batches`` of a loader."""

    run: ModelRunner
    reader: BatchReader
    head: str
    name: str
    batches: Iterator[Any]

    @property
    def layer(self) -> nn.Linear:
        return cast(nn.Linear, self.run.model.get_submodule(self.head))

    def features_of(self, arguments: Arguments, where: str) -> Tensor:
        """Run the model on a batch and return the input of its head, which must run once and be finite."""
        inputs: list[Tensor] = []

        def store(module: nn.Module, args: Any, kwargs: Any) -> None:
            inputs.append((args[0] if args else kwargs["input"]).clone())  # the model may change its tensors in place

        with self.layer.register_forward_pre_hook(store, with_kwargs=True):
            self.run(arguments, where)
        if len(inputs) != 1:
            raise InputError(f"{where}: the model must run its head once, but ran it {len(inputs)} times")
        [x] = inputs
        if not bool(torch.isfinite(x.sum(dtype=torch.promote_types(x.dtype, torch.float32)))):
            layer, fix = describe_layer(self.head), "check it for missing values, and float16 for overflow"
            raise InputError(f"{where}: NaN or infinity in the input of {layer}; {fix}")
        return x

    def read_moments(
        self, loader: Any, outputs: int | None = None, *, receiver: Any = None, progress: bool | None = None
    ) -> Moments:
        """Return the moments of features and labels (``outputs=None``: no labels). ``receiver`` also gets the rows."""
        sums, total = TensorSums(eps=self.run.eps), length_hint(loader) or None
        with progress_bar(f"reading {self.name}", total=total, unit="batches", show=progress) as advance:
            for number, batch in enumerate(self.batches):
                where = f"batch {number} of {self.name}"
                arguments = self.reader.read_arguments(batch, where)
                features = self.features_of(arguments, where)
                features = features.cpu() if features.device.type == "mps" else features  # it has no float64
                labels = None if outputs is None else self._read_labels(batch, features, outputs, where)
                features = features.reshape(-1, features.shape[-1])
                sums.add(features, labels)
                if receiver is not None:
                    receiver.add(features, labels, arguments)
                advance(number + 1)
        if sums.rows == 0:
            raise InputError(f"{self.name} must yield at least one row, got none; is it an exhausted iterator?")
        return sums.moments()

    def check_order(self, loader: Any, first: Matrix) -> None:
        """Raise InputError if another pass begins with other rows, so that labels cannot be matched by position."""
        if hasattr(loader, "__next__"):  # it can be read only once
            return
        where = "batch 0 of target_loader"
        features = self.features_of(self.reader.read_arguments(next(iter(loader)), where), where)
        again = features.flatten(0, -2).double().cpu().numpy()
        spread = float(first.std()) or 1.0
        if again.shape[0] > len(first) or not np.allclose(again, first[: len(again)], rtol=1e-2, atol=1e-2 * spread):
            fix = "use DataLoader(..., shuffle=False) without a random sampler or random augmentation"
            raise InputError(f"target_loader yields its rows in another order each time; {fix}")

    def _read_labels(self, batch: Any, features: Tensor, outputs: int, where: str) -> Tensor:
        """Return labels as a matrix with a column per output. Shapes must agree except for dimensions of size one."""
        labels, expected = self.reader.read_labels(batch, where), (*features.shape[:-1], outputs)
        if not bool(torch.isfinite(labels).all()):
            raise InputError(f"{where}: NaN or infinity in the labels; drop such rows")
        if [n for n in labels.shape if n != 1] == [n for n in expected if n != 1]:
            return labels.reshape(-1, outputs)
        fix = "pass labels=, a function of the batch"
        if outputs > 1 and labels.shape[:1] == features.shape[:1] and labels.numel() == len(labels):
            fix = "pass output=0 if the labels belong to the first output; class indices are no labels of a regression"
        inputs = f"inputs of {describe_layer(self.head)} of shape {tuple(features.shape)}"
        raise InputError(f"{where}: labels must have shape {expected}, got {tuple(labels.shape)}, for {inputs}; {fix}")


@contextmanager
def open_reader(
    model: nn.Module, loader: Any, name: str, head: str | None, *, probe_rows: int = sys.maxsize, **functions: Any
) -> Iterator[FeatureReader]:
    """Yield a reader of the features of a model, whose head is found with ``probe_rows`` rows of the first batch."""
    batches = iter(loader)
    first = next(batches, None)
    if first is None:
        raise InputError(f"{name} must yield at least one batch, got none; it is empty or an exhausted iterator")
    reader, where = BatchReader.of(model, **functions), f"batch 0 of {name}"
    arguments = next(split_batch(reader.read_arguments(first, where), probe_rows))
    with prepare_runner(model) as run:
        yield FeatureReader(run, reader, find_head(run, arguments, head, where), name, chain([first], batches))


class ErrorSums:
    """Products of the inputs of a trained head, with each row weighted by its squared error, for each output."""

    def __init__(self, coef: Matrix, bias: Vector, eps: float) -> None:
        self._coef, self._bias = torch.from_numpy(coef), torch.from_numpy(bias)
        self._sums = [TensorSums(eps=eps) for _ in coef]
        self._unit = 0.0  # of the errors, so that no square overflows
        self.sample = RowSample(MAX_TESTED)  # inputs and errors

    def add(self, features: Tensor, labels: Any, arguments: Arguments) -> None:
        """Add labelled rows."""
        coef, bias = (part.to(features.device) for part in (self._coef, self._bias))
        errors = labels.to(features.device).double() - nn.functional.linear(features.double(), coef, bias)
        self._unit = self._unit or float(errors.abs().max() if len(errors) else 0.0)
        errors = errors / (self._unit or 1.0)
        for sums, squares in zip(self._sums, errors.square().T, strict=True):
            sums.add(features, None, squares)
        values = move_to_device([*arguments[0], *arguments[1].values()], torch.device("cpu"))
        own = [x for x in values if torch.is_tensor(x)]
        dense = [x.layout == torch.strided and not x.is_nested and x.is_floating_point() for x in own]
        if not own or not all(dense) or any(x.shape[:1] != features.shape[:1] for x in own):  # such as token ids
            own = [features.cpu()]
        parts = [x[:, None].flatten(1) for x in own]
        inputs = torch.cat([x[:, :: max(-(-x.shape[1] // MAX_INPUTS), 1)].float() for x in parts], dim=1).nan_to_num()
        if self.sample.rows == 0:
            spread = inputs.std(dim=0, correction=0)
            self._first, self._units = inputs[:1].clone(), torch.where(spread > 0.0, spread, torch.inf)
        inputs = nn.functional.pad(inputs, (0, self._first.shape[1] - inputs.shape[1]))  # sequences differ in length
        # Training shows in the errors of neighbours, so the sample is dense: the rows nearest to the first one.
        distances = ((inputs - self._first) / self._units).square().sum(dim=1)
        self.sample.add(torch.cat([inputs, errors.to(inputs)], dim=1), distances)

    def roots(self) -> tuple[Matrix, ...]:
        """Return the ``error_roots`` of :func:`pyspar.core.refit.refit_head`."""
        n = self.sample.rows
        return tuple(
            x.moments().root[:, 1:] * np.sqrt(n / x.weight) if x.weight else np.zeros((1, x.d)) for x in self._sums
        )


class RowSample:
    """A random sample of the rows of any number of batches, with all rows at the positions ``kept``."""

    def __init__(self, size: int, *, seed: int = 0, kept: Any = ()) -> None:
        self.rows, self._size, self._kept = 0, size + len(kept), torch.as_tensor(kept, dtype=torch.int64)
        self._generator = torch.Generator().manual_seed(seed)
        self._blocks: list[tuple[Tensor, Tensor, Tensor]] = []  # rows, positions and keys

    def add(self, rows: Tensor, keys: Tensor | None = None) -> None:
        """Add rows. Those with the smallest keys are the sample; the keys are random by default."""
        positions = torch.arange(self.rows, self.rows + len(rows))
        keys = torch.rand(len(rows), generator=self._generator) if keys is None else keys.cpu()
        keys[torch.isin(positions, self._kept)] = -1.0
        self.rows += len(rows)
        self._blocks.append((rows.detach().cpu(), positions, keys))
        if sum(len(block[0]) for block in self._blocks) > 2 * self._size:
            self.select()

    def select(self) -> tuple[Tensor, Tensor]:
        """Return the sample in random order, and the positions of its rows."""
        rows, positions, keys = (torch.cat(parts) for parts in zip(*self._blocks, strict=True))
        chosen = keys.topk(min(self._size, len(keys)), largest=False).indices
        self._blocks = [(rows[chosen], positions[chosen], keys[chosen])]
        return self._blocks[0][:2]


class TargetRows:
    """Labelled target rows, and a sample of the others, in the order of a loader, for a correction with labels."""

    def __init__(self, labels: Any) -> None:
        if isinstance(labels, Mapping):
            labels = {row: np.squeeze(_to_numpy(label)) for row, label in labels.items()}
            known = np.array([key for key in labels if isinstance(key, (int, np.integer))], dtype=np.int64)
        else:
            labels = _to_numpy(labels)  # their number is checked after the loader was read
            values = read_labels(labels, np.shape(labels)[0] if np.ndim(labels) else 1, "adapt_head", "target_labels")
            known = np.flatnonzero(np.isfinite(values[0]).any(axis=1))
        self._labels, self._known = labels, known
        self._sample = RowSample(MAX_UNLABELLED, kept=known)
        self.first: Matrix = np.empty((0, 0))  # the features of the first batch

    def add(self, features: Tensor, *_: Any) -> None:
        """Add the features of the next rows of the loader."""
        values = features.detach().to("cpu", torch.float64)
        self.first = self.first if self._sample.rows else values.numpy()
        self._sample.add(values)

    def select(self, outputs: int) -> tuple[Matrix, Matrix, Vector]:
        """Return features, labels and counts of the rows that were kept; a count stands for several rows."""
        rows = self._sample.rows
        labels = read_labels(self._labels, rows, "adapt_head", "target_labels", outputs=outputs)[0]
        features, positions = (part.numpy() for part in self._sample.select())
        order = np.argsort(positions)
        is_known = np.isin(positions[order], self._known)
        share = (rows - is_known.sum()) / max(int((~is_known).sum()), 1)
        return features[order], labels[positions[order]], np.where(is_known, 1.0, share)


def _to_numpy(values: Any) -> Any:
    """Return a tensor as an array; numpy does not read tensors of a GPU, with gradients or in bfloat16."""
    return values.detach().to("cpu", torch.float64).numpy() if isinstance(values, Tensor) else values

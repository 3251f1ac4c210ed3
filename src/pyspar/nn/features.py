"""Read the features of a loader, which are the inputs of the head, and add them to Moments in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import length_hint
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyspar.core.moments import Matrix, Moments, Vector
from pyspar.errors import InputError
from pyspar.estimators.labels import read_labels
from pyspar.nn.batches import BatchReader
from pyspar.nn.find_head import describe_layer
from pyspar.nn.models import ModelRunner
from pyspar.progress import progress_bar
from pyspar.sources.torch import TensorSums

PADDING_LABEL = -100
"""The label of tokens without a label in Hugging Face transformers."""
MAX_UNLABELLED = 5000
"""The number of unlabelled rows that are kept. They determine means and spreads of the target's features only."""


@dataclass(frozen=True)
class FeatureReader:
    """Reads the inputs of the layer ``head`` of a model; ``outputs`` are those that the labels belong to."""

    run: ModelRunner
    head: str
    outputs: tuple[int, ...]
    reader: BatchReader
    progress: bool | None

    @property
    def layer(self) -> nn.Linear:
        return cast(nn.Linear, self.run.model.get_submodule(self.head))

    def read(
        self, batches: Iterator[Any], role: Literal["source", "target"], loader: Any, *, ndim: int | None = None,
        keep: TargetRows | None = None, errors: ErrorSums | None = None,
    ) -> tuple[Moments, int]:  # fmt: skip
        """Return the moments of the features, for a source also of the labels, and the dimensions of an input.

        Each input must have ``ndim`` dimensions, None for those of the first. ``keep`` and ``errors`` receive the rows.
        """
        sums = TensorSums(eps=self.run.eps)
        total = length_hint(loader) or None
        with progress_bar(f"reading {role}", total=total, unit="batches", show=self.progress) as advance:
            for number, batch in enumerate(batches):
                where = f"batch {number} of {role}_loader"
                features = self.features_of(batch, where)
                ndim = features.ndim if ndim is None else ndim
                if features.ndim != ndim:
                    what, shape = f"{where}: the input of {describe_layer(self.head)}", tuple(features.shape)
                    raise InputError(f"{what} must have {ndim} dimensions, as in earlier batches, got shape {shape}")
                weights = self.reader.read_weights(batch, tuple(features.shape[:-1]), where)
                labels = None
                if role == "source":
                    labels = self._reshape_labels(self.reader.read_labels(batch, where), features, where)
                    if weights is None and ndim > 2:
                        self._refuse_padding(labels, where)
                rows = self._select_rows(features, labels, weights, where)
                sums.add(*rows)
                if errors is not None:
                    errors.add(*rows)
                if keep is not None:
                    keep.add(rows[0])
                advance(number + 1)
        if ndim is None or sums.rows == 0:
            raise InputError(f"{role}_loader must yield at least one row, got none; is it an exhausted iterator?")
        return sums.moments(), ndim

    def features_of(self, batch: Any, where: str) -> Tensor:
        """Run the model on a batch and return the input of its head."""
        return self.run.read_input(self.layer, self.reader.read_arguments(batch, where), where)

    def check_order(self, loader: Any, first: Matrix) -> None:
        """Raise InputError if another pass begins with other rows, so that labels cannot be matched by position."""
        if hasattr(loader, "__next__"):  # it can be read only once
            return
        again = self.features_of(next(iter(loader)), "batch 0 of target_loader").flatten(0, -2).double().cpu().numpy()
        spread = float(first.std()) or 1.0
        if again.shape[0] > len(first) or not np.allclose(again, first[: len(again)], rtol=1e-2, atol=1e-2 * spread):
            raise InputError(
                "target_loader yields its rows in another order each time, so target_labels cannot be matched with "
                "them; use DataLoader(..., shuffle=False) without a random sampler or random augmentation"
            )

    def _select_rows(
        self, features: Tensor, labels: Tensor | None, weights: Tensor | None, where: str
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return features, labels and weights of the rows with a positive weight, or raise InputError."""
        features = features.reshape(-1, features.shape[-1])
        if weights is not None:
            weights = weights.to(features.device)
            used = weights > 0
            features, weights = features[used], weights[used]
            labels = None if labels is None else labels[used.to(labels.device)]
        check_finite(features, self.head, where)
        if labels is not None and not bool(torch.isfinite(labels).all()):
            raise InputError(
                f"{where}: NaN or infinity in the labels; drop such rows, or exclude them by sample_weight="
            )
        if features.device.type == "mps":  # mps does not support float64
            return features.cpu(), labels, None if weights is None else weights.cpu()
        return features, labels, weights

    @staticmethod
    def _refuse_padding(labels: Tensor, where: str) -> None:
        """Raise InputError for sequences with labels that mark tokens without a label."""
        if marked := int((labels == PADDING_LABEL).all(dim=1).sum()):
            raise InputError(
                f"{where}: {marked} of {len(labels)} labels are {PADDING_LABEL}, which marks tokens without a label in "
                f"Hugging Face transformers; pass sample_weight=lambda b: b['labels'] != {PADDING_LABEL}"
            )

    def _reshape_labels(self, labels: Tensor, features: Tensor, where: str) -> Tensor:
        """Return labels as a matrix with a column per output. Shapes must agree except for dimensions of size one."""
        outputs = len(self.outputs)
        expected = (*features.shape[:-1], outputs)
        if [n for n in labels.shape if n != 1] == [n for n in expected if n != 1]:
            return labels.reshape(-1, outputs)
        fix = "pass labels=, a function of the batch"
        if features.ndim > 2 and labels.shape[:1] == features.shape[:1]:
            fix = "pool the features before the head, so that each label has one row"
        elif outputs > 1 and labels.shape[:1] == features.shape[:1] and labels.numel() == len(labels):
            fix = "pass output=0 if the labels belong to the first output; class indices are no labels of a regression"
        inputs = f"inputs of {describe_layer(self.head)} of shape {tuple(features.shape)}"
        raise InputError(f"{where}: labels must have shape {expected}, got {tuple(labels.shape)}, for {inputs}; {fix}")


def check_finite(features: Tensor, head: str, where: str) -> None:
    """Raise InputError for features with NaN or infinity."""
    if not bool(torch.isfinite(features).all()):
        overflow = "; float16 overflows above 65504, use bfloat16" if features.dtype == torch.float16 else ""
        layer = describe_layer(head)
        raise InputError(f"{where}: NaN or infinity in the input of {layer}; check it for missing values{overflow}")


class ErrorSums:
    """Products of the inputs of a trained head, with each row weighted by its squared error, for each output."""

    def __init__(self, coef: Matrix, bias: Vector, eps: float) -> None:
        self._coef, self._bias = torch.from_numpy(coef), torch.from_numpy(bias)
        self._sums = [TensorSums(eps=eps) for _ in coef]
        self._n = 0.0
        self._unit = 0.0  # of the errors, so that no square overflows

    def add(self, features: Tensor, labels: Any, weights: Tensor | None) -> None:
        """Add labelled rows."""
        coef, bias = (part.to(features.device) for part in (self._coef, self._bias))
        errors = labels.to(features.device).double() - nn.functional.linear(features.double(), coef, bias)
        self._n += float(len(features) if weights is None else weights.sum())
        self._unit = self._unit or float(errors.abs().max() if len(errors) else 0.0)
        squares = (errors / (self._unit or 1.0)).square()
        for sums, of_output in zip(self._sums, squares.T, strict=True):
            sums.add(features, None, of_output if weights is None else of_output * weights)

    def roots(self) -> tuple[Matrix, ...]:
        """Return the ``error_roots`` of :func:`pyspar.core.refit.refit_head`."""
        return tuple(
            sums.moments().root[:, 1:] * np.sqrt(self._n / sums.weight) if sums.weight else np.zeros((1, sums.d))
            for sums in self._sums
        )


class TargetRows:
    """Labelled target rows, and a sample of the others, in the order of a loader, for a correction with labels."""

    def __init__(self, labels: Any) -> None:
        if isinstance(labels, Mapping):
            labels = {row: _to_numpy(label) for row, label in labels.items()}
            labels = {row: y.item() if isinstance(y, np.ndarray) and y.size == 1 else y for row, y in labels.items()}
            self._known = np.array([key for key in labels if isinstance(key, (int, np.integer))], dtype=np.int64)
        else:
            labels = _to_numpy(labels)  # their number is checked after the loader was read
            values = read_labels(labels, np.shape(labels)[0] if np.ndim(labels) else 1, "adapt_head", "target_labels")
            self._known = np.flatnonzero(np.isfinite(values[0]).any(axis=1))
        self._labels = labels
        self._rng = np.random.default_rng(0)
        self._blocks: list[tuple[Matrix, NDArray[np.int64], Vector]] = []  # features, positions and keys of rows
        self.first: Matrix = np.empty((0, 0))  # the features of the first batch
        self.rows = 0

    def add(self, features: Tensor) -> None:
        """Add the features of the next rows of the loader."""
        values = features.detach().to("cpu", torch.float64).numpy()
        self.first = self.first if self.rows else values
        positions = np.arange(self.rows, self.rows + len(values), dtype=np.int64)
        self.rows += len(values)
        # The rows with the smallest random keys are a random sample of the unlabelled rows. Labelled rows have key -1.
        is_unknown = ~np.isin(positions, self._known)
        keys = np.full(len(values), -1.0)
        keys[is_unknown] = self._rng.random(int(is_unknown.sum()))
        self._blocks.append((values, positions, keys))
        if sum(len(block[2]) for block in self._blocks) > 2 * MAX_UNLABELLED + len(self._known):
            self._join_blocks()

    def select(self, outputs: int) -> tuple[Matrix, Matrix, Vector]:
        """Return features, labels and counts of the rows that were kept; a count stands for several rows."""
        labels = read_labels(self._labels, self.rows, "adapt_head", "target_labels", outputs=outputs)[0]
        features, positions, keys = self._join_blocks()
        is_known = keys < 0.0
        share = (self.rows - is_known.sum()) / max(int((~is_known).sum()), 1)
        return features, labels[positions], np.where(is_known, 1.0, share)

    def _join_blocks(self) -> tuple[Matrix, NDArray[np.int64], Vector]:
        """Return all rows as one block in their order, with at most MAX_UNLABELLED unlabelled rows."""
        features, positions, keys = (np.concatenate(parts) for parts in zip(*self._blocks, strict=True))
        limit = MAX_UNLABELLED + int((keys < 0.0).sum())
        if len(keys) > limit:
            kept = np.sort(np.argpartition(keys, limit)[:limit])
            features, positions, keys = features[kept], positions[kept], keys[kept]
        self._blocks = [(features, positions, keys)]
        return self._blocks[0]


def _to_numpy(values: Any) -> Any:
    """Return a tensor as an array; numpy does not read tensors of a GPU, with gradients or in bfloat16."""
    return values.detach().to("cpu", torch.float64).numpy() if isinstance(values, Tensor) else values

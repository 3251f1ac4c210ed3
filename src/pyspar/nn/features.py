"""Read the features of a loader: capture the inputs of the head with a hook and add them to Moments in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.nn.batches import BatchReader
from pyspar.nn.find_head import describe_layer
from pyspar.nn.running import ModelRunner
from pyspar.nn.target_rows import TargetRows
from pyspar.sources.stream import BatchBuffer
from pyspar.sources.torch import TensorSums
from pyspar.terminal import SILENT, Progress

PADDING_LABEL = -100
"""The label of tokens without a label in Hugging Face transformers."""


def moments_of_features(
    run: ModelRunner,
    head: str,
    batches: Iterator[Any],
    reader: BatchReader,
    role: Literal["source", "target"],
    *,
    ndim: int | None = None,
    allow_padding: bool = False,
    keep: TargetRows | None = None,
    progress: Progress = SILENT,
    total: int | None = None,
) -> tuple[Moments, int]:
    """Return the moments of the head's inputs over the batches of a loader, and the number of dimensions of an input.

    The source is read with its labels, the target without. ``ndim`` is the number of dimensions that each input must
    have, None for that of the first batch. ``allow_padding`` accepts labels of -100 in sequences. ``keep``
    receives the rows. ``total`` is the number of batches for the progress bar, if it is known.
    """
    layer = cast(nn.Linear, run.model.get_submodule(head))
    sums = _FeatureSums(run.eps)
    progress.start(role, f"reading {role}", total=total, unit="batches")
    with _capture_inputs(layer) as inputs:
        for number, batch in enumerate(batches):
            where = f"batch {number} of {role}_loader"
            inputs.clear()
            run(reader.read_arguments(batch, where), where)
            if len(inputs) != 1:
                raise InputError(f"{where}: the model must run its head once, but ran it {len(inputs)} times")
            features = inputs.pop()
            ndim = features.ndim if ndim is None else ndim
            if features.ndim != ndim:
                raise InputError(
                    f"{where}: the input of {describe_layer(head)} must have {ndim} dimensions, as in earlier batches, "
                    f"got shape {tuple(features.shape)}"
                )
            weights = reader.read_weights(batch, tuple(features.shape[:-1]), where)
            labels = reader.read_labels(batch, where) if role == "source" else None
            if labels is not None:
                labels = _reshape_labels(labels, features, layer.out_features, head, where)
                if weights is None and features.ndim > 2 and not allow_padding:
                    _refuse_padding(labels, where)
            rows = _select_rows(features, labels, weights, head, where)
            sums.add(*rows)
            if keep is not None:
                keep.add(rows[0])
            progress.advance(role, number + 1)
    if ndim is None or sums.rows == 0:
        raise InputError(f"{role}_loader must yield at least one row, got none; it is empty or an exhausted iterator")
    progress.finish(role)
    return sums.moments(), ndim


@contextmanager
def _capture_inputs(layer: nn.Linear) -> Iterator[list[Tensor]]:
    """Yield a list to which every run of a layer appends its input, inside a ``with`` block."""
    inputs: list[Tensor] = []

    def store(module: nn.Module, args: Any, kwargs: Any) -> None:
        # Copied, because a loader may reuse one tensor for all batches and the rows are summed later.
        inputs.append((args[0] if args else kwargs["input"]).detach().clone())

    with layer.register_forward_pre_hook(store, with_kwargs=True):
        yield inputs


def _select_rows(
    features: Tensor, labels: Tensor | None, weights: Tensor | None, head: str, where: str
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return features, labels and weights of the rows with a positive weight, or raise InputError."""
    features = features.reshape(-1, features.shape[-1])
    if weights is not None:
        weights = weights.to(features.device)
        used = weights > 0
        features, weights = features[used], weights[used]
        labels = None if labels is None else labels[used.to(labels.device)]
    if not bool(torch.isfinite(features).all()):
        overflow = "; float16 overflows above 65504, use bfloat16" if features.dtype == torch.float16 else ""
        raise InputError(
            f"{where}: NaN or infinity in the input of {describe_layer(head)}; check the batch for missing "
            f"values{overflow}"
        )
    if labels is not None and not bool(torch.isfinite(labels).all()):
        raise InputError(f"{where}: NaN or infinity in the labels; drop rows without a label, or exclude them by mask=")
    if features.device.type == "mps":  # mps does not support float64
        return features.cpu(), labels, None if weights is None else weights.cpu()
    return features, labels, weights


def _refuse_padding(labels: Tensor, where: str) -> None:
    """Raise InputError for labels of sequences that contain the mark of ignored tokens."""
    marked = int((labels == PADDING_LABEL).all(dim=1).sum())
    if marked:
        raise InputError(
            f"{where}: {marked} of {len(labels)} labels are {PADDING_LABEL}, which marks tokens without a label in "
            f"Hugging Face transformers; pass mask=, such as mask=lambda b: b['labels'] != {PADDING_LABEL}, or "
            "labels_scale='ignore' if they are labels"
        )


def _reshape_labels(labels: Tensor, features: Tensor, outputs: int, head: str, where: str) -> Tensor:
    """Return labels as a matrix with a column per output. Shapes must agree except for dimensions of size one."""
    expected = (*features.shape[:-1], outputs)
    if [n for n in labels.shape if n != 1] == [n for n in expected if n != 1]:
        return labels.reshape(-1, outputs)
    if features.ndim > 2 and labels.shape[:1] == features.shape[:1]:
        fix = "pool the features before the head, so that each label has one row"
    elif outputs > 1 and not labels.is_floating_point() and labels.ndim == 1:
        fix = "these look like class indices, but SpAR is a regression method"
    else:
        fix = "pass labels=, a function of the batch"
    raise InputError(
        f"{where}: labels must have shape {expected}, got {tuple(labels.shape)}, for inputs of {describe_layer(head)} "
        f"of shape {tuple(features.shape)}; {fix}"
    )


class _FeatureSums:
    """Sums the rows of all batches on their device."""

    def __init__(self, eps: float) -> None:
        self._eps = eps
        self._sums: TensorSums | None = None
        self._buffer = BatchBuffer[tuple[Tensor, Tensor | None, Tensor | None]](self._add_block)
        self.rows = 0

    def add(self, X: Tensor, Y: Tensor | None, weights: Tensor | None) -> None:
        Y = None if Y is None else Y.to(X.device).to(torch.float64, copy=True)
        self.rows += len(X)
        # A block with as many rows as columns needs no more memory than the sum, and its product is efficient.
        self._buffer.add((X, Y, weights), len(X), limit=max(X.shape[1], 1000))

    def moments(self) -> Moments:
        self._buffer.flush()
        return cast(TensorSums, self._sums).moments()[0]  # the caller has checked that there are rows

    def _add_block(self, batches: list[tuple[Tensor, Tensor | None, Tensor | None]]) -> None:
        X = torch.cat([x for x, _, _ in batches])
        labels = [y for _, y, _ in batches if y is not None]
        weights = None
        if any(w is not None for _, _, w in batches):
            weights = torch.cat([X.new_ones(len(x), dtype=torch.float64) if w is None else w for x, _, w in batches])
        if self._sums is None:
            # The loader is read once, so float64 uses QR from the start. For float32 one product is accurate enough.
            self._sums = TensorSums(exact=True if X.dtype == torch.float64 else None)
            self._sums.eps = max(self._sums.eps, self._eps)
        self._sums.add(X, torch.cat(labels) if labels else None, weights)

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
from pyspar.progress import SILENT, Progress
from pyspar.sources.stream import BatchBuffer
from pyspar.sources.torch import TensorSums


def moments_of_features(
    run: ModelRunner,
    head: str,
    batches: Iterator[Any],
    reader: BatchReader,
    role: Literal["source", "target"],
    *,
    ndim: int | None = None,
    progress: Progress = SILENT,
    total: int | None = None,
) -> tuple[Moments, int]:
    """Return the moments of the head's inputs over the batches of a loader, and the number of dimensions of an input.

    The source is read with its labels, the target without. ``ndim`` is the number of dimensions that each input must
    have, None for that of the first batch. ``total`` is the number of batches for the progress bar, if it is known.
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
            labels = reader.read_labels(batch, where) if role == "source" else None
            sums.add(*_check_rows(features, labels, layer, head, where))
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


def _check_rows(
    features: Tensor, labels: Tensor | None, layer: nn.Linear, head: str, where: str
) -> tuple[Tensor, Tensor | None]:
    """Return features and labels as two matrices with the same rows, or raise InputError."""
    if not bool(torch.isfinite(features).all()):
        overflow = "; float16 overflows above 65504, use bfloat16" if features.dtype == torch.float16 else ""
        raise InputError(
            f"{where}: NaN or infinity in the input of {describe_layer(head)}; check the batch for missing "
            f"values{overflow}"
        )
    if labels is not None:
        labels = _reshape_labels(labels, features, layer.out_features, head, where)
        if not bool(torch.isfinite(labels).all()):
            raise InputError(f"{where}: NaN or infinity in the labels; drop rows without a label")
    if features.device.type == "mps":  # mps does not support float64
        features = features.cpu()
    return features.reshape(-1, features.shape[-1]), labels


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
        self._buffer = BatchBuffer[tuple[Tensor, Tensor | None]](self._add_block)
        self.rows = 0

    def add(self, X: Tensor, Y: Tensor | None) -> None:
        Y = None if Y is None else Y.to(X.device).to(torch.float64, copy=True)
        self.rows += len(X)
        # A block with as many rows as columns needs no more memory than the sum, and its product is efficient.
        self._buffer.add((X, Y), len(X), limit=max(X.shape[1], 1000))

    def moments(self) -> Moments:
        self._buffer.flush()
        return cast(TensorSums, self._sums).moments()[0]  # the caller has checked that there are rows

    def _add_block(self, batches: list[tuple[Tensor, Tensor | None]]) -> None:
        X = torch.cat([x for x, _ in batches])
        labels = [y for _, y in batches if y is not None]
        if self._sums is None:
            # The loader is read once, so float64 uses QR from the start. For float32 one product is accurate enough.
            self._sums = TensorSums(exact=True if X.dtype == torch.float64 else None)
            self._sums.eps = max(self._sums.eps, self._eps)
        self._sums.add(X, torch.cat(labels) if labels else None)

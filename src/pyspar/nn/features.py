"""Capture: read what enters the head by a hook, and fold it into Moments, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn

from pyspar.core.moments import Moments
from pyspar.errors import InputError
from pyspar.nn.batches import Reader
from pyspar.nn.find_head import shown
from pyspar.nn.running import Runner
from pyspar.sources.torch import TensorSums


def moments_of_features(
    run: Runner,
    head: str,
    batches: Iterator[Any],
    reader: Reader,
    *,
    loader: str,
    labelled: bool,
    ndim: int | None = None,
    advance: Callable[[], None] = lambda: None,
) -> tuple[Moments, int]:
    """Summarise the head's inputs over a loader, with the labels; return also how many dimensions the inputs have.

    ``ndim`` is what the source had: a target with another number of dimensions is not made of the same rows.
    """
    layer = cast(nn.Linear, run.model.get_submodule(head))
    rows = _Gathered(run.eps)
    with _Tap(layer) as tap:
        for number, batch in enumerate(batches):
            where = f"batch {number} of {loader}"
            features = tap.read(run, reader, batch, where)
            ndim = features.ndim if ndim is None else ndim
            if features.ndim != ndim:
                raise InputError(
                    f"{where}: {shown(head)} takes an input of shape {tuple(features.shape)}, and before it had "
                    f"{ndim} dimensions. Source and target must reach the head in the same form."
                )
            labels = reader.label(batch, where) if labelled else None
            rows.add(*_checked(features, labels, layer, head, where))
            advance()
    if ndim is None or rows.count == 0:
        raise InputError(f"{loader} must yield at least one row. Got none; is it empty, or an iterator used up?")
    return rows.moments(), ndim


class _Tap:
    """Keeps the last input of a layer, while inside a ``with`` block."""

    def __init__(self, layer: nn.Linear) -> None:
        self._layer = layer
        self._found: list[Tensor] = []

    def __enter__(self) -> _Tap:
        self._handle = self._layer.register_forward_pre_hook(self._note, with_kwargs=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._handle.remove()
        self._found.clear()

    def _note(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        # A copy: a loader may use one buffer for all of its batches, and these rows wait for others to be summed.
        self._found.append((args[0] if args else kwargs["input"]).detach().clone())

    def read(self, run: Runner, reader: Reader, batch: Any, where: str) -> Tensor:
        self._found.clear()
        run(reader.call(batch, where), where)
        if len(self._found) != 1:
            raise InputError(f"{where}: the model ran its head {len(self._found)} times, where once was expected.")
        return self._found.pop()


def _checked(
    features: Tensor, labels: Tensor | None, layer: nn.Linear, head: str, where: str
) -> tuple[Tensor, Tensor | None]:
    """Return features and labels as two tables with the same rows, or say what is wrong with them."""
    if not bool(torch.isfinite(features).all()):
        coarse = " float16 overflows beyond 65504; bfloat16 does not." if features.dtype == torch.float16 else ""
        raise InputError(
            f"{where}: the features that enter {shown(head)} must be finite. Got NaN or infinity; does the batch hold "
            f"missing values?{coarse}"
        )
    if labels is not None:
        labels = _matched(labels, features, layer.out_features, head, where)
        if not bool(torch.isfinite(labels).all()):
            raise InputError(f"{where}: the labels must be finite. Got NaN or infinity; drop the rows without a label.")
    if features.device.type == "mps":  # which has no float64
        features = features.cpu()
    return features.reshape(-1, features.shape[-1]), labels


def _matched(labels: Tensor, features: Tensor, outputs: int, head: str, where: str) -> Tensor:
    """Return labels as a table of rows and outputs; dimensions of size one do not matter, the others must agree."""
    expected = (*features.shape[:-1], outputs)
    if [n for n in labels.shape if n != 1] == [n for n in expected if n != 1]:
        return labels.reshape(-1, outputs)
    if features.ndim > 2 and labels.shape[:1] == features.shape[:1]:
        cure = "pool the features before the head, so that a label has one row"
    elif outputs > 1 and not labels.is_floating_point() and labels.ndim == 1:
        cure = "these look like class numbers, and SpAR is for regression"
    else:
        cure = "pass labels=, a function of the batch"
    raise InputError(
        f"{where}: {shown(head)} takes an input of shape {tuple(features.shape)} and gives {outputs} output(s) for "
        f"each row, so the labels must have shape {expected}. Got {tuple(labels.shape)} instead; {cure}."
    )


class _Gathered:
    """A running sum, and batches that wait for it: many small products cost more than a large one."""

    def __init__(self, eps: float) -> None:
        self._eps = eps
        self._sums: TensorSums | None = None
        self._waiting: list[tuple[Tensor, Tensor | None]] = []
        self._rows = self.count = 0

    def add(self, X: Tensor, Y: Tensor | None) -> None:
        Y = None if Y is None else Y.to(X.device).to(torch.float64, copy=True)
        self._waiting.append((X, Y))
        self._rows += len(X)
        self.count += len(X)
        # As many rows as columns: with them the sum has done half of its work, and they fill half of its memory.
        if self._rows >= max(X.shape[1], 1000):
            self._reduce()

    def moments(self) -> Moments:
        self._reduce()
        return cast(TensorSums, self._sums).moments()[0]  # the caller has counted rows

    def _reduce(self) -> None:
        if not self._waiting:
            return
        X = torch.cat([x for x, _ in self._waiting])
        labels = [y for _, y in self._waiting if y is not None]
        if self._sums is None:  # float64 rows pass only once, so they take QR; coarser ones need no more than a product
            self._sums = TensorSums(exact=X.dtype == torch.float64)
            self._sums.eps = max(self._sums.eps, self._eps)
        self._sums.add(X, torch.cat(labels) if labels else None)
        self._waiting, self._rows = [], 0

"""Compute Moments of tensors: on the CPU as numpy arrays, on a GPU there, so that only D x D numbers are copied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyspar.core.moments import EPS64, Matrix, Moments, Vector, WeightlessRows, check_weights, root_of_product
from pyspar.sources.sparse import BLOCK_BYTES
from pyspar.sources.stream import rows_per_block, unpack_batch

_GPU_BLOCK_BYTES, _STRIP = 512_000_000, 256  # a product in strips of columns takes about half the operations


def moments_of_torch(X: Any, Y: Any = None, sample_weight: Any = None) -> Moments:
    """Return the moments of a tensor, computed on its device."""
    sums = TensorSums()
    sums.add(X, Y, sample_weight)
    return sums.moments()


def moments_of_loader(batches: Iterable[Any], *, labelled: bool) -> Moments:
    """Return the moments of a loader of ``(X, y)`` or ``(X, y, sample_weight)`` batches, or of X without labels."""
    sums = TensorSums()
    for number, batch in enumerate(batches):
        rows = unpack_batch(batch, labelled, number)
        try:
            sums.add(*rows)
        except ValueError as error:
            raise ValueError(f"batch {number}: {error}") from None
    return sums.moments()


class TensorSums:
    """The moments of rows that are added batch by batch, at a precision ``eps`` if that of their dtype is finer."""

    def __init__(self, *, eps: float = EPS64) -> None:
        self.eps = eps
        self.rows, self.weight, self.d, self.k = 0, 0.0, 0, 0
        self._held: list[tuple[Tensor, Tensor, Tensor | None]] = []
        self._total: Moments | None = None

    def add(self, X: Any, Y: Any = None, sample_weight: Any = None) -> None:
        """Add rows. They are held until there are enough of them for a block."""
        X, Y, w = _check_tensors(X, Y, sample_weight)
        if self.d and (X.shape[1], Y.shape[1]) != (self.d, self.k):
            got = f"{X.shape[1]} features and {Y.shape[1]} outputs"
            raise ValueError(f"{got}, but earlier batches have {self.d} and {self.k}")
        self.d, self.k = X.shape[1], Y.shape[1]
        if w is not None and not bool(w.all()):  # rows of weight zero are ignored, even if they contain NaN
            X, Y, w = X[w > 0], Y[w > 0], w[w > 0]
        if len(X) == 0:
            return
        self.rows += len(X)
        self.weight += float(len(X) if w is None else w.sum())
        limit = rows_per_block(1 + self.d + self.k, _GPU_BLOCK_BYTES if X.is_cuda else BLOCK_BYTES)
        if sum(len(held[0]) for held in self._held) + len(X) >= limit:
            self._held.append((X, Y, w))
            self._add_held()
        else:  # copied, because a loader may reuse one tensor for all batches
            self._held.append((X.clone(), Y.clone(), None if w is None else w.clone()))

    def moments(self) -> Moments:
        """Return the moments of all rows."""
        self._add_held()
        if self._total is None:
            kind = WeightlessRows if self.d else ValueError
            raise kind("the tensors must have at least one row with a positive weight, got none")
        return self._total

    def _add_held(self) -> None:
        if not self._held:
            return
        Xs, Ys, ws = zip(*self._held, strict=True)
        self._held = []
        weighted = any(part is not None for part in ws)
        w = torch.cat([Y.new_ones(len(Y)) if part is None else part for Y, part in zip(Ys, ws)]) if weighted else None
        X, Y = (Xs[0], Ys[0]) if len(Xs) == 1 else (torch.cat(Xs), torch.cat(Ys))
        eps = max(self.eps, *(float(torch.finfo(part.dtype).eps) for part in Xs))
        if X.is_cuda:
            moments = moments_on_device(X, Y, w, eps)
        else:
            X = X if X.dtype in (torch.float32, torch.float64) else X.float()
            moments = Moments.of(X.numpy(), Y.numpy(), None if w is None else w.numpy(), eps=eps)
        self._total = moments if self._total is None else self._total + moments


def moments_on_device(X: Tensor, Y: Tensor, w: Tensor | None, eps: float) -> Moments:
    """Return the moments of a block of rows on its device: from a product, or by QR for float64 and for few rows."""
    d, shift = X.shape[1], torch.cat([X[:1000].double().mean(dim=0), Y[:1000].mean(dim=0)])
    if eps <= EPS64 or len(X) <= len(shift):
        border, features = _less_shift(X, Y, w, shift)
        rows = torch.cat([border[:, :1], features, border[:, 1:]], dim=1)
        root = torch.linalg.qr(rows, mode="r").R if bool(rows.isfinite().all()) else rows
        root[0, 1:] += root[0, 0] * shift
    else:
        # The features have a product of their own: with a column of ones it would take twice as long.
        product = torch.zeros((1 + len(shift), 1 + len(shift)), dtype=torch.float64, device=X.device)
        XX, border_columns = product[1 : d + 1, 1 : d + 1], [0, *range(d + 1, len(product))]
        size = rows_per_block(d, _GPU_BLOCK_BYTES)
        for part in (slice(start, start + size) for start in range(0, len(X), size)):
            border, features = _less_shift(X[part], Y[part], None if w is None else w[part], shift)
            for at in range(0, d, _STRIP):  # only the upper triangle
                XX[at : at + _STRIP, at:].addmm_(features[:, at : at + _STRIP].T, features[:, at:])
            product[border_columns, 1 : d + 1] += border.T @ features
            product[np.ix_(border_columns, border_columns)] += border.T @ border
        XX.copy_(XX.triu() + XX.triu(1).T)
        product[1 : d + 1, border_columns] = product[border_columns, 1 : d + 1].T
        root = _cholesky_root(product, shift)
    if not bool(root.isfinite().all()):
        raise ValueError("X and y must be finite, but contain NaN or infinity; impute or drop such rows first")
    return Moments.of_root(_to_array(root), d, len(X), None if w is None else _to_array(w), np.full(d, eps))


def _to_array(tensor: Tensor) -> np.ndarray:
    """Return a copy of a tensor. From a GPU, pinned memory is filled several times as fast as other memory."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=tensor.is_cuda).copy_(tensor).numpy()


def _less_shift(X: Tensor, Y: Tensor, w: Tensor | None, shift: Tensor) -> tuple[Tensor, Tensor]:
    """Return the columns of ones and labels, and the features, in float64, minus the shift and times root weights."""
    size = X.new_ones((len(X), 1), dtype=torch.float64) if w is None else w.sqrt()[:, None]
    features, labels = X - shift[: X.shape[1]], Y - shift[X.shape[1] :]  # in float64, as the shift
    return torch.cat([size, labels * size], dim=1), features if w is None else features.mul_(size)


def _cholesky_root(product: Tensor, shift: Tensor) -> Tensor:
    """Return a root like ``root_of_product``, by Cholesky on the device if the scatter is well-conditioned there."""
    weight, middle = product[0, 0], product[0, 1:] / product[0, 0]
    scatter = product[1:, 1:] - torch.outer(product[0, 1:], middle)
    lengths = scatter.diagonal().clamp(min=0.0).sqrt()
    factor, failed = torch.linalg.cholesky_ex(scatter / lengths[:, None] / lengths, upper=True)
    if bool(failed) or not bool(factor.diagonal().min() > 1e-3):  # collinear or constant columns, or NaN
        return torch.as_tensor(root_of_product(_to_array(product), _to_array(shift))[0])
    root = torch.zeros_like(product)
    root[0, 0], root[0, 1:], root[1:, 1:] = weight.sqrt(), weight.sqrt() * (shift + middle), factor * lengths
    return root


def _check_tensors(X: Any, Y: Any, sample_weight: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return X in a floating dtype, Y with two dimensions and the weights, all on the device of X."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got a tensor of shape {tuple(X.shape)}")
    if X.is_complex() or (Y is not None and getattr(Y, "is_complex", bool)()):
        raise ValueError("X and y must be real, got a complex tensor; complex data not supported")
    X = X.detach() if X.is_floating_point() else X.detach().double()
    Y = X.new_zeros((len(X), 0)) if Y is None else torch.as_tensor(Y, device=X.device).detach()
    Y = (Y[:, None] if Y.ndim == 1 else Y).double()
    w = None if sample_weight is None else torch.as_tensor(sample_weight, device=X.device).double()
    if len(Y) != len(X) or (w is not None and w.shape != (len(X),)):
        shapes = ", ".join(str(tuple(part.shape)) for part in (X, Y, w) if part is not None)
        raise ValueError(f"X, y and sample_weight must have the same number of rows, got shapes {shapes}")
    if w is not None and bool(w.any()):
        check_weights(w.numpy(force=True), len(X))
    return X, Y, w


def predict_tensor(X: Any, coef: np.ndarray, intercept: Any) -> Any:
    """Return predictions on the device of X, computed in float64, in the dtype of X if that is a floating dtype."""
    weights = torch.as_tensor(np.ascontiguousarray(coef.T), dtype=torch.float64, device=X.device)
    predicted = X.double() @ weights + torch.as_tensor(intercept, dtype=torch.float64, device=X.device)
    return predicted.to(X.dtype) if X.is_floating_point() else predicted


def eigen_on(device: Any, root: Matrix) -> tuple[Vector, Matrix]:
    """Return ``gram_eigen`` of a root, computed on a device."""
    on_device = torch.as_tensor(root, device=device)
    squares, V = torch.linalg.eigh(on_device.T @ on_device)
    return _to_array(squares.flip(0)), _to_array(V.flip(1))

"""Compute Moments of tensors. On a GPU the products are computed there, and only D x D numbers are copied.

Tensors on the CPU share their memory with numpy arrays and are read as such. Rows on a GPU, and the features of a
network, are added to ``TensorSums``: in float32 or a narrower dtype to a product in float64, in float64 to a root by
QR, because rows that can be read only once must not lose digits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyspar.core.moments import (
    EPS64,
    OFFSET_LIMIT,
    TAIL_ROWS,
    Matrix,
    Moments,
    Vector,
    WeightlessRows,
    measure_tails,
    refuse_extremes,
    root_of_product,
)
from pyspar.core.spectrum import Eigen
from pyspar.sources import refuse_extreme_weights
from pyspar.sources.stream import split_batch

_MIN_BLOCK_ROWS = 1000
"""Batches are joined into blocks of at least this many rows, for efficient products."""
_TILE_COLUMNS = 512
_BLOCK_BYTES = {"cpu": 4_000_000, "cuda": 512_000_000}


def moments_of_tensors(X: Any, Y: Any = None, sample_weight: Any = None) -> Moments:
    """Return the moments of a tensor, computed on its device."""
    X, Y, w = check_tensors(X, Y, sample_weight)
    if X.is_cuda:
        sums = TensorSums()
        sums.add(X, Y, w)
        return sums.moments()
    return Moments.of(*_as_arrays(X, Y, w), eps=float(torch.finfo(X.dtype).eps))


def moments_of_loader(batches: Iterable[Any], *, labelled: bool) -> Moments:
    """Return the moments of a loader of ``(X, y)`` or ``(X, y, sample_weight)`` batches, or of X without labels."""
    sums = TensorSums()
    for number, batch in enumerate(batches):
        rows = split_batch(batch, labelled, number)
        try:
            sums.add(*rows)
        except ValueError as error:
            raise ValueError(f"batch {number}: {error}") from None
    return sums.moments()


class TensorSums:
    """A running sum over rows ``[1 | X | Y]`` on one device: a product, or for float64 rows a root by QR.

    No more rows than columns are reduced by QR in any dtype. ``eps`` is the precision of the rows if it is coarser than
    that of their dtype.
    """

    def __init__(self, *, eps: float = EPS64) -> None:
        self.eps = eps
        self.rows, self.weight, self.weight2 = 0, 0.0, 0.0
        self.d, self.k = 0, 0
        self._held: list[tuple[Tensor, Tensor, Tensor | None]] = []
        self._sample: list[tuple[Matrix, Vector]] = []  # some rows and weights, for skewness and kurtosis
        self._exact = True
        self._shift: Any = None
        self._sum: Any = None

    def add(self, X: Any, Y: Any = None, sample_weight: Any = None) -> None:
        """Add rows. They are held until there are enough of them for an efficient product."""
        X, Y, w = check_tensors(X, Y, sample_weight)
        if self.d and (X.shape[1], Y.shape[1]) != (self.d, self.k):
            raise ValueError(
                f"{X.shape[1]} features and {Y.shape[1]} outputs, but earlier batches have {self.d} and {self.k}"
            )
        self.d, self.k = X.shape[1], Y.shape[1]
        if w is not None and not bool(w.all()):  # rows of weight zero are ignored, even if they contain NaN
            X, Y, w = X[w > 0], Y[w > 0], w[w > 0]
        if len(X) == 0:
            return
        self.rows += len(X)
        self.weight += float(len(X) if w is None else w.sum())
        self.weight2 += float(len(X) if w is None else (w * w).sum())
        self.eps = max(self.eps, float(torch.finfo(X.dtype).eps))
        if sum(len(held[0]) for held in self._held) + len(X) > max(self.d + self.k, _MIN_BLOCK_ROWS):
            self._held.append((X, Y, w))
            self._add_held()
        else:  # copied, because a loader may reuse one tensor for all batches
            self._held.append((X.clone(), Y.clone(), None if w is None else w.clone()))

    def moments(self) -> Moments:
        """Return the moments of all rows."""
        self._add_held()
        if self._sum is None:
            if self.d:
                raise WeightlessRows("the tensors must have at least one row with a positive weight, got none")
            raise ValueError("the tensors must have at least one row, got none")
        if not bool(self._sum.isfinite().all()):
            raise ValueError("X and y must be finite, but contain NaN or infinity; impute or drop such rows first")
        root = copy_to_numpy(self._sum) if self._exact else self._root_of_product()
        rows, weights = (np.concatenate(part) for part in zip(*self._sample, strict=True))
        moments = Moments(
            root, self.d, self.rows, self.weight, self.weight2, np.full(self.d, self.eps),
            tails=measure_tails(rows, weights),
        )  # fmt: skip
        refuse_extremes(moments)
        return moments

    def _add_held(self) -> None:
        """Add the rows that are held, block by block."""
        held, self._held = self._held, []
        if not held:
            return
        X, Y, w = held[0]
        if len(held) > 1:
            X, Y = torch.cat([part[0] for part in held]), torch.cat([part[1] for part in held])
            if any(part[2] is not None for part in held):
                w = torch.cat([X.new_ones(len(x), dtype=torch.float64) if v is None else v for x, _, v in held])
        if self._sum is None:
            self._start(X, Y)
        self._add_sample(X, w)
        columns = 1 + self.d + self.k
        # A block of QR has at least as many rows as columns, because each block factorises the root again.
        step = max(_BLOCK_BYTES.get(X.device.type, 4_000_000) // (8 * columns), columns if self._exact else 1)
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            self._accumulate(X[part].double(), Y[part].double(), None if w is None else w[part])

    def _add_sample(self, X: Tensor, w: Tensor | None) -> None:
        step = -(-len(X) // TAIL_ROWS)
        rows = copy_to_numpy(X[::step].double())
        self._sample.append((rows, np.ones(len(rows)) if w is None else copy_to_numpy(w[::step])))
        if len(self._sample) > 32:  # every second row of every second block
            self._sample = [(rows[::2], weights[::2]) for rows, weights in self._sample[::2]]

    def _start(self, X: Tensor, Y: Tensor) -> None:
        self._exact = self.rows <= self.d + self.k or self.eps <= EPS64
        sample = torch.cat([X[:1000].double(), Y[:1000].double()], dim=1)
        mean, spread = sample.mean(dim=0), sample.std(dim=0, correction=0)
        offset = mean.abs() > OFFSET_LIMIT * spread
        offset[self.d :] = True
        self._shift = torch.where(offset & torch.isfinite(mean), mean, torch.zeros_like(mean))
        size = 1 + self.d + self.k
        self._sum = torch.zeros((0 if self._exact else size, size), dtype=torch.float64, device=X.device)

    def _accumulate(self, X: Tensor, Y: Tensor, w: Tensor | None) -> None:
        border = torch.cat([torch.ones_like(X[:, :1]), Y], dim=1)
        if not self._exact:
            border[:, 1:] -= self._shift[self.d :]
            if self._shift[: self.d].any():
                X = X - self._shift[: self.d]
        if w is not None:
            X, border = X * w.sqrt()[:, None], border * w.sqrt()[:, None]
        if self._exact:
            block = torch.cat([border[:, :1], X, border[:, 1:]], dim=1)
            self._sum = torch.linalg.qr(torch.cat([self._sum, block]), mode="r").R
            return
        # In column order [X | 1 | Y]. The product is symmetric: of X'X only tiles on and above the diagonal are filled.
        for i in range(0, self.d, _TILE_COLUMNS):
            rows = slice(i, min(i + _TILE_COLUMNS, self.d))
            self._sum[rows, i : self.d].addmm_(X[:, rows].T, X[:, i:])
        self._sum[self.d :, : self.d].addmm_(border.T, X)
        self._sum[self.d :, self.d :].addmm_(border.T, border)

    def _root_of_product(self) -> Matrix:
        """Return the root of the product by Cholesky on the device; by numpy if the product is singular."""
        d, full = self.d, self._sum.clone()
        full[:d, :d] = full[:d, :d].triu() + full[:d, :d].triu(1).T
        full[:d, d:] = full[d:, :d].T
        order = [d, *range(d), *range(d + 1, len(full))]  # from [X | 1 | Y] to [1 | X | Y]
        product = full[order][:, order]
        weight, offset = product[0, 0], product[0, 1:]
        scatter = product[1:, 1:] - torch.outer(offset, offset) / weight
        lengths = scatter.diagonal().clamp(min=0.0).sqrt()
        lengths = torch.where(lengths > 0, lengths, torch.ones_like(lengths))
        factor, info = torch.linalg.cholesky_ex(scatter / lengths[:, None] / lengths, upper=True)
        if int(info) != 0:
            return root_of_product(copy_to_numpy(product), copy_to_numpy(self._shift))
        root = torch.zeros_like(product)
        root[0, 0] = weight.sqrt()
        root[0, 1:] = weight.sqrt() * (self._shift + offset / weight)
        root[1:, 1:] = factor * lengths
        return copy_to_numpy(root)


def check_tensors(X: Any, Y: Any, sample_weight: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return X in a floating dtype, Y with two dimensions and the weights, all on the device of X."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got a tensor of shape {tuple(X.shape)}")
    if X.is_complex() or (Y is not None and getattr(Y, "is_complex", bool)()):
        raise ValueError("X and y must be real, got a complex tensor; complex data not supported")
    X = X.detach() if X.is_floating_point() else X.detach().double()
    Y = X.new_zeros((len(X), 0)) if Y is None else torch.as_tensor(Y, device=X.device).detach()
    Y = Y.double()
    Y = Y[:, None] if Y.ndim == 1 else Y
    w = None if sample_weight is None else torch.as_tensor(sample_weight, device=X.device).double()
    if len(Y) != len(X) or (w is not None and w.shape != (len(X),)):
        shapes = ", ".join(f"{tuple(part.shape)}" for part in (X, Y, w) if part is not None)
        raise ValueError(f"X, y and sample_weight must have the same number of rows, got shapes {shapes}")
    if w is not None and len(w) and not bool((w >= 0).all() & w.isfinite().all()):
        raise ValueError("sample_weight must be finite and not negative, with at least one positive weight")
    refuse_extreme_weights("sample_weight", w)
    return X, Y, w


def copy_to_numpy(tensor: Tensor) -> Matrix:
    """Return a tensor as a numpy array. From a GPU it is copied to pinned memory, which is several times faster."""
    if not tensor.is_cuda:
        return np.asarray(tensor.numpy())
    pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return np.array(pinned.copy_(tensor).numpy())


def predict_tensor(X: Any, coef: np.ndarray, intercept: Any) -> Any:
    """Return predictions on the device of X, computed in float64, in the dtype of X if that is a floating dtype."""
    weights = torch.as_tensor(np.ascontiguousarray(coef.T), dtype=torch.float64, device=X.device)
    predicted = X.double() @ weights + torch.as_tensor(intercept, dtype=torch.float64, device=X.device)
    return predicted.to(X.dtype) if X.is_floating_point() else predicted


def eigen_on(device: Any) -> Eigen:
    """Return ``gram_eigen`` on a device."""

    def gram_eigen(root: Matrix) -> tuple[Vector, Matrix]:
        on_device = torch.as_tensor(root, device=device)
        squares, V = torch.linalg.eigh(on_device.T @ on_device)
        return copy_to_numpy(squares.flip(0)), copy_to_numpy(V.flip(1))

    return gram_eigen


def _as_arrays(X: Tensor, Y: Tensor, w: Tensor | None) -> tuple[Any, Any, Any]:
    X = X if X.dtype in (torch.float32, torch.float64) else X.float()
    return X.numpy(), Y.numpy(), None if w is None else w.numpy()

"""Torch: Moments of tensors, accumulated in float64 on the device where the rows lie; only D x D numbers come back.

float32 and narrower rows need one product. float64 rows take QR on the device where one product has lost digits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from pyspar.core.accumulate import BLUR, OFFSET_LIMIT, Frame, root_of_product
from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.moments import Moments, Solver
from pyspar.errors import need
from pyspar.sources.kinds import refuse_extreme_weights

_TILE = 512
_BLOCK_BYTES = {"cpu": 4_000_000, "cuda": 512_000_000}


def moments_of_tensors(X: Any, Y: Any = None, sample_weight: Any = None, *, solver: Solver = "auto") -> Moments:
    """Summarise the rows of a tensor, on its device."""
    sums = TensorSums(exact=solver == "qr")
    sums.add(X, Y, sample_weight)
    found, resolved = sums.moments()
    if resolved or solver != "auto" or found.eps.min() > EPS64:
        return replace(found, blur=BLUR) if solver == "gram" else found
    sums = TensorSums(exact=True)
    sums.add(X, Y, sample_weight)
    return sums.moments()[0]


def moments_of_loader(batches: Iterable[Any], *, labelled: bool, solver: Solver = "auto") -> Moments:
    """Summarise a data loader of ``(X, y)`` or ``(X, y, sample_weight)`` batches, or of X where labels do not matter.

    It is read once, so float64 rows are folded through QR.
    """
    sums: TensorSums | None = None
    for number, batch in enumerate(batches):
        parts = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
        if labelled and len(parts) not in (2, 3):
            raise ValueError(f"batch {number} must be (X, y) or (X, y, sample_weight). Got {len(parts)} parts instead.")
        if sums is None:
            fine = "float64" in str(parts[0].dtype)
            sums = TensorSums(exact=solver == "qr" or (solver == "auto" and fine))
        try:
            sums.add(*(parts if labelled else parts[:1]))
        except ValueError as error:
            raise ValueError(f"batch {number}: {error}") from None
    if sums is None:
        raise ValueError("the batches must hold at least one row. Got none; is the loader used up?")
    return replace(sums.moments()[0], blur=BLUR if solver == "gram" else 0.0)


class TensorSums:
    """A running summary of ``[1 | X | Y]`` on one device: a product, or where it must be exact a root by QR."""

    def __init__(self, *, exact: bool) -> None:
        self.torch: Any = need("torch", "torch")
        self.exact = exact
        self.rows, self.weight, self.weight2, self.eps = 0, 0.0, 0.0, EPS64
        self.d, self.k = 0, 0
        self.shift: Any = None
        self.shifted = False
        self.sum: Any = None

    def add(self, X: Any, Y: Any = None, sample_weight: Any = None) -> None:
        """Add rows; they are multiplied on the device where they lie."""
        X, Y, w = self._checked(X, Y, sample_weight)
        if len(X) == 0:
            return
        if self.sum is None:
            self._start(X, Y)
        self.rows += len(X)
        self.weight += float(len(X) if w is None else w.sum())
        self.weight2 += float(len(X) if w is None else (w * w).sum())
        self.eps = max(self.eps, float(self.torch.finfo(X.dtype).eps))
        step = max(_BLOCK_BYTES.get(X.device.type, 4_000_000) // (8 * (self.d + self.k + 1)), 1)
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            self._accumulate(X[part], Y[part], None if w is None else w[part])

    def moments(self) -> tuple[Moments, bool]:
        """Return what was summed, and whether it kept its digits."""
        if self.sum is None:
            raise ValueError("the tensors must hold at least one row. Got none.")
        if not bool(self.torch.isfinite(self.sum).all()):
            raise ValueError("X and Y must be finite. Got NaN or infinity; impute or drop such rows first.")
        if self.exact:
            root, resolved = fetched(self.sum), True
        else:
            product = self._product()
            triangular = self._cholesky(product)
            if triangular is not None:
                root, resolved = triangular, True
            else:
                frame = Frame(self.shift.cpu().numpy(), np.ones(self.d + self.k))
                root, resolved = root_of_product(fetched(product), frame)
        return Moments(root, self.d, self.rows, self.weight, self.weight2, np.full(self.d, self.eps)), resolved

    def _start(self, X: Any, Y: Any) -> None:
        torch = self.torch
        self.d, self.k = X.shape[1], Y.shape[1]
        head = torch.cat([X[:1000].double(), Y[:1000].double()], dim=1)
        mean, spread = head.mean(dim=0), head.std(dim=0, correction=0)
        offset = mean.abs() > OFFSET_LIMIT * spread
        offset[self.d :] = True
        self.shift = torch.where(offset & torch.isfinite(mean), mean, torch.zeros_like(mean))
        self.shifted = bool(self.shift[: self.d].any())
        size = 1 + self.d + self.k
        if self.exact:
            self.sum = torch.zeros((0, size), dtype=torch.float64, device=X.device)
        else:
            self.sum = torch.zeros((size, size), dtype=torch.float64, device=X.device)

    def _accumulate(self, X: Any, Y: Any, w: Any) -> None:
        torch = self.torch
        X, Y = X.double(), Y.double()
        side = torch.cat([torch.ones_like(X[:, :1]), Y], dim=1)
        if not self.exact:
            side[:, 1:] -= self.shift[self.d :]
            if self.shifted:
                X = X - self.shift[: self.d]
        if w is not None:
            X, side = X * w.sqrt()[:, None], side * w.sqrt()[:, None]
        if self.exact:
            block = torch.cat([side[:, :1], X, side[:, 1:]], dim=1)
            self.sum = torch.linalg.qr(torch.cat([self.sum, block]), mode="r").R
            return
        # Tile by tile on and above the diagonal: the product is symmetric, so half of the work need not be done.
        for i in range(0, self.d, _TILE):
            rows = slice(i, min(i + _TILE, self.d))
            self.sum[rows, i : self.d].addmm_(X[:, rows].T, X[:, i:])
        self.sum[self.d :, : self.d].addmm_(side.T, X)
        self.sum[self.d :, self.d :].addmm_(side.T, side)

    def _product(self) -> Any:
        """Return the whole of ``[1 | X | Y]' [1 | X | Y]``; it was summed as ``[X | 1 | Y]``, above the diagonal."""
        torch = self.torch
        d = self.d
        XX = self.sum[:d, :d].triu()
        XX = XX + XX.triu(1).T
        sX, ss = self.sum[d:, :d], self.sum[d:, d:]
        first = torch.cat([ss[:1, :1], sX[:1], ss[:1, 1:]], dim=1)
        middle = torch.cat([sX[:1].T, XX, sX[1:].T], dim=1)
        return torch.cat([first, middle, torch.cat([ss[1:, :1], sX[1:], ss[1:, 1:]], dim=1)])

    def _cholesky(self, product: Any) -> Matrix | None:
        """Return the root by a Cholesky factor on the device, where that is all that is needed: coarse rows."""
        if self.eps <= EPS64:
            return None
        torch = self.torch
        weight, offset = product[0, 0], product[0, 1:]
        scatter = product[1:, 1:] - torch.outer(offset, offset) / weight
        lengths = scatter.diagonal().clamp(min=0.0).sqrt()
        lengths = torch.where(lengths > 0, lengths, torch.ones_like(lengths))
        factor, info = torch.linalg.cholesky_ex(scatter / lengths[:, None] / lengths, upper=True)
        if int(info) != 0:
            return None
        root = torch.zeros_like(product)
        root[0, 0] = weight.sqrt()
        root[0, 1:] = weight.sqrt() * (self.shift + offset / weight)
        root[1:, 1:] = factor * lengths
        return fetched(root)

    def _checked(self, X: Any, Y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        torch = self.torch
        if X.ndim != 2:
            raise ValueError(f"X must be a table of rows and columns. Got a tensor of shape {tuple(X.shape)} instead.")
        if X.is_complex() or (Y is not None and getattr(Y, "is_complex", bool)()):
            raise ValueError("X and y must be real. Got a complex tensor; complex data not supported.")
        X = X.detach() if X.is_floating_point() else X.detach().double()
        Y = X.new_zeros((len(X), 0)) if Y is None else torch.as_tensor(Y, device=X.device).detach()
        Y = Y[:, None] if Y.ndim == 1 else Y
        w = None if sample_weight is None else torch.as_tensor(sample_weight, device=X.device).double()
        if len(Y) != len(X) or (w is not None and w.shape != (len(X),)):
            raise ValueError(f"X, y and sample_weight must have the same rows. Got {len(X)} rows of X, {len(Y)} of y.")
        if w is not None and not bool((w >= 0).all() & w.isfinite().all() & (w > 0).any()):
            raise ValueError("sample_weight must be finite, not negative, and not zero everywhere.")
        refuse_extreme_weights("sample_weight", w)
        if self.sum is not None and (X.shape[1], Y.shape[1]) != (self.d, self.k):
            raise ValueError(f"got {X.shape[1]} features and {Y.shape[1]} outputs, before {self.d} and {self.k}.")
        return X, Y, w


def fetched(tensor: Any) -> Matrix:
    """Return a tensor as a numpy array; from a GPU through pinned memory, which is several times faster."""
    if not tensor.is_cuda:
        return np.asarray(tensor.numpy())
    torch = need("torch", "torch")
    landing = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return np.array(landing.copy_(tensor).numpy())


def predict_tensor(X: Any, coef: np.ndarray, intercept: Any) -> Any:
    """Return predictions on the rows' device: computed in float64, given in the rows' dtype if that is floating."""
    torch = need("torch", "torch")
    weights = torch.as_tensor(np.ascontiguousarray(coef.T), dtype=torch.float64, device=X.device)
    predicted = X.double() @ weights + torch.as_tensor(intercept, dtype=torch.float64, device=X.device)
    return predicted.to(X.dtype) if X.is_floating_point() else predicted


class DeviceAlgebra:
    """The operations that grow as D cubed, on a device."""

    def __init__(self, device: Any) -> None:
        self.torch: Any = need("torch", "torch")
        self.device = device

    def squares_and_vectors(self, root: Matrix) -> tuple[Vector, Matrix]:
        near = self.torch.as_tensor(root, device=self.device)
        squares, V = self.torch.linalg.eigh(near.T @ near)
        return fetched(squares.flip(0)), fetched(V.flip(1))

    def overlap_sums(self, V: Matrix, E: Matrix, weights: Matrix) -> Matrix:
        near, other, w = (self.torch.as_tensor(each, device=self.device) for each in (V, E, weights))
        return fetched(w @ (near.T @ other).square_())

"""Compute Moments of tensors in float64 on their device, and return only D x D numbers to the CPU.

Rows in float32 or a narrower dtype need one product. Rows in float64 use QR on the device if one product loses digits.
No more rows than columns use QR in any dtype: it is as cheap as the product, and its root has as few rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyspar.core.arrays import EPS64, Matrix, Vector
from pyspar.core.moments import CONSTANT_SHARE, Marginals, Moments, Solver, WeightlessRows
from pyspar.core.roots import GRAM_BLUR, OFFSET_LIMIT, root_of_product
from pyspar.core.spectrum import Algebra
from pyspar.sources import refuse_extreme_weights
from pyspar.sources.stream import split_batch

_MIN_BLOCK_ROWS = 1000
"""Batches are joined into blocks of at least this many rows, for efficient products."""
_TILE_COLUMNS = 512
_BLOCK_BYTES = {"cpu": 4_000_000, "cuda": 512_000_000}
_MOST_DESCRIBED = 100
"""The most blocks whose distributions are held on the device before they are merged."""
_GROUP_ROWS = 32
"""The number of float32 rows that are summed in float32. The relative error is at most 32 times 6e-8."""
_EXACT: dict[str, bool | None] = {"auto": None, "gram": False, "qr": True}


def moments_of_tensors(X: Any, Y: Any = None, sample_weight: Any = None, *, solver: Solver = "auto") -> Moments:
    """Return the moments of a tensor, computed on its device."""
    sums = TensorSums(exact=_EXACT[solver])
    sums.add(X, Y, sample_weight)
    moments = sums.moments()
    if solver == "auto" and not sums.resolved and sums.eps <= EPS64:
        sums = TensorSums(exact=True)
        sums.add(X, Y, sample_weight)
        moments = sums.moments()
    return replace(moments, blur=GRAM_BLUR if solver == "gram" else 0.0)


def moments_of_loader(batches: Iterable[Any], *, labelled: bool, solver: Solver = "auto") -> Moments:
    """Return the moments of a loader of ``(X, y)`` or ``(X, y, sample_weight)`` batches, or of X without labels."""
    sums = TensorSums(exact=_EXACT[solver], read_once=True)
    for number, batch in enumerate(batches):
        rows = split_batch(batch, labelled, number)
        try:
            sums.add(*rows)
        except ValueError as error:
            raise ValueError(f"batch {number}: {error}") from None
    return replace(sums.moments(), blur=GRAM_BLUR if solver == "gram" else 0.0)


class TensorSums:
    """A running sum over rows ``[1 | X | Y]`` on one device: their product, or with ``exact`` its root by QR.

    With ``exact=None`` QR is used if there are no more rows than columns, and for float64 rows that are ``read_once``.
    ``eps`` is the precision of the rows if it is coarser than that of their dtype.
    """

    def __init__(self, *, exact: bool | None = None, read_once: bool = False, eps: float = EPS64) -> None:
        self.exact, self.read_once, self.eps = exact, read_once, eps
        self.rows, self.weight, self.weight2 = 0, 0.0, 0.0
        self.d, self.k = 0, 0
        self.resolved = True
        """Whether the product kept enough digits, after ``moments``."""
        self._held: list[tuple[Tensor, Tensor, Tensor | None]] = []
        self._shift: Any = None
        self._features: Marginals | None = None
        self._described: list[Tensor] = []  # the distributions of blocks that are not yet in _features
        # With ``exact`` a root of [1 | X | Y]. Otherwise the product in column order [X | 1 | Y]; of X'X only the upper
        # triangle is filled; the border is stored in the last rows.
        self._sum: Any = None

    def add(self, X: Any, Y: Any = None, sample_weight: Any = None) -> None:
        """Add rows. They are held until there are enough of them for an efficient product."""
        X, Y, w = self._check(X, Y, sample_weight)
        if len(X) == 0:
            return
        self.d, self.k = X.shape[1], Y.shape[1]
        if w is not None and not bool(w.any()):
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
        root = copy_to_numpy(self._sum) if self.exact else self._root_of_product()
        eps, tails = np.full(self.d, self.eps), self._merge_described().tails
        return Moments(root, self.d, self.rows, self.weight, self.weight2, eps, tails=tails)

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
        columns = 1 + self.d + self.k
        # A block of QR has at least as many rows as columns, because each block factorises the root again.
        step = max(_BLOCK_BYTES.get(X.device.type, 4_000_000) // (8 * columns), columns if self.exact else 1)
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            rows, weight = X[part].double(), None if w is None else w[part]
            self._accumulate(rows, Y[part], weight)
            self._described.append(describe_columns(X[part], weight))
        if len(self._described) > _MOST_DESCRIBED:
            self._merge_described()

    def _merge_described(self) -> Marginals:
        """Merge the distributions of all blocks; copying them together waits for the device only once."""
        for total, mean, spread, *tails in copy_to_numpy(torch.stack(self._described)) if self._described else ():
            block = Marginals(float(total[0]), mean, spread, np.array(tails))
            self._features = block if self._features is None else self._features.merge(block)
        self._described = []
        assert self._features is not None  # a block was added
        return self._features

    def _start(self, X: Tensor, Y: Tensor) -> None:
        if self.exact is None:
            self.exact = self.rows <= self.d + self.k or (self.read_once and self.eps <= EPS64)
        sample = torch.cat([X[:1000].double(), Y[:1000].double()], dim=1)
        mean, spread = sample.mean(dim=0), sample.std(dim=0, correction=0)
        offset = mean.abs() > OFFSET_LIMIT * spread
        offset[self.d :] = True
        self._shift = torch.where(offset & torch.isfinite(mean), mean, torch.zeros_like(mean))
        size = 1 + self.d + self.k
        self._sum = torch.zeros((0 if self.exact else size, size), dtype=torch.float64, device=X.device)

    def _accumulate(self, X: Tensor, Y: Tensor, w: Tensor | None) -> None:
        Y = Y.double()
        border = torch.cat([torch.ones_like(X[:, :1]), Y], dim=1)
        if not self.exact:
            border[:, 1:] -= self._shift[self.d :]
            if self._shift[: self.d].any():
                X = X - self._shift[: self.d]
        if w is not None:
            X, border = X * w.sqrt()[:, None], border * w.sqrt()[:, None]
        if self.exact:
            block = torch.cat([border[:, :1], X, border[:, 1:]], dim=1)
            self._sum = torch.linalg.qr(torch.cat([self._sum, block]), mode="r").R
            return
        # The product is symmetric, so only tiles on and above the diagonal are computed.
        for i in range(0, self.d, _TILE_COLUMNS):
            rows = slice(i, min(i + _TILE_COLUMNS, self.d))
            self._sum[rows, i : self.d].addmm_(X[:, rows].T, X[:, i:])
        self._sum[self.d :, : self.d].addmm_(border.T, X)
        self._sum[self.d :, self.d :].addmm_(border.T, border)

    def _root_of_product(self) -> Matrix:
        product = self._product()
        root = self._cholesky(product)
        if root is None:
            root, self.resolved = root_of_product(copy_to_numpy(product), self._shift.cpu().numpy())
        return root

    def _product(self) -> Tensor:
        """Return ``[1 | X | Y]' [1 | X | Y]`` from the sum."""
        d = self.d
        full = self._sum.clone()
        full[:d, :d] = full[:d, :d].triu() + full[:d, :d].triu(1).T
        full[:d, d:] = full[d:, :d].T
        order = [d, *range(d), *range(d + 1, len(full))]  # from [X | 1 | Y] to [1 | X | Y]
        return full[order][:, order]  # type: ignore[no-any-return]

    def _cholesky(self, product: Tensor) -> Matrix | None:
        """Return a root by Cholesky on the device, or None for float64 rows and singular products."""
        if self.eps <= EPS64:
            return None
        weight, offset = product[0, 0], product[0, 1:]
        scatter = product[1:, 1:] - torch.outer(offset, offset) / weight
        lengths = scatter.diagonal().clamp(min=0.0).sqrt()
        lengths = torch.where(lengths > 0, lengths, torch.ones_like(lengths))
        factor, info = torch.linalg.cholesky_ex(scatter / lengths[:, None] / lengths, upper=True)
        if int(info) != 0:
            return None
        root = torch.zeros_like(product)
        root[0, 0] = weight.sqrt()
        root[0, 1:] = weight.sqrt() * (self._shift + offset / weight)
        root[1:, 1:] = factor * lengths
        return copy_to_numpy(root)

    def _check(self, X: Any, Y: Any, sample_weight: Any) -> tuple[Tensor, Tensor, Tensor | None]:
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got a tensor of shape {tuple(X.shape)}")
        if X.is_complex() or (Y is not None and getattr(Y, "is_complex", bool)()):
            raise ValueError("X and y must be real, got a complex tensor; complex data not supported")
        X = X.detach() if X.is_floating_point() else X.detach().double()
        Y = X.new_zeros((len(X), 0)) if Y is None else torch.as_tensor(Y, device=X.device).detach().double()
        Y = Y[:, None] if Y.ndim == 1 else Y
        w = None if sample_weight is None else torch.as_tensor(sample_weight, device=X.device).double()
        if len(Y) != len(X) or (w is not None and w.shape != (len(X),)):
            shapes = ", ".join(f"{tuple(part.shape)}" for part in (X, Y, w) if part is not None)
            raise ValueError(f"X, y and sample_weight must have the same number of rows, got shapes {shapes}")
        if w is not None and len(w) and not bool((w >= 0).all() & w.isfinite().all()):
            raise ValueError("sample_weight must be finite and not negative, with at least one positive weight")
        refuse_extreme_weights("sample_weight", w)
        if self.d and (X.shape[1], Y.shape[1]) != (self.d, self.k):
            raise ValueError(
                f"{X.shape[1]} features and {Y.shape[1]} outputs, but earlier batches have {self.d} and {self.k}"
            )
        return X, Y, w


def describe_columns(X: Tensor, w: Tensor | None) -> Tensor:
    """Return for each column the total weight, mean, spread, skewness and kurtosis, of shape (5, D).

    Powers of float32 values are computed in float32.
    """
    X = X if X.dtype == torch.float32 and w is None else X.double()
    share = None if w is None else w / w.sum()

    def average(values: Tensor) -> Tensor:
        return _sum_rows(values) / len(values) if share is None else share @ values

    low, high = X.amin(dim=0), X.amax(dim=0)
    size = high / 2.0 - low / 2.0
    varies = size > torch.finfo(X.dtype).tiny
    # The unit is a power of two, and the origin of float32 values is a number with few digits near the mean. Dividing
    # by the unit and subtracting the origin are then exact for most values. Equal rounding errors of many values would
    # add up.
    unit = torch.where(varies, size / (2.0 * size.frexp().mantissa), 1.0)
    middle = average(X).nan_to_num().clamp(low, high).to(X.dtype) / unit  # the sum may overflow
    near = (middle * 256.0).round() / 256.0 if X.dtype == torch.float32 else middle
    origin = torch.where(varies, near, low)
    rows = torch.addcmul(-origin, X, 1.0 / unit)
    squares = rows.square()
    error, second = average(rows), average(squares)
    third, fourth = average(rows.mul_(squares)), average(squares.square_())
    error2 = error * error
    variance = (second - error2).clamp(min=0.0)
    third -= error * (3.0 * variance + error2)  # from now on about the mean
    fourth -= error * (4.0 * third + error * (6.0 * variance + error2))
    root = variance.sqrt()
    mean, spread = (origin + error) * unit, root * unit
    is_constant = spread <= CONSTANT_SHARE * mean.abs()
    spread, root = torch.where(is_constant, 0.0, spread), torch.where(is_constant, torch.inf, root)
    total = torch.full_like(mean, len(X)) if w is None else w.sum().expand_as(mean)
    return torch.stack([total, mean, spread, third / root**3, fourth / root**4])


def _sum_rows(values: Tensor) -> Tensor:
    """Return the sum of rows in float64. Groups of float32 rows are summed in float32, which is much faster."""
    if values.dtype == torch.float32 and values.numel() > 50_000:
        groups = values[: len(values) // _GROUP_ROWS * _GROUP_ROWS].view(-1, _GROUP_ROWS, values.shape[1])
        values = torch.cat([groups.sum(dim=1), values[len(groups) * _GROUP_ROWS :]])
    return values.sum(dim=0, dtype=torch.float64)


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


class DeviceAlgebra(Algebra):
    """The operations whose cost grows as D cubed, on a device."""

    def __init__(self, device: Any) -> None:
        self.device = device

    def gram_eigen(self, root: Matrix) -> tuple[Vector, Matrix]:
        on_device = torch.as_tensor(root, device=self.device)
        squares, V = torch.linalg.eigh(on_device.T @ on_device)
        return copy_to_numpy(squares.flip(0)), copy_to_numpy(V.flip(1))

    def overlap_sums(self, V: Matrix, E: Matrix, weights: Matrix) -> Matrix:
        v, e, w = (torch.as_tensor(matrix, device=self.device) for matrix in (V, E, weights))
        return copy_to_numpy(w @ (v.T @ e).square_())

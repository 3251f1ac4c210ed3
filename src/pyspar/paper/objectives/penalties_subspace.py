r"""Penalties on subspaces, RSD and DARE-GRAM, with gradients that are finite where torch's are not.

The gradient of a singular vector has the factors :math:`1 / (s_j^2 - s_i^2)`, which are infinite for repeated singular
values, and the published :math:`\sqrt{1 - \cos^2}` has an infinite gradient where subspaces coincide. This module
decomposes detached values and adds a first-order term in ``change``, a matrix that is zero and carries the gradient. So
the derivative is explicit, and each function keeps only the part that its value depends on:

- Sines of angles depend on subspaces. Rotating a basis within its subspace has no effect, so the factors above cancel.
- A truncated inverse has the divided differences :math:`-1 / (\lambda_i \lambda_j)`, finite at equal eigenvalues.
- Only RSD's base mismatch depends on single vectors. Its factors are damped, :math:`g / (g^2 + \delta^2)`.

The computation uses float64, because these factors magnify rounding. Directions that cannot be distinguished from
rounding in the precision of the features are treated as absent. NaN features give NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

# The damping: far below any gap between values in single precision.
_DAMPING = float(torch.finfo(torch.float64).eps ** 0.5)


def in_double(penalty: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a penalty so that it computes in float64 without autocast.

    The result is float64 if the features are, else float32. The penalty gets this dtype as its third argument.
    """

    @wraps(penalty)
    def wrapped(source: Tensor, target: Tensor, **options: Any) -> Tensor:
        dtype = torch.float64 if torch.float64 in (source.dtype, target.dtype) else torch.float32
        with torch.autocast(device_type=source.device.type, enabled=False):
            return penalty(source.double(), target.double(), dtype, **options).to(dtype)

    return wrapped


class _Factors(NamedTuple):
    """A = U diag(s) V^T of detached values. ``change`` is zero (NaN where A is) and carries the gradient of A."""

    U: Tensor
    s: Tensor
    V: Tensor
    exists: Tensor
    change: Tensor


def _decompose(A: Tensor, dtype: torch.dtype) -> _Factors:
    """Decompose a matrix whose entries have the precision of ``dtype``."""
    fixed = A.detach()
    U, s, Vh = torch.linalg.svd(_replace_not_finite(fixed), full_matrices=False)
    limits = torch.finfo(dtype)
    # Gradients have the factor 1 / s, which overflows the dtype below the last limit.
    exists = (s > max(A.shape[-2:]) * limits.eps * s[..., :1]) & (s > limits.tiny / limits.eps)
    return _Factors(U, s, Vh.mT, exists, A - fixed)


def _replace_not_finite(A: Tensor) -> Tensor:
    """Replace NaN and infinity by 0, because decompositions require finite numbers. ``change`` keeps the NaN."""
    return torch.nan_to_num(A, nan=0.0, posinf=0.0, neginf=0.0)


def _invert(x: Tensor, exists: Tensor) -> Tensor:
    return torch.where(exists, 1 / torch.where(exists, x, 1.0), 0.0)


def _resolution(dtype: torch.dtype) -> float:
    """Return the square root of the precision of a dtype."""
    return float(torch.finfo(dtype).eps ** 0.5)


def _smooth_at_zero(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x >= 0, with zero slope at zero: below the resolution a cubic that joins the line smoothly."""
    low = _resolution(dtype)
    inside = torch.minimum(x / low, torch.ones_like(x))
    return torch.where(x < low, low * inside.square() * (2 - inside), x)


def _damped_gaps(s: Tensor, exists: Tensor) -> Tensor:
    """Return damped 1 / (s_j^2 - s_i^2), relative to the largest s^2; 0 on the diagonal and for absent directions."""
    squares = (s / torch.where(s[..., :1] > 0, s[..., :1], 1.0)).square()
    gap = squares[..., None, :] - squares[..., :, None]
    damped = gap / (gap.square() + _DAMPING**2)
    return damped * (exists[..., None, :] & exists[..., :, None])


def _left_vectors(f: _Factors, used: Tensor | None = None) -> Tensor:
    """Return U with its gradient, exact out of the span and damped within it. Columns not in ``used`` are 0."""
    scale = torch.where(f.s[..., :1] > 0, f.s[..., :1], 1.0)
    used = f.exists if used is None else used
    U = f.U * (f.exists | used)[..., None, :]  # used vectors also rotate towards unused ones
    s = f.s / scale
    shift = f.change @ f.V / scale[..., None]
    inner = U.mT @ shift
    out_of_span = (shift - U @ inner) * _invert(s, f.exists)[..., None, :]
    within = U @ (_damped_gaps(f.s, f.exists) * (inner * s[..., None, :] + s[..., :, None] * inner.mT))
    return (U + out_of_span + within) * used[..., None, :]


def _transpose(f: _Factors) -> _Factors:
    return _Factors(f.V, f.s, f.U, f.exists, f.change.mT)


def _pad(columns: Tensor, width: int) -> Tensor:
    return F.pad(columns, (0, width - columns.shape[-1]))


def _propagate_nan(*factors: _Factors) -> Tensor:
    """Return zero for each seed, or NaN if its features are not finite."""
    return torch.stack([f.change.detach().sum(dim=(-2, -1)) for f in factors]).sum(dim=0)


@in_double
def principal_sines(source: Tensor, target: Tensor, dtype: torch.dtype) -> Tensor:
    r"""Return the sines of the principal angles between the spans of the rows of two batches.

    They are the singular values of :math:`(I - P_t) U_s`, where :math:`U_s` is an orthonormal basis of the smaller span
    and :math:`P_t` the projector on the other. In exact arithmetic they equal :math:`\sqrt{1 - \cos^2}` of the
    published loss. In floating point they avoid differences of nearly equal numbers and roots of negative numbers.
    Below the square root of the features' precision (3e-4 for float32) a sine is replaced by a cubic with zero slope at
    zero.
    There are as many angles as the smaller span has dimensions, followed by zeros.

    >>> principal_sines(torch.eye(3)[:2], torch.eye(3)[1:])
    tensor([1., 0.])
    """
    return _sines(_decompose(source.mT, dtype), _decompose(target.mT, dtype), dtype)


def _sines(s: _Factors, t: _Factors, dtype: torch.dtype) -> Tensor:
    width = max(s.s.shape[-1], t.s.shape[-1])
    U_s, U_t = (_pad(_left_vectors(f), width) for f in (s, t))
    source_smaller = (s.exists.sum(dim=-1) <= t.exists.sum(dim=-1))[..., None, None]
    small, large = torch.where(source_smaller, U_s, U_t), torch.where(source_smaller, U_t, U_s)
    residual = small - large @ (large.mT @ small)
    return _smooth_at_zero(torch.linalg.svdvals(_replace_not_finite(residual)), dtype) + _propagate_nan(s, t)[..., None]


@in_double
def base_mismatch(source: Tensor, target: Tensor, dtype: torch.dtype) -> Tensor:
    r"""Return RSD's base mismatch: the difference between the two bases in terms of the principal vectors.

    .. math:: \bigl\| |P_s| - |P_t| \bigr\|_F, \qquad U_s^T U_t = P_s \cos\Theta P_t^T

    Row i of :math:`|P|` is the absolute contribution of each principal vector to the batch's direction i. A direction
    that one batch lacks counts in full. Where the spans intersect (always, if there are more rows than half the
    features), angles of zero repeat and rounding determines the principal vectors. Here they count as matched, whereas
    the published value depends on the decomposition. For other repeated angles or singular values the value is as
    arbitrary as the published one, with a damped gradient.
    """
    return _mismatch(_decompose(source.mT, dtype), _decompose(target.mT, dtype), dtype)


def _mismatch(s: _Factors, t: _Factors, dtype: torch.dtype) -> Tensor:
    cosines = _decompose(_left_vectors(s).mT @ _left_vectors(t), torch.float64)
    angles = torch.minimum(s.exists.sum(dim=-1), t.exists.sum(dim=-1))[..., None]
    counts = (torch.arange(cosines.s.shape[-1], device=angles.device) < angles) & (cosines.s < 1 - _DAMPING)
    # Use `counts` and not `exists`: orthogonal spans have zero cosines, but their vectors still matter.
    P_s, P_t = _left_vectors(cosines, counts), _left_vectors(_transpose(cosines), counts)
    rows = max(P_s.shape[-2], P_t.shape[-2])
    P_s, P_t = (_pad((P.abs() * f.exists[..., :, None]).mT, rows) for P, f in ((P_s, s), (P_t, t)))
    return _smooth_at_zero(torch.linalg.vector_norm(P_s - P_t, dim=(-2, -1)), dtype) + _propagate_nan(s, t)


@in_double
def rsd_penalty(source: Tensor, target: Tensor, dtype: torch.dtype, *, base: float = 0.01) -> Tensor:
    r"""Return the representation subspace distance: the sum of the sines of the principal angles, plus the mismatch.

    .. math:: \|\sin\Theta\|_1 + \beta \bigl\| |P_s| - |P_t| \bigr\|_F

    Chen et al. (2021), "Representation Subspace Distance for Domain Adaptation Regression". It is zero
    for a batch and itself. It is invariant to rotations of the features, to the scale of a batch and to the order of
    rows. Where the published loss is defined (full rank, distinct singular values, spans that do not intersect), value
    and gradient are equal to it.

    >>> float(rsd_penalty(torch.eye(4)[:2], torch.eye(4)[2:], base=0.0))
    2.0
    """
    s, t = _decompose(source.mT, dtype), _decompose(target.mT, dtype)
    angles = _sines(s, t, dtype).sum(dim=-1)
    return angles if base == 0 else angles + base * _mismatch(s, t, dtype)


@in_double
def dare_gram_penalty(
    source: Tensor,
    target: Tensor,
    dtype: torch.dtype,
    *,
    angle: float = 0.05,
    scale: float = 0.001,
    threshold: float = 0.9,
) -> Tensor:
    r"""Return the difference between the inverse Gram matrices of two batches in angle and in scale.

    .. math:: \frac{a}{D + 1} \sum_c \bigl|1 - \cos(G_{s,c}^+, G_{t,c}^+)\bigr| + \frac{b}{k} \|\lambda_s - \lambda_t\|

    G is the Gram matrix :math:`[1\,|\,F]^T [1\,|\,F]`, :math:`G^+` its inverse on the k largest eigenvalues, c a
    column, and :math:`\lambda` those k eigenvalues. k is one less than the number of leading eigenvalues that sum to at
    most ``threshold`` of the trace, at least 1, and the larger value of the two domains. Nejjar et al. (2023),
    "DARE-GRAM", with means over columns and over k as in the authors' code.

    The penalty is zero for a batch and itself. It is invariant to the order of rows and to permuting or negating
    features. The second term is invariant to rotations of the features; the first compares columns and is not. The
    published cut is exactly at an eigenvalue, so rounding decides whether it is kept. Here it is dropped, and
    eigenvalues equal to the k-th are kept. Columns that are zero in both domains count as equal.

    >>> round(float(dare_gram_penalty(torch.eye(3), torch.eye(3))), 6)
    0.0
    """
    s, t = (_decompose(_prepend_ones(rows), dtype) for rows in (source, target))
    # Gram matrices grow with the number of rows, so the target is scaled to the number of rows of the source.
    ratio = (source.shape[-2] / target.shape[-2]) ** 0.5
    t = t._replace(s=t.s * ratio, change=t.change * ratio)
    k = torch.maximum(_count_leading(s, threshold), _count_leading(t, threshold))
    cosines = _column_cosines(_truncated_inverse(s, k, dtype), _truncated_inverse(t, k, dtype), dtype)
    width = max(s.s.shape[-1], t.s.shape[-1])
    lam_s, lam_t = (_pad(_eigenvalues(f), width) for f in (s, t))
    leading = torch.arange(width, device=k.device) < k[..., None]
    distance = torch.linalg.vector_norm(torch.where(leading, lam_s - lam_t, 0.0), dim=-1) / k
    return angle * (1 - cosines).abs().mean(dim=-1) + scale * _smooth_at_zero(distance, dtype) + _propagate_nan(s, t)


def _prepend_ones(rows: Tensor) -> Tensor:
    return torch.cat([torch.ones_like(rows[..., :1]), rows], dim=-1)


def _eigenvalues(f: _Factors) -> Tensor:
    """Return the eigenvalues of A^T A with their gradient."""
    slope = (f.U * (f.change @ f.V)).sum(dim=-2)
    return f.s.square() + 2 * f.s * slope


def _count_leading(f: _Factors, threshold: float) -> Tensor:
    lam = f.s.square()
    share = lam.cumsum(dim=-1) / lam.sum(dim=-1, keepdim=True)
    return ((share <= threshold).sum(dim=-1) - 1).clamp(min=1)


def _truncated_inverse(f: _Factors, k: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the inverse of A^T A on its k largest eigenvalues, times the k-th eigenvalue, with its gradient."""
    U, V = f.U, f.V
    last = torch.minimum(k, f.exists.sum(dim=-1)).clamp(min=1) - 1
    unit = f.s.gather(-1, last[..., None])
    s, change = f.s / unit, f.change / unit[..., None]
    lam = s.square()
    kept = lam >= 1 - _resolution(dtype)
    inverse = _invert(lam, kept)
    # Divided differences of h(lam) = 1 / lam if kept else 0; see Daleckii and Krein (1965).
    mixed = (kept[..., :, None] != kept[..., None, :]).to(s.dtype)
    gap = lam[..., :, None] - lam[..., None, :]
    across = (inverse[..., :, None] - inverse[..., None, :]) * gap / (gap.square() + _DAMPING**2)
    differences = mixed * across - inverse[..., :, None] * inverse[..., None, :]
    inner = U.mT @ change @ V
    gram = inner.mT * s[..., None, :] + s[..., :, None] * inner
    beside = (U.mT @ change - inner @ V.mT) * (inverse.square() * s)[..., :, None]
    half = V @ beside
    return V @ ((torch.diag_embed(inverse) + differences * gram) @ V.mT) + half + half.mT


def _column_cosines(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the cosines of columns with a small extra coordinate, so that two columns of rounding have cosine 1."""
    low = _resolution(dtype)  # small relative to the largest columns, which are near one, and far above rounding
    inner = (a * b).sum(dim=-2) + low**2
    norms = [(x.square().sum(dim=-2) + low**2).sqrt() for x in (a, b)]
    return inner / (norms[0] * norms[1])

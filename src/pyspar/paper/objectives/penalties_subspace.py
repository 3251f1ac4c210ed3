r"""Penalties on subspaces: RSD and DARE-GRAM, with slopes that stay finite where torch's are not.

The slope of a singular vector has the factors :math:`1 / (s_j^2 - s_i^2)`, infinite where singular values repeat, and
the published :math:`\sqrt{1 - \cos^2}` has an infinite one where subspaces coincide. Here a decomposition is taken of
the *values*, and what it depends on is added as a first-order term in ``change``, a matrix that is zero and carries the
gradient. The derivative is so written out by us, and each function keeps only the part of it that it depends on:

- sines of angles depend on subspaces. Turning a basis within its subspace changes nothing, so the factors above cancel;
- a truncated inverse has the divided differences :math:`-1 / (\lambda_i \lambda_j)`, finite at equal eigenvalues;
- only RSD's base mismatch reads single vectors; its factors are damped, :math:`g / (g^2 + \delta^2)`.

Everything is computed in float64, because those factors magnify rounding; what the features can tell from rounding is
decided by their own precision. Directions too short for that count as absent. NaN features give NaN, as everywhere else
in a network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

_TINY = float(
    torch.finfo(torch.float64).eps ** 0.5
)  # what is damped: far below any gap between values of single precision


def _in_double(compute: Callable[..., Tensor], source: Tensor, target: Tensor, **options: Any) -> Tensor:
    """Compute in float64, outside autocast; the result has the features' dtype, float32 at least."""
    dtype = torch.float64 if torch.float64 in (source.dtype, target.dtype) else torch.float32
    with torch.autocast(device_type=source.device.type, enabled=False):
        return compute(source.double(), target.double(), dtype, **options).to(dtype)


class _Factors(NamedTuple):
    """A = U diag(s) V^T of fixed values; ``change`` is zero (NaN where A is) and carries A's gradient."""

    U: Tensor
    s: Tensor
    V: Tensor
    exists: Tensor
    change: Tensor


def _factors(A: Tensor, dtype: torch.dtype) -> _Factors:
    """Decompose numbers that were computed in ``dtype``."""
    fixed = A.detach()
    U, s, Vh = torch.linalg.svd(_finite(fixed), full_matrices=False)
    limits = torch.finfo(dtype)
    # A slope is one over a length: of a shorter one than the last limit it would not fit into the dtype.
    exists = (s > max(A.shape[-2:]) * limits.eps * s[..., :1]) & (s > limits.tiny / limits.eps)
    return _Factors(U, s, Vh.mT, exists, A - fixed)


def _finite(A: Tensor) -> Tensor:
    """Return numbers that a decomposition takes; that some were not finite is told by ``change``."""
    return torch.nan_to_num(A, nan=0.0, posinf=0.0, neginf=0.0)


def _inverse(x: Tensor, exists: Tensor) -> Tensor:
    return torch.where(exists, 1 / torch.where(exists, x, 1.0), 0.0)


def _tiny(dtype: torch.dtype) -> float:
    """What cannot be resolved in numbers near one: the square root of the precision."""
    return float(torch.finfo(dtype).eps ** 0.5)


def _smooth_at_zero(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x >= 0 as it is, but flat at zero: below ``tiny`` a cubic that meets the line with its slope."""
    low = _tiny(dtype)
    inside = torch.minimum(x / low, torch.ones_like(x))
    return torch.where(x < low, low * inside.square() * (2 - inside), x)


def _damped_gaps(s: Tensor, exists: Tensor) -> Tensor:
    """Return 1 / (s_j^2 - s_i^2), damped, in units of the largest s^2; 0 on the diagonal and for what is absent."""
    squares = (s / torch.where(s[..., :1] > 0, s[..., :1], 1.0)).square()
    gap = squares[..., None, :] - squares[..., :, None]
    damped = gap / (gap.square() + _TINY**2)
    return damped * (exists[..., None, :] & exists[..., :, None])


def _left_vectors(f: _Factors, shown: Tensor | None = None) -> Tensor:
    """Return U with its slope: the turn out of its span, exact, and within it, damped; columns not shown are 0."""
    scale = torch.where(f.s[..., :1] > 0, f.s[..., :1], 1.0)
    shown = f.exists if shown is None else shown
    U = f.U * (f.exists | shown)[..., None, :]  # shown vectors also turn towards those that are not
    s = f.s / scale
    moved = f.change @ f.V / scale[..., None]
    inner = U.mT @ moved
    out_of_span = (moved - U @ inner) * _inverse(s, f.exists)[..., None, :]
    within = U @ (_damped_gaps(f.s, f.exists) * (inner * s[..., None, :] + s[..., :, None] * inner.mT))
    return (U + out_of_span + within) * shown[..., None, :]


def _transposed(f: _Factors) -> _Factors:
    return _Factors(f.V, f.s, f.U, f.exists, f.change.mT)


def _padded(columns: Tensor, width: int) -> Tensor:
    return F.pad(columns, (0, width - columns.shape[-1]))


def _nan_if_any(*factors: _Factors) -> Tensor:
    """Zero for each lane, or NaN where its features are not finite."""
    return torch.stack([f.change.detach().sum(dim=(-2, -1)) for f in factors]).sum(dim=0)


def principal_sines(source: Tensor, target: Tensor) -> Tensor:
    r"""Return the sines of the principal angles between the spans of the rows of two batches.

    They are the singular values of :math:`(I - P_t) U_s`, with :math:`U_s` an orthonormal basis of the smaller span and
    :math:`P_t` the projector on the other. In exact arithmetic that is :math:`\sqrt{1 - \cos^2}` of the published loss;
    in floating point it has no difference of nearly equal numbers and no root of what may be negative. Below the square
    root of the features' precision (3e-4 for float32) a sine is flattened into a cubic, whose slope at zero is zero.
    There are as many angles as the smaller span has dimensions; they are followed by zeros.

    >>> principal_sines(torch.eye(3)[:2], torch.eye(3)[1:])
    tensor([1., 0.])
    """
    return _in_double(_principal_sines, source, target)


def _principal_sines(source: Tensor, target: Tensor, dtype: torch.dtype) -> Tensor:
    return _sines(_factors(source.mT, dtype), _factors(target.mT, dtype), dtype)


def _sines(s: _Factors, t: _Factors, dtype: torch.dtype) -> Tensor:
    width = max(s.s.shape[-1], t.s.shape[-1])
    U_s, U_t = (_padded(_left_vectors(f), width) for f in (s, t))
    source_smaller = (s.exists.sum(dim=-1) <= t.exists.sum(dim=-1))[..., None, None]
    small, large = torch.where(source_smaller, U_s, U_t), torch.where(source_smaller, U_t, U_s)
    residual = small - large @ (large.mT @ small)
    return _smooth_at_zero(torch.linalg.svdvals(_finite(residual)), dtype) + _nan_if_any(s, t)[..., None]


def base_mismatch(source: Tensor, target: Tensor) -> Tensor:
    r"""Return RSD's base mismatch, how differently the two bases are composed of the principal vectors.

    .. math:: \bigl\| |P_s| - |P_t| \bigr\|_F, \qquad U_s^T U_t = P_s \cos\Theta P_t^T

    Row i of :math:`|P|` says how much of a batch's i-th direction, by length, is in each principal vector; a direction
    that one batch lacks counts in full. Where the spans meet (they must, with more rows than half the features) angles
    of zero repeat, and which common vectors are the principal ones is decided by rounding: they count as matched, where
    the published value is whatever the decomposition returns. Other repeated angles or singular values leave the value
    as arbitrary as it was published, with a damped slope.
    """
    return _in_double(_base_mismatch, source, target)


def _base_mismatch(source: Tensor, target: Tensor, dtype: torch.dtype) -> Tensor:
    return _mismatch(_factors(source.mT, dtype), _factors(target.mT, dtype), dtype)


def _mismatch(s: _Factors, t: _Factors, dtype: torch.dtype) -> Tensor:
    cosines = _factors(_left_vectors(s).mT @ _left_vectors(t), torch.float64)
    angles = torch.minimum(s.exists.sum(dim=-1), t.exists.sum(dim=-1))[..., None]
    counts = (torch.arange(cosines.s.shape[-1], device=angles.device) < angles) & (cosines.s < 1 - _TINY)
    # Shown is what counts, not what exists: orthogonal spans have cosines of zero, and vectors all the same.
    P_s, P_t = _left_vectors(cosines, counts), _left_vectors(_transposed(cosines), counts)
    rows = max(P_s.shape[-2], P_t.shape[-2])
    P_s, P_t = (_padded((P.abs() * f.exists[..., :, None]).mT, rows) for P, f in ((P_s, s), (P_t, t)))
    return _smooth_at_zero(torch.linalg.vector_norm(P_s - P_t, dim=(-2, -1)), dtype) + _nan_if_any(s, t)


def rsd_penalty(source: Tensor, target: Tensor, *, base: float = 0.01) -> Tensor:
    r"""Return the representation subspace distance: the sum of the sines of the principal angles, and the mismatch.

    .. math:: \|\sin\Theta\|_1 + \beta \bigl\| |P_s| - |P_t| \bigr\|_F

    Chen et al. (2021), "Representation Subspace Distance for Domain Adaptation Regression". Zero where a batch meets
    itself; unchanged by a rotation of the features, by scaling a batch and by the order of rows. Wherever the published
    loss is defined (full rank, distinct singular values, spans that do not meet) this has its value and slope.

    >>> float(rsd_penalty(torch.eye(4)[:2], torch.eye(4)[2:], base=0.0))
    2.0
    """
    return _in_double(_rsd_penalty, source, target, base=base)


def _rsd_penalty(source: Tensor, target: Tensor, dtype: torch.dtype, *, base: float) -> Tensor:
    s, t = _factors(source.mT, dtype), _factors(target.mT, dtype)
    angles = _sines(s, t, dtype).sum(dim=-1)
    return angles if base == 0 else angles + base * _mismatch(s, t, dtype)


def dare_gram_penalty(
    source: Tensor, target: Tensor, *, angle: float = 0.05, scale: float = 0.001, threshold: float = 0.9
) -> Tensor:
    r"""Return how much the inverse Gram matrices of two batches differ in angle and in scale.

    .. math:: \frac{a}{D + 1} \sum_c \bigl|1 - \cos(G_{s,c}^+, G_{t,c}^+)\bigr| + \frac{b}{k} \|\lambda_s - \lambda_t\|

    G is the Gram matrix :math:`[1\,|\,F]^T [1\,|\,F]`, :math:`G^+` its inverse on the k largest eigenvalues, columns
    c are compared, and :math:`\lambda` are those k eigenvalues. k is one less than the number of leading eigenvalues
    that hold at most ``threshold`` of the trace, at least 1, and the larger of the two domains'. Nejjar et al. (2023),
    "DARE-GRAM"; the means over columns and over k as in the authors' code.

    Zero where a batch meets itself; unchanged by the order of rows, and by permuting or negating features. A rotation
    of the features leaves the second term as it is, not the first, which compares column by column. The published cut
    lies at an eigenvalue, and rounding decides whether that one is kept: here it is not, but eigenvalues equal to the
    k-th are. Columns that are zero in both count as equal.

    >>> round(float(dare_gram_penalty(torch.eye(3), torch.eye(3))), 6)
    0.0
    """
    return _in_double(_dare_gram_penalty, source, target, angle=angle, scale=scale, threshold=threshold)


def _dare_gram_penalty(
    source: Tensor, target: Tensor, dtype: torch.dtype, *, angle: float, scale: float, threshold: float
) -> Tensor:
    s, t = (_factors(_with_ones(rows), dtype) for rows in (source, target))
    # Gram matrices grow with their rows: batches of different sizes are compared as if both had the source's.
    ratio = (source.shape[-2] / target.shape[-2]) ** 0.5
    t = t._replace(s=t.s * ratio, change=t.change * ratio)
    k = torch.maximum(_leading(s, threshold), _leading(t, threshold))
    cosines = _column_cosines(_truncated_inverse(s, k, dtype), _truncated_inverse(t, k, dtype), dtype)
    width = max(s.s.shape[-1], t.s.shape[-1])
    lam_s, lam_t = (_padded(_eigenvalues(f), width) for f in (s, t))
    leading = torch.arange(width, device=k.device) < k[..., None]
    distance = torch.linalg.vector_norm(torch.where(leading, lam_s - lam_t, 0.0), dim=-1) / k
    return angle * (1 - cosines).abs().mean(dim=-1) + scale * _smooth_at_zero(distance, dtype) + _nan_if_any(s, t)


def _with_ones(rows: Tensor) -> Tensor:
    return torch.cat([torch.ones_like(rows[..., :1]), rows], dim=-1)


def _eigenvalues(f: _Factors) -> Tensor:
    """Return the eigenvalues of A^T A, with their slope."""
    turned = (f.U * (f.change @ f.V)).sum(dim=-2)
    return f.s.square() + 2 * f.s * turned


def _leading(f: _Factors, threshold: float) -> Tensor:
    lam = f.s.square()
    held = lam.cumsum(dim=-1) / lam.sum(dim=-1, keepdim=True)
    return ((held <= threshold).sum(dim=-1) - 1).clamp(min=1)


def _truncated_inverse(f: _Factors, k: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the inverse of A^T A on its k largest eigenvalues, times the k-th of them, with its slope."""
    U, V = f.U, f.V
    last = torch.minimum(k, f.exists.sum(dim=-1)).clamp(min=1) - 1
    unit = f.s.gather(-1, last[..., None])
    s, change = f.s / unit, f.change / unit[..., None]
    lam = s.square()
    kept = lam >= 1 - _tiny(dtype)
    inverse = _inverse(lam, kept)
    # Divided differences of h(lam) = 1 / lam if kept else 0; see Daleckii and Krein (1965).
    mixed = (kept[..., :, None] != kept[..., None, :]).to(s.dtype)
    gap = lam[..., :, None] - lam[..., None, :]
    across = (inverse[..., :, None] - inverse[..., None, :]) * gap / (gap.square() + _TINY**2)
    differences = mixed * across - inverse[..., :, None] * inverse[..., None, :]
    inner = U.mT @ change @ V
    gram = inner.mT * s[..., None, :] + s[..., :, None] * inner
    beside = (U.mT @ change - inner @ V.mT) * (inverse.square() * s)[..., :, None]
    half = V @ beside
    return V @ ((torch.diag_embed(inverse) + differences * gram) @ V.mT) + half + half.mT


def _column_cosines(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the cosines of the columns, each given one small coordinate more: two of mere rounding have cosine 1."""
    low = _tiny(
        dtype
    )  # beside the largest columns, which are near one; far above rounding, whose directions mean nothing
    inner = (a * b).sum(dim=-2) + low**2
    norms = [(x.square().sum(dim=-2) + low**2).sqrt() for x in (a, b)]
    return inner / (norms[0] * norms[1])

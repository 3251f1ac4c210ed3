r"""Penalties on subspaces: RSD and DARE-GRAM.

They are computed in float64, because the gradient of a singular vector has the factors :math:`1 / (s_j^2 - s_i^2)`,
which magnify rounding. A gradient that is not finite, as for two equal batches, is replaced by zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


def _replace_not_finite(x: Tensor) -> Tensor:
    return torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)


def in_double(penalty: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a penalty so that it computes in float64 without autocast, with a finite gradient for each feature.

    The result is float64 if the features are, else float32. NaN features give NaN.
    """

    @wraps(penalty)
    def wrapped(source: Tensor, target: Tensor, **options: Any) -> Tensor:
        dtype = torch.float64 if torch.float64 in (source.dtype, target.dtype) else torch.float32
        with torch.autocast(device_type=source.device.type, enabled=False):
            batches = [features.double() for features in (source, target)]
            not_finite = sum(features.detach().sum() * 0 for features in batches)  # NaN if a feature is not finite
            batches = [_replace_not_finite(features) for features in batches]
            for features in batches:
                if features.requires_grad:
                    features.register_hook(_replace_not_finite)  # type: ignore[no-untyped-call]
            return (penalty(*batches, **options) + not_finite).to(dtype)

    return wrapped


def _independent_rows(rows: Tensor) -> Tensor:
    """Return linearly independent rows with the same span. Directions of float32 rounding are treated as absent."""
    U, s, _ = torch.linalg.svd(rows.detach(), full_matrices=False)
    independent: Tensor = U[:, s > max(rows.shape) * torch.finfo(torch.float32).eps * s[:1]].mT @ rows
    return independent


@in_double
def principal_sines(source: Tensor, target: Tensor) -> Tensor:
    r"""Return the sines of the principal angles between the spans of the rows of two batches, in decreasing order.

    They are the singular values of :math:`(I - P_t) Q_s`, with an orthonormal basis :math:`Q_s` of one span and the
    projector :math:`P_t` on the other. They equal :math:`\sqrt{1 - \cos^2}` of the published loss, whose gradient is
    infinite where the spans intersect.
    """
    small, large = sorted(map(_independent_rows, (source, target)), key=len)
    q, p = torch.linalg.qr(small.mT)[0], torch.linalg.qr(large.mT)[0]
    sines: Tensor = torch.linalg.svdvals(q - p @ (p.mT @ q))
    return sines


@in_double
def base_mismatch(source: Tensor, target: Tensor) -> Tensor:
    r"""Return RSD's base mismatch: the difference between the two bases in terms of the principal vectors.

    .. math:: \bigl\| |P_s| - |P_t| \bigr\|_F, \qquad U_s^T U_t = P_s \cos\Theta P_t^T
    """
    rows = [_independent_rows(features) for features in (source, target)]
    bases = [torch.linalg.svd(features.mT, full_matrices=False)[0] for features in rows]
    P_s, _, P_t = torch.linalg.svd(bases[0].mT @ bases[1], full_matrices=False)
    size = max(map(len, rows))  # a direction that one batch lacks counts in full
    P_s, P_t = (F.pad(P.abs(), (0, 0, 0, size - len(P))) for P in (P_s, P_t.mT))
    return torch.linalg.matrix_norm(P_s - P_t) if size else P_s.sum()


@in_double
def rsd_penalty(source: Tensor, target: Tensor, *, base: float = 0.01) -> Tensor:
    r"""Return the representation subspace distance: the sum of the sines of the principal angles, plus the mismatch.

    .. math:: \|\sin\Theta\|_1 + \beta \bigl\| |P_s| - |P_t| \bigr\|_F

    Chen et al. (2021), "Representation Subspace Distance for Domain Adaptation Regression". It is zero for a batch and
    itself, and invariant to rotations of the features, to the scale of a batch and to the order of rows.
    """
    angles = principal_sines(source, target).sum()
    return angles if base == 0 else angles + base * base_mismatch(source, target)


@in_double
def dare_gram_penalty(
    source: Tensor, target: Tensor, *, angle: float = 0.05, scale: float = 0.001, threshold: float = 0.9
) -> Tensor:
    r"""Return the difference between the inverse Gram matrices of two batches in angle and in scale.

    .. math:: \frac{a}{D + 1} \sum_c \bigl|1 - \cos(G_{s,c}^+, G_{t,c}^+)\bigr| + \frac{b}{k} \|\lambda_s - \lambda_t\|

    G is the Gram matrix :math:`[1\,|\,F]^T [1\,|\,F]`, :math:`G^+` its inverse on the k largest eigenvalues, c a
    column, and :math:`\lambda` those k eigenvalues. k is one less than the number of leading eigenvalues that sum to at
    most ``threshold`` of the trace, at least 1, and the larger value of the two domains. Nejjar et al. (2023),
    "DARE-GRAM", with means over columns and over k as in the authors' code. It is zero for a batch and itself, and
    invariant to the order of rows.
    """
    factors, counts = [], []
    for features in (source, target):
        rows = torch.cat([torch.ones_like(features[:, :1]), features], dim=1)
        # A Gram matrix grows with the number of rows. The gradient of a thin SVD is exact, also of the cut.
        _, s, Vh = torch.linalg.svd(rows * (len(source) / len(features)) ** 0.5, full_matrices=False)
        factors.append((s.square(), Vh))
        share = s.detach().square().cumsum(0) / s.detach().square().sum()
        counts.append(int((share <= threshold).sum()) - 1)
    k = max(1, *counts)
    lams, inverses = [], []
    for lam, Vh in factors:
        cut = lam[min(k, int((lam > 1e-12 * lam[0]).sum())) - 1].detach() * (1 - 1e-6)  # keeps equal eigenvalues
        kept = lam.detach() >= cut
        inverses.append((Vh[kept].mT * (cut / lam[kept])) @ Vh[kept])
        lams.append(F.pad(lam[:k], (0, max(0, k - len(lam)))))
    # A small extra coordinate gives two columns of zeros the cosine 1. The largest columns are near one.
    inner, a, b = ((x * y).sum(dim=0) + 1e-7 for x, y in (inverses, inverses[:1] * 2, inverses[1:] * 2))
    cosines = inner / (a * b).sqrt()
    distance = torch.linalg.vector_norm(lams[0] - lams[1])
    penalty: Tensor = angle * (1 - cosines).abs().mean() + scale * distance / k
    return penalty

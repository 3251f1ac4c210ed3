"""Objectives that align the features: squared error on the source plus a penalty on the distance to the target.

Each class combines a weight with a penalty, a pure function of features of shape (B, D). Source and target may have
different numbers of rows. They pass through the network separately, so that batch norm sees one domain at a time, as in
the authors' code of RSD and DARE-GRAM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from pyspar.errors import InputError
from pyspar.paper.objectives.base import Batch, Network, Objective, in_full_precision, mean_squared_error
from pyspar.paper.parameters import check_number


def _replace_not_finite(x: Tensor) -> Tensor:
    return torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)


def in_double(penalty: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a penalty so that it computes in float64 without autocast, with a finite gradient for each feature. The
    result is float64 if the features are, else float32. NaN features give NaN.
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
    U, s, _ = torch.linalg.svd(rows.detach(), full_matrices=False)
    independent: Tensor = U[:, s > max(rows.shape) * torch.finfo(torch.float32).eps * s[:1]].mT @ rows
    return independent


@in_double
def principal_sines(source: Tensor, target: Tensor) -> Tensor:
    r"""Return the sines of the principal angles between the spans of the rows of two batches, in decreasing order. They
    are the singular values of :math:`(I - P_t) Q_s`, with an orthonormal basis :math:`Q_s` of one span and the
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


@in_full_precision
def coral_penalty(source: Tensor, target: Tensor) -> Tensor:
    r"""Return the squared differences of the means and of the covariances, each averaged over its entries.

    .. math:: \frac1D \|\mu_s - \mu_t\|^2 + \frac1{D^2} \|C_s - C_t\|_F^2

    Sun and Saenko (2016), "Deep CORAL", use only the covariances. The paper's experiments add the means. The covariance
    of a single row is 0.
    """
    means = source.mean(dim=-2) - target.mean(dim=-2)
    covariances = _covariance(source) - _covariance(target)
    return means.square().mean(dim=-1) + covariances.square().mean(dim=(-2, -1))


def _covariance(features: Tensor) -> Tensor:
    centred = features - features.mean(dim=-2, keepdim=True)
    return centred.mT @ centred / max(features.shape[-2] - 1, 1)


@in_full_precision
def norm_step_penalty(source: Tensor, target: Tensor, *, step: float = 1.0) -> Tensor:
    r"""Return AFN's stepwise penalty, whose gradient lengthens every feature vector.

    .. math:: \frac1{B_s} \sum_i (\|f_i\| - \overline{\|f_i\|} - \Delta r)^2 + \text{the same for the target}

    The bar marks a constant without gradient. So the value is always :math:`2 \Delta r^2`, also for equal batches, and
    only the gradient has an effect. Xu et al. (2019), "Larger Norm More Transferable" (SAFN).
    """
    # The gradient of torch's norm at zero is zero, so a zero feature vector does not cause NaN.
    a, b = (torch.linalg.vector_norm(features, dim=-1) for features in (source, target))
    penalty: Tensor = (a - a.detach() - step).square().mean(dim=-1) + (b - b.detach() - step).square().mean(dim=-1)
    return penalty


class Alignment(Objective):
    """Squared error plus ``penalty(source features, target features)``."""

    uses_target: ClassVar[bool] = True
    penalty_name: ClassVar[str] = "penalty"

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        raise NotImplementedError

    def loss(self, net: Network, batch: Batch, module: Any, phase: str) -> dict[str, Tensor]:
        source, target = net.features(batch.x), net.features(batch.target)
        return {"mse": mean_squared_error(net.head(source), batch.y), self.penalty_name: self.penalty(source, target)}


@dataclass(frozen=True)
class DeepCORAL(Alignment):
    """Deep CORAL: MSE + w :func:`coral_penalty`. Sun and Saenko (2016). The paper's base weight is 1; its tuned weights
    are 3.72 (RCF-MNIST) and 5.65 (ChairAngles).
    """

    name: ClassVar[str] = "Deep CORAL"
    capturable: ClassVar[bool] = True
    penalty_name: ClassVar[str] = "coral"

    weight: float = 1.0

    def __post_init__(self) -> None:
        check_number("weight", self.weight, hint="the paper's base weight is 1.0")

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        return self.weight * coral_penalty(source, target)


@dataclass(frozen=True)
class AFN(Alignment):
    """Adaptive feature norm: MSE + w :func:`norm_step_penalty`, which lengthens the feature vectors of both domains. Xu
    et al. (2019), with their default values.
    """

    name: ClassVar[str] = "AFN"
    capturable: ClassVar[bool] = True
    penalty_name: ClassVar[str] = "norm"

    weight: float = 0.05
    _: KW_ONLY
    step: float = 1.0

    def __post_init__(self) -> None:
        check_number("weight", self.weight, hint="the authors use 0.05")
        check_number("step", self.step, hint="the authors use 1.0")

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        return self.weight * norm_step_penalty(source, target, step=self.step)


@dataclass(frozen=True)
class RSD(Alignment):
    """Representation subspace distance: MSE + w :func:`rsd_penalty`, the angles between the spans of two batches. Chen
    et al. (2021), with weight and base as in the paper's PovertyMap runs. A batch with at least as many rows as
    features spans the whole space, so its angles are zero and training would be ERM. Such batches raise an error.
    """

    name: ClassVar[str] = "RSD"
    penalty_name: ClassVar[str] = "rsd"

    weight: float = 0.001
    _: KW_ONLY
    base: float = 0.01

    def __post_init__(self) -> None:
        check_number("weight", self.weight, hint="the paper uses 0.001")
        check_number("base", self.base, hint="the paper uses 0.01")

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        rows, features = max(source.shape[-2], target.shape[-2]), source.shape[-1]
        if rows >= features:
            raise InputError(
                f"RSD requires batches with fewer rows than the network has features, got {rows} rows and {features} "
                f"features: such a batch spans all features, so the penalty is zero; use batch_size={features // 2} or "
                "less, or a wider network"
            )
        return self.weight * rsd_penalty(source, target, base=self.base)


@dataclass(frozen=True)
class DAREGram(Alignment):
    """DARE-GRAM: MSE + :func:`dare_gram_penalty`, the difference between the inverse Gram matrices. Nejjar et al.
    (2023), with angle, scale and threshold as in the paper's PovertyMap runs.
    """

    name: ClassVar[str] = "DARE-GRAM"
    penalty_name: ClassVar[str] = "gram"

    angle: float = 0.05
    scale: float = 0.001
    _: KW_ONLY
    threshold: float = 0.9

    def __post_init__(self) -> None:
        check_number("angle", self.angle, hint="the paper uses 0.05")
        check_number("scale", self.scale, hint="the paper uses 0.001")
        check_number("threshold", self.threshold, high=1.0, hint="the paper uses 0.9 of the trace")

    def penalty(self, source: Tensor, target: Tensor) -> Tensor:
        return dare_gram_penalty(source, target, **vars(self))

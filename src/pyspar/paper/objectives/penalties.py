"""Penalties on the distance between two batches of features, as pure functions of the features.

Features have shape (..., B, D). The leading axes are seeds, and a penalty has one value per seed. Source and target may
have different numbers of rows. Penalties are computed in float32 or float64 also for a network in mixed precision,
because covariances and principal angles in bfloat16 are dominated by rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F


def in_full_precision(penalty: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a penalty so that it casts half-precision features to float32 and disables autocast."""

    @wraps(penalty)
    def wrapped(source: Tensor, target: Tensor, **options: Any) -> Tensor:
        with torch.autocast(device_type=source.device.type, enabled=False):
            return penalty(*(f if f.dtype == torch.float64 else f.float() for f in (source, target)), **options)

    return wrapped


@in_full_precision
def coral_penalty(source: Tensor, target: Tensor) -> Tensor:
    r"""Return the squared differences of the means and of the covariances, each averaged over its entries.

    .. math:: \frac1D \|\mu_s - \mu_t\|^2 + \frac1{D^2} \|C_s - C_t\|_F^2

    Sun and Saenko (2016), "Deep CORAL", use only the covariances. The paper's experiments add the means. The covariance
    of a single row is 0.

    >>> coral_penalty(torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [3.0]]))
    tensor(1.)
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

    >>> float(norm_step_penalty(torch.ones(3, 2), torch.zeros(5, 2), step=2.0))
    8.0
    """
    return _sum_over_domains(source, target, lambda norm: (norm - norm.detach() - step).square().mean(dim=-1))


@in_full_precision
def norm_radius_penalty(source: Tensor, target: Tensor, *, radius: float = 25.0) -> Tensor:
    r"""Return AFN's hard penalty: the squared distance of the mean feature norm to R, in each domain.

    .. math:: \Bigl(\frac1{B_s} \sum_i \|f_i\| - R\Bigr)^2 + \text{the same for the target}

    Xu et al. (2019), "Larger Norm More Transferable" (HAFN).

    >>> float(norm_radius_penalty(torch.ones(3, 4), torch.ones(5, 4), radius=2.0))
    0.0
    """
    return _sum_over_domains(source, target, lambda norm: (norm.mean(dim=-1) - radius).square())


def _sum_over_domains(source: Tensor, target: Tensor, of_norms: Callable[[Tensor], Tensor]) -> Tensor:
    # The gradient of torch's norm at zero is zero, so a zero feature vector does not cause NaN.
    return of_norms(torch.linalg.vector_norm(source, dim=-1)) + of_norms(torch.linalg.vector_norm(target, dim=-1))


@in_full_precision
def domain_cross_entropy(source: Tensor, target: Tensor) -> Tensor:
    r"""Return the cross-entropy of a critic's logits, of shape (..., B, 1). Positive logits mean target.

    .. math:: \tfrac12 \operatorname{mean}_i \log(1 + e^{c(f_i)}) + \tfrac12 \operatorname{mean}_j \log(1 + e^{-c(f_j)})

    Both domains have equal weight, also if one has more rows. A critic that always returns 0 has the value log 2.
    Ganin et al. (2016).
    """
    return (F.softplus(source).mean(dim=(-2, -1)) + F.softplus(-target).mean(dim=(-2, -1))) / 2


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, scale: float) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return -ctx.scale * grads[0], None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, None], x: Tensor, scale: float) -> tuple[Tensor, int | None]:
        return reverse_gradient(x, scale), in_dims[0]


def reverse_gradient(x: Tensor, scale: float = 1.0) -> Tensor:
    """Return x. Its gradient is multiplied by ``-scale``. Ganin et al. (2016).

    >>> x = torch.ones(1, requires_grad=True)
    >>> torch.autograd.grad(reverse_gradient(3 * x, 0.5).sum(), x)
    (tensor([-1.5000]),)
    """
    return cast(Tensor, _Reversal.apply(x, scale))  # type: ignore[no-untyped-call]

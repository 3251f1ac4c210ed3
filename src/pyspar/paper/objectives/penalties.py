"""Penalties: how far apart two batches of features are, as pure functions of the features.

Features have the shape (..., B, D); what stands before are lanes (seeds), and a penalty has one value for each. Source
and target may have different numbers of rows. Everything is computed in float32 at least, whatever the precision the
network runs in: a covariance or a principal angle in bfloat16 is noise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F


def in_full_precision(penalty: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make a penalty cast half-precision features to float32 and leave autocast while it computes."""

    @wraps(penalty)
    def wrapped(source: Tensor, target: Tensor, **options: Any) -> Tensor:
        with torch.autocast(device_type=source.device.type, enabled=False):
            return penalty(*(f if f.dtype == torch.float64 else f.float() for f in (source, target)), **options)

    return wrapped


@in_full_precision
def coral_penalty(source: Tensor, target: Tensor) -> Tensor:
    r"""Return the squared differences of means and of covariances, each averaged over its entries.

    .. math:: \frac1D \|\mu_s - \mu_t\|^2 + \frac1{D^2} \|C_s - C_t\|_F^2

    Sun and Saenko (2016), "Deep CORAL", has the covariances alone; with the means as in the paper's experiments. A
    batch of one row has the covariance 0.

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
    r"""Return AFN's stepwise penalty, which asks every feature vector to become longer by a step.

    .. math:: \frac1{B_s} \sum_i (\|f_i\| - \overline{\|f_i\|} - \Delta r)^2 + \text{the same of the target}

    The bar holds a value fixed: the penalty always has the value :math:`2 \Delta r^2`, also for equal batches, and all
    that it says is in its slope. Xu et al. (2019), "Larger Norm More Transferable" (SAFN).

    >>> float(norm_step_penalty(torch.ones(3, 2), torch.zeros(5, 2), step=2.0))
    8.0
    """
    return _sum_of_both(source, target, lambda norm: (norm - norm.detach() - step).square().mean(dim=-1))


@in_full_precision
def norm_radius_penalty(source: Tensor, target: Tensor, *, radius: float = 25.0) -> Tensor:
    r"""Return AFN's hard penalty: how far the mean length of the features is from R, in each domain.

    .. math:: \Bigl(\frac1{B_s} \sum_i \|f_i\| - R\Bigr)^2 + \text{the same of the target}

    Xu et al. (2019), "Larger Norm More Transferable" (HAFN).

    >>> float(norm_radius_penalty(torch.ones(3, 4), torch.ones(5, 4), radius=2.0))
    0.0
    """
    return _sum_of_both(source, target, lambda norm: (norm.mean(dim=-1) - radius).square())


def _sum_of_both(source: Tensor, target: Tensor, of_norms: Callable[[Tensor], Tensor]) -> Tensor:
    # torch's slope of a norm at zero is zero, so that a dead feature vector does not end the run.
    return of_norms(torch.linalg.vector_norm(source, dim=-1)) + of_norms(torch.linalg.vector_norm(target, dim=-1))


@in_full_precision
def domain_cross_entropy(source: Tensor, target: Tensor) -> Tensor:
    r"""Return how well a critic's logits, of shape (..., B, 1), tell the target (positive) from the source.

    .. math:: \tfrac12 \operatorname{mean}_i \log(1 + e^{c(f_i)}) + \tfrac12 \operatorname{mean}_j \log(1 + e^{-c(f_j)})

    The two domains weigh the same, also where one has more rows. Log 2 is the value of a critic that knows nothing.
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
    """Return x itself, whose gradient will be multiplied by ``-scale``. Ganin et al. (2016).

    >>> x = torch.ones(1, requires_grad=True)
    >>> torch.autograd.grad(reverse_gradient(3 * x, 0.5).sum(), x)
    (tensor([-1.5000]),)
    """
    return cast(Tensor, _Reversal.apply(x, scale))  # type: ignore[no-untyped-call]

"""Properties of every penalty, and the values of the penalties on moments, norms and critics."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.paper.objectives.alignment import coral_penalty, norm_step_penalty  # noqa: E402
from pyspar.paper.objectives.dann import domain_cross_entropy, reverse_gradient  # noqa: E402
from pyspar.paper.objectives.penalties_subspace import base_mismatch, dare_gram_penalty, principal_sines, rsd_penalty  # noqa: E402

PENALTIES = [coral_penalty, norm_step_penalty, rsd_penalty, base_mismatch, dare_gram_penalty]
ZERO_FOR_EQUAL = [coral_penalty, rsd_penalty, base_mismatch, dare_gram_penalty]


def rows(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def hard_pairs(dtype):
    """Pairs of batches whose singular values are repeated, zero or missing."""
    whole = rows(6, 10, seed=1, dtype=dtype)
    turned = torch.linalg.qr(rows(6, 6, seed=2, dtype=dtype))[0] @ whole
    flat = rows(6, 2, seed=3, dtype=dtype) @ rows(2, 10, seed=4, dtype=dtype)
    flatter = rows(6, 2, seed=5, dtype=dtype) @ rows(2, 10, seed=4, dtype=dtype)
    dead = whole * (torch.arange(10) < 5)
    zeros = torch.zeros(6, 10, dtype=dtype)
    eye = torch.eye(10, dtype=dtype)
    return {
        "the same batch": (whole, whole.clone()),
        "one span, other rows": (whole, turned),
        "one span of low rank": (flat, flatter),
        "low rank against full": (flat, whole),
        "equal singular values": (eye[:6], eye[4:]),
        "equal singular values twice": (eye[:6], eye[:6].clone()),
        "orthogonal spans": (eye[:3], eye[3:6]),
        "dead features": (dead, dead.flip(0)),
        "one row": (whole[:1], whole[1:2]),
        "one row against many": (whole[:1], whole),
        "more rows than features": (whole[:, :4], turned[:, :4]),
        "zeros": (zeros, zeros.clone()),
        "zeros against rows": (zeros, whole),
        "constant rows": (zeros + 1, zeros + 1),
        "huge": (whole * 1e6, turned * 1e-6),
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", hard_pairs(torch.float64))
@pytest.mark.parametrize("penalty", PENALTIES)
def test_value_and_gradient_are_finite_where_the_published_ones_are_not(penalty, case, dtype):
    source, target = (batch.clone().requires_grad_() for batch in hard_pairs(dtype)[case])
    value = penalty(source, target)
    slopes = torch.autograd.grad(value, (source, target))
    assert value.dtype == dtype
    assert torch.isfinite(value)
    assert value.detach() >= 0
    assert all(torch.isfinite(slope).all() for slope in slopes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", hard_pairs(torch.float64))
@pytest.mark.parametrize("penalty", ZERO_FOR_EQUAL)
def test_the_penalty_of_a_batch_and_itself_is_zero(penalty, case, dtype):
    for batch in hard_pairs(dtype)[case]:
        scale = 1 + float(batch.square().sum())  # the scale of the eigenvalues and covariances
        assert float(penalty(batch, batch.clone())) <= 100 * torch.finfo(dtype).eps * scale


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_order_of_rows_does_not_matter(penalty):
    source, target = rows(7, 9), 2 * rows(7, 9, seed=1) + 1
    shuffled = penalty(source.flip(0), target.roll(2, dims=0))
    torch.testing.assert_close(shuffled, penalty(source, target), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("sizes", [(7, 7), (5, 8)])
def test_stacked_batches_have_the_penalties_of_each_alone(penalty, sizes):
    source = rows(3, sizes[0], 9) * torch.tensor([1.0, 5.0, 0.1])[:, None, None]
    target = rows(3, sizes[1], 9, seed=1)
    source[1, :, 3:] = 0  # seeds of different rank
    source, target = source.requires_grad_(), target.requires_grad_()
    together = penalty(source, target)
    slopes = torch.autograd.grad(together.sum(), (source, target))
    assert together.shape == (3,)
    for seed in range(3):
        s, t = source[seed].detach().requires_grad_(), target[seed].detach().requires_grad_()
        alone = penalty(s, t)
        torch.testing.assert_close(together[seed], alone, rtol=1e-12, atol=1e-13)
        for slope, own in zip(slopes, torch.autograd.grad(alone, (s, t))):
            torch.testing.assert_close(slope[seed], own, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_gradient_is_that_of_the_value(penalty):
    source, target = rows(5, 8), 2 * rows(5, 8, seed=1)
    if penalty is norm_step_penalty:  # its value is constant; its gradient has another test
        assert float(penalty(source, target)) == pytest.approx(2.0)
        return
    inputs = (source.requires_grad_(), target.requires_grad_())
    assert torch.autograd.gradcheck(penalty, inputs, eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_half_precision_is_converted_and_autocast_is_disabled(penalty):
    source, target = rows(6, 10, dtype=torch.bfloat16), rows(6, 10, seed=1, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = penalty(source, target)
    assert value.dtype == torch.float32
    assert torch.equal(value, penalty(source.float(), target.float()))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_features_that_are_not_finite_affect_only_their_seed(penalty, bad):
    source, target = rows(2, 6, 10), rows(2, 6, 10, seed=1)
    source[1, 2, 3] = bad
    values = penalty(source, target)
    assert math.isfinite(values[0])
    assert not math.isfinite(values[1])


def test_coral_is_the_averaged_squared_difference_of_means_and_covariances():
    source, target = rows(12, 5), 3 * rows(9, 5, seed=1) + 1
    X, Z = source.numpy(), target.numpy()
    means, covariances = X.mean(axis=0) - Z.mean(axis=0), np.cov(X.T) - np.cov(Z.T)
    by_hand = (means**2).mean() + (covariances**2).mean()
    assert float(coral_penalty(source, target)) == pytest.approx(by_hand, rel=1e-12)


def test_coral_is_invariant_to_a_common_shift():
    source, target = rows(12, 5), rows(9, 5, seed=1)
    torch.testing.assert_close(coral_penalty(source + 7, target + 7), coral_penalty(source, target))


def test_the_norm_step_penalty_lengthens_all_features_with_equal_gradients():
    source = (rows(4, 3) * torch.tensor([0.1, 1.0, 10.0, 100.0])[:, None]).requires_grad_()
    (slope,) = torch.autograd.grad(norm_step_penalty(source, source.detach(), step=0.5), source)
    inward = -slope / slope.norm(dim=1, keepdim=True)
    torch.testing.assert_close(inward, (source / source.norm(dim=1, keepdim=True)).detach())
    torch.testing.assert_close(slope.norm(dim=1), torch.full((4,), 2 * 0.5 / 4, dtype=torch.float64))


def test_the_cross_entropy_of_zero_logits_is_log_two():
    zeros = torch.zeros(5, 1)
    assert float(domain_cross_entropy(zeros, torch.zeros(9, 1))) == pytest.approx(math.log(2))


def test_the_cross_entropy_equals_torchs_and_is_finite_for_large_logits():
    source, target = rows(6, 1), rows(6, 1, seed=1)
    labels = torch.cat([torch.zeros(6, 1), torch.ones(6, 1)]).double()
    theirs = torch.nn.functional.binary_cross_entropy_with_logits(torch.cat([source, target]), labels)
    torch.testing.assert_close(domain_cross_entropy(source, target), theirs)
    assert float(domain_cross_entropy(source * 0 + 1e4, target)) > 1e3
    assert float(domain_cross_entropy(source * 0 - 1e4, target * 0 + 1e4)) == 0


def test_the_reversed_gradient_is_minus_the_scale_times_the_gradient():
    x = rows(4, 3).requires_grad_()
    (plain,) = torch.autograd.grad((x**3).sum(), x)
    (turned,) = torch.autograd.grad((reverse_gradient(x, 0.3) ** 3).sum(), x)
    torch.testing.assert_close(turned, -0.3 * plain)
    by_map = torch.vmap(torch.func.grad(lambda row: (reverse_gradient(row, 0.3) ** 3).sum()))(x.detach())
    torch.testing.assert_close(by_map, turned)


def test_vmap_gives_the_penalties_of_stacked_batches():
    source, target = rows(3, 6, 10), rows(3, 6, 10, seed=1)
    for penalty in (*PENALTIES, lambda s, t: principal_sines(s, t).sum(dim=-1)):
        torch.testing.assert_close(torch.vmap(penalty)(source, target), penalty(source, target))

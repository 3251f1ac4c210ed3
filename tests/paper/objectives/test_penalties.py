"""The penalties: values against brute force, invariances, finite gradients, and their objectives."""

import math

import numpy as np
import pytest
import scipy.linalg

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar import InputError  # noqa: E402
from pyspar.paper.networks.models import MLP  # noqa: E402
from pyspar.paper.objectives.alignment import (  # noqa: E402  # noqa: E402
    AFN,
    RSD,
    DAREGram,
    DeepCORAL,
    base_mismatch,
    coral_penalty,
    dare_gram_penalty,
    norm_step_penalty,
    principal_sines,
    rsd_penalty,
)
from pyspar.paper.objectives.base import Batch  # noqa: E402

PENALTIES = [coral_penalty, norm_step_penalty, rsd_penalty, base_mismatch, dare_gram_penalty]
ZERO_FOR_EQUAL = [coral_penalty, rsd_penalty, dare_gram_penalty]


def rows(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def hard_pairs(dtype):
    """Pairs of batches whose singular values are repeated, zero or missing."""
    whole = rows(6, 10, seed=1, dtype=dtype)
    turned = torch.linalg.qr(rows(6, 6, seed=2, dtype=dtype))[0] @ whole
    flat = rows(6, 2, seed=3, dtype=dtype) @ rows(2, 10, seed=4, dtype=dtype)
    dead = whole * (torch.arange(10) < 5)
    zeros = torch.zeros(6, 10, dtype=dtype)
    eye = torch.eye(10, dtype=dtype)
    return {
        "the same batch": (whole, whole.clone()),
        "one span, other rows": (whole, turned),
        "low rank against full": (flat, whole),
        "equal singular values": (eye[:6], eye[4:]),
        "orthogonal spans": (eye[:3], eye[3:6]),
        "dead features": (dead, dead.flip(0)),
        "one row against many": (whole[:1], whole),
        "more rows than features": (whole[:, :4], turned[:, :4]),
        "zeros": (zeros, zeros.clone()),
        "zeros against rows": (zeros, whole),
        "huge": (whole * 1e6, turned * 1e-6),
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", hard_pairs(torch.float64))
@pytest.mark.parametrize("penalty", PENALTIES)
def test_values_and_gradients_are_finite_and_equal_batches_have_no_penalty(penalty, case, dtype):
    source, target = (batch.clone().requires_grad_() for batch in hard_pairs(dtype)[case])
    value = penalty(source, target)
    slopes = torch.autograd.grad(value, (source, target))
    assert value.dtype == dtype
    assert torch.isfinite(value)
    assert value.detach() >= 0
    assert all(torch.isfinite(slope).all() for slope in slopes)
    if penalty in ZERO_FOR_EQUAL:
        scale = 1 + float(source.detach().square().sum())  # the scale of the eigenvalues and covariances
        assert float(penalty(source, source.clone())) <= 1e-5 * scale


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_penalty_ignores_the_order_of_rows_converts_half_precision_and_reports_nan(penalty):
    source, target = rows(4, 9), 2 * rows(4, 9, seed=1) + 1
    shuffled = penalty(source.flip(0), target.roll(2, dims=0))
    torch.testing.assert_close(shuffled, penalty(source, target), rtol=1e-10, atol=1e-12)
    half = source.bfloat16(), target.bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(penalty(*half), penalty(*(batch.float() for batch in half)))
    for bad in (math.nan, math.inf):
        source[2, 3] = bad
        assert not torch.isfinite(penalty(source, target))


@pytest.mark.parametrize("penalty", [p for p in PENALTIES if p is not norm_step_penalty])  # its value is constant
def test_the_gradient_is_that_of_the_value(penalty):
    inputs = (rows(4, 9).requires_grad_(), (2 * rows(4, 9, seed=1)).requires_grad_())
    assert torch.autograd.gradcheck(penalty, inputs, eps=1e-6, atol=1e-5, check_undefined_grad=False)


def test_coral_is_the_averaged_squared_difference_of_means_and_covariances():
    source, target = rows(12, 5), 3 * rows(9, 5, seed=1) + 1
    X, Z = source.numpy(), target.numpy()
    means, covariances = X.mean(axis=0) - Z.mean(axis=0), np.cov(X.T) - np.cov(Z.T)
    by_hand = (means**2).mean() + (covariances**2).mean()
    assert float(coral_penalty(source, target)) == pytest.approx(by_hand, rel=1e-12)


def test_the_norm_step_penalty_lengthens_all_features_with_equal_gradients():
    source = (rows(4, 3) * torch.tensor([0.1, 1.0, 10.0, 100.0])[:, None]).requires_grad_()
    (slope,) = torch.autograd.grad(norm_step_penalty(source, source.detach(), step=0.5), source)
    inward = -slope / slope.norm(dim=1, keepdim=True)
    torch.testing.assert_close(inward, (source / source.norm(dim=1, keepdim=True)).detach())
    torch.testing.assert_close(slope.norm(dim=1), torch.full((4,), 2 * 0.5 / 4, dtype=torch.float64))


def pair(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, d)) * np.linspace(0.3, 3.0, d) + 0.5


def tensors(*arrays):
    return [torch.tensor(a) for a in arrays]


@pytest.mark.parametrize("shape", [(6, 20), (12, 13), (9, 9), (20, 6)])
def test_sines_equal_those_of_scipys_subspace_angles(shape):
    X, Z = pair(*shape)
    rng = np.random.default_rng(5)
    sines = principal_sines(*tensors(X, Z)).numpy()
    np.testing.assert_allclose(sines, np.sin(scipy.linalg.subspace_angles(X.T, Z.T)), atol=1e-12)
    low = rng.normal(size=(6, 2)) @ rng.normal(size=(2, shape[1]))  # of rank two
    expected = np.sin(scipy.linalg.subspace_angles(low.T, Z[:5].T))
    np.testing.assert_allclose(principal_sines(*tensors(low, Z[:5])).numpy(), expected, atol=1e-10)


def published_rsd(source, target):
    U_s, U_t = (torch.linalg.svd(f.mT, full_matrices=False)[0] for f in (source, target))
    P_s, cosines, P_t = torch.linalg.svd(U_s.mT @ U_t)
    return (1 - cosines**2).sqrt().sum() + 0.01 * torch.linalg.vector_norm(P_s.abs() - P_t.mT.abs())


def test_rsd_has_the_published_value_and_gradient_where_they_exist_and_is_invariant():
    source, target = (t.requires_grad_() for t in tensors(*pair(6, 20)))
    ours, theirs = rsd_penalty(source, target), published_rsd(source, target)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=0)
    slopes = (torch.autograd.grad(value, (source, target)) for value in (ours, theirs))
    for own, other in zip(*slopes):
        torch.testing.assert_close(own, other, rtol=1e-9, atol=1e-10)
    R = torch.linalg.qr(rows(20, 20))[0]
    for a, b in ((source @ R, target @ R), (1e3 * source, 1e-3 * target)):
        torch.testing.assert_close(rsd_penalty(a, b), ours, rtol=1e-9, atol=0)


def published_dare_gram(X, Z, threshold):
    """Compute DARE-GRAM with numpy's pinv, truncated between the k-th and the next eigenvalue."""
    grams = [np.column_stack([np.ones(len(A)), A]) for A in (X, Z)]
    grams = [A.T @ A for A in grams]
    eigenvalues = [np.linalg.eigvalsh(G)[::-1] for G in grams]
    shares = [np.cumsum(lam) / lam.sum() for lam in eigenvalues]
    k = max(np.flatnonzero(share <= max(threshold, share[1]))[-1] for share in shares)
    inverses = [
        np.linalg.pinv(G, rcond=np.sqrt(lam[k - 1] * max(lam[k], 1e-12)) / lam[0], hermitian=True)
        for G, lam in zip(grams, eigenvalues)
    ]
    norms = [np.linalg.norm(G, axis=0) for G in inverses]
    angle = np.abs(1 - (inverses[0] * inverses[1]).sum(axis=0) / (norms[0] * norms[1])).mean()
    return angle, np.linalg.norm(eigenvalues[0][:k] - eigenvalues[1][:k]) / k


@pytest.mark.parametrize("shape", [(6, 20), (12, 13), (9, 9), (20, 6)])
@pytest.mark.parametrize("threshold", [0.5, 0.9, 0.999])
def test_dare_gram_equals_the_published_value(shape, threshold):
    X, Z = pair(*shape)
    angle, scale = published_dare_gram(X, Z, threshold)
    value = dare_gram_penalty(*tensors(X, Z), threshold=threshold)
    assert float(value) == pytest.approx(0.05 * angle + 0.001 * scale, rel=1e-4)  # a small extra coordinate
    twice = dare_gram_penalty(*tensors(X, np.vstack([Z, Z])), threshold=threshold)
    torch.testing.assert_close(twice, value)


def make_batch(n=24, d=6):
    """A batch of two Gaussian samples with different means and covariances, and labels linear in the first."""
    x, z = rows(n, d, dtype=torch.float32), rows(n, d, seed=1, dtype=torch.float32)
    return Batch(x, x[:, :1] - x[:, 1:2], target=z * torch.linspace(0.2, 3, d) + 1)


def train_network(objective, batch):
    torch.manual_seed(0)
    net = MLP(6, hidden=64)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(150):
        adam.zero_grad()
        sum(objective.loss(net, batch, None, "train").values()).backward()
        adam.step()
    return net


def mean_norm(source, target):
    return -(source.norm(dim=-1).mean() + target.norm(dim=-1).mean())


@pytest.mark.parametrize(
    ("objective", "plain", "measure"),
    [
        (DeepCORAL(1.0), DeepCORAL(0.0), coral_penalty),
        (AFN(0.5), AFN(0.0), mean_norm),
        (RSD(0.1), RSD(0.0), rsd_penalty),
        (DAREGram(1.0, 0.01), DAREGram(0.0, 0.0), dare_gram_penalty),
    ],
)
def test_a_method_reduces_its_penalty_and_still_fits_the_labels(objective, plain, measure):
    batch = make_batch()
    distances = []
    for one in (plain, objective):
        net = train_network(one, batch)
        parts = one.loss(net, batch, None, "train")
        torch.testing.assert_close(parts["mse"], (net(batch.x) - batch.y).square().mean())
        with torch.no_grad():
            distances.append(float(measure(net.features(batch.x), net.features(batch.target))))
    assert distances[1] < distances[0]
    assert float(parts["mse"].detach()) < 0.5 * float(batch.y.square().mean())
    torch.testing.assert_close(
        parts[objective.penalty_name], objective.penalty(net.features(batch.x), net.features(batch.target))
    )


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: DeepCORAL(-1), "weight .*-1"),
        (lambda: DeepCORAL("1"), "weight .*'1'"),
        (lambda: RSD(base=-0.1), r"base .*-0\.1"),
        (lambda: DAREGram(threshold=1.5), r"threshold .*\[0, 1\].*1\.5"),
        (lambda: RSD().penalty(torch.randn(16, 16), torch.randn(8, 16)), r"16 features.*batch_size=8"),
    ],
)
def test_invalid_settings_and_batches_that_span_all_features_raise(make, match):
    with pytest.raises(InputError, match=match):
        make()

"""RSD and DARE-GRAM against brute force in float64, their invariances, and cases where the published losses fail."""

import numpy as np
import pytest
import scipy.linalg

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.paper.objectives.penalties_subspace import base_mismatch, dare_gram_penalty, principal_sines, rsd_penalty  # noqa: E402

SHAPES = [(6, 20), (12, 13), (9, 9), (20, 6)]


def pair(n, d, seed=0):
    rng = np.random.default_rng(seed)
    spread = np.linspace(0.3, 3.0, d)
    return rng.normal(size=(n, d)), rng.normal(size=(n, d)) * spread + 0.5


def tensors(*arrays):
    return [torch.tensor(a) for a in arrays]


def rotation(d):
    return np.linalg.qr(np.random.default_rng(3).normal(size=(d, d)))[0]


def published_base(X, Z):
    (U_s, U_t) = (np.linalg.svd(A.T, full_matrices=False)[0] for A in (X, Z))
    P_s, _, P_t = np.linalg.svd(U_s.T @ U_t)
    return np.linalg.norm(np.abs(P_s) - np.abs(P_t.T))


def published_dare_gram(X, Z, threshold):
    """Compute DARE-GRAM with numpy's pinv, truncated between the k-th and the next eigenvalue.

    The published cut is at the next eigenvalue, so rounding decides whether it is kept.
    """
    grams = [np.column_stack([np.ones(len(A)), A]) for A in (X, Z)]
    grams = [A.T @ A for A in grams]
    eigenvalues = [np.linalg.eigvalsh(G)[::-1] for G in grams]
    ks = []
    for lam in eigenvalues:
        held = np.cumsum(lam) / lam.sum()
        ks.append(np.flatnonzero(held <= max(threshold, held[1]))[-1])
    k = max(ks)
    inverses = [
        np.linalg.pinv(G, rcond=np.sqrt(lam[k - 1] * max(lam[k], 1e-12)) / lam[0], hermitian=True)
        for G, lam in zip(grams, eigenvalues)
    ]
    norms = [np.linalg.norm(G, axis=0) for G in inverses]
    angle = np.abs(1 - (inverses[0] * inverses[1]).sum(axis=0) / (norms[0] * norms[1])).mean()
    return angle, np.linalg.norm(eigenvalues[0][:k] - eigenvalues[1][:k]) / k


@pytest.mark.parametrize("shape", SHAPES)
def test_sines_equal_those_of_scipys_subspace_angles(shape):
    X, Z = pair(*shape)
    sines = principal_sines(*tensors(X, Z)).numpy()
    np.testing.assert_allclose(sines, np.sin(scipy.linalg.subspace_angles(X.T, Z.T)), atol=1e-12)


def test_small_angles_are_accurate():
    """The published root of 1 - cos^2 loses all digits, because cos is 1 to the last bit."""
    basis, tilt = np.eye(6)[:2], np.diag([1e-7, 1e-4])
    Z = basis.copy()
    Z[:, 2:4] = tilt
    sines = principal_sines(*tensors(basis, Z)).numpy()
    np.testing.assert_allclose(sines, [1e-4, 1e-7], rtol=1e-6)


@pytest.mark.parametrize("ranks", [(2, 2), (2, 4), (4, 2), (1, 5)])
def test_batches_of_low_rank_have_the_angles_of_their_spans(ranks):
    rng = np.random.default_rng(5)
    X, Z = (rng.normal(size=(6, r)) @ rng.normal(size=(r, 15)) for r in ranks)
    sines = principal_sines(*tensors(X, Z)).numpy()
    np.testing.assert_allclose(sines[: min(ranks)], np.sin(scipy.linalg.subspace_angles(X.T, Z.T)), atol=1e-10)
    assert (sines[min(ranks) :] == 0).all()


@pytest.mark.parametrize("shape", [(6, 20), (4, 9)])
def test_rsd_equals_the_published_value(shape):
    X, Z = pair(*shape)
    by_hand = np.sin(scipy.linalg.subspace_angles(X.T, Z.T)).sum() + 0.01 * published_base(X, Z)
    assert float(rsd_penalty(*tensors(X, Z))) == pytest.approx(by_hand, rel=1e-10)
    assert float(base_mismatch(*tensors(X, Z))) == pytest.approx(published_base(X, Z), rel=1e-10)


def test_rsd_has_the_published_gradient_where_it_exists():
    source, target = (t.requires_grad_() for t in tensors(*pair(6, 20)))
    U_s, U_t = (torch.linalg.svd(f.mT, full_matrices=False)[0] for f in (source, target))
    P_s, cosines, P_t = torch.linalg.svd(U_s.mT @ U_t)
    published = (1 - cosines**2).sqrt().sum() + 0.01 * torch.linalg.vector_norm(P_s.abs() - P_t.mT.abs())
    theirs = torch.autograd.grad(published, (source, target))
    for own, other in zip(torch.autograd.grad(rsd_penalty(source, target), (source, target)), theirs):
        torch.testing.assert_close(own, other, rtol=1e-9, atol=1e-10)


def test_the_gradient_is_finite_for_equal_subspaces_where_the_published_one_is_not():
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(3, 16))
    source, target = tensors(rng.normal(size=(8, 3)) @ basis, rng.normal(size=(8, 3)) @ basis)
    source, target = source.float().requires_grad_(), target.float().requires_grad_()
    U_s, U_t = (torch.linalg.svd(f.mT, full_matrices=False)[0][:, :3] for f in (source, target))
    published = (1 - torch.linalg.svdvals(U_s.mT @ U_t) ** 2).sqrt().sum()
    theirs = torch.autograd.grad(published, source)[0]
    assert not (torch.isfinite(published) and torch.isfinite(theirs).all())
    value = rsd_penalty(source, target)
    slope = torch.autograd.grad(value, source)[0]
    assert torch.isfinite(value)
    assert torch.isfinite(slope).all()
    assert float(principal_sines(source, target).sum().detach()) < 1e-5  # float32: the spans differ by rounding


@pytest.mark.parametrize("shape", [(6, 20), (12, 13), (20, 6)])
def test_rotating_or_scaling_the_features_does_not_change_rsd(shape):
    X, Z = pair(*shape)
    R = rotation(shape[1])
    before = float(rsd_penalty(*tensors(X, Z)))
    assert float(rsd_penalty(*tensors(X @ R, Z @ R))) == pytest.approx(before, rel=1e-9)
    assert float(rsd_penalty(*tensors(1e3 * X, 1e-3 * Z))) == pytest.approx(before, rel=1e-9)


def test_batches_with_as_many_rows_as_features_have_zero_angles():
    assert principal_sines(*tensors(*pair(20, 6))).max() < 1e-14


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("threshold", [0.5, 0.9, 0.999])
def test_dare_gram_equals_the_published_value(shape, threshold):
    X, Z = pair(*shape)
    angle, scale = published_dare_gram(X, Z, threshold)
    value = dare_gram_penalty(*tensors(X, Z), threshold=threshold)
    assert float(value) == pytest.approx(0.05 * angle + 0.001 * scale, rel=1e-9)


def test_permuting_and_negating_features_does_not_change_dare_gram():
    X, Z = pair(10, 7)
    signs, order = np.array([1, -1, 1, -1, -1, 1, 1]), np.random.default_rng(0).permutation(7)
    before = float(dare_gram_penalty(*tensors(X, Z)))
    assert float(dare_gram_penalty(*tensors((X * signs)[:, order], (Z * signs)[:, order]))) == pytest.approx(before)


def test_rotating_the_features_changes_only_the_angle_term_of_dare_gram():
    X, Z = pair(10, 7)
    R = rotation(7)
    plain, turned = tensors(X, Z), tensors(X @ R, Z @ R)
    only_scale, only_angle = {"angle": 0.0, "scale": 1.0}, {"angle": 1.0, "scale": 0.0}
    assert float(dare_gram_penalty(*turned, **only_scale)) == pytest.approx(
        float(dare_gram_penalty(*plain, **only_scale))
    )
    assert abs(float(dare_gram_penalty(*turned, **only_angle) - dare_gram_penalty(*plain, **only_angle))) > 1e-3


def test_repeating_every_row_of_the_target_does_not_change_dare_gram():
    X, Z = pair(10, 7)
    twice = float(dare_gram_penalty(*tensors(X, np.vstack([Z, Z]))))
    assert twice == pytest.approx(float(dare_gram_penalty(*tensors(X, Z))), rel=1e-10)


def test_equal_eigenvalues_at_the_cut_are_kept_together():
    """The inverse must not depend on the order of equal eigenvalues in the decomposition."""
    X = np.vstack([np.eye(6), -np.eye(6)]) * 3
    R = rotation(6)
    Z = pair(12, 6)[1]
    source, target = tensors(X, Z)
    nudged = torch.tensor(X @ R @ np.diag(1 + 1e-10 * np.arange(6)) @ R.T)
    before, nudged = (float(dare_gram_penalty(rows, target, scale=0.0, threshold=0.5)) for rows in (source, nudged))
    assert nudged == pytest.approx(before, rel=1e-6)


def test_rounding_in_a_constant_feature_does_not_affect_dare_gram():
    X, Z = pair(10, 7)
    X[:, 2], Z[:, 4] = 0, 0
    dead = float(dare_gram_penalty(*tensors(X, Z)))
    X[:, 2], Z[:, 4] = 1e-13 * np.random.default_rng(1).normal(size=(2, 10))
    assert float(dare_gram_penalty(*tensors(X, Z))) == pytest.approx(dead, rel=1e-4)


PENALTIES = [principal_sines, base_mismatch, rsd_penalty, dare_gram_penalty]


def compute_gradients(penalty, X, Z, dtype):
    rows = [torch.tensor(A).float().to(dtype).requires_grad_() for A in (X, Z)]
    return [slope.double() for slope in torch.autograd.grad(penalty(*rows).sum(), rows)]


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p.__name__)
@pytest.mark.parametrize("shape", [(8, 16), (32, 128), (64, 128)])
def test_the_gradient_at_float32_features_equals_that_in_float64(penalty, shape):
    for own, exact in zip(
        *(compute_gradients(penalty, *pair(*shape), dtype) for dtype in (torch.float32, torch.float64))
    ):
        # Rounding of the result is 6e-8. In DARE-GRAM, columns of rounding add about (3e-4)^2.
        assert float((own - exact).norm() / exact.norm()) < 1e-4


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p.__name__)
@pytest.mark.parametrize("size", [1e-20, 1e-32, 1e-40, 0.0])
def test_float32_features_near_zero_have_finite_gradients(penalty, size):
    X, Z = pair(8, 16)
    for slope in compute_gradients(penalty, X * size, Z, torch.float32):
        assert torch.isfinite(slope).all()


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p.__name__)
def test_results_are_float64_for_float64_features_and_else_float32(penalty):
    rows = tensors(*pair(6, 20))
    for dtype, expected in ((torch.float64,) * 2, (torch.float32,) * 2, (torch.bfloat16, torch.float32)):
        assert penalty(*(row.to(dtype) for row in rows)).dtype == expected

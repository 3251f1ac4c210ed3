"""Mixup and C-Mixup: partners follow the kernel, and the loss equals a plain formula."""

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper.networks.models import resnet  # noqa: E402
from pyspar.paper.objectives import mixup as module  # noqa: E402
from pyspar.paper.objectives.base import ERM, Batch, EpochPlan  # noqa: E402
from pyspar.paper.objectives.mixup import CMixup, Mixup, Partners, draw_among_candidates  # noqa: E402  # noqa: E402

LEVEL = 1e-4  # a correct sampler fails with probability 1e-4; the seeds are fixed, so it never fails later


def brute_force(y, h, include_self):
    """Return all N x N probabilities, in extended precision and relative to the largest weight of each row."""
    y = np.asarray(y, dtype=np.longdouble).reshape(len(y), -1)
    log = -0.5 * (((y[:, None] - y[None]) / np.longdouble(h)) ** 2).sum(axis=2)
    if not include_self:
        np.fill_diagonal(log, -np.inf)
    weights = np.exp(log - log.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)).astype(float)


def p_value(drawn, probabilities):
    """Return the p-value of Pearson's chi-square test of draws (rows, times), pooling the rare cells of a row."""
    statistic, freedom = 0.0, 0
    for one, p in zip(drawn, probabilities):
        seen, expected = np.bincount(one, minlength=len(p)), drawn.shape[1] * p
        assert not seen[p == 0].any()
        common = expected >= 5
        seen = np.append(seen[common], seen[~common].sum())
        expected = np.append(expected[common], expected[~common].sum())
        if expected[-1] < 5 and len(expected) > 1:  # the pooled cell is still too rare
            seen, expected = np.append(seen[:-2], seen[-2:].sum()), np.append(expected[:-2], expected[-2:].sum())
        statistic += float(((seen - expected) ** 2 / expected).sum())
        freedom += len(expected) - 1
    return stats.chi2.sf(statistic, freedom) if freedom else 1.0


def labels(kind):
    rng = np.random.default_rng(5)
    return {
        "normal": lambda: rng.normal(size=150),
        "ties": lambda: rng.integers(0, 6, 150).astype(float),
        "all equal": lambda: np.full(40, 0.3),
        "outliers": lambda: np.append(0.1 * rng.random(140), [3.0, 3.4, -7.0, 1e6, 1e6 + 1e-3]),
        "two": lambda: np.array([0.0, 0.8]),
        "two dimensions": lambda: rng.normal(size=(150, 2)),
    }[kind]()


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("h", [1e-9, 5e-4, 0.5, 1e9])
@pytest.mark.parametrize("kind", ["normal", "ties", "all equal", "outliers", "two", "two dimensions"])
def test_partners_follow_the_kernel(kind, h, include_self, stored, monkeypatch):
    monkeypatch.setattr(module, "_MAX_STORED_ROWS", 1000 if stored else 0)
    monkeypatch.setattr(module, "_MAX_CELLS", 10_000)  # several parts
    monkeypatch.setattr(module, "_BLOCK", 8)
    y = labels(kind)
    rows = np.arange(min(8, len(y)))
    drawn = Partners(y, h, include_self=include_self).draw(
        np.repeat(rows[:, None], 2000, axis=1), np.random.default_rng(11)
    )
    assert p_value(drawn, brute_force(y, h, include_self)[rows]) > LEVEL


def test_the_goodness_of_fit_test_detects_a_bandwidth_that_is_two_per_cent_off():
    y = labels("normal")
    drawn = Partners(y, 0.51).draw(np.repeat(np.arange(20)[:, None], 20_000, axis=1), np.random.default_rng(0))
    assert p_value(drawn, brute_force(y, 0.5, True)[:20]) < LEVEL


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("kind", ["normal", "ties", "two dimensions"])
def test_partners_within_a_batch_follow_the_kernel_on_the_batch(kind, include_self):
    y = labels(kind)
    batch = np.random.default_rng(1).permutation(len(y))[:12]
    order = np.repeat(batch[None], 3000, axis=0)
    drawn = draw_among_candidates(y, order, 0.1, np.random.default_rng(2), include_self=include_self)
    column = np.argsort(batch)[np.searchsorted(np.sort(batch), drawn)]
    assert (batch[column] == drawn).all()
    assert p_value(column.T, brute_force(y[batch], 0.1, include_self)) > LEVEL


def test_with_extra_candidates_half_of_the_partners_of_a_wide_kernel_are_from_the_whole_set():
    y, batch = labels("normal"), np.arange(10)
    order = np.repeat(batch[None], 4000, axis=0)
    drawn = draw_among_candidates(y, order, 1e9, np.random.default_rng(2), extra=1)
    share = np.isin(drawn, batch).mean()  # one half from the batch, and 10 of 150 rows of the rest
    assert share == pytest.approx(0.5 + 0.5 * 10 / 150, abs=5 * 0.5 / np.sqrt(drawn.size))
    near = draw_among_candidates(y, order, 1e-9, np.random.default_rng(2), extra=1)
    assert (y[near] == y[order]).all()


def make_net(seed=0):
    torch.manual_seed(seed)
    return resnet(18, channels=1, stem="small").eval()


def batch_of(objective, n=20, size=4, mix=None):
    """Return the first batch of images according to the objective's plan."""
    rng = np.random.default_rng(0)
    x, y = torch.tensor(rng.normal(size=(n, 1, 8, 8))).float(), torch.tensor(rng.normal(size=(n, 1))).float()
    order = rng.permutation(n).reshape(-1, size)
    drawn = objective.plan(EpochPlan(rng, order, y.numpy(), 0, objective.prepare(y.numpy())))
    assert drawn["partner"].shape == order.shape
    assert drawn["mix"].shape == (order.shape if objective.mix == "sample" else order.shape[:1])
    mix = torch.as_tensor(drawn["mix"][0] if mix is None else mix, dtype=torch.float32)
    i, j = order[0], drawn["partner"][0]
    return Batch(x[i], y[i], x[j], y[j], draws={"mix": mix})


OBJECTIVES = [
    Mixup(),
    Mixup(mix="sample", where="manifold"),
    CMixup(0.5, mix="sample", mix_alpha=0.5, include_self=False, both_ways=True),
    CMixup(0.5, partners="double-batch", where="maps"),
    CMixup(0.5, partners="within-batch"),
]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_the_loss_equals_the_formula(objective):
    net, batch = make_net(), batch_of(objective)
    ways = [(batch.x, batch.y, batch.partner_x, batch.partner_y)]
    ways += [(batch.partner_x, batch.partner_y, batch.x, batch.y)] if objective.both_ways else []
    errors = []
    for x, y, partner_x, partner_y in ways:
        for row in range(4):
            lam = float(batch.draws["mix"][row] if objective.mix == "sample" else batch.draws["mix"])
            a, b = x[row : row + 1], partner_x[row : row + 1]
            if objective.where == "input":
                out = net(lam * a + (1 - lam) * b)
            elif objective.where == "manifold":
                out = net.head(net.trunk(lam * net.stem(a) + (1 - lam) * net.stem(b)))
            else:  # before the average pooling of the last maps
                maps = lam * net.feature_maps(a) + (1 - lam) * net.feature_maps(b)
                assert maps.shape == (1, 512, 1, 1)
                out = net.head(maps.mean(dim=(2, 3)))
            errors.append(float((out.detach() - lam * y[row] - (1 - lam) * partner_y[row]).square().sum()))
    (value,) = objective.loss(net, batch, None, "train").values()
    assert float(value) == pytest.approx(np.mean(errors), rel=1e-4)


@pytest.mark.parametrize("objective", [o for o in OBJECTIVES if not o.both_ways], ids=repr)
def test_a_mixing_weight_of_one_or_zero_equals_erm_on_the_rows_or_the_partners(objective):
    net = make_net()
    for weight in (1.0, 0.0):
        batch = batch_of(objective, mix=np.full(4, weight) if objective.mix == "sample" else weight)
        rows = batch if weight else Batch(batch.partner_x, batch.partner_y)
        (value,) = objective.loss(net, batch, None, "train").values()
        assert float(value) == pytest.approx(float(ERM().loss(net, rows, None, "train")["mse"]), rel=1e-5)


def test_mixing_weights_are_beta_distributed():
    """Mean 1/2 and variance 1 / (8 a + 4), to five standard errors."""
    order = np.zeros((500, 200), dtype=np.int64)
    for a in (0.5, 2.0):
        mix = Mixup(mix_alpha=a, mix="sample").plan(EpochPlan(np.random.default_rng(0), order, np.zeros((3, 1)), 0))
        variance = 1 / (8 * a + 4)
        assert mix["mix"].mean() == pytest.approx(0.5, abs=5 * np.sqrt(variance / mix["mix"].size))
        assert mix["mix"].var() == pytest.approx(variance, rel=0.02)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: CMixup(0.0), r"bandwidth .*0\.0"),
        (lambda: Mixup(mix_alpha=-1), "mix_alpha .*-1"),
        (lambda: CMixup(1.0, where="output"), "where .*'output'"),
        (lambda: CMixup(1.0, partners="all"), "partners .*'all'"),
        (lambda: CMixup(1.0, mix="epoch"), "mix .*'epoch'"),
    ],
)
def test_invalid_settings_raise(make, match):
    with pytest.raises(InputError, match=match):
        make()

"""The partners of C-Mixup follow the kernel: goodness of fit against all N x N weights."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.errors import InputError
from pyspar.paper.objectives import partners as module
from pyspar.paper.objectives.partners import Partners, draw_within_batches

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
    times = drawn.shape[1]
    statistic, freedom = 0.0, 0
    for one, p in zip(drawn, probabilities):
        seen, expected = np.bincount(one, minlength=len(p)), times * p
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
        "uniform": lambda: rng.random(150),
        "normal": lambda: rng.normal(size=150),
        "ties": lambda: rng.integers(0, 6, 150).astype(float),
        "all equal": lambda: np.full(40, 0.3),
        "clusters": lambda: np.repeat([0.0, 1.0, 1.001, 50.0], 30) + 1e-3 * rng.normal(size=120),
        "outliers": lambda: np.append(0.1 * rng.random(140), [3.0, 3.4, -7.0, 1e6, 1e6 + 1e-3]),
        "far from zero": lambda: 1e9 + rng.random(80),
        "heavy tails": lambda: rng.standard_cauchy(120),
        "two": lambda: np.array([0.0, 0.8]),
        "two dimensions": lambda: rng.normal(size=(150, 2)),
        "two dimensions with ties": lambda: rng.integers(0, 4, (120, 2)).astype(float),
        "a useless dimension": lambda: np.c_[np.zeros(100), rng.random(100)],
        "four dimensions": lambda: rng.normal(size=(90, 4)) * [1.0, 3.0, 0.1, 0.0],
    }[kind]()


KINDS = [
    "uniform", "normal", "ties", "all equal", "clusters", "outliers", "far from zero", "heavy tails", "two",
    "two dimensions", "two dimensions with ties", "a useless dimension", "four dimensions",
]  # fmt: skip
BANDWIDTHS = [1e-200, 1e-9, 5e-4, 0.02, 0.5, 3.0, 1e9, 1e200]


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("h", BANDWIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_partners_follow_the_kernel(kind, h, include_self):
    y = labels(kind)
    rows = np.unique(np.r_[np.argsort(y.reshape(len(y), -1)[:, 0])[[0, -1]], np.arange(min(8, len(y)))])
    partners = Partners.of(y, h, include_self=include_self)
    drawn = partners.draw(np.repeat(rows[:, None], 4000, axis=1), np.random.default_rng(11))
    assert p_value(drawn, brute_force(y, h, include_self)[rows]) > LEVEL


def test_the_goodness_of_fit_test_detects_a_bandwidth_that_is_two_per_cent_off():
    y = labels("normal")
    drawn = Partners.of(y, 0.51).draw(np.repeat(np.arange(20)[:, None], 20_000, axis=1), np.random.default_rng(0))
    assert p_value(drawn, brute_force(y, 0.5, True)[:20]) < LEVEL


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("kind", ["normal", "ties", "two dimensions", "outliers"])
def test_rows_that_are_drawn_directly_follow_the_kernel(kind, include_self, monkeypatch):
    y = labels(kind)
    partners = Partners.of(y, 0.3, include_self=include_self)
    monkeypatch.setattr(Partners, "_propose", lambda self, i, rng: (i, np.zeros(len(i), dtype=bool)))
    monkeypatch.setattr(module, "_MAX_CELLS", 1000)  # several chunks
    drawn = partners.draw(np.repeat(np.arange(6)[:, None], 4000, axis=1), np.random.default_rng(3))
    assert p_value(drawn, brute_force(y, 0.3, include_self)[:6]) > LEVEL


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("h", [1e-200, 0.1, 1e9])
@pytest.mark.parametrize("kind", ["normal", "ties", "two dimensions", "outliers"])
def test_partners_within_a_batch_follow_the_kernel_on_the_batch(kind, h, include_self):
    y = labels(kind)
    batches = np.random.default_rng(1).permutation(len(y))[:60].reshape(5, 12)
    order = np.repeat(batches[None], 3000, axis=0)
    drawn = draw_within_batches(y, order.reshape(-1, 12), h, np.random.default_rng(2), include_self=include_self)
    drawn = drawn.reshape(order.shape)
    for b, batch in enumerate(batches):
        column = np.argsort(batch)[np.searchsorted(np.sort(batch), drawn[:, b]) % 12]
        assert (batch[column] == drawn[:, b]).all()
        assert p_value(column.T, brute_force(y[batch], h, include_self)) > LEVEL / 5


@pytest.mark.parametrize("dimensions", [1, 2])
def test_at_the_smallest_bandwidth_the_partner_is_the_nearest_other_row(dimensions):
    y = np.random.default_rng(4).normal(size=(300, dimensions))
    drawn = Partners.of(y, 1e-300, include_self=False).draw(np.arange(300), np.random.default_rng(0))
    distance = np.linalg.norm(y[:, None] - y[None], axis=2) + np.diag(np.full(300, np.inf))
    assert (drawn == distance.argmin(axis=1)).all()


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e308])
def test_labels_of_any_size_can_be_drawn(scale):
    y = scale * np.array([0.0, 0.25, 0.5, 1.0])
    drawn = Partners.of(y, 1e-3 * scale, include_self=False).draw(np.arange(4), np.random.default_rng(0))
    assert drawn[0] == 1
    assert drawn[3] == 2
    assert Partners.of(y, 1e300).draw(np.arange(4), np.random.default_rng(0)).shape == (4,)


def test_one_row_is_its_own_partner():
    drawn = Partners.of(np.array([2.0]), 1.0).draw(np.zeros((2, 3), dtype=int), np.random.default_rng(0))
    assert drawn.shape == (2, 3)
    assert not drawn.any()
    assert draw_within_batches(np.array([2.0]), np.zeros((2, 1), dtype=int), 1.0, np.random.default_rng(0)).sum() == 0


def test_excluding_the_row_itself_requires_two_rows():
    with pytest.raises(InputError, match=r"include_self=False .*training set, got 1"):
        Partners.of(np.array([2.0]), 1.0, include_self=False)
    with pytest.raises(InputError, match=r"include_self=False .*batch, got 1"):
        draw_within_batches(np.arange(3.0), np.arange(3)[:, None], 1.0, np.random.default_rng(0), include_self=False)


def test_the_generator_determines_the_draw():
    partners = Partners.of(labels("normal"), 0.2)
    once, again = (partners.draw(np.arange(150), np.random.default_rng(9)) for _ in range(2))
    assert (once == again).all()
    assert (once != partners.draw(np.arange(150), np.random.default_rng(10))).any()


small = arrays(np.float64, st.integers(2, 30), elements=st.integers(-30, 30).map(float))


@settings(max_examples=60, deadline=None)
@given(y=small, h=st.sampled_from([0.5, 3.0, 100.0]), power=st.integers(-40, 40), shift=st.integers(-(10**6), 10**6))
def test_shifting_and_scaling_labels_and_bandwidth_does_not_change_the_draws(y, h, power, shift):
    """Integers and powers of two are exact in float64, so the draws are equal and not only their distribution."""
    factor = 2.0**power
    one = Partners.of(y, h).draw(np.arange(len(y)), np.random.default_rng(0))
    other = Partners.of(factor * (y + shift), factor * h).draw(np.arange(len(y)), np.random.default_rng(0))
    assert (one == other).all()


@settings(max_examples=60, deadline=None)
@given(y=small, seed=st.integers(0, 99), include_self=st.booleans())
def test_permuting_the_training_set_permutes_the_partners(y, seed, include_self):
    """Partners are compared by label, because the order of equal labels is arbitrary."""
    where = np.random.default_rng(seed).permutation(len(y))
    one = Partners.of(y, 2.0, include_self=include_self).draw(where, np.random.default_rng(0))
    other = Partners.of(y[where], 2.0, include_self=include_self).draw(np.arange(len(y)), np.random.default_rng(0))
    assert np.array_equal(y[one], y[where][other])


@settings(max_examples=60, deadline=None)
@given(y=small, h=st.floats(1e-3, 1e3), include_self=st.booleans())
def test_rings_are_disjoint_cover_all_candidates_and_bound_their_weights(y, h, include_self):
    p = Partners.of(y, h, include_self=include_self)
    n, (t,) = len(y), p.labels
    assert (np.diff(p.start, axis=0) <= 0).all()
    assert (np.diff(p.stop, axis=0) >= 0).all()
    for i in range(n):
        ring = np.full(n, -1)
        for k in reversed(range(len(p.bounds))):
            ring[p.start[k + 1, i] : p.stop[k + 1, i]] = k
        ring[p.start[0, i] : p.stop[0, i]] = -1
        assert (ring[np.arange(n) != i] >= 0).all()
        assert (ring[i] >= 0) == include_self
        deficit = module._deficit(np.abs(t - t[i]), p.nearest[i], p.bandwidth)
        edges = np.append(p.bounds, np.inf)
        candidates = ring >= 0
        assert (deficit[candidates] >= edges[ring[candidates]]).all()
        assert (deficit[candidates] < edges[ring[candidates] + 1]).all()


@pytest.mark.parametrize("y", [np.random.default_rng(0).normal(size=40_000), np.repeat(np.arange(10.0), 4000)])
@pytest.mark.parametrize("h", [1e-6, 0.1, 100.0])
def test_memory_is_linear_in_the_number_of_rows(y, h):
    """At most 64 numbers per row: rings take 12 x (8 + 8) bytes, a draw a dozen vectors. All pairs: 40,000 per row."""
    tracemalloc.start()
    try:
        Partners.of(y, h).draw(np.arange(len(y)), np.random.default_rng(0))
        assert tracemalloc.get_traced_memory()[1] < 64 * 8 * len(y)
    finally:
        tracemalloc.stop()


def test_memory_is_small_if_every_row_is_drawn_directly():
    y = np.random.default_rng(0).normal(size=(3000, 8))  # in eight dimensions, few rows have a neighbour
    tracemalloc.start()
    try:
        drawn = Partners.of(y, 0.05, include_self=False).draw(np.arange(500), np.random.default_rng(0))
        assert tracemalloc.get_traced_memory()[1] < 3000**2 * 8 / 2
        assert (drawn != np.arange(500)).all()
    finally:
        tracemalloc.stop()

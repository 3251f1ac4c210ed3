"""Which rows each step sees."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.paper.training import order
from pyspar.paper.training.order import generator, target_order, torch_seed, train_order


def test_an_order_drawn_once_is_the_same_in_every_epoch_and_drops_the_same_rows():
    first = train_order(5, 0, 23, 4, "once")
    assert first.shape == (5, 4)
    assert len(np.unique(first)) == 20  # no row twice, three rows left out
    for epoch in (1, 7):
        np.testing.assert_array_equal(train_order(5, epoch, 23, 4, "once"), first)
    assert (train_order(6, 0, 23, 4, "once") != first).any()


def test_an_order_drawn_each_epoch_differs_and_leaves_out_others():
    orders = [train_order(5, epoch, 23, 4, "epoch") for epoch in range(12)]
    assert all(len(np.unique(order)) == 20 for order in orders)
    assert set(range(23)) == set(np.concatenate(orders).ravel().tolist())


@pytest.mark.parametrize(("m", "steps", "batch"), [(10, 4, 3), (3, 5, 8), (100, 2, 7), (6, 3, 2), (1, 3, 4)])
def test_no_target_row_comes_again_before_all_have_come(m, steps, batch):
    stream = np.concatenate([target_order(1, epoch, m, steps, batch).ravel() for epoch in range(9)])
    for start in range(0, len(stream) - m + 1, m):
        assert sorted(stream[start : start + m]) == list(range(m))


def test_a_target_is_reshuffled_when_it_runs_out():
    stream = target_order(1, 0, 50, 4, 50)
    assert len({tuple(order) for order in stream.tolist()}) == 4


def test_any_epoch_of_the_target_can_be_had_alone():
    alone = target_order(2, 5, 11, 3, 4)
    assert alone.shape == (3, 4)
    whole = np.concatenate([target_order(2, epoch, 11, 3, 4).ravel() for epoch in range(6)])
    np.testing.assert_array_equal(alone.ravel(), whole[5 * 12 :])


def test_purposes_epochs_and_seeds_do_not_share_their_draws():
    draws = {(s, e, p): generator(s, e, p).random() for s in range(3) for e in range(3) for p in ("plan", "order")}
    assert len(set(draws.values())) == len(draws)
    assert len({torch_seed(s, e, "torch") for s in range(3) for e in range(3)}) == 9


def test_a_target_of_few_rows_takes_few_generators(monkeypatch):
    """Each costs as much as drawing thousands of rows."""
    made = []
    monkeypatch.setattr(order, "generator", lambda *a: made.append(a) or generator(*a))
    assert (target_order(0, 0, 1, 400, 100) == 0).all()
    assert len(made) <= 40_000 // 64 + 1
    made.clear()
    target_order(0, 0, 64, 1, 64)
    assert len(made) == 1


def test_the_orders_of_a_small_target_differ_and_are_alike_likely():
    rows = target_order(0, 0, 3, 2000, 3)
    assert all(sorted(row) == [0, 1, 2] for row in rows.tolist())
    _, counts = np.unique(rows @ [9, 3, 1], return_counts=True)
    assert len(counts) == 6
    assert abs(counts / 2000 - 1 / 6).max() < 5 * np.sqrt(5 / 36 / 2000)  # five standard deviations of a share

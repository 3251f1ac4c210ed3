"""The random order of rows and the generators of an epoch."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.paper.training import epoch_data
from pyspar.paper.training.epoch_data import (
    draw_target_order,
    draw_train_order,
    make_generator,
    make_torch_seed,
)


def test_an_order_drawn_once_is_the_same_in_every_epoch_and_drops_the_same_rows():
    first = draw_train_order(5, 0, 23, 4, "once")
    assert first.shape == (5, 4)
    assert len(np.unique(first)) == 20  # no row twice, three rows dropped
    for epoch in (1, 7):
        np.testing.assert_array_equal(draw_train_order(5, epoch, 23, 4, "once"), first)
    assert (draw_train_order(6, 0, 23, 4, "once") != first).any()


def test_an_order_drawn_for_each_epoch_differs_and_drops_other_rows():
    orders = [draw_train_order(5, epoch, 23, 4, "epoch") for epoch in range(12)]
    assert all(len(np.unique(order)) == 20 for order in orders)
    assert set(range(23)) == set(np.concatenate(orders).ravel().tolist())


@pytest.mark.parametrize(("m", "steps", "batch"), [(10, 4, 3), (3, 5, 8), (100, 2, 7), (6, 3, 2), (1, 3, 4)])
def test_a_target_row_is_repeated_only_after_all_rows_were_used(m, steps, batch):
    stream = np.concatenate([draw_target_order(1, epoch, m, steps, batch).ravel() for epoch in range(9)])
    for start in range(0, len(stream) - m + 1, m):
        assert sorted(stream[start : start + m]) == list(range(m))


def test_the_target_is_reshuffled_after_all_rows_were_used():
    stream = draw_target_order(1, 0, 50, 4, 50)
    assert len({tuple(order) for order in stream.tolist()}) == 4


def test_the_target_rows_of_an_epoch_do_not_depend_on_earlier_calls():
    alone = draw_target_order(2, 5, 11, 3, 4)
    assert alone.shape == (3, 4)
    whole = np.concatenate([draw_target_order(2, epoch, 11, 3, 4).ravel() for epoch in range(6)])
    np.testing.assert_array_equal(alone.ravel(), whole[5 * 12 :])


def test_purposes_epochs_and_seeds_have_different_draws():
    draws = {(s, e, p): make_generator(s, e, p).random() for s in range(3) for e in range(3) for p in ("plan", "order")}
    assert len(set(draws.values())) == len(draws)
    assert len({make_torch_seed(s, e, "torch") for s in range(3) for e in range(3)}) == 9


def test_a_small_target_requires_few_generators(monkeypatch):
    """Creating a generator takes as long as drawing thousands of rows."""
    created = []
    monkeypatch.setattr(epoch_data, "make_generator", lambda *a: created.append(a) or make_generator(*a))
    assert (draw_target_order(0, 0, 1, 400, 100) == 0).all()
    assert len(created) <= 40_000 // 64 + 1
    created.clear()
    draw_target_order(0, 0, 64, 1, 64)
    assert len(created) == 1


def test_the_orders_of_a_small_target_are_equally_likely():
    rows = draw_target_order(0, 0, 3, 2000, 3)
    assert all(sorted(row) == [0, 1, 2] for row in rows.tolist())
    _, counts = np.unique(rows @ [9, 3, 1], return_counts=True)
    assert len(counts) == 6
    assert abs(counts / 2000 - 1 / 6).max() < 5 * np.sqrt(5 / 36 / 2000)  # five standard errors of a share

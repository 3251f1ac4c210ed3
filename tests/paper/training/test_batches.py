"""The random order of rows, and the settings of training."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import TrainConfig  # noqa: E402
from pyspar.paper.training.batches import draw_target_order, draw_train_order, make_generator  # noqa: E402


def test_an_order_drawn_once_is_the_same_in_every_epoch_and_drops_the_same_rows():
    first = draw_train_order(5, 0, 23, 4, "once")
    assert first.shape == (5, 4)
    assert len(np.unique(first)) == 20  # no row twice, three rows dropped
    np.testing.assert_array_equal(draw_train_order(5, 7, 23, 4, "once"), first)
    assert (draw_train_order(6, 0, 23, 4, "once") != first).any()
    orders = [draw_train_order(5, epoch, 23, 4, "epoch") for epoch in range(12)]
    assert set(range(23)) == set(np.concatenate(orders).ravel().tolist())


@pytest.mark.parametrize(("m", "steps", "batch"), [(10, 4, 3), (3, 5, 8), (100, 2, 7), (1, 3, 4)])
def test_a_target_row_is_repeated_only_after_all_rows_were_used(m, steps, batch):
    epochs = [draw_target_order(1, epoch, m, steps, batch).ravel() for epoch in range(9)]
    stream = np.concatenate(epochs)
    for start in range(0, len(stream) - m + 1, m):
        assert sorted(stream[start : start + m]) == list(range(m))
    np.testing.assert_array_equal(draw_target_order(1, 5, m, steps, batch).ravel(), epochs[5])


def test_purposes_epochs_and_seeds_have_different_draws():
    draws = {make_generator(s, e, p).random() for s in range(3) for e in range(3) for p in ("plan", "order")}
    assert len(draws) == 18


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0), ("epochs", 1.5), ("epochs", True), ("batch_size", -1), ("eval_batch_size", 0), ("lr", 0),
        ("lr", float("nan")), ("lr", "1e-3"), ("gamma", 1.5), ("schedule", "linear"), ("shuffle", "never"),
        ("select", "rmse"), ("device", "tpu"), ("autocast", "float32"),
    ],
)  # fmt: skip
def test_an_invalid_setting_raises_with_its_name_and_value(name, value):
    with pytest.raises(InputError, match=rf"^{name} .*got {value!r}"):
        TrainConfig(**{"epochs": 2, "batch_size": 8, "lr": 1e-2, "device": "cpu", name: value})

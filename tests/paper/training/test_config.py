"""The settings of training: valid values, and errors for the others."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar.errors import InputError  # noqa: E402
from pyspar.paper import TrainConfig  # noqa: E402


def config(**changes):
    return TrainConfig(**{"epochs": 2, "batch_size": 8, "lr": 1e-2, "device": "cpu", **changes})


def test_numpy_numbers_are_converted_to_int_and_float():
    converted = config(
        epochs=np.int64(3), batch_size=np.int32(4), lr=np.float32(0.5), weight_decay=np.float64(0.25), gamma=1
    )
    assert converted == config(epochs=3, batch_size=4, lr=0.5, weight_decay=0.25, gamma=1.0)
    assert {type(converted.epochs), type(converted.batch_size)} == {int}
    assert {type(converted.lr), type(converted.weight_decay), type(converted.gamma)} == {float}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("epochs", 1.5),
        ("epochs", True),
        ("batch_size", -1),
        ("eval_batch_size", 0),
        ("lr", 0),
        ("lr", float("nan")),
        ("lr", "1e-3"),
        ("weight_decay", -1e-3),
        ("gamma", 0),
        ("gamma", 1.5),
        ("schedule", "linear"),
        ("shuffle", "never"),
        ("select", "rmse"),
        ("device", "tpu"),
        ("autocast", "float32"),
        ("graph", True),
        ("kernels", "slow"),
    ],
)
def test_an_invalid_setting_raises_with_its_name_and_value(name, value):
    with pytest.raises(InputError, match=rf"^{name} .*got {value!r}"):
        config(**{name: value})


def test_cuda_requires_a_gpu():
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="device='cuda'"):
            config(device="cuda")

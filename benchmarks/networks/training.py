"""Train the networks, and cache each one together with its split of the source rows.

The source rows are split at random into 70 % training, 20 % validation and 10 % held-out rows. Labels are standardised
by the training rows. Adam minimises the squared error, the validation error decides when to stop, and the weights of
the best epoch are restored. The held-out rows are used by neither training nor repair.
"""

from __future__ import annotations

import copy
import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.shifts.sets import REGISTER, Task

VALIDATION_SHARE = 0.2
HELD_OUT_SHARE = 0.1
LEARNING_RATE = 1e-3
BATCH = 128
MOST_EPOCHS = 1000
PATIENCE = 20
SEED = 0


def _relu_64_64(d: int) -> nn.Module:
    return nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))


def _gelu_128_128(d: int) -> nn.Module:
    hidden = [nn.Linear(d, 128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 128), nn.GELU(), nn.Dropout(0.1)]
    return nn.Sequential(*hidden, nn.Linear(128, 1))


def _tanh_256(d: int) -> nn.Module:
    return nn.Sequential(nn.Linear(d, 256), nn.Tanh(), nn.Linear(256, 1))


def _gelu_512_512(d: int) -> nn.Module:
    return nn.Sequential(nn.Linear(d, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 1))


NETWORKS: dict[str, Callable[[int], nn.Module]] = {
    "64-64 ReLU": _relu_64_64,
    "128-128 GELU, dropout 0.1": _gelu_128_128,
    "256 tanh": _tanh_256,
    "512-512 GELU": _gelu_512_512,
}
REQUIRED = ("64-64 ReLU", "128-128 GELU, dropout 0.1", "256 tanh")
"""The networks to which the requirement applies. The wide network is reported separately."""


@dataclass(frozen=True, eq=False)
class Data:
    """The rows of one set as float32 tensors, with labels standardised by the training rows."""

    train: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    held_out: tuple[Tensor, Tensor]
    target: tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A trained network in evaluation mode, its data, and the number of the best epoch."""

    model: nn.Module
    data: Data
    epoch: int


def trained_network(name: str, network: str, epochs: int | None = None) -> TrainedNetwork:
    """Return a trained network of one set, from the cache if it is there.

    ``epochs`` is the largest number of epochs. Use a small one for a head that is not well trained.
    """
    arrays = Task(REGISTER[name], "raw").arrays()
    path = _cache_file(name, f"{network}-{epochs}" if epochs else network, arrays)
    model = NETWORKS[network](arrays[0].shape[1])
    if path.exists():
        kept = torch.load(path, weights_only=True)
        split = {part: rows.numpy() for part, rows in kept["split"].items()}
        data = _data(arrays, split)
        model.load_state_dict(kept["state"])
        return TrainedNetwork(model.eval(), data, kept["epoch"])
    split = _split(len(arrays[0]))
    data = _data(arrays, split)
    model, epoch = _fit(NETWORKS[network], data, epochs)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    rows = {part_name: torch.as_tensor(indices) for part_name, indices in split.items()}
    torch.save({"state": model.state_dict(), "split": rows, "epoch": epoch}, part)
    part.replace(path)
    return TrainedNetwork(model, data, epoch)


def rmse(model: nn.Module, rows: tuple[Tensor, Tensor]) -> float:
    """Return the root mean squared error, computed in float64 from the network's float32 predictions."""
    with torch.inference_mode():
        return float((model(rows[0]).double() - rows[1].double()).square().mean().sqrt())


def _split(n: int) -> dict[str, np.ndarray]:
    order = np.random.default_rng(SEED).permutation(n)
    held_out, validation = round(HELD_OUT_SHARE * n), round(VALIDATION_SHARE * n)
    return {
        "held_out": np.sort(order[:held_out]),
        "validation": np.sort(order[held_out : held_out + validation]),
        "train": np.sort(order[held_out + validation :]),
    }


def _data(arrays: tuple[np.ndarray, ...], split: dict[str, np.ndarray]) -> Data:
    X, y, Z, yz = arrays
    mean, spread = y[split["train"]].mean(), y[split["train"]].std()

    def tensors(features: np.ndarray, labels: np.ndarray) -> tuple[Tensor, Tensor]:
        standardised = (labels - mean) / spread
        return torch.as_tensor(features, dtype=torch.float32), torch.as_tensor(standardised[:, None]).float()

    return Data(target=tensors(Z, yz), **{part: tensors(X[rows], y[rows]) for part, rows in split.items()})


def _fit(build: Callable[[int], nn.Module], data: Data, epochs: int | None) -> tuple[nn.Module, int]:
    """Train until the validation error has not improved for ``PATIENCE`` epochs; restore the best epoch."""
    X, y = data.train
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = build(X.shape[1])
        optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
        lowest, best, best_epoch = float("inf"), copy.deepcopy(model.state_dict()), 0
        for epoch in range(1, (epochs or MOST_EPOCHS) + 1):
            model.train()
            for rows in torch.randperm(len(X)).split(BATCH):
                loss = (model(X[rows]) - y[rows]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            error = rmse(model.eval(), data.validation)
            if error < lowest:
                lowest, best, best_epoch = error, copy.deepcopy(model.state_dict()), epoch
            elif epoch - best_epoch >= PATIENCE:
                break
        else:
            if epochs is None:
                message = f"training ended after {MOST_EPOCHS} epochs before the error stopped improving"
                warnings.warn(message, stacklevel=2)
    model.load_state_dict(best)
    return model.eval(), best_epoch


def _cache_file(name: str, network: str, arrays: tuple[np.ndarray, ...]) -> Path:
    """Return a path whose folder is named after this code, and whose name contains a hash of the data."""
    code = hashlib.sha256(Path(__file__).read_bytes() + torch.__version__.encode()).hexdigest()[:12]
    data = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()[:12]
    label = "".join(c if c.isalnum() else "-" for c in network)
    root = os.environ.get("PYSPAR_NETWORKS_CACHE", str(Path(tempfile.gettempdir()) / "pyspar-networks"))
    return Path(root) / code / f"{name}-{label}-{data}.pt"

"""The networks: a small residual network with one of three kinds of normalisation layers, trained on the source."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.align.images import source_part

NORMS = ("batch", "group", "layer")
EPOCHS = {"garments": 10, "chairs": 40}
BATCH = 128


class ChannelNorm(nn.LayerNorm):
    """Layer normalisation over the channels of an image."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def normalise(kind: str, channels: int) -> nn.Module:
    """Return a normalisation layer for images."""
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    return nn.GroupNorm(8, channels) if kind == "group" else ChannelNorm(channels)


class Block(nn.Module):
    """Two convolutions with a shortcut; the image halves its side."""

    def __init__(self, kind: str, inputs: int, outputs: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False),
            normalise(kind, outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            normalise(kind, outputs),
        )
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.path(x) + self.shortcut(x))


class AngleNetwork(nn.Module):
    """Predicts the angle from 256 features."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1, bias=False),
            normalise(kind, 16),
            nn.ReLU(),
            Block(kind, 16, 32),
            Block(kind, 32, 64),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(256, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x)).squeeze(1)


@torch.no_grad()
def compute(module: nn.Module, X: Tensor) -> NDArray[np.float64]:
    """Return the outputs of a module in evaluation mode, on the device of its parameters."""
    device = next(module.parameters()).device
    return torch.cat([module(part.to(device)).cpu() for part in X.split(1000)]).double().numpy()


@torch.no_grad()
def rmse(model: nn.Module, X: Tensor, y: Tensor) -> float:
    """Return the error of a model in evaluation mode, on the device of its parameters."""
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    squares = [
        (model(part.to(device)) - true.to(device)).square().sum()
        for part, true in zip(X.split(1000), y.split(1000), strict=True)
    ]
    model.train(was_training)
    return float((sum(squares) / len(y)) ** 0.5)


def tensors(data: str, part: str, seed: int) -> tuple[Tensor, Tensor]:
    """Return images of shape (n, 1, side, side) and angles of a part of the source."""
    X, y = map(torch.from_numpy, source_part(data, part, seed))
    return X[:, None], y


def train(data: str, kind: str, seed: int, device: str, epochs: int | None = None) -> nn.Module:
    """Train with Adam and a decreasing step; return the epoch with the smallest error on the validation rows."""
    (X, y), valid = (tensors(data, part, seed) for part in ("train", "valid"))
    X, y = X.to(device), y.to(device)
    torch.manual_seed(seed)
    model = AngleNetwork(kind).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    epochs = epochs or EPOCHS[data]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=epochs * -(-len(X) // BATCH))
    best, best_error = model, float("inf")
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(len(X)).to(device).split(BATCH):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(X[rows]), y[rows]).backward()
            optimizer.step()
            schedule.step()
        error = rmse(model, *valid)
        if error < best_error:
            best, best_error = copy.deepcopy(model), error
    return best.eval()


def trained(data: str, kind: str, seed: int, folder: Path, device: str, epochs: int | None = None) -> nn.Module:
    """Return a trained network, from the folder if it is there."""
    path = folder / f"network-{data}-{kind}-{seed}.pt"
    if not path.exists():
        torch.save(train(data, kind, seed, device, epochs).state_dict(), path)
    model = AngleNetwork(kind).to(device)
    model.load_state_dict(torch.load(path, weights_only=True, map_location=device))
    return model.eval()

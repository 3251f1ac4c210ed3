"""The networks: a small residual network with one of three kinds of normalisation layers, trained on the source."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.align.images import source_parts

NORMS = ("batch", "group", "layer")
EPOCHS = 8


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
            nn.AvgPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(256, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x)).squeeze(1)


@torch.no_grad()
def predict(model: nn.Module, X: Tensor) -> Tensor:
    """Return the predictions of a model in evaluation mode."""
    was_training = model.training
    model.eval()
    predictions = torch.cat([model(part) for part in X.split(500)])
    model.train(was_training)
    return predictions


def rmse(model: nn.Module, X: Tensor, y: Tensor) -> float:
    return float((predict(model, X) - y).square().mean().sqrt())


def train(kind: str, seed: int, epochs: int = EPOCHS) -> nn.Module:
    """Train with Adam and a decreasing step; return the epoch with the smallest error on the validation rows."""
    parts = {name: tuple(map(torch.from_numpy, part)) for name, part in source_parts(seed).items()}
    (X, y), valid = parts["train"], parts["valid"]
    torch.manual_seed(seed)
    model = AngleNetwork(kind)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    steps = epochs * -(-len(X) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    best, best_error = model, float("inf")
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(len(X)).split(64):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(X[rows, None]), y[rows]).backward()
            optimizer.step()
            schedule.step()
        error = rmse(model, valid[0][:, None], valid[1])
        if error < best_error:
            best, best_error = copy.deepcopy(model), error
    return best.eval()


def trained(kind: str, seed: int, cache: Path) -> nn.Module:
    """Return a trained network, from the cache if it is there."""
    path = cache / f"network-{kind}-{seed}.pt"
    model = AngleNetwork(kind)
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        torch.save(train(kind, seed).state_dict(), path)
    model.load_state_dict(torch.load(path, weights_only=True))
    return model.eval()

"""The paper's network for tables."""

from __future__ import annotations

from torch import Tensor, nn


class MLP(nn.Module):
    """Two hidden layers with LeakyReLU(0.1), and a linear head without bias.

    Parameters
    ----------
    n_features : int
    hidden : int
        Width of both hidden layers. The paper's text has one layer, the authors' code has two.
    outputs : int
    """

    def __init__(self, n_features: int, *, hidden: int = 128, outputs: int = 1) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(n_features, hidden), nn.LeakyReLU(0.1))
        self.trunk = nn.Sequential(nn.Linear(hidden, hidden), nn.LeakyReLU(0.1))
        self.head: nn.Module = nn.Linear(hidden, outputs, bias=False)
        self.sizes = (n_features, hidden, hidden, outputs)

    def features(self, x: Tensor) -> Tensor:
        features: Tensor = self.trunk(self.stem(x))
        return features

    def forward(self, x: Tensor) -> Tensor:
        prediction: Tensor = self.head(self.features(x))
        return prediction

    def __repr__(self) -> str:
        return f"MLP({' -> '.join(map(str, self.sizes))})"

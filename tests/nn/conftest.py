"""Small networks, a covariate shift for them, and features read by hand, independent of hooks."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


class MLP(nn.Module):
    """Dropout and batch norm included, so that evaluation mode matters; ``body`` gives the features by hand."""

    def __init__(self, d=6, width=12, outputs=1, bias=False, squeeze=False):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(d, width), nn.BatchNorm1d(width), nn.LeakyReLU(0.1), nn.Dropout(0.5), nn.Linear(width, width)
        )
        self.fc = nn.Linear(width, outputs, bias=bias)
        self.squeeze = squeeze

    def forward(self, x):
        out = self.fc(self.body(x))
        return out.squeeze(-1) if self.squeeze else out


@pytest.fixture
def mlp():
    def make(**options):
        torch.manual_seed(0)
        model = MLP(**options)
        model.body[1].running_mean.normal_()  # as if it had been trained
        return model

    return make


@pytest.fixture
def world():
    """A labelled source and a target that varies along other directions."""
    return make_world()


@pytest.fixture
def worlds():
    """The factory behind ``world``."""
    return make_world


def make_world(outputs=None, dtype="float32", n=400, m=150):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, 6)) * [2.0, 1.0, 0.5, 0.1, 0.05, 0.05]
    Z = rng.normal(size=(m, 6)) * [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    y = X @ rng.normal(size=(6,) if outputs is None else (6, outputs))
    y = y + 0.3 * rng.normal(size=y.shape) + 1.0
    X, y, Z = (torch.tensor(a.astype(dtype)) for a in (X, y, Z))
    source = DataLoader(TensorDataset(X, y), batch_size=64)
    return SimpleNamespace(X=X, y=y, Z=Z, source=source, target=DataLoader(TensorDataset(Z), batch_size=64))


@pytest.fixture
def by_hand():
    """Features without a hook: through the part below the head, in evaluation mode, in batches of the loader's size.

    float32 features of batches of another size differ in their last digit, which least squares magnifies.
    """

    def features(body, rows):
        was = body.training
        body.eval()
        with torch.no_grad():
            found = torch.cat([body(batch) for batch in rows.split(64)]).double().numpy()
        body.train(was)
        return found

    return features

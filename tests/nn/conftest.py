"""Small networks, a covariate shift for them, and features computed without hooks."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


@pytest.fixture(autouse=True)
def untrained_heads():
    """Most heads of these tests are random, so their error on the source is larger than that of a refitted head."""
    torch.manual_seed(0)  # no result depends on the order of the tests
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the body of the model does not fit the source")
        yield


class MLP(nn.Module):
    """A network with dropout and batch norm, which depend on the mode; ``body`` computes the features."""

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
    """A function that builds a seeded MLP."""

    def make(**options):
        torch.manual_seed(0)
        model = MLP(**options)
        model.body[1].running_mean.normal_()  # as after training
        return model

    return make


@pytest.fixture
def make_network():
    """A function that builds a network with a body, a head named fc, and the given forward method."""

    def make(forward, **layers):
        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.fc = nn.Linear(6, 5), nn.Linear(5, 1)
                for name, layer in layers.items():
                    setattr(self, name, layer)

            def forward(self, x):
                return forward(self, x)

        torch.manual_seed(0)
        return Network()

    return make


@pytest.fixture
def problem():
    """A labelled source and a target that varies along other directions."""
    return _make_problem()


@pytest.fixture
def make_problem():
    """The function behind ``problem``, for other sizes and dtypes."""
    return _make_problem


def _make_problem(outputs=None, dtype="float32", n=400, m=150):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, 6)) * [2.0, 1.0, 0.5, 0.1, 0.05, 0.05]
    Z = rng.normal(size=(m, 6)) * [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    y = X @ rng.normal(size=(6,) if outputs is None else (6, outputs))
    y = y + 0.3 * rng.normal(size=y.shape) + 1.0
    X, y, Z = (torch.tensor(a.astype(dtype)) for a in (X, y, Z))
    source = DataLoader(TensorDataset(X, y), batch_size=64)
    return SimpleNamespace(X=X, y=y, Z=Z, source=source, target=DataLoader(TensorDataset(Z), batch_size=64))


@pytest.fixture
def features_of():
    """A function that computes features without a hook, in evaluation mode and in batches of the loader's size.

    With another batch size float32 features differ in the last digit, and least squares magnifies the difference.
    """

    def compute(body, rows):
        training = body.training
        body.eval()
        with torch.no_grad():
            features = torch.cat([body(batch) for batch in rows.split(64)]).double().numpy()
        body.train(training)
        return features

    return compute


@pytest.fixture
def never_read():
    """A loader that fails when it is read."""

    def batches():
        raise AssertionError("a batch was read")
        yield

    return batches()

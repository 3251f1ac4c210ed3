"""adapt_head works for residual networks, transformers, and networks with several inputs."""

import copy

import numpy as np
import pytest

from pyspar import SpARRegressor
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")
nn = torch.nn


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
        self.block = nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
        self.fc = nn.Linear(16, 1)

    def features(self, x):
        x = self.stem(x)
        return torch.relu(x + self.block(x)).mean(dim=(2, 3))

    def forward(self, x):
        return self.fc(self.features(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(16, 1, bias=False)

    def features(self, x):
        return self.encoder(self.embed(x)).mean(dim=1)

    def forward(self, x):
        return self.head(self.features(x)).squeeze(-1)


@pytest.mark.parametrize(("network", "shape"), [(ResNet, (3, 8, 8)), (Transformer, (5, 4))])
def test_the_weights_of_a_residual_network_and_a_transformer_equal_those_of_features_in_memory(network, shape):
    torch.manual_seed(0)
    model = network()
    X, Z = torch.randn(150, *shape), 2 * torch.randn(60, *shape)
    y = X.flatten(1).mean(dim=1) + 0.1 * torch.randn(150)
    model(X)  # updates the statistics of batch norm
    before = copy.deepcopy(model.state_dict())
    batches = [(X[:100], y[:100]), (X[100:], y[100:])]
    adapted = adapt_head(model, batches, [Z], method="spar", labels_scale="ignore")  # the model is not trained
    assert adapted.head_name in ("fc", "head")
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    model.eval()
    # Hooks disable torch's fused attention, which differs by rounding, so it is disabled here too.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            features = [model.features(rows).numpy() for rows in (X, Z)]
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    head = adapted.model.get_submodule(adapted.head_name)
    expected = SpARRegressor(fit_intercept=head.bias is not None).fit(features[0], y.double().numpy())
    expected.adapt(features[1])
    # float32 features of another order of batches differ by rounding, which least squares magnifies.
    np.testing.assert_allclose(head.weight.detach()[0], expected.coef_, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(adapted.adaptation.removed, expected.adaptation_.removed)

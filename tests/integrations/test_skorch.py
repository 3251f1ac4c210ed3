"""The lines of docs/integrations/skorch.md repair the head of a skorch network."""

import numpy as np
import pytest

from pyspar.nn import adapt_head

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")
skorch = pytest.importorskip("skorch", reason="needs: pip install 'pyspar[skorch]'")


def test_the_head_of_a_skorch_network_is_repaired_in_place(rng):
    X, Z = rng.normal(size=(400, 4)).astype("float32"), 3 * rng.normal(size=(100, 4)).astype("float32")
    y = X.sum(axis=1, keepdims=True) + 0.1 * rng.normal(size=(400, 1)).astype("float32")
    torch.manual_seed(0)
    body = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    net = skorch.NeuralNetRegressor(body, max_epochs=3, lr=0.05, train_split=None, verbose=0).fit(X[:200], y[:200])
    before = net.predict(Z)
    source, target = (net.get_iterator(net.get_dataset(*rows)) for rows in ((X[200:], y[200:]), (Z,)))
    adapted = adapt_head(net.module_, source, target)
    assert adapted.changed.directions > 0
    adapted.write_to(net.module_)
    with torch.no_grad():
        expected = adapted.model(torch.tensor(Z)).numpy()
    np.testing.assert_allclose(net.predict(Z), expected, rtol=1e-6)
    assert np.abs(expected - before).max() > 0.01

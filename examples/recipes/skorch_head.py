"""skorch: adapt the head of a fitted network; ``get_iterator`` makes the loaders."""

import numpy as np
import torch
from skorch import NeuralNetRegressor
from torch import nn

from pyspar.nn import adapt_head

torch.manual_seed(0)
rng = np.random.default_rng(0)
X, Z = rng.normal(size=(600, 4)).astype("float32"), rng.normal(size=(200, 4)).astype("float32")
Z *= np.float32([2.0, 1.0, 0.5, 0.5])
y = (X.sum(axis=1, keepdims=True) + 0.1 * rng.normal(size=(600, 1))).astype("float32")
module = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
net = NeuralNetRegressor(module, optimizer=torch.optim.Adam, max_epochs=5, lr=0.01, train_split=None, verbose=0)
net.fit(X, y)
source, target = net.get_iterator(net.get_dataset(X, y)), net.get_iterator(net.get_dataset(Z))
adapted = adapt_head(net.module_, source, target)
print(adapted)
net.module_ = adapted.model  # net.predict uses the adapted head
print(net.predict(Z).shape)

"""Train a small network on one set of states, adapt its head to other states, and print the target errors.

The data are Communities and Crime. The source has the states numbered up to 39, the target those from 47 on. The labels
of the target are used only to compute the errors.

Usage: python examples/adapt_head.py [SEED]
"""
# ruff: noqa: T201 - a script prints

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pyspar.nn import adapt_head
from pyspar.paper.data import communities_and_crime

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
task = communities_and_crime()
mean, spread = np.nanmean(task.train.X, axis=0), np.nanstd(task.train.X, axis=0)


def standardise(part):
    """Impute and standardise with the means and standard deviations of the source; return tensors."""
    X = (np.where(np.isnan(part.X), mean, part.X) - mean) / np.where(spread > 0, spread, 1.0)
    return torch.tensor(X, dtype=torch.float32), torch.tensor(part.y, dtype=torch.float32)


source, target = TensorDataset(*standardise(task.train)), TensorDataset(*standardise(task.test))
model = nn.Sequential(
    nn.Linear(source.tensors[0].shape[1], 128), nn.LeakyReLU(0.1),
    nn.Linear(128, 128), nn.LeakyReLU(0.1),
    nn.Linear(128, 1, bias=False), nn.Flatten(0),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(10):
    for x, y in DataLoader(source, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

loaders = DataLoader(source, batch_size=256), DataLoader(target, batch_size=256)
refitted = adapt_head(model, *loaders, method="ols")
adapted = adapt_head(model, *loaders)
X, y = target.tensors
with torch.no_grad():
    for name, network in (("trained", model), ("refitted", refitted.model), ("adapted", adapted.model)):
        print(f"target RMSE, {name:>8}: {float((network(X) - y).square().mean().sqrt()):.4f}")
removed, total = adapted.adaptation.removed.sum(), adapted.adaptation.z.rank
print(f"correction to the trained head: {removed} of {total} target directions removed; {adapted.changed}")

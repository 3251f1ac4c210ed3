"""Train the paper's network on the lower leagues of SkillCraft, adapt its head to the top leagues, and compare.

Usage: python examples/train_and_adapt.py [SEED] [--epochs N]
"""
# ruff: noqa: T201 - a script prints

import argparse

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from pyspar.nn import adapt_head
from pyspar.paper import ERM, MLP, TrainConfig, predict, train
from pyspar.paper.data import load

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("seed", type=int, nargs="?", default=0)
parser.add_argument("--epochs", type=int, default=100)
args = parser.parse_args()

task = load("skillcraft")
torch.manual_seed(args.seed)
model = MLP(task.train.X.shape[1])
config = TrainConfig(epochs=args.epochs, batch_size=32, lr=1e-2, device="cpu")
trained = train(model, ERM(), task, config, args.seed)
print(f"epoch {trained.best_epoch} of {args.epochs} kept: validation RMSE {trained.validation**0.5:.3f}")

X, y, Z = (torch.tensor(a, dtype=torch.float32) for a in (task.train.X, task.train.y, task.target_inputs))
source, target = DataLoader(TensorDataset(X, y), batch_size=256), DataLoader(TensorDataset(Z), batch_size=256)
refitted = adapt_head(trained.model, source, method="ols")
spar = adapt_head(trained.model, source, target, method="spar")
bayes = adapt_head(trained.model, source, target)
heads = {"trained": trained, "least squares": refitted, "SpAR": spar, "Bayes-SpAR": bayes}
for name, head in heads.items():
    error = predict(head.model, task.test.X)[:, 0] - task.test.y
    print(f"target RMSE, {name:>13}: {np.sqrt(np.mean(error**2)):.3f}")
print(f"Bayes-SpAR: {bayes.changed}")

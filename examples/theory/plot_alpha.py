r"""
.. _example-alpha:

How many directions are removed: the path over alpha
====================================================

The paper's rule removes a target direction if its weight is not significantly different from zero at confidence
:math:`\alpha`. With :math:`\alpha = 0` nothing is removed (least squares), with :math:`\alpha = 1` everything. The
paper uses 0.999. What is the effect of this choice on real data?

Each direction has exactly one :math:`\alpha` at which it is removed, so the whole path is computed from one fit.

The data are the diabetes patients of scikit-learn with squares and products of their ten measurements. Each column
splits them once: the source is the half with the lower values. In the split by sex, all source rows have the same sex.
"""

# %%
# The path of one split
# ---------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics import root_mean_squared_error as rmse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from pyspar import SpARRegressor, alpha_path

patients, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)


def fit(column):
    """Return an adapted regressor, the target features and the target labels of one split."""
    high = patients[column] > patients[column].median()
    features = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler())
    X, Z = features.fit_transform(patients[~high]), features.transform(patients[high])
    return SpARRegressor().fit(X, progression[~high]).adapt(Z), Z, progression[high]


spar, Z, truth = fit("age")
path = alpha_path(spar)
for alpha in (0.5, 0.9, 0.99, 0.999, 0.9999):
    print(f"alpha = {alpha:<6}: {path.removed_at(alpha).sum():2d} of {len(path.alpha)} directions removed")

# %%
# The path is exact: at the default value it contains the directions that ``adapt`` removed.

assert (path.removed_at(spar.alpha) == spar.adaptation_.removed).all()

# %%
# The target error along the path, for all ten splits
# ---------------------------------------------------
# The labels of the target are used only to draw the figure. In practice they are unknown, and :math:`\alpha` cannot be
# chosen by them.

doubts = np.geomspace(1.0, 1e-6, 61)  # 1 - alpha
errors, shares = {}, {}
for column in patients:
    spar, Z, truth = fit(column)
    path = alpha_path(spar)
    weights = [path.weights_at(1.0 - doubt)[:, 0] for doubt in doubts]
    shift = spar.intercept_ + spar.moments_.mean[: Z.shape[1]] @ spar.coef_  # the prediction at the source mean
    errors[column] = [rmse(truth, (Z - spar.moments_.mean[: Z.shape[1]]) @ w + shift) for w in weights]
    shares[column] = [path.removed_at(1.0 - doubt).mean() for doubt in doubts]
    assert np.isclose(errors[column][30], rmse(truth, spar.predict(Z)))  # doubts[30] is the default, 0.001

relative = np.array(list(errors.values())) / np.array(list(errors.values()))[:, :1]
at_default, at_90 = relative[:, 30], relative[:, 10]
for value, ratio in ((0.9, at_90), (0.999, at_default)):
    print(
        f"error at alpha = {value:<5}: {np.median(ratio):.2f} of least squares (median), worst split {ratio.max():.2f}"
    )

# %%
# On these data nearly every direction is removed at 0.999, and the error falls in most splits. The result depends
# little on :math:`\alpha` between 0.99 and 0.99999. No value is best for all splits.
#
# ``BayesSpARRegressor``, the default of pyspar for tables, has no :math:`\alpha`. It shrinks uncertain directions
# instead of removing them.

ORANGE, BLUE, GREY = "#D55E00", "#0072B2", "#999999"
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.4), layout="constrained", sharex=True)
for column in errors:
    top.plot(doubts, np.array(errors[column]) / errors[column][0], color=GREY, lw=1)
    bottom.plot(doubts, 100 * np.array(shares[column]), color=GREY, lw=1)
top.plot(doubts, np.median(relative, axis=0), color=BLUE, lw=3)
bottom.plot(doubts, 100 * np.median(list(shares.values()), axis=0), color=BLUE, lw=3)
top.axhline(1.0, color="black", lw=0.8)
for axis in (top, bottom):
    axis.axvline(1e-3, color=ORANGE, ls="--")
top.plot([], [], color=GREY, lw=1, label="one of ten splits")
top.plot([], [], color=BLUE, lw=3, label="median")
top.plot([], [], color=ORANGE, ls="--", label="the paper's 0.999")
top.set_ylabel("target RMSE,\nrelative to least squares")
bottom.set_ylabel("directions removed (%)")
bottom.set_xscale("log")
bottom.invert_xaxis()
bottom.set_xticks([1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6], ["0", "0.9", "0.99", "0.999", "0.9999", "0.999999"])
bottom.minorticks_off()
bottom.set_xlabel(r"confidence $\alpha$")
figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9)
plt.show()

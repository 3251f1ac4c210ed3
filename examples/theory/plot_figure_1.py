r"""
.. _example-figure-1:

The idea in two dimensions: Figure 1 of the paper
=================================================

Least squares estimates a weight for every direction of the features. Along a direction in which the source varies very
little, the estimated weight is mostly noise. This error has no effect on the source. On a target that varies along this
direction, the error of the weight is multiplied by large values. SpAR finds such directions from the unlabelled target
rows and removes them.

The data are simulated as in the paper, so the true weights are known:

.. math::
    y = \langle w^*, x \rangle + \varepsilon, \qquad
    x \sim N\!\left(0, \begin{pmatrix} 5 & 0 \\ 0 & 10^{-5} \end{pmatrix}\right), \qquad
    z \sim N\!\left(0, \begin{pmatrix} 1 & 0 \\ 0 & 40 \end{pmatrix}\right),

with noise of variance 1. The vertical feature varies very little in the source and a lot in the target.
"""

# %%
# Fit and adapt
# -------------

import copy

import matplotlib.pyplot as plt
import numpy as np

from pyspar import SpARRegressor

rng = np.random.default_rng(0)
w_star = np.array([1.0, 0.001])
X = rng.normal(size=(4000, 2)) * np.sqrt([5.0, 1e-5])
Z = rng.normal(size=(4000, 2)) * np.sqrt([1.0, 40.0])
y = X @ w_star + rng.normal(size=4000)
truth = Z @ w_star  # labels of the target, without noise

least_squares = SpARRegressor(fit_intercept=False).fit(X, y)  # before adapt, this is least squares
spar = copy.copy(least_squares).adapt(Z)
print("true weights         ", w_star)
print("least squares weights", least_squares.coef_.round(3))
print("SpAR weights         ", spar.coef_.round(3))

# %%
# The second weight of least squares is wrong by a large factor. With :math:`N = 4000` rows, its standard error is
# :math:`1 / \sqrt{N \cdot 10^{-5}} = 5`. On the source the effect of this error is very small:


def rms(values):
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


print(f"RMS error of the prediction on the source: {rms(X @ (least_squares.coef_ - w_star)):.3f}")
errors = {name: rms(model.predict(Z) - truth) for name, model in (("least squares", least_squares), ("SpAR", spar))}
for name, error in errors.items():
    print(f"RMS error of the prediction on the target, {name}: {error:.3f}")

# %%
# When removing a direction is wrong
# ----------------------------------
# Removing a direction sets its weight to zero. If the true weight is large, this is the wrong decision, and the source
# labels cannot show it. With :math:`w^* \propto (0.001, 1)`, the label of the target is almost only the removed part.
# The expected error of least squares does not depend on :math:`w^*`, but that of SpAR does:

for name, weights in (("(1, 0.001)", [1.0, 0.001]), ("(0.001, 1)", [0.001, 1.0])):
    repeats = []
    for _ in range(20):
        noisy = X @ weights + rng.normal(size=len(X))
        model = SpARRegressor(fit_intercept=False).fit(X, noisy)
        repeats.append([rms(other.predict(Z) - Z @ weights) for other in (model, copy.copy(model).adapt(Z))])
    ols, removed = np.sqrt(np.mean(np.square(repeats), axis=0))
    print(f"w* = {name}: least squares {ols:.2f}, SpAR {removed:.2f} (root mean square of 20 draws of the labels)")

# %%
# In the second case, the error of SpAR is the whole signal. It is smaller than that of least squares only because least
# squares amplifies the noise even more. Neither model is useful in this case.
#
# Figure 1
# --------
# The colour is the label, or its prediction, on the same scale in all panels.

limit = np.abs(truth).max()
figure, axes = plt.subplots(2, 2, figsize=(5.4, 5.4), layout="constrained", sharex=True, sharey=True)
axes[0, 0].plot(*Z.T, ".", color="#D55E00", ms=2, label="target")
axes[0, 0].plot(*X.T, ".", color="#0072B2", ms=2, label="source")
axes[0, 0].legend(markerscale=6, loc="upper right", handletextpad=0.1, fontsize=9)
axes[0, 0].set_title("the features", fontsize=11)
panels = {
    "true labels": truth,
    f"least squares, error {errors['least squares']:.1f}": least_squares.predict(Z),
    f"SpAR, error {errors['SpAR']:.2f}": spar.predict(Z),
}
for axis, (title, values) in zip(axes.flat[1:], panels.items(), strict=True):
    points = axis.scatter(*Z.T, c=values, s=3, cmap="coolwarm", vmin=-limit, vmax=limit, rasterized=True)
    axis.set_title(title, fontsize=11)
for axis in axes[:, 0]:
    axis.set_ylabel("vertical feature")
for axis in axes[1]:
    axis.set_xlabel("horizontal feature")
figure.colorbar(points, ax=axes, location="bottom", label="label", shrink=0.7, extend="both")
plt.show()

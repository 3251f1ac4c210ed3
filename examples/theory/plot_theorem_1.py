r"""
.. _example-theorem-1:

Which directions are removed, and why: Theorems 1 and 3
=======================================================

Let :math:`\lambda_{x,i}, e_{x,i}` be the singular values and directions of the source features, and
:math:`\lambda_{z,j}, e_{z,j}` those of the target. Theorem 1 of the paper splits the expected squared error of least
squares on the target into one term for each target direction:

.. math::
    E\,\lVert Z w^* - Z \hat w \rVert^2 = \sum_j \mathrm{Var}_j, \qquad
    \mathrm{Var}_j = \sigma^2 \sum_i \frac{\lambda_{z,j}^2}{\lambda_{x,i}^2} \langle e_{x,i}, e_{z,j} \rangle^2 .

Removing direction j replaces :math:`\mathrm{Var}_j` by :math:`\mathrm{Bias}_j = \lambda_{z,j}^2 \langle w^*, e_{z,j}
\rangle^2`. By Theorem 3 the best set to remove is :math:`\{j : \mathrm{Var}_j \ge \mathrm{Bias}_j\}`.

This example checks the theorem by simulation. The features are real (scikit-learn's diabetes data, with squares and
products; the source is the younger half of the patients). The labels are simulated, because the theorem needs known
weights :math:`w^*` and noise.
"""

# %%
# Real features, simulated labels
# -------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from pyspar import SpARRegressor, theory

patients, progression = load_diabetes(return_X_y=True, scaled=False)
young = patients[:, 0] <= np.median(patients[:, 0])
features = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler())
X = features.fit_transform(patients[young])
Z = features.transform(patients[~young])

# %%
# The true weights are those of a least-squares fit to the real labels of all patients, so that they have a realistic
# size.

fitted = LinearRegression().fit(np.vstack([X, Z]), np.concatenate([progression[young], progression[~young]]))
w_star = fitted.coef_
sigma = 50.0
x, z = theory.Spectrum.of(X), theory.Spectrum.of(Z)
var = theory.variance_terms(x, z, np.array([sigma**2]))[:, 0]
bias = theory.bias_terms(z, w_star[:, None])[:, 0]
print(f"{X.shape[1]} features, {len(X)} source rows, {len(Z)} target rows, {z.rank} target directions")
print(f"Theorem 1: root of the expected mean squared error {np.sqrt(var.sum() / len(Z)):.1f}")

# %%
# Simulation
# ----------
# Draw 400 sets of labels, fit least squares each time, and measure the squared error along each target direction.

rng = np.random.default_rng(0)
labels = (X @ w_star)[:, None] + sigma * rng.normal(size=(len(X), 400))
w_hat = np.linalg.lstsq(X, labels, rcond=None)[0]
along = z.lam[:, None] * (z.V.T @ (w_hat - w_star[:, None]))
measured = np.mean(along**2, axis=1)
print(f"simulation: {np.sqrt(measured.sum() / len(Z)):.1f}")
print(f"largest relative difference of one direction: {np.abs(measured / var - 1).max():.0%}")

# %%
# A mean of 400 squares of a normal variable has a relative standard error of :math:`\sqrt{2 / 400} = 7\,\%`, so the
# simulation agrees with the theorem.
#
# The best set, and the set that SpAR chooses
# -------------------------------------------
# The best set depends on the true weights, which SpAR can only estimate. SpAR removes direction j if its estimated
# weight is not significantly different from zero. The set depends on the labels, so its error is measured on all 400
# draws, which are fitted together as 400 outputs.

spar = SpARRegressor(fit_intercept=False).fit(X, labels).adapt(Z)
removed = spar.adaptation_.removed
oracle = theory.oracle_rule(x, z, np.array([sigma**2]), w_star[:, None])[:, 0]
sets = {"nothing (least squares)": np.zeros_like(oracle), "the best set": oracle, "everything": np.ones_like(oracle)}
risks = {
    name: np.sqrt(theory.projected_risk(x, z, np.array([sigma**2]), w_star[:, None], chosen)[0] / len(Z))
    for name, chosen in sets.items()
}
for name, risk in risks.items():
    print(f"remove {name:<24}: {sets[name].sum():2d} directions, expected RMSE {risk:5.1f}")
spar_rmse = np.sqrt(np.mean((Z @ (spar.coef_.T - w_star[:, None])) ** 2))
print(f"remove what SpAR chooses       : {removed.sum(axis=0).mean():.0f} directions, measured RMSE {spar_rmse:5.1f}")

# %%
# The error of SpAR is slightly lower than that of least squares, and much higher than that of the best set. SpAR
# removes too many directions: with the default :math:`\alpha = 0.999` it keeps a direction only if the evidence is
# strong, and 227 rows give little evidence about 65 weights. Removing every direction, which predicts the mean, has a
# lower error in this example.
#
# The figure shows both costs of each direction. Above the diagonal, keeping a direction costs more than removing it.
# The colour shows how often SpAR removed it.

BLUE, GREY = "#0072B2", "#777777"
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 7.6), layout="constrained")
order = np.argsort(-var)
top.plot(np.arange(1, len(var) + 1), np.sqrt(var[order] / len(Z)), color="black", lw=1.5, label="Theorem 1")
top.plot(np.arange(1, len(var) + 1), np.sqrt(measured[order] / len(Z)), "o", color=BLUE, ms=4, label="simulation")
top.set_yscale("log")
top.set_xlabel("target direction, largest error first")
top.set_ylabel(r"error of least squares, $\sqrt{\mathrm{Var}_j / M}$")
top.legend(frameon=False)
points = bottom.scatter(
    np.sqrt(bias / len(Z)), np.sqrt(var / len(Z)), c=removed.mean(axis=1), cmap="cividis", vmin=0, vmax=1, s=30
)
ends = np.array([0.8, 60])
bottom.plot(ends, ends, color=GREY, lw=1)
bottom.annotate("better removed", (0.012, 30), color=GREY)
bottom.annotate("better kept", (8, 1.2), color=GREY)
bottom.set_xscale("log")
bottom.set_yscale("log")
bottom.set_xlabel(r"cost of removing the direction, $\sqrt{\mathrm{Bias}_j / M}$")
bottom.set_ylabel(r"cost of keeping it, $\sqrt{\mathrm{Var}_j / M}$")
figure.colorbar(points, ax=bottom, location="bottom", label="share of draws in which SpAR removes it", shrink=0.8)
plt.show()

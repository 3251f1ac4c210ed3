"""
.. _example-instrument:

A second instrument: map its columns
====================================

A model was trained on the spectra of one spectrometer. A second spectrometer measures samples of the same kind, with
another gain and offset at each wavelength. The samples are the same, so this is no shift of the population: ``align``
maps each column of the second instrument to the mean and spread that it had on the first one. No labels are needed, and
the model can be any regressor.

The spectra are simulated: three substances with overlapping bands, and the label is the amount of one of them. Real
spectrometers are in the benchmark of alignment.
"""

# %%
# Two instruments
# ---------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import HistGradientBoostingRegressor

from pyspar import align

rng = np.random.default_rng(0)
wavelengths = np.linspace(0.0, 1.0, 80)
bands = np.exp(-0.5 * ((wavelengths - np.array([[0.3], [0.45], [0.7]])) / [[0.08], [0.15], [0.1]]) ** 2)


def draw_samples(n):
    """Return the amounts of three substances, and the spectra on the first instrument."""
    amounts = rng.uniform(0.2, 1.0, (n, 3))
    return amounts, amounts @ bands + 0.005 * rng.normal(size=(n, 80))


amounts, X = draw_samples(400)
y = amounts[:, 0]
new_amounts, ideal = draw_samples(200)
truth = new_amounts[:, 0]  # used only to compute errors
gain, offset = 1.0 + 0.15 * np.sin(6.0 * wavelengths), 0.1 * wavelengths
Z = ideal * gain + offset + 0.005 * rng.normal(size=ideal.shape)

# %%
# Errors before and after
# -----------------------


def rmse(model, rows):
    """Return the error of a model on the new samples."""
    return float(np.sqrt(np.mean((np.ravel(model.predict(rows)) - truth) ** 2)))


errors = {}
for name, model in {"PLS": PLSRegression(3), "boosting": HistGradientBoostingRegressor(max_iter=60)}.items():
    model.fit(X, y)
    aligned = align(model, source=X, target=Z)
    errors[name] = rmse(model, ideal), rmse(model, Z), rmse(aligned, Z)
    print("{}: first instrument {:.3f}, second {:.3f}, aligned {:.3f}".format(name, *errors[name]))

# %%
# The mapping is right only if both instruments measure samples of the same kind. If the second one is at another
# factory, with other samples, the mapping removes a real difference. Ten measured labels decide:
# ``TargetCorrection({"trained": model, "aligned": aligned}).fit(Z_labelled, y_labelled)``.

figure, (left, right) = plt.subplots(2, 1, figsize=(5.4, 5.6), layout="constrained")
left.plot(wavelengths, X[:30].T, color="#888888", lw=0.6)
left.plot(wavelengths, Z[:30].T, color="#0072B2", lw=0.6)
left.set_xlabel("wavelength")
left.set_ylabel("absorbance")
left.set_title("grey: first instrument, blue: second", fontsize="medium")
for place, values in enumerate(errors.values()):
    right.bar(place + np.array([-0.25, 0.0, 0.25]), values, width=0.22, color=["#888888", "#D55E00", "#0072B2"])
right.set_xticks(range(len(errors)), errors)
right.set_ylabel("RMSE")
right.set_title("grey: first instrument, orange: second, blue: aligned", fontsize="medium")
plt.show()

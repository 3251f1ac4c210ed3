"""A small column next to a large one, in float32 or with an offset: its direction keeps its accuracy."""

import numpy as np
import pytest

from pyspar import SpARRegressor
from pyspar.theory import Moments, Spectrum, ols_risk

N = 2000


def problem(dtype):
    """Return rows in which the source's second column is small and means nothing, and the target's is not small."""
    rng = np.random.default_rng(1)
    if dtype == "float32":
        # The whole of the small column is shorter than eight float32 epsilons of the large one.
        X, Z = rng.normal(size=(N, 2)) * [1e5, 1e-2], rng.normal(size=(N, 2)) * [1e5, 10.0]
        return rng, X.astype(np.float32), Z.astype(np.float32), np.zeros(2), X[:, 0] / 1e5
    # Seconds since 1970: the offset is 1.7e15 times the small column's spread.
    g, h = rng.normal(size=(2, N, 2))
    offset = np.array([1.7e9, 0.0])
    return rng, g * [1e3, 1e-6] + offset, h * [1e3, 1e-4] + offset, offset, g[:, 0]


def plain_risk(X, Z, sigma2):
    """Return Theorem 1's risk with the intercept: sigma^2 times the trace of Z'Z (X'X)^-1 plus M / N, columns scaled.

    The trace does not depend on the units of the columns, so they are put at unit length, where nothing is lost.
    """
    mean = X.mean(axis=0)
    X, Z = X - mean, Z - mean
    scale = np.linalg.norm(X, axis=0)
    gain = np.linalg.solve((X / scale).T @ (X / scale), (Z / scale).T @ (Z / scale))
    return sigma2 * (np.trace(gain) + len(Z) / len(X))


@pytest.mark.parametrize("dtype", ["float32", "offset"])
def test_the_small_direction_has_a_standard_deviation_and_is_removed(dtype):
    rng, X, Z, offset, signal = problem(dtype)
    found = SpARRegressor().fit(X, signal + rng.normal(size=N)).adapt(Z).adaptation_
    small = int(np.argmax(np.abs(found.z.V[1])))
    assert (found.terms.std > 0.0).all()
    assert found.removed[:, 0].tolist() == [j == small for j in range(2)]
    # The spread of <w_hat, e> of a column that is not correlated with the other: sigma over the column's length.
    wide = X.astype(np.float64) - offset
    length = np.linalg.norm(wide[:, 1] - wide[:, 1].mean())
    # The two columns of normal draws are correlated by some 1 / sqrt(N), which enters with its square.
    assert found.terms.std[small, 0] == pytest.approx(np.sqrt(found.sigma2[0]) / length, rel=0.01)


@pytest.mark.parametrize("dtype", ["float32", "offset"])
def test_theorem_1_agrees_with_float64_rows_without_the_offset(dtype):
    rng, X, Z, offset, signal = problem(dtype)
    found = SpARRegressor().fit(X, signal + rng.normal(size=N)).adapt(Z).adaptation_
    wide = [rows.astype(np.float64) - offset for rows in (X, Z)]
    # Subtracting the offset is exact, and the float32 numbers are float64 numbers, so only rounding differs; it is
    # amplified by the ratio of the columns, 1e7 and 1e9, times float64's 2e-16.
    assert found.risk_before[0] == pytest.approx(plain_risk(*wide, found.sigma2[0]), rel=1e-6)
    # The small column is nearly all of it.
    assert found.risk_after[0] < 0.01 * found.risk_before[0]


def test_spectra_about_the_origin_have_the_risk_of_the_float32_numbers():
    _, X, Z, _, _ = problem("float32")
    risk = ols_risk(Spectrum.of(Moments.of(X)), Spectrum.of(Moments.of(Z)), sigma2=2.0)
    wide, target = X.astype(np.float64), Z.astype(np.float64)
    scale = np.linalg.norm(wide, axis=0)
    inverse = np.linalg.inv((wide / scale).T @ (wide / scale))
    expected = 2.0 * np.trace((target / scale).T @ (target / scale) @ inverse)
    np.testing.assert_allclose(risk, expected, rtol=1e-6)  # the ratio of the columns times float64's epsilon


@pytest.mark.parametrize("ratio", [1e-4, 1e-5, 3e-6])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_float32_columns_of_far_sizes_are_fitted_to_the_digits_of_float64(ratio, fit_intercept):
    rng = np.random.default_rng(0)
    sizes = np.append(np.ones(9), ratio)
    X = (rng.normal(size=(500, 10)) * sizes).astype(np.float32)
    wide = X.astype(np.float64)
    y = wide @ (1.0 / sizes) + rng.normal(size=500)
    rows, labels = (wide - wide.mean(axis=0), y - y.mean()) if fit_intercept else (wide, y)
    known = np.linalg.lstsq(rows / sizes, labels, rcond=None)[0] / sizes
    est = SpARRegressor(fit_intercept=fit_intercept).fit(X, y)
    assert est.rank_ == 10
    # float64's epsilon times the ratio of the sizes is 7e-11 at most; the square of the ratio would cost 2e-5.
    np.testing.assert_allclose(est.coef_, known, rtol=1e-9)

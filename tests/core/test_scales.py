"""Data of any magnitude in the allowed range: the units do not change the removed directions. Others are refused."""

from operator import attrgetter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from pyspar import BayesSpARRegressor, Moments, SpARRegressor, TargetCorrection

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


# factors of X, Z and y
SCALES = {"X": (1, 0, 0), "Z": (0, 1, 0), "y": (0, 0, 1), "X and Z": (1, 1, 0), "X and y": (1, 0, 1), "all": (1, 1, 1)}


@pytest.mark.parametrize("size", [1e-55, 1e-30, 1e30, 1e55])
@pytest.mark.parametrize("what", list(SCALES))
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scales_neither_overflow_nor_change_the_removed_directions(shift, what, size, fit_intercept):
    fx, fz, fy = (size**power for power in SCALES[what])
    if fx != fz:  # about a source mean other than zero a target in other units would be another target
        fit_intercept = False
    plain = SpARRegressor(fit_intercept=fit_intercept).fit(shift.X, shift.y)
    scaled = SpARRegressor(fit_intercept=fit_intercept).fit(fx * shift.X, fy * shift.y)
    assert scaled.rank_ == plain.rank_
    # Rounding of the scaled entries, times the condition number (1e2, squared by a product) and room.
    np.testing.assert_allclose(scaled.coef_ * (fx / fy), plain.coef_, rtol=1e-9)
    plain.adapt(shift.Z)
    scaled.adapt(fz * shift.Z)
    ours = scaled.adaptation_
    assert plain.adaptation_.removed.any()
    assert (ours.removed == plain.adaptation_.removed).all()
    atol = 1e-9 * np.abs(plain.adaptation_.w_hat).max()
    np.testing.assert_allclose(scaled.coef_ * (fx / fy), plain.coef_, atol=atol, rtol=0)
    for number in (scaled.sigma2_, scaled.predict(fz * shift.Z), ours.outside_energy, ours.terms.std, ours.sigma2):
        assert np.isfinite(number).all()


@pytest.mark.parametrize("size", [1e-55, 1e55])
@pytest.mark.parametrize("what", ["Z", "X and Z", "all", "y"])
def test_every_reported_number_is_finite_and_scales_as_it_should(shift, what, size):
    fx, fz, fy = (size**power for power in SCALES[what])
    plain = SpARRegressor(fit_intercept=False).fit(shift.X, shift.y).adapt(shift.Z).adaptation_
    ours = SpARRegressor(fit_intercept=False).fit(fx * shift.X, fy * shift.y).adapt(fz * shift.Z).adaptation_
    factor = (fz / fx * fy) ** 2  # risks are squared labels
    for name in ("terms.var", "terms.bias_hat", "risk_before", "variance_kept", "bias_taken", "risk_after"):
        number = attrgetter(name)
        np.testing.assert_allclose(number(ours) / factor, number(plain), rtol=1e-8, atol=1e-8)
    assert "target directions removed" in repr(ours)


@pytest.mark.parametrize("size", [1e-10, 1e10])
def test_one_feature_in_other_units_than_the_rest_gets_the_same_weight_in_its_units(rng, size):
    scale = np.array([1.0, size, 1.0])
    X, Z = rng.normal(size=(200, 3)), rng.normal(size=(100, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=200)
    plain = SpARRegressor().fit(X, y)
    scaled = SpARRegressor().fit(X * scale, y)
    assert scaled.rank_ == 3
    # Ten decades between the singular values leave six digits of the directions.
    np.testing.assert_allclose(scaled.coef_ * scale, plain.coef_, rtol=1e-5)
    np.testing.assert_allclose(scaled.predict(Z * scale), plain.predict(Z), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore::pyspar.SparWarning")
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_size_of_one_huge_cell_does_not_change_the_adapted_weights(fit_intercept):
    for seed in (0, 2, 5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 5)) * np.geomspace(1, 0.01, 5)
        y, Z = X @ rng.normal(size=5) + rng.normal(size=60), rng.normal(size=(50, 5)) * np.geomspace(0.1, 3, 5)
        coefs = []
        for cell in (1e20, 1e60):
            X[3, 1] = cell
            coefs.append(SpARRegressor(fit_intercept=fit_intercept).fit(X, y).adapt(Z).coef_)
        np.testing.assert_allclose(*coefs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e-90, 1e-62, 1e62, 1e90, 1e160, 1e300])
def test_values_out_of_range_are_refused_everywhere_in_the_same_words(shift, size):
    est = BayesSpARRegressor().fit(shift.X, shift.y)
    X, Z = shift.X.copy(), shift.Z.copy()
    X[:, 1] *= size
    Z[:, 1] *= size
    rule = r"1e\+60"
    with pytest.raises(ValueError, match=rule):
        BayesSpARRegressor().fit(X, shift.y)
    with pytest.raises(ValueError, match=rule):
        SpARRegressor().fit(shift.X, size * shift.y)
    for rows in (sp.csr_array(X), sp.csr_array(X[:3])):
        with pytest.raises(ValueError, match=r"rescale|divide"):
            BayesSpARRegressor().fit(rows, shift.y[: rows.shape[0]])
        with pytest.raises(ValueError, match=r"rescale|divide"):
            est.adapt(rows)
    for use in (est.adapt, est.expected_rmse):
        with pytest.raises(ValueError, match=rf"the target.*{rule}"):
            use(Z)
    if size > 1.0:
        with pytest.raises(ValueError, match=rule):
            est.predict_interval(Z)
        with pytest.raises(ValueError, match=rule):
            TargetCorrection(est).fit(shift.Z, size * shift.Z[:, 0])
        assert np.isfinite(est.predict(X)).all()


@pytest.mark.parametrize("size", [1e-70, 1e70])
def test_moments_out_of_range_are_refused(shift, size):
    moments = Moments.of(shift.X, shift.y)
    root = moments.root.copy()
    root[:, 1] *= size
    with pytest.raises(ValueError, match=r"column 0 of X.*1e\+60"):
        SpARRegressor().fit(moments.with_root(root))
    est = SpARRegressor().fit(moments)
    with pytest.raises(ValueError, match=r"column 0 of the target.*1e\+60"):
        est.adapt(moments.with_root(root).without_outputs())


def test_an_error_about_extreme_values_names_the_column_of_a_frame():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["X", "area"])
    y = pd.Series(frame.sum(axis=1), name="price")
    model = BayesSpARRegressor()
    with pytest.raises(ValueError, match=r"^column 'area' of X must be zero or have values between 1e-60 and 1e"):
        model.fit(frame * [1.0, 1e-70], y)
    with pytest.raises(ValueError, match=r"^output 'price' of Y must be zero"):
        model.fit(frame, y * 1e-70)
    with pytest.raises(ValueError, match=r"^column 1 of X must be zero"):
        model.fit(frame.to_numpy() * [1.0, 1e-70], y)
    with pytest.raises(ValueError, match=r"^column 'X' of the target must be zero"):
        model.fit(frame, y).adapt(frame * [1e-70, 1.0])
    with pytest.raises(ValueError, match=r"^column 'area' of X must be zero"):
        Moments.of(frame * [1.0, 1e-70])
    with pytest.raises(ValueError, match=r"^batch 0: column 'area' of X must be zero"):
        model.fit([(frame * [1.0, 1e-70], y)])

"""The drift: a dense average over all models with plain numpy, invariances and limits."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from pyspar.core.drift import MAX_CENTRES, NO_DRIFT, RATIOS, SOME_CENTRES, fit_drift, weigh_labels


def make_rows(n=12, m=40, d=3, seed=0):
    """Return features and predictions of m target rows, and labels of the first n."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, d)) * np.geomspace(1.0, 30.0, d) + 5.0
    f = Z @ np.linspace(1.0, -0.2, d) + rng.normal(size=m)
    y = f + 1.0 + 0.3 * f + 0.4 * Z[:, 0] + rng.normal(size=m)
    return Z, f, y[:n]


def fit_rows(Z, f, y, **options):
    n = len(y)
    return fit_drift(Z[:n], f[:n], y, target_features=Z, target_prediction=f, **options)


fit = fit_rows


def without_limits(drift):
    return replace(drift, supported=(-np.inf, np.inf), labels=(-np.inf, np.inf))


def prior_weight(*ratios):
    return np.prod(1.0 / np.sqrt(1.0 + np.array(ratios)))


def average_densely(Z, f, y, smooth=False):
    """Return corrections and predictive scales, with one dense covariance matrix per model."""
    n = len(y)
    q = (f - f.mean()) / f.std()
    P = (Z - Z.mean(axis=0)) / Z.std(axis=0) / np.sqrt(Z.shape[1])
    r = y - f[:n]
    kernel = P @ P.T
    if smooth:
        kernel = (kernel + np.exp(-0.5 * np.square(P[:, None] - P).sum(axis=2))) / 2.0
    prior, logs, means, variances = [], [], [], []
    for a, b, d in product(RATIOS, repeat=3):
        K = a + b * np.outer(q, q) + d * kernel
        C = K[:n, :n] + np.eye(n)
        solved = np.linalg.solve(C, np.column_stack([r, K[:n]]))
        s2 = r @ solved[:, 0] / n
        prior.append(prior_weight(a, b, d))
        logs.append(-0.5 * np.linalg.slogdet(C)[1] - n / 2 * np.log(s2))
        means.append(K[:, :n] @ solved[:, 0])
        variances.append(s2 * (1.0 + np.diag(K) - np.einsum("ij,ji->i", K[:, :n], solved[:, 1:])))
    prior[0] = sum(prior[1:]) * NO_DRIFT / (1.0 - NO_DRIFT)
    p = np.array(prior) * np.exp(np.array(logs) - max(logs))
    p /= p.sum()
    means = np.array(means)
    mean = p @ means
    return mean, np.sqrt(p @ (np.array(variances) + (means - mean) ** 2)), 1.0 - p[0]


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize(("n", "d"), [(12, 3), (4, 9)])
def test_the_average_over_models_is_the_dense_one(n, d, smooth):
    Z, f, y = make_rows(n=n, d=d)
    drift = fit(Z, f, y, smooth=smooth)
    mean, scale, changed = average_densely(Z, f, y, smooth)
    np.testing.assert_allclose(without_limits(drift).correct(Z, f)[0] - f, mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(drift.correct(Z, f)[1], scale, rtol=1e-8)
    assert drift.probability[0] == pytest.approx(changed, abs=1e-9)
    assert drift.expected_variance() + drift.noise2 == pytest.approx(np.mean(scale**2))


@pytest.mark.parametrize("smooth", [False, True])
def test_the_correction_depends_on_no_order_unit_or_origin(smooth):
    fit = partial(fit_rows, smooth=smooth)
    Z, f, y = make_rows()
    base = fit(Z, f, y).correct(Z, f)[0]
    order = np.random.default_rng(1).permutation(len(y))
    shuffled = fit(np.vstack([Z[order], Z[12:]]), np.append(f[order], f[12:]), y[order]).correct(Z, f)[0]
    np.testing.assert_allclose(shuffled, base)
    other = Z * [1e-3, 7.0, 1e5] + [1.0, -1e3, 1e4]
    np.testing.assert_allclose(fit(other, f, y).correct(other, f)[0], base, rtol=1e-7)
    scaled = fit(Z, -1e-6 * f + 3.0, -1e-6 * y + 3.0).correct(Z, -1e-6 * f + 3.0)[0]
    np.testing.assert_allclose((scaled - 3.0) / -1e-6, base, rtol=1e-6)


@pytest.mark.parametrize("smooth", [False, True])
def test_a_count_stands_for_copies_of_a_row(smooth):
    Z, f, y = make_rows()
    twice = np.r_[0, np.arange(40)]
    copies = fit_drift(
        Z[twice[:13]], f[twice[:13]], y[twice[:13]], target_features=Z[twice], target_prediction=f[twice], smooth=smooth
    )
    counts = np.ones(40)
    counts[0] = 2.0
    counted = fit(Z, f, y, counts=counts[:12], target_counts=counts, smooth=smooth)
    np.testing.assert_allclose(counted.correct(Z, f)[0], copies.correct(Z, f)[0], rtol=1e-9)
    np.testing.assert_allclose(counted.correct(Z, f)[1], copies.correct(Z, f)[1], rtol=1e-9)
    assert counted.expected_variance() == pytest.approx(copies.expected_variance())


def test_an_exact_model_is_not_changed_and_residuals_at_the_level_of_rounding_are_no_drift():
    Z, f, _ = make_rows()
    exact, rounded = fit(Z, f, f[:12]), fit(Z, f, f[:12] * (1.0 + 3e-16))
    for drift in (exact, rounded):
        np.testing.assert_array_equal(drift.correct(Z, f)[0], f)
    assert exact.noise2 == rounded.probability[0] == 0.0


def test_noise_alone_changes_little():
    """Without drift, the correction is mostly smaller than the error of the mean of the noise."""
    rng = np.random.default_rng(0)
    Z, f, _ = make_rows()
    sizes = [np.mean((fit(Z, f, f[:12] + rng.normal(size=12)).correct(Z, f)[0] - f) ** 2) for _ in range(40)]
    assert np.median(sizes) < 0.5 / 12
    assert np.mean(sizes) < 2.0 / 12  # least squares on offset, slope and three weights: 5 / 12


def test_many_labels_give_the_model_of_the_target():
    rng = np.random.default_rng(0)
    n, d = 2000, 20
    Z = rng.normal(size=(n + 500, d)) @ rng.normal(size=(d, d))
    y = Z @ rng.normal(size=d) * 10.0 + 50.0 + rng.normal(size=n + 500)
    wrong = Z @ rng.normal(size=d) * 10.0
    drift = fit(Z, wrong, y[:n])
    ridge = Ridge(1e-3).fit(Z[:n], y[:n])
    error, best = (np.sqrt(np.mean((p - y[n:]) ** 2)) for p in (drift.correct(Z, wrong)[0][n:], ridge.predict(Z[n:])))
    assert error < 1.01 * best
    assert np.sqrt(drift.noise2) == pytest.approx(1.0, abs=0.05)


def test_the_corrected_linear_model_is_linear():
    rng = np.random.default_rng(0)
    Z, _, y = make_rows()
    coef, intercept = rng.normal(size=3), 2.0
    f = Z @ coef + intercept
    drift = fit(Z, f, y)
    w, b = drift.linear_weights(coef, intercept)
    np.testing.assert_allclose(Z @ w + b, drift.correct(Z, f)[0])


def draw_from_prior(rng, n, noise=1.0):
    """Return target rows, predictions, labels drawn from the prior of the model, and whether there is a drift."""
    models = np.array(list(product(RATIOS, repeat=3)))
    prior = np.prod(1.0 / np.sqrt(1.0 + models), axis=1)
    prior[0] = prior[1:].sum() * NO_DRIFT / (1.0 - NO_DRIFT)
    a, b, d = models[rng.choice(len(models), p=prior / prior.sum())]
    Z = rng.normal(size=(n + 32, 3))
    f = Z @ rng.normal(size=3) + rng.normal(size=len(Z))
    P, q = (Z - Z.mean(axis=0)) / Z.std(axis=0) / np.sqrt(3.0), (f - f.mean()) / f.std()
    theta = rng.normal(size=2) * np.sqrt([a, b])
    drift = theta[0] + theta[1] * q + P @ rng.normal(size=3) * np.sqrt(d)
    return Z, f, f + noise * (drift + rng.normal(size=len(Z))), a + b + d > 0.0


def test_intervals_and_the_probability_of_a_change_hold_if_drifts_follow_the_prior():
    rng = np.random.default_rng(0)
    covered, probability, changed = [], [], []
    for _ in range(400):
        Z, f, y, is_changed = draw_from_prior(rng, 8, noise=10.0 ** rng.normal())
        drift = fit(Z, f, y[:8])
        after, scale = drift.correct(Z, f)
        covered.append(np.mean(np.abs(y - after)[8:] <= drift.quantile(0.9) * scale[8:]))
        probability.append(drift.probability[0])
        changed.append(is_changed)
    assert np.mean(covered) == pytest.approx(0.9, abs=0.03)
    probability, changed = np.array(probability), np.array(changed)
    for low, high in ((0.0, 0.5), (0.5, 0.9), (0.9, 1.01)):
        at = (probability >= low) & (probability < high)
        error = 3.0 * np.sqrt(0.25 / max(at.sum(), 1))
        assert changed[at].mean() == pytest.approx(probability[at].mean(), abs=error)


def test_the_expected_error_is_that_of_the_dense_average_on_other_rows():
    Z, f, y = make_rows()
    drift = fit(Z, f, y).on(Z[20:], f[20:], np.ones(20))
    scale = drift.correct(Z[20:], f[20:])[1]
    assert drift.expected_variance() + drift.noise2 == pytest.approx(np.mean(scale**2))
    draws = drift.draw_mse()
    low, high = np.quantile(draws, [0.1, 0.9])
    assert low < drift.expected_variance() + drift.noise2 < high


@pytest.mark.parametrize("n", [3, 5, 10, 30, 300])
def test_a_label_far_from_the_others_has_little_influence(n):
    rng = np.random.default_rng(0)
    r, ones = rng.normal(size=n) + 5.0, np.ones(n)
    assert (weigh_labels(r, ones) == 1.0).all()
    r[2] += 1e20
    weights = weigh_labels(r, ones)
    assert weights[2] < 1e-3
    assert (np.delete(weights, 2) == 1.0).all()
    np.testing.assert_allclose(weigh_labels(-1e-9 * r, ones), weights, rtol=1e-6)
    influence = [w * d for d in (20.0, 200.0, 2000.0) for w in weigh_labels(np.r_[r[:2], 5.0 + d, r[3:]], ones)[2:3]]
    assert influence[1] > influence[2]


def test_labels_that_agree_are_a_drift_and_two_wrong_ones_are_not():
    rng = np.random.default_rng(0)
    r = np.append(rng.normal(size=20), 1000.0 + rng.normal(size=6))
    np.testing.assert_array_equal(weigh_labels(r, np.ones(26)), 1.0)
    for wrong in ([-500.0, 999.0], [500.0, 1e6]):
        weights = weigh_labels(np.append(rng.normal(size=100), wrong), np.ones(102))
        assert (weights[:100] == 1.0).all()
        assert (weights[100:] < 0.3).all()


def test_the_evidence_of_a_wrong_label_is_continuous_and_falls_with_the_square_of_its_distance():
    Z, f, y = make_rows(10)
    y[4] += 3.0
    distances = np.geomspace(1.0, 1e6, 400)
    fits = [fit(Z, f, y + distance * (np.arange(10) == 4)) for distance in distances]
    evidence = np.array([drift.log_evidence for drift in fits])
    is_far = np.array([drift.label_weights[4] < 1.0 for drift in fits])
    assert not is_far[0]
    assert is_far[-1]
    first = int(np.argmax(is_far))
    assert is_far[first:].all()
    steps = np.diff(evidence)
    assert np.abs(steps[first - 2 : first + 2]).max() < 0.25  # a step multiplies the distance by 1.035
    assert (steps[first:] < 0.0).all()
    assert evidence[-101] - evidence[-1] == pytest.approx(2.0 * np.log(distances[-1] / distances[-101]), rel=1e-3)
    copied = fit(Z, f, y + 50.0 * (np.arange(10) == 4), counts=np.where(np.arange(10) == 4, 2.0, 1.0))
    order = [*range(10), 4]
    rows = fit_drift(
        Z[order], f[order], (y + 50.0 * (np.arange(10) == 4))[order], target_features=Z, target_prediction=f,
    )  # fmt: skip
    assert copied.log_evidence == pytest.approx(rows.log_evidence)


def test_normal_labels_have_full_weight_except_for_one_set_in_a_thousand():
    rng = np.random.default_rng(0)
    for n in (4, 10, 40):
        down = np.mean([(weigh_labels(rng.normal(size=n), np.ones(n)) < 1.0).any() for _ in range(2000)])
        assert down < 0.003
        tails = np.mean([(weigh_labels(rng.standard_t(3, size=n), np.ones(n)) < 1e-4).any() for _ in range(500)])
        assert tails < 0.003


@pytest.mark.parametrize("n", [20, 50])
def test_rounding_errors_of_an_exact_offset_are_not_heavy_tails(n):
    Z = np.random.default_rng(0).normal(size=(400, 3))
    f = Z[:, 0]
    drift = fit(Z, f, f[:n] + 2.0)
    np.testing.assert_allclose(drift.correct(Z, f)[0], f + 2.0, rtol=1e-3)


def test_the_error_is_drawn_without_regard_to_order_and_unit():
    Z, f, y = make_rows()
    order = np.r_[np.arange(12), 12 + np.random.default_rng(1).permutation(28)]
    draws = fit(Z, f, y).draw_mse()[0]
    np.testing.assert_allclose(fit(Z[order], f[order], y).draw_mse()[0], draws, rtol=1e-6)
    np.testing.assert_allclose(fit(Z, 1e3 * f, 1e3 * y).draw_mse()[0], 1e6 * draws, rtol=1e-6)


def test_a_smooth_drift_learns_a_nonlinear_function():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(2000, 2))
    f, truth = Z[:, 0], Z[:, 0] + np.sin(2.0 * Z[:, 1]) + Z[:, 0] * Z[:, 1]
    y = truth[:400] + 0.1 * rng.normal(size=400)
    errors = {}
    for smooth in (False, True):
        left = fit(Z, f, y, smooth=smooth).correct(Z, f)[0][400:] - truth[400:]
        errors[smooth] = np.sqrt(np.mean(left**2))
    assert errors[False] > 0.8  # nothing of it is linear
    assert errors[True] < 0.2


def test_a_linear_drift_costs_little_if_it_may_be_smooth():
    """The error on labels with noise 1; the least-squares fit of 7 numbers to 30 labels has about 1.15.

    The limits cost more than the smooth function: here the model of the drift is right, also where it is extrapolated.
    """
    rng = np.random.default_rng(0)
    errors = {"linear": [], "smooth": [], "limited": []}
    for _ in range(30):
        Z = rng.normal(size=(500, 5))
        f = Z @ rng.normal(size=5)
        truth = f + Z @ rng.normal(size=5) + 1.0
        y = truth[:30] + rng.normal(size=30)
        smooth = fit(Z, f, y, smooth=True)
        for name, drift in (("linear", fit(Z, f, y)), ("smooth", without_limits(smooth)), ("limited", smooth)):
            errors[name].append(np.mean((drift.correct(Z, f)[0][30:] - truth[30:]) ** 2) + 1.0)
    linear, smooth, limited = (np.sqrt(np.mean(found)) for found in errors.values())
    assert 1.1 < linear < smooth < 1.05 * linear
    assert limited < 1.04 * smooth


def test_a_correction_is_extrapolated_only_as_far_as_it_is_certain():
    """The limits written out for each row, from the posterior mean and its standard deviation."""
    Z, f, y = make_rows()
    drift = fit(Z, f, y, smooth=True)
    mean, scale = without_limits(drift).correct(Z, f)
    std, moves, residual = np.sqrt(scale**2 - drift.noise2), mean - f, y - f[:12]
    second = np.sort(np.abs(residual))[-2]
    expected = []
    for move, prediction, error in zip(moves, f, std, strict=True):
        edge = min(max(move, moves[:12].min(), -second), moves[:12].max(), second)
        move = edge + (move - edge) * max(0.0, 1.0 - error**2 / (move - edge) ** 2) if move != edge else move
        edge = min(max(prediction + move, min(y.min(), prediction)), max(y.max(), prediction))
        excess = prediction + move - edge
        expected.append(edge + excess * max(0.0, 1.0 - error**2 / excess**2) if excess else edge)
    corrected = drift.correct(Z, f)[0]
    np.testing.assert_allclose(corrected, expected)
    assert (corrected != mean).sum() > 3


def test_a_drift_without_noise_is_extrapolated():
    """Labels in the lower half of a column, and a linear drift almost without noise: the limits leave most of it."""
    rng = np.random.default_rng(0)
    Z = np.sort(rng.normal(size=(60, 1)), axis=0)
    f = np.zeros(60)
    truth = 10.0 + 5.0 * Z[:, 0]
    drift = fit(Z, f, truth[:30] + 0.01 * rng.normal(size=30), smooth=True)
    limited, mean = drift.correct(Z, f)[0], without_limits(drift).correct(Z, f)[0]
    assert np.abs(limited - mean)[30:].max() < 0.25 * (truth[-1] - truth[29])


def test_one_wrong_label_of_three_rarely_destroys_the_result():
    """With three labels, the noise has one degree of freedom, so that no test can find the wrong one."""
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(50):
        Z = rng.normal(size=(200, 3))
        truth = Z[:, 0] + 0.3 * rng.normal(size=200)
        labels = truth[:3] + np.array([0.0, 0.0, 100.0])
        corrected = fit(Z, Z[:, 0], labels, smooth=True).correct(Z, Z[:, 0])[0]
        errors.append(np.sqrt(np.mean((corrected - truth)[3:] ** 2)))
    assert np.quantile(errors, [0.5, 0.9]) == pytest.approx([0.4, 0.8], rel=0.5)  # 12 and 22 without the limits


def test_smooth_features_know_what_labelled_rows_leave_unknown():
    """Far from all centres, the variance of the smooth part is that of the prior."""
    Z, f, y = make_rows()
    basis = fit(Z, f, y, smooth=True).coordinates
    assert len(basis.centres) == len(y)
    _, rows, length2 = basis.transform(np.vstack([Z[:3], Z[0] + 1e4]), f[:4])
    np.testing.assert_allclose(length2[:3], np.square(rows[:3]).sum(axis=1))
    assert length2[3] - np.square(rows[3]).sum() == pytest.approx(0.5, abs=1e-6)


def make_curved_rows(n, m, d=10):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(m, d))
    f = Z[:, 0]
    truth = f + np.square(Z[:, 1]) + Z[:, 2] * Z[:, 3] + 0.3 * rng.normal(size=m)
    return Z, f, truth[:n], truth[n:]


@pytest.mark.parametrize("n", [300, MAX_CENTRES, MAX_CENTRES + 50, 1500])
def test_intervals_hold_for_any_number_of_centres(n):
    """The squares of rows far from the others determine the RMSE, so the expected one is too low for every n."""
    Z, f, y, left = make_curved_rows(n, n + 500)
    drift = fit(Z, f, y, smooth=True)
    assert len(drift.coordinates.centres) == (n if n <= MAX_CENTRES else SOME_CENTRES)
    error = drift.correct(Z, f)[0][n:] - left
    half = drift.quantile(0.9) * drift.correct(Z, f)[1][n:]
    assert 0.85 < np.mean(np.abs(error) <= half) < 0.97
    expected = np.sqrt(drift.expected_variance() + drift.noise2)
    assert 0.7 < expected / np.sqrt(np.mean(error**2)) < 1.1


def test_chosen_centres_depend_on_no_order_or_sign():
    Z, f, y, _ = make_curved_rows(700, 800, d=4)
    base = fit(Z, f, y, smooth=True).correct(Z, f)[0]
    np.testing.assert_allclose(fit(-Z, f, y, smooth=True).correct(-Z, f)[0], base, rtol=1e-6)
    np.testing.assert_allclose(fit(Z[:, ::-1], f, y, smooth=True).correct(Z[:, ::-1], f)[0], base, rtol=1e-6, atol=1e-6)
    order = np.random.default_rng(1).permutation(700)
    rows = np.r_[order, np.arange(700, 800)]
    shuffled = fit(Z[rows], f[rows], y[order], smooth=True).correct(Z, f)[0]
    np.testing.assert_allclose(shuffled, base, rtol=1e-6, atol=1e-6)

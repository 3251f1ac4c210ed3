"""The interval of an RMSE from n errors: exact for normal errors, and nearly so for heavy tails."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from pyspar.core.mean_square import NORMAL_VARIATION, SquaredErrors, rmse_factor


def test_the_factors_are_those_of_the_chi_squared_distribution():
    for n, tail in ((10, 0.025), (40, 0.975), (300, 0.5)):
        assert rmse_factor(n, NORMAL_VARIATION, tail) == pytest.approx(np.sqrt(n / chi2.ppf(tail, n)), rel=1e-12)


def test_summaries_of_parts_add_to_the_summary_of_all(rng):
    errors = rng.normal(size=50)
    errors[::7] = np.nan
    whole, parts = SquaredErrors.of(errors), SquaredErrors.of(errors[:20]) + SquaredErrors.of(errors[20:])
    assert (parts.n, parts.largest) == (whole.n, whole.largest)
    assert parts.total == pytest.approx(whole.total, rel=1e-14)
    known = errors[~np.isnan(errors)]
    assert whole.rmse == pytest.approx(np.sqrt(np.mean(known**2)), rel=1e-14)
    assert whole.n == known.size
    assert SquaredErrors().n == 0


def test_the_variation_is_the_variance_of_the_squares_over_their_squared_mean(rng):
    squares = rng.standard_t(3, size=400) ** 2
    found = SquaredErrors.of(np.sqrt(squares)).variation
    assert found == pytest.approx(np.var(squares, ddof=1) / squares.mean() ** 2, rel=1e-10)
    assert SquaredErrors.of(np.ones(9)).variation == NORMAL_VARIATION


@pytest.mark.parametrize(
    ("draw", "least"),
    [
        (lambda rng, shape: rng.normal(size=shape), 0.965),
        (lambda rng, shape: 1.0 + 0.3 * rng.normal(size=shape), 0.99),  # mostly an offset
        (lambda rng, shape: rng.laplace(size=shape) / np.sqrt(2.0), 0.945),
        (lambda rng, shape: rng.standard_t(5, size=shape) * np.sqrt(3.0 / 5.0), 0.93),
    ],
    ids=["normal", "offset", "laplace", "t5"],
)
@pytest.mark.parametrize("n", [10, 40])
def test_the_upper_end_is_rarely_below_the_true_error(rng, draw, least, n):
    # Nominal 97.5 %. 3,000 repeats have a standard error of 0.3 %; heavy tails lose a few per cent.
    samples = draw(rng, (3000, n))
    true = np.sqrt(np.mean(draw(rng, 2_000_000) ** 2))
    low, high = np.array([SquaredErrors.of(errors).interval() for errors in samples]).T
    assert np.mean(high >= true) >= least
    assert np.mean(low <= true) >= 0.95
    assert (low < high).all()


def test_a_summary_of_normal_errors_gives_their_interval(rng):
    errors = rng.normal(size=2000)
    assumed = SquaredErrors.of_normal(2000, SquaredErrors.of(errors).rmse)
    assert assumed.interval() == pytest.approx(SquaredErrors.of(errors).interval(), rel=0.02)


def test_one_label_has_an_interval_and_none_has_no_rmse():
    low, high = SquaredErrors.of(np.array([2.0])).interval()
    assert 0.0 < low < 2.0 < high
    assert np.isnan(SquaredErrors().rmse)

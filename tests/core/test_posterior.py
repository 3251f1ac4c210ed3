"""The distribution of one row's label, compared with a root finder."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, t

from pyspar.core.posterior import Predictive


@pytest.mark.parametrize("degrees", [0.7, 3.0, 40.0, 1000.0])
@pytest.mark.parametrize("level", [0.001, 0.5, 0.95])
def test_quantiles_of_the_mixture_equal_those_of_a_root_finder(rng, degrees, level):
    centre, scale = 5.0 * rng.normal(size=(30, 20)), 10.0 ** rng.uniform(-2.0, 2.0, size=(30, 20))
    one = t(degrees) if degrees <= 300.0 else norm
    ends = centre + scale * one.ppf(level)
    expected = [
        brentq(lambda x, k=k: one.cdf((x - centre[:, k]) / scale[:, k]).mean() - level, low, high, xtol=1e-12)
        for k, (low, high) in enumerate(zip(ends.min(axis=0), ends.max(axis=0), strict=True))
    ]
    found = Predictive(centre, scale, degrees).quantile(level)
    if degrees > 300.0:  # the bracket uses the exact t quantile, the probability the normal approximation
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_components_without_spread_are_points():
    centre, scale = np.array([[1.0], [2.0], [3.0]]), np.zeros((3, 1))
    assert Predictive(centre, scale, 5.0).quantile(0.5) == pytest.approx([2.0])

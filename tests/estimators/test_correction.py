"""TargetCorrection: corrections around any model, tables, outputs and invalid labels."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from pyspar import TargetCorrection


@pytest.fixture
def shifted():
    """A model fitted on a source, target rows, and their labels, which are larger by 2."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(300, 3)), rng.normal(size=(200, 3))
    model = LinearRegression().fit(X, X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=300))
    return model, Z, Z @ [1.0, 2.0, 0.0] + 2.0 + 0.1 * rng.normal(size=200)


def hide(y, n):
    return np.where(np.arange(len(y)) < n, y, np.nan)


def test_ten_labels_remove_an_offset(shifted):
    model, Z, y = shifted
    fixed = TargetCorrection(model).fit(Z, hide(y, 10))
    assert np.sqrt(np.mean((fixed.predict(Z) - y)[10:] ** 2)) < 0.15
    assert fixed.drift_.p_value < 0.001


def test_labels_can_be_given_in_three_forms(shifted):
    model, Z, y = shifted
    by_nan = TargetCorrection(model).fit(Z, hide(y, 10)).predict(Z)
    by_parts = TargetCorrection(model).fit(Z[:10], y[:10], unlabelled=Z[10:]).predict(Z)
    by_position = TargetCorrection(model).fit(Z, {i: y[i] for i in range(10)}).predict(Z)
    np.testing.assert_allclose(by_parts, by_nan)
    np.testing.assert_array_equal(by_position, by_nan)

"""The heads behind features: least squares with the authors' cut, and the default of ``adapt_head`` for users."""

from types import SimpleNamespace

import numpy as np
import pytest

from pyspar.bench.heads import Head, predictions
from pyspar.core.faint import FAINTEST
from pyspar.heads import fit_head
from pyspar.theory import Moments

N, D = 20_000, 16


@pytest.fixture(scope="module")
def features():
    """Features of which some directions are shorter than ``N eps``, 0.0024, and longer than a thousandth."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(D, D)))[0]
    spread = np.geomspace(1.0, 3e-4, D)
    X = (rng.normal(size=(N, D)) * spread @ turn).astype(np.float32)
    Z = (rng.normal(size=(200, D)) * np.sqrt(spread) @ turn).astype(np.float32)
    head = rng.normal(size=(1, D))
    y = X.astype(np.float64) @ head[0] + 0.1 * rng.normal(size=N)
    return SimpleNamespace(train=X, y_train=y, test=Z, unlabeled=None, head=head + 0.5)


@pytest.mark.parametrize(("name", "share"), [("OLS", 1.0), ("OLS, half cut", 0.5)])
def test_least_squares_has_the_cut_of_torch_s_pinv_however_many_rows_there_are(features, name, share):
    cut = share * N * float(np.finfo(np.float32).eps)
    assert cut > FAINTEST
    X, Z = features.train.astype(np.float64), features.test.astype(np.float64)
    expected = Z @ np.linalg.pinv(X, rcond=cut) @ features.y_train
    (found,) = predictions(features, [Head(name)]).values()
    # Moments hold the squares of lengths; the shortest direction left is some 1e-3 of the longest.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_the_bayesian_head_is_that_of_adapt_head(features):
    new = fit_head(Moments.of(features.train, features.y_train), Moments.of(features.test), "bayes", coef=features.head)
    assert new.changed.directions > 0
    (found,) = predictions(features, [Head("Bayes-SpAR")]).values()
    np.testing.assert_array_equal(found, features.test.astype(np.float64) @ new.coef[0])

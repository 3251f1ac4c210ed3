"""scikit-learn's estimator checks, in full: no check is skipped or expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pyspar import BayesSpARRegressor, PCRRegressor, SpARRegressor

# Some checks fit as few rows as there are directions, of which we warn.
pytestmark = pytest.mark.filterwarnings("ignore::pyspar.errors.SparWarning")


@parametrize_with_checks(
    [
        SpARRegressor(),
        SpARRegressor(fit_intercept=False, solver="qr", noise="unbiased"),
        BayesSpARRegressor(),
        SpARRegressor(noise="exact", weights="importance"),
        BayesSpARRegressor("common", fit_intercept=False, weights="importance"),
        BayesSpARRegressor("source", rule="chi2", solver="qr"),
        PCRRegressor(),
        PCRRegressor(0.99),
    ]
)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)

"""scikit-learn's estimator checks for TargetCorrection, around a model that needs no fit."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.estimator_checks import parametrize_with_checks

from pyspar import TargetCorrection


class Zero(RegressorMixin, BaseEstimator):
    """Predicts zero. The checks fit on data with different numbers of columns, which no fitted model accepts."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def __sklearn_is_fitted__(self):
        return True


# The model predicts one output, so a second one is refused.
EXPECTED = {"check_regressor_multioutput": "Zero has one output, and y must have as many as the model"}


@parametrize_with_checks([TargetCorrection(Zero())], expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)

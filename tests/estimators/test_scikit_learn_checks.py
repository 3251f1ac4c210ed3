"""scikit-learn's estimator checks. Only the model that TargetCorrection corrects here cannot pass one of them."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.estimator_checks import parametrize_with_checks

import pyspar
from pyspar import BayesSpARRegressor, ColumnAligner, SpARRegressor, TargetCorrection

# Some checks fit as few rows as there are directions, of which we warn.
pytestmark = pytest.mark.filterwarnings("ignore::pyspar.errors.SparWarning")


class Zero(RegressorMixin, BaseEstimator):
    """Predicts zero. The checks fit on data with different numbers of columns, which no fitted model accepts."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def __sklearn_is_fitted__(self):
        return True


ESTIMATORS = [
    SpARRegressor(),
    SpARRegressor(fit_intercept=False, noise="unbiased"),
    BayesSpARRegressor(),
    SpARRegressor(noise="exact"),
    BayesSpARRegressor("equal", fit_intercept=False),
    BayesSpARRegressor("source", alpha=0.999),
    TargetCorrection(Zero()),
    ColumnAligner(),
]


def list_expected_failures(estimator):
    if not isinstance(estimator, TargetCorrection):
        return {}
    return {"check_regressor_multioutput": "Zero has one output, and y must have as many as the model"}


def public_estimators():
    values = [getattr(pyspar, name) for name in pyspar.__all__]
    return {value for value in values if isinstance(value, type) and issubclass(value, BaseEstimator)}


def test_every_public_estimator_is_checked():
    assert public_estimators() == {type(estimator) for estimator in ESTIMATORS}


@pytest.mark.parametrize("kind", sorted(public_estimators(), key=lambda kind: kind.__name__))
def test_the_html_shows_the_parameters_and_whether_it_is_fitted(kind):
    X = np.arange(8.0).reshape(4, 2) ** 2
    model = SpARRegressor(alpha=0.75).fit(X, X[:, 0] + [0.0, 1.0, 0.0, 1.0])
    estimator = kind(model) if kind is TargetCorrection else kind()
    assert "Not fitted" in estimator._repr_html_()
    html = estimator.fit(X, X[:, 0])._repr_html_()
    assert "<span>Fitted</span>" in html
    assert kind.__name__ in html
    assert all(name in html for name in estimator.get_params(deep=False))
    if kind is TargetCorrection:
        assert "0.75" in html


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=list_expected_failures)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)

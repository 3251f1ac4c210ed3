"""Row weights and groups pass through pipelines, transformed labels and searches of scikit-learn."""

import numpy as np
import pytest
import sklearn
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyspar import BayesSpARRegressor, inspect


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def grouped(rng):
    groups = np.repeat(np.arange(12), 20)
    X = rng.normal(size=(240, 3))
    y = X[:, 0] + rng.normal(size=12)[groups] + 0.1 * rng.normal(size=240)
    return X, y, rng.integers(1, 4, size=240).astype(float), groups


def regressor():
    return BayesSpARRegressor().set_fit_request(sample_weight=True, groups=True).set_score_request(sample_weight=True)


MODELS = {
    "pipe": lambda: make_pipeline(StandardScaler().set_fit_request(sample_weight=False), regressor()),
    "labels": lambda: TransformedTargetRegressor(regressor(), transformer=StandardScaler(with_std=False)),
    "search": lambda: GridSearchCV(regressor(), {"prior_scale": ["equal"]}, cv=GroupKFold(3)),
    "search(pipe)": lambda: GridSearchCV(
        make_pipeline(StandardScaler().set_fit_request(sample_weight=False), regressor()),
        {"bayessparregressor__prior_scale": ["equal"]},
        cv=GroupKFold(3),
    ),
}


def innermost(model):
    for name in ("best_estimator_", "regressor_"):
        model = getattr(model, name, model)
    return model[-1] if hasattr(model, "steps") else model


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.usefixtures("routing")
def test_weights_and_groups_reach_the_regressor(grouped, name):
    X, y, weight, groups = grouped
    routed = innermost(MODELS[name]().fit(X, y, sample_weight=weight, groups=groups))
    rows = StandardScaler().fit_transform(X) if "pipe" in name else X
    labels = y - y.mean() if name == "labels" else y
    scale = "equal" if "search" in name else "max"
    direct = BayesSpARRegressor(scale).fit(rows, labels, weight, groups)
    np.testing.assert_allclose(routed.coef_, direct.coef_, rtol=1e-9)
    assert routed.source_rmse() == pytest.approx(direct.source_rmse())
    unweighted = BayesSpARRegressor(scale).fit(rows, labels)
    assert routed.source_rmse() > 1.02 * unweighted.source_rmse()  # groups
    assert not np.allclose(routed.coef_, unweighted.coef_)  # weights


@pytest.mark.usefixtures("routing")
def test_scikit_learn_asks_if_a_request_is_not_set(grouped):
    X, y, _, groups = grouped
    with pytest.raises(UnsetMetadataPassedError, match="groups"):
        GridSearchCV(BayesSpARRegressor(), {"prior_scale": ["equal"]}, cv=GroupKFold(3)).fit(X, y, groups=groups)


def test_without_routing_groups_split_rows_and_reach_the_regressor_by_the_name_of_its_step(grouped):
    X, y, _, groups = grouped
    pipe = make_pipeline(StandardScaler(), BayesSpARRegressor())
    result = cross_validate(pipe, X, y, cv=GroupKFold(3), groups=groups, return_estimator=True)
    assert all(est[-1]._group_rmse is None for est in result["estimator"])
    assert pipe.fit(X, y, bayessparregressor__groups=groups)[-1]._group_rmse is not None


def test_a_search_without_routing_loses_the_groups_and_an_inspection_with_groups_has_them(grouped):
    X, y, _, groups = grouped
    search = GridSearchCV(BayesSpARRegressor(), {"prior_scale": ["equal"]}, cv=GroupKFold(3)).fit(X, y, groups=groups)
    (lost,) = inspect(search, X).outputs
    (kept,) = inspect(search, X, source=(X, y), groups=groups).outputs
    assert ["new groups" in output.headline.text for output in (lost, kept)] == [False, True]
    assert kept.source_rmse > 1.02 * lost.source_rmse

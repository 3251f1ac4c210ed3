"""Heads: their keys, and their predictions compared with the formulas of the paper."""

import numpy as np
import pytest

from pyspar.paper.runs import registry
from pyspar.paper.runs.heads import Head, predict_with_heads
from pyspar.paper.runs.store import Features


def test_the_key_of_a_head_contains_the_version_of_its_rule_from_the_second_on(monkeypatch):
    monkeypatch.setattr(registry, "RECIPES", {"Bayes-SpAR": 3})
    assert Head("OLS").key == '["OLS",{},"test"]'
    assert Head("SpAR, half cut", {"alpha": 0.9}).key == '["SpAR, half cut",{"alpha":0.9},"test"]'
    assert Head("Bayes-SpAR").key == '["Bayes-SpAR",{},"test",3]'
    monkeypatch.setattr(registry, "RECIPES", {"OLS": 2})
    assert Head("OLS, half cut").key == '["OLS, half cut",{},"test",2]'


def test_every_rule_with_a_version_belongs_to_a_head():
    assert set(registry.RECIPES) <= set(registry.HEADS)


@pytest.fixture
def features(rng):
    X, Z = (rng.normal(size=(n, 5)).astype(np.float32) for n in (60, 40))
    y, w = rng.normal(size=60), rng.normal(size=(1, 5))
    empty, group = np.zeros(0), np.zeros(40, dtype=np.int64)
    return Features(X, X[:0], Z, w, y, empty, np.zeros(40), group[:0], group)


def test_adapting_to_unlabelled_rows_requires_them(features):
    with pytest.raises(ValueError, match="adapt_to='test'"):
        predict_with_heads(features, [Head("SpAR", adapt_to="unlabeled")])


def test_predictions_agree_with_the_formulas_of_the_paper(features):
    X, Z, y, w = features.train, features.test, features.y_train, features.head
    heads = [Head("trained"), Head("OLS"), Head("SpAR", {"alpha": 0.0}), Head("SpAR", {"alpha": 1.0})]
    trained, ols, alpha_0, alpha_1 = predict_with_heads(features, heads).values()
    Z64 = Z.astype(np.float64)
    np.testing.assert_allclose(trained, Z64 @ w[0])
    np.testing.assert_allclose(ols, Z64 @ (np.linalg.pinv(X.astype(np.float64)) @ y), rtol=1e-10)
    np.testing.assert_allclose(alpha_0, ols)  # alpha = 0 removes nothing
    np.testing.assert_allclose(alpha_1, 0, atol=1e-12)  # alpha = 1 removes everything

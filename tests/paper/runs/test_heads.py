"""Heads: their keys, and their predictions compared with the formulas of the paper."""

import numpy as np
import pytest

from pyspar.paper.runs import spec as registry
from pyspar.paper.runs.heads import Head, predict_with_heads
from pyspar.paper.runs.store import Features


def test_the_key_of_a_head_contains_the_version_of_its_rule_from_the_second_on(monkeypatch):
    monkeypatch.setattr(registry, "RECIPES", {"Bayes-SpAR": 3})
    assert Head("OLS").key == '["OLS",{},"test"]'
    assert Head("SpAR, half cut", {"alpha": 0.9}).key == '["SpAR, half cut",{"alpha":0.9},"test"]'
    assert Head("Bayes-SpAR").key == '["Bayes-SpAR",{},"test",3]'
    monkeypatch.setattr(registry, "RECIPES", {"OLS": 2})
    assert Head("OLS, half cut").key == '["OLS, half cut",{},"test",2]'


@pytest.fixture
def features(rng):
    X, Z = (rng.normal(size=(n, 5)).astype(np.float32) for n in (60, 40))
    y, w = rng.normal(size=60), rng.normal(size=(1, 5))
    empty, group = np.zeros(0), np.zeros(40, dtype=np.int64)
    return Features(X, X[:0], Z, w, y, empty, np.zeros(40), group[:0], group)


def test_predictions_agree_with_the_formulas_of_the_paper(features):
    X, Z, y, w = features.train, features.test, features.y_train, features.head
    heads = [Head("trained"), Head("OLS"), Head("SpAR", {"alpha": 0.0}), Head("SpAR", {"alpha": 1.0})]
    trained, ols, alpha_0, alpha_1 = predict_with_heads(features, heads).values()
    Z64 = Z.astype(np.float64)
    np.testing.assert_allclose(trained, Z64 @ w[0])
    np.testing.assert_allclose(ols, Z64 @ (np.linalg.pinv(X.astype(np.float64)) @ y), rtol=1e-10)
    np.testing.assert_allclose(alpha_0, ols)  # alpha = 0 removes nothing
    np.testing.assert_allclose(alpha_1, 0, atol=1e-12)  # alpha = 1 removes everything


def test_the_numbers_of_each_head_are_those_of_its_recipe(golden):
    """If this fails, the change of the code changes numbers: increase the recipe of the head, then update the file.

    ``spar reproduce --check`` then names the records that have to be renewed.
    """
    rng = np.random.default_rng(0)
    parts = {}
    w = rng.normal(size=8)
    for name, n, spread in (("train", 200, 1.0), ("val", 5, 1.0), ("test", 100, 2.0)):
        rows = rng.normal(size=(n, 8)) * [9.0, 3.0, 1.0, 1.0, 0.3, 0.1, 1e-6, 1e-6] * spread
        parts[name] = rows.astype(np.float32)
        parts[f"y_{name}"] = rows @ w + 0.5 * rng.normal(size=n)
    groups = {f"group_{name}": np.zeros(len(parts[name]), dtype=np.int64) for name in ("val", "test")}
    features = Features(head=(w + 0.2 * rng.normal(size=8))[None], **parts, **groups)
    heads = [Head(name) for name in registry.HEADS if not name.endswith("uncut")]
    lines = [
        f"{head.name}, recipe {head.recipe}: {np.sqrt(np.mean((prediction - features.y_test) ** 2)):.4f}\n"
        for head, prediction in zip(heads, predict_with_heads(features, heads).values(), strict=True)
    ]
    golden("head-recipes", "".join(lines))

"""``adapt_head(method="bayes")``: the head gets the weights of the Bayesian regressor on the features."""

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, InputError, Moments
from pyspar.core.faint import customary_cutoff
from pyspar.nn import adapt_head

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("bias", [False, True])
def test_the_head_is_the_bayesian_regressor_of_features_extracted_by_hand(mlp, world, by_hand, bias):
    model = mlp(bias=bias)
    adapted = adapt_head(model, world.source, world.target, method="bayes")
    features, target = (by_hand(model.body, rows).astype(np.float32) for rows in (world.X, world.Z))
    y = world.y.double().numpy()
    moments = Moments.of(features, y)
    _, lam, Vt = np.linalg.svd(features.astype(np.float64), full_matrices=False)
    loud = Vt[lam > customary_cutoff(moments) * lam[0]]
    features = features.astype(np.float64) @ loud.T @ loud
    byhand = BayesSpARRegressor(scale=False, fit_intercept=bias).fit(features, y).adapt(target)
    layer = adapted.model.get_submodule(adapted.head_name)
    np.testing.assert_allclose(layer.weight.detach().numpy()[0], byhand.coef_, rtol=1e-4, atol=1e-5)  # float32 weights
    assert adapted.adaptation.posterior
    assert isinstance(adapted.estimator, BayesSpARRegressor)
    again = adapted.estimator.adapted(target)
    np.testing.assert_allclose(again.coef_, byhand.coef_, rtol=1e-4, atol=1e-5)


def test_it_needs_a_target(mlp, world):
    with pytest.raises(InputError, match="pass target_loader"):
        adapt_head(mlp(), world.source, method="bayes")

"""ONNX: an adapted regressor is linear, so its weights are exported as those of a LinearRegression."""

import numpy as np
import onnxruntime
import skl2onnx
from sklearn.linear_model import LinearRegression

from pyspar import BayesSpARRegressor

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(200, 3)), 3.0 * rng.normal(size=(100, 3))
adapted = BayesSpARRegressor().fit(X, X[:, 0] + rng.normal(size=200)).adapt(Z)
linear = LinearRegression()
linear.coef_, linear.intercept_, linear.n_features_in_ = adapted.coef_, np.array(adapted.intercept_), 3
graph = skl2onnx.to_onnx(linear, Z[:1])
(predicted,) = onnxruntime.InferenceSession(graph.SerializeToString()).run(None, {"X": Z})
np.testing.assert_allclose(predicted[:, 0], adapted.predict(Z), rtol=1e-6)
print(len(graph.SerializeToString()), "bytes")

"""Predictions of tensors and Dask frames are those of the same rows as arrays."""

import numpy as np
import pandas as pd
import pytest

from pyspar import SpARRegressor

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")
dd = pytest.importorskip("dask.dataframe", reason="needs: pip install 'pyspar[dask]'")


def test_integer_tensors_do_not_truncate_the_weights():
    rng = np.random.default_rng(0)
    X = rng.integers(-5, 6, (300, 3))
    est = SpARRegressor().fit(X, X @ [0.5, -0.25, 0.1] + 0.1 * rng.normal(size=300))
    np.testing.assert_allclose(est.predict(torch.tensor(X)).numpy(), est.predict(X), rtol=1e-12, atol=1e-12)


def test_float32_tensors_are_predicted_in_float64():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 3)) + 1e4).astype(np.float32)
    est = SpARRegressor().fit(X, (X - 1e4) @ np.ones(3) + 0.1 * rng.normal(size=300))
    predicted = est.predict(torch.tensor(X))
    assert predicted.dtype == torch.float32
    np.testing.assert_allclose(predicted.numpy(), est.predict(X), rtol=1e-5, atol=1e-5)


def test_a_dask_frame_with_columns_in_another_order_is_refused():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 3)), columns=list("abc"))
    est = SpARRegressor().fit(frame, rng.normal(size=100))
    with pytest.raises(ValueError, match="order"):
        est.predict(dd.from_pandas(frame[list("cba")], npartitions=2))

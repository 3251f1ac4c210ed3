"""Groups in fit: leave-groups-out errors compared with explicit refits, and with rows of new groups."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sparse

from pyspar import BayesSpARRegressor, SpARRegressor
from pyspar.estimators.calibration import row_factor


def grouped(rng, groups=15, rows=12):
    """Rows whose labels share an offset within each group."""
    names = np.repeat(np.arange(groups), rows)
    X = rng.normal(size=(groups * rows, 3)) + rng.normal(size=(groups, 3))[names]
    y = X @ [1.0, -1.0, 0.0] + 2.0 * rng.normal(size=groups)[names] + 0.5 * rng.normal(size=len(X))
    return X, y, names


@pytest.mark.parametrize("kind", [SpARRegressor, BayesSpARRegressor])
def test_the_error_at_home_is_that_of_refits_without_each_fold_of_groups(rng, kind):
    X, y, groups = grouped(rng)
    est = kind().fit(X, y, groups=groups)
    folds = groups % 10  # in the order of first appearance
    squares = 0.0
    for fold in range(10):
        kept = folds != fold
        squares += np.sum((kind().fit(X[kept], y[kept]).predict(X[~kept]) - y[~kept]) ** 2)
    assert est.source_rmse() == pytest.approx(np.sqrt(squares / len(y)), rel=1e-9)
    np.testing.assert_array_equal(est.coef_, kind().fit(X, y).coef_)


def test_with_groups_the_forecast_is_that_of_new_groups(rng):
    """The rows of one group share an offset, so the error on new groups exceeds the one on new rows of the same."""
    actual, with_groups, without = [], [], []
    for _ in range(15):
        X, y, groups = grouped(rng)
        Z, yz, _ = grouped(rng)
        est = BayesSpARRegressor().fit(X, y, groups=groups)
        actual.append(np.mean((est.predict(Z) - yz) ** 2))
        with_groups.append(est.source_rmse() ** 2)
        without.append(BayesSpARRegressor().fit(X, y).source_rmse() ** 2)
    assert np.mean(with_groups) == pytest.approx(np.mean(actual), rel=0.2)
    assert np.mean(without) < np.mean(with_groups)


def test_forecasts_and_scales_of_rows_include_the_error_between_groups(rng):
    X, y, groups = grouped(rng)
    plain, est = (BayesSpARRegressor().fit(X, y, groups=g).adapt(X + 1.0) for g in (None, groups))
    before, after = plain.expected_rmse(X + 1.0), est.expected_rmse(X + 1.0)
    between = est.source_rmse() ** 2 - plain.source_rmse() ** 2
    assert between > 0.0
    assert after.model_rmse**2 == pytest.approx(before.model_rmse**2 + between)
    factor = [row_factor(0.9, m.separation_, source_rmse=m.source_rmse(), label_spread=y.std()) for m in (plain, est)]
    scales = [((m.predict_interval(X)[1] - m.predict(X)) / f) ** 2 for m, f in zip((plain, est), factor)]
    np.testing.assert_allclose(scales[1], scales[0] + between)


@pytest.mark.parametrize(
    ("groups", "value"), [([1] * 180, "at least 2 groups, got 1;"), ([1] * 3, r"\(3,\)"), ([None] + [1] * 179, "row 0")]
)
def test_unusable_groups_are_refused(rng, groups, value):
    X, y, _ = grouped(rng)
    est = BayesSpARRegressor()
    with pytest.raises(ValueError, match=value):
        est.fit(X, y, groups=groups)
    assert not hasattr(est, "coef_")


@pytest.mark.parametrize("kind", ["sparse", "torch", "frame"])
def test_other_kinds_of_rows_have_the_same_error(rng, kind):
    X, y, groups = grouped(rng)
    if kind == "torch":
        torch = pytest.importorskip("torch")
        rows, labels = torch.as_tensor(X), torch.as_tensor(y)
    else:
        rows, labels = (sparse.csr_array(X) if kind == "sparse" else pd.DataFrame(X, index=X[:, 0])), y
    est = BayesSpARRegressor().fit(rows, labels, groups=groups)
    assert est.source_rmse() == pytest.approx(BayesSpARRegressor().fit(X, y, groups=groups).source_rmse(), rel=1e-9)


def test_a_fit_with_groups_takes_no_batches(rng):
    X, y, groups = grouped(rng)
    est = BayesSpARRegressor().fit(X, y, groups=groups)
    state = dict(est.__dict__)
    with pytest.raises(ValueError, match="cannot add rows to a fit with groups"):
        est.partial_fit(X, y)
    assert est.__dict__ == state
    dask = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="groups require rows in memory"):
        BayesSpARRegressor().fit(dask.from_array(X), dask.from_array(y), groups=groups)


@pytest.mark.parametrize("unit", [1e-50, 1e50])
def test_intervals_for_new_groups_do_not_depend_on_the_unit_of_the_label(rng, unit):
    X, y, groups = grouped(rng)
    one, other = (BayesSpARRegressor().fit(X, scale * y, groups=groups).adapt(X + 0.01) for scale in (1.0, unit))
    expected, found = one.expected_rmse(X).interval95, other.expected_rmse(X).interval95
    np.testing.assert_allclose(np.divide(found, unit), expected, rtol=1e-9)


def test_groups_without_weight_do_not_count(rng):
    X, y, groups = grouped(rng)
    with pytest.raises(ValueError, match="at least 2 groups with a positive weight, got 1;"):
        BayesSpARRegressor().fit(X, y, groups=groups, sample_weight=(groups == 3).astype(float))

"""Groups of target rows, and predictions for a sample of rows."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from pyspar import InputError, Moments, SpARRegressor, inspect


def test_rows_and_their_moments_give_the_same_forecasts(shifted):
    X, y, Z = shifted
    est = SpARRegressor().fit(X, y)
    rows, moments = inspect(est, Z).outputs[0], inspect(est, Moments.of(Z)).outputs[0]
    assert moments.predictions is None
    assert [f.rmse for f in moments.forecasts] == pytest.approx([f.rmse for f in rows.forecasts])
    assert rows.predictions is not None
    assert rows.predictions.before == pytest.approx(est.predict(Z))
    assert rows.predictions.after == pytest.approx(copy.copy(est).adapt(Z).predict(Z))


def test_at_most_two_thousand_rows_are_predicted(shifted):
    X, y, Z = shifted
    many = np.tile(Z, (50, 1))
    sample = inspect(SpARRegressor().fit(X, y), many).outputs[0].predictions
    assert len(sample.rows) == len(set(sample.rows)) == 2000
    assert sample.rows[0] == 0
    assert sample.rows[-1] == len(many) - 1


@pytest.mark.parametrize("kind", ["frame", "sparse", "list", "float32"])
def test_rows_of_any_kind_are_predicted(shifted, kind):
    import pandas as pd
    import scipy.sparse as sp

    X, y, Z = shifted
    target = {"frame": pd.DataFrame, "sparse": sp.csr_array, "list": np.ndarray.tolist, "float32": np.float32}[kind](Z)
    fitted = SpARRegressor().fit(pd.DataFrame(X) if kind == "frame" else X, y)
    output = inspect(fitted, target, target_groups=["all"] * len(Z)).outputs[0]
    # float32 rows have a relative rounding error of 6e-8, and some predictions are near zero.
    assert output.predictions.before == pytest.approx(_least_squares(X, y, Z), rel=1e-4, abs=1e-4)
    assert output.groups["all"][0].rmse == pytest.approx(output.forecasts[0].rmse)


def _least_squares(X, y, Z):
    return SpARRegressor().fit(X, y).predict(Z)


def test_batches_have_no_predictions(shifted):
    X, y, Z = shifted
    est = SpARRegressor().fit(X, y)
    output = inspect(est, iter([Z[:40], Z[40:]])).outputs[0]
    assert output.predictions is None
    assert output.forecasts[0].rmse == pytest.approx(inspect(est, Z).outputs[0].forecasts[0].rmse)


def test_a_group_of_all_rows_has_the_forecast_of_the_target(shifted):
    X, y, Z = shifted
    output = inspect(SpARRegressor().fit(X, y), Z, target_groups=["all"] * len(Z)).outputs[0]
    assert output.groups["all"] == output.forecasts


@pytest.mark.parametrize("missing", [None, np.nan, np.datetime64("NaT")])
def test_the_first_row_without_a_group_is_named(shifted, missing):
    X, y, Z = shifted
    groups = ["a"] * len(Z)
    groups[7] = missing
    with pytest.raises(InputError, match=r"^target_groups.* 1 of 90 rows.* row 7\b"):
        inspect(SpARRegressor().fit(X, y), Z, target_groups=groups)


def test_missing_groups_in_pandas_types_are_rejected(shifted):
    import pandas as pd

    X, y, Z = shifted
    for dtype in ("string", "Int64", "category"):
        groups = pd.Series([1] * 89 + [None]).astype("Int64").astype(dtype)
        with pytest.raises(InputError, match=r"^target_groups.* row 89\b"):
            inspect(SpARRegressor().fit(X, y), Z, target_groups=groups)


def test_groups_of_several_types_must_have_different_text(shifted):
    X, y, Z = shifted
    est = SpARRegressor().fit(X, y)
    groups = inspect(est, Z, target_groups=[1, "north"] * 45).outputs[0].groups
    assert set(groups) == {"1", "north"}
    with pytest.raises(InputError, match=r"^target_groups.*'1'"):
        inspect(est, Z, target_groups=[1, "1"] * 45)
    with pytest.raises(InputError, match=r"^target_groups.*\{\}.*row 0"):
        inspect(est, Z, target_groups=[{}] * 90)


@pytest.mark.parametrize("groups", [[1.0, 2.0], [1, 2], ["1", "2"]], ids=["floats", "integers", "text"])
def test_groups_of_the_source_and_of_the_target_have_the_same_names(shifted, groups):
    X, y, Z = shifted
    est = SpARRegressor().fit(X, y, groups=np.resize(np.array(groups, dtype=object), len(X)))
    assert list(est._folds.fold_of) == ["1", "2"]
    assert list(inspect(SpARRegressor().fit(X, y), Z, target_groups=groups * 45).outputs[0].groups) == ["1", "2"]


def test_one_name_as_number_and_as_text_is_refused_in_the_source_too(shifted):
    X, y, _ = shifted
    with pytest.raises(InputError, match=r"^groups.*'1'.*row 1\b"):
        SpARRegressor().fit(X, y, groups=np.resize(np.array([1, "1"], dtype=object), len(X)))


def test_numeric_groups_are_sorted_by_number(shifted):
    X, y, Z = shifted
    groups = inspect(SpARRegressor().fit(X, y), Z, target_groups=np.arange(90) % 11).outputs[0].groups
    assert list(groups) == [str(k) for k in range(11)]


@pytest.mark.parametrize("form", ["coo", "bsr", "dia", "csc", "lil"])
def test_sparse_rows_of_any_form_may_be_grouped(shifted, form):
    import scipy.sparse as sp

    X, y, Z = shifted
    est = SpARRegressor().fit(X, y)
    groups = np.arange(len(Z)) % 2
    expected = inspect(est, Z, target_groups=groups).outputs[0].groups
    for rows in (sp.coo_array(Z).asformat(form), sp.coo_matrix(Z).asformat(form)):
        by_group = inspect(est, rows, target_groups=groups).outputs[0].groups
        for name, forecasts in expected.items():
            assert [f.rmse for f in by_group[name]] == pytest.approx([f.rmse for f in forecasts])


def test_a_group_whose_weights_are_zero_or_too_small_is_named(shifted):
    X, y, Z = shifted
    groups, weight = np.where(np.arange(len(Z)) < 30, "north", "south"), np.arange(len(Z)) < 30
    est = SpARRegressor().fit(X, y)
    with pytest.raises(InputError, match=r"^sample_weight.* 60 rows.*'south'"):
        inspect(est, Z, target_groups=groups, sample_weight=np.where(weight, 3.0, 0.0))
    with pytest.raises(InputError, match=r"^group 'south': sample_weight"):
        inspect(est, Z, target_groups=groups, sample_weight=np.where(weight, 3.0, 1e-200))

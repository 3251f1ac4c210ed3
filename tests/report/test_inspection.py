"""An inspection: forecasts, directions and what alpha would do to them, as finite numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, InputError, Moments, SpARRegressor, alpha_path, inspect


@pytest.mark.parametrize("kind", [SpARRegressor, BayesSpARRegressor])
@pytest.mark.parametrize("alpha", [0.5, 0.9, 0.999])
def test_the_changes_of_removed_directions_sum_to_the_forecast_of_spar(shifted, kind, alpha):
    # Errors add along the target's directions, so the slider's sum must be the forecast made from the weights.
    X, y, Z = shifted
    found = inspect(kind(alpha=alpha).fit(X, y), Z)
    output = found.outputs[0]
    gone = [d for d in output.directions if d.alpha <= alpha]
    squared = output.forecast("OLS").rmse ** 2 + sum(d.change for d in gone)
    assert squared == pytest.approx(output.forecast("SpAR").rmse ** 2, rel=1e-9)


def test_a_source_as_its_own_target_inflates_every_direction_by_one_over_n(shifted):
    X, y, _ = shifted
    found = inspect(SpARRegressor().fit(X, y), X)
    assert [d.inflation for d in found.outputs[0].directions] == pytest.approx([1 / len(X)] * X.shape[1])
    assert found.outputs[0].in_distribution == pytest.approx(found.outputs[0].forecast("OLS").rmse)


def test_what_is_removed_is_what_the_adapted_estimator_took(shifted):
    X, y, Z = shifted
    est = BayesSpARRegressor(rule="positive-part").fit(X, y)
    taken = est.adapted(Z).adaptation_.taken[:, 0]
    assert sorted(d.removed for d in inspect(est, Z).outputs[0].directions) == pytest.approx(sorted(taken))


def test_the_estimator_is_left_as_it_was(shifted):
    X, y, Z = shifted
    est = SpARRegressor().fit(X, y)
    before = est.coef_.copy()
    inspect(est, Z)
    assert np.array_equal(est.coef_, before)
    assert not hasattr(est, "adaptation_")


def test_rows_and_their_moments_give_the_same_numbers_but_no_predictions(shifted):
    X, y, Z = shifted
    est = SpARRegressor().fit(X, y)
    rows, moments = inspect(est, Z).outputs[0], inspect(est, Moments.of(Z)).outputs[0]
    assert moments.predictions is None
    assert [f.rmse for f in moments.forecasts] == pytest.approx([f.rmse for f in rows.forecasts])
    assert rows.predictions is not None
    assert rows.predictions.before == pytest.approx(est.predict(Z))
    assert rows.predictions.after == pytest.approx(est.adapted(Z).predict(Z))


def test_of_many_rows_two_thousand_are_predicted(shifted):
    X, y, Z = shifted
    many = np.tile(Z, (50, 1))
    sample = inspect(SpARRegressor().fit(X, y), many).outputs[0].predictions
    assert len(sample.rows) == len(set(sample.rows)) == 2000
    assert sample.rows[0] == 0
    assert sample.rows[-1] == len(many) - 1


def test_features_of_one_name_are_one_column(shifted):
    X, y, Z = shifted
    found = inspect(SpARRegressor().fit(X, y), Z, columns=["a"] * 4 + ["b"] * 4)
    assert found.columns == ("a", "b")
    for direction in found.outputs[0].directions:
        assert sum(share for _, share in direction.loads) == pytest.approx(1.0)


def test_a_group_of_all_rows_has_the_forecast_of_the_whole(shifted):
    X, y, Z = shifted
    output = inspect(SpARRegressor().fit(X, y), Z, groups=["all"] * len(Z)).outputs[0]
    assert output.groups["all"] == output.forecasts


def test_given_weights_are_forecast_like_our_own(shifted):
    X, y, Z = shifted
    est = SpARRegressor().fit(X, y)
    output = inspect(est, Z, weights={"mine": (est.coef_, est.intercept_)}).outputs[0]
    assert output.forecast("mine").rmse == pytest.approx(output.forecast("OLS").rmse)


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        ({"weights": {"OLS": ([0.0] * 8, 0.0)}}, "choose another"),
        ({"weights": {"mine": ([0.0] * 7, 0.0)}}, "one coefficient for each of 8"),
        ({"weights": {"mine": ([np.nan] * 8, 0.0)}}, "must be finite"),
        ({"groups": [1, 2]}, "one entry for each row"),
        ({"columns": ["a", "b"]}, "must be 8 names"),
        ({"outputs": "y"}, "must be 1 names"),
    ],
)
def test_what_does_not_fit_is_refused(shifted, bad, text):
    X, y, Z = shifted
    with pytest.raises(InputError, match=text):
        inspect(SpARRegressor().fit(X, y), Z, **bad)


def test_other_estimators_are_refused(shifted):
    from sklearn.linear_model import Ridge

    X, y, Z = shifted
    with pytest.raises(TypeError, match="SpARRegressor or a BayesSpARRegressor"):
        inspect(Ridge().fit(X, y), Z)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_numbers_of_any_size_end_in_json(shifted, scale):
    X, y, Z = shifted
    for found in (inspect(SpARRegressor().fit(X * scale, y), Z * scale), inspect(SpARRegressor().fit(X, y * scale), Z)):
        assert "NaN" not in json.dumps(found.as_dict())
        assert json.dumps(found.as_dict(), allow_nan=False)


def test_the_alpha_path_takes_a_regressor_or_its_adaptation(shifted):
    X, y, Z = shifted
    est = SpARRegressor(alpha=0.9).fit(X, y).adapt(Z)
    assert np.array_equal(alpha_path(est).alpha, alpha_path(est.adaptation_).alpha)
    assert np.array_equal(alpha_path(est).removed_at(0.9), est.adaptation_.removed)
    with pytest.raises(TypeError, match="adapt"):
        alpha_path(SpARRegressor().fit(X, y))


@pytest.mark.parametrize("kind", ["frame", "sparse", "list", "float32"])
def test_rows_of_any_kind_are_predicted(shifted, kind):
    import pandas as pd
    import scipy.sparse as sp

    X, y, Z = shifted
    given = {"frame": pd.DataFrame, "sparse": sp.csr_array, "list": np.ndarray.tolist, "float32": np.float32}[kind](Z)
    fitted = SpARRegressor().fit(pd.DataFrame(X) if kind == "frame" else X, y)
    output = inspect(fitted, given, groups=["all"] * len(Z)).outputs[0]
    # float32 rows carry a rounding of 6e-8, and some predictions are near zero.
    assert output.predictions.before == pytest.approx(_least_squares(X, y, Z), rel=1e-4, abs=1e-4)
    assert output.groups["all"][0].rmse == pytest.approx(output.forecasts[0].rmse)


def _least_squares(X, y, Z):
    return SpARRegressor().fit(X, y).predict(Z)


def test_batches_are_inspected_without_predictions(shifted):
    X, y, Z = shifted
    est = SpARRegressor().fit(X, y)
    output = inspect(est, iter([Z[:40], Z[40:]])).outputs[0]
    assert output.predictions is None
    assert output.forecasts[0].rmse == pytest.approx(inspect(est, Z).outputs[0].forecasts[0].rmse)

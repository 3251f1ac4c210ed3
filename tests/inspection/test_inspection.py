"""An inspection: forecasts, directions and what alpha would do to them, as finite numbers."""

from __future__ import annotations

import json
from functools import partial

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


@pytest.mark.parametrize("kind", [SpARRegressor, partial(BayesSpARRegressor, units="source", rule="chi2")])
def test_what_a_rule_removes_is_removed_in_the_inspection(shifted, kind):
    X, y, Z = shifted
    est = kind().fit(X, y)
    removed = est.adapted(Z).adaptation_.removed[:, 0]
    found = sorted(d.removed for d in inspect(est, Z).outputs[0].directions)
    assert 0 < removed.sum() < len(removed)
    assert found == pytest.approx(sorted(removed.astype(float)), abs=1e-9)


def test_a_direction_is_removed_by_the_share_that_its_weight_lost(shifted):
    X, y, Z = shifted
    X, y = X[:20], y[:20]
    est = BayesSpARRegressor().fit(X, y)
    spread = X.std(axis=0)
    directions = np.linalg.svd((Z - X.mean(axis=0)) / spread, full_matrices=False)[2]
    before, after = (np.abs(directions @ (fitted.coef_ * spread)) for fitted in (est, est.adapted(Z)))
    lost = np.clip(1.0 - after / before, 0.0, 1.0)
    assert sorted(d.removed for d in inspect(est, Z).outputs[0].directions) == pytest.approx(sorted(lost), abs=1e-8)
    assert lost.max() > 0.1


@pytest.mark.parametrize("kind", [SpARRegressor, BayesSpARRegressor])
def test_directions_are_those_of_the_units_that_the_estimator_was_fitted_in(shifted, kind):
    X, y, Z = shifted
    X, Z = X * np.geomspace(1, 50, 8), Z * np.geomspace(1, 50, 8)
    spread = X.std(axis=0) if kind is BayesSpARRegressor else 1.0
    found = inspect(kind().fit(X, y), Z).outputs[0]
    by_hand = SpARRegressor().fit(X / spread, y)
    assert found.forecast("SpAR").rmse == pytest.approx(
        inspect(by_hand, Z / spread).outputs[0].forecast("SpAR").rmse, rel=1e-9
    )
    removed = by_hand.adapted(Z / spread).adaptation_.removed.sum()
    assert sum(d.goes for d in found.directions) == removed > 0


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


@pytest.mark.parametrize("missing", [None, np.nan, np.datetime64("NaT")])
def test_a_row_without_a_group_is_named(shifted, missing):
    X, y, Z = shifted
    groups = ["a"] * len(Z)
    groups[7] = missing
    with pytest.raises(InputError, match=r"none for 1 of 90 rows, the first of them row 7; .*fillna"):
        inspect(SpARRegressor().fit(X, y), Z, groups=groups)


def test_groups_of_pandas_with_missing_values_are_refused_too(shifted):
    import pandas as pd

    X, y, Z = shifted
    for dtype in ("string", "Int64", "category"):
        groups = pd.Series([1] * 89 + [None]).astype("Int64").astype(dtype)
        with pytest.raises(InputError, match="row 89"):
            inspect(SpARRegressor().fit(X, y), Z, groups=groups)


def test_groups_of_several_types_are_kept_apart_or_refused(shifted):
    X, y, Z = shifted
    est = SpARRegressor().fit(X, y)
    found = inspect(est, Z, groups=[1, "north"] * 45).outputs[0].groups
    assert set(found) == {"1", "north"}
    with pytest.raises(InputError, match="both written '1'"):
        inspect(est, Z, groups=[1, "1"] * 45)
    with pytest.raises(InputError, match="plain labels"):
        inspect(est, Z, groups=[{}] * 90)


def test_numbered_groups_come_in_the_order_of_their_numbers(shifted):
    X, y, Z = shifted
    found = inspect(SpARRegressor().fit(X, y), Z, groups=np.arange(90) % 11).outputs[0].groups
    assert list(found) == [str(k) for k in range(11)]


def test_a_pipeline_is_inspected_as_its_last_step_is(shifted):
    import pandas as pd
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    X, y, Z = shifted
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    target = pd.DataFrame(Z[:, :3], columns=["a", "b", "c"])
    pipe = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), SpARRegressor()).fit(frame, y)
    found = inspect(pipe, target, groups=["all"] * len(Z))
    by_hand = inspect(pipe[-1], pipe[:-1].transform(target))
    assert found.outputs[0].forecasts == by_hand.outputs[0].forecasts == found.outputs[0].groups["all"]
    assert "b c" in found.columns
    assert by_hand.columns[0] == "x0"
    assert found.estimator.startswith("Pipeline(")
    assert found.outputs[0].predictions.before == pytest.approx(pipe.predict(target))


def test_a_pipeline_that_ends_in_something_else_or_is_given_moments_is_refused(shifted):
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, Z = shifted
    with pytest.raises(TypeError, match="end the pipeline with SpARRegressor"):
        inspect(make_pipeline(StandardScaler(), Ridge()).fit(X, y), Z)
    with pytest.raises(TypeError, match="pass the rows"):
        inspect(make_pipeline(StandardScaler(), SpARRegressor()).fit(X, y), Moments.of(Z))


def test_inspecting_adapts_to_nothing_but_the_target(shifted, monkeypatch):
    X, y, Z = shifted
    est = BayesSpARRegressor().fit(X, y)
    seen = []
    original = BayesSpARRegressor._adapt_to
    monkeypatch.setattr(BayesSpARRegressor, "_adapt_to", lambda self, z: seen.append(z) or original(self, z))
    inspect(est, Z)
    assert [(z.rows, z.n_outputs) for z in seen] == [(len(Z), 0)]


@pytest.mark.parametrize("steps", [[], ["passthrough"]])
def test_a_pipeline_without_names_keeps_those_of_its_last_step(shifted, steps):
    from sklearn.pipeline import make_pipeline

    X, y, Z = shifted
    assert inspect(make_pipeline(*steps, SpARRegressor()).fit(X, y), Z).columns[:2] == ("x0", "x1")


def test_a_fitted_linear_estimator_stands_for_its_weights(shifted):
    from sklearn.linear_model import LinearRegression

    X, y, Z = shifted
    for labels in (y, y[:, None], np.column_stack([y, -y])):
        found = inspect(SpARRegressor().fit(X, labels), Z, weights={"theirs": LinearRegression().fit(X, labels)})
        for output in found.outputs:
            assert output.forecast("theirs").rmse == pytest.approx(output.forecast("OLS").rmse)


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ({"a": (np.ones(8), [0.0, 1.0])}, r"one number or one for each of 1 outputs. Got \[0.0, 1.0\]"),
        ({"a": (np.ones(8), np.nan)}, "a finite intercept"),
        ({"a": (np.ones(8), None)}, "weights\\['a'\\] must hold real numbers.*0.0 where there is none"),
        ({"a": (np.ones(8) * 1j, 0.0)}, "must hold real numbers"),
        ({"a": ("text", 0.0)}, "must hold real numbers"),
        ({"a": ([[1.0], [1.0, 2.0]], 0.0)}, "must hold real numbers"),
        ({"a": [np.ones(8)]}, r"must be a pair \(coef, intercept\), or a fitted linear.*Got list of 1"),
        ({"a": np.ones(8)}, r"must be a pair \(coef, intercept\).*Got ndarray"),
        ({"a": SpARRegressor()}, "Got SpARRegressor; fit it first"),
        ([("a", np.ones(8), 0.0)], "weights must be a dict.*Got list"),
    ],
)
def test_weights_that_are_none_are_refused_with_their_name(shifted, weights, text):
    X, y, Z = shifted
    with pytest.raises(InputError, match=text):
        inspect(SpARRegressor().fit(X, y), Z, weights=weights)


def test_an_estimator_with_its_columns_in_another_order_is_refused(shifted):
    import pandas as pd

    X, y, Z = shifted
    X, Z = (pd.DataFrame(rows, columns=list("abcdefgh")) for rows in (X, Z))
    other = SpARRegressor().fit(X[list("hgfedcba")], y)
    with pytest.raises(InputError, match=r"weights\['other'\] must be of an estimator with the source's columns"):
        inspect(SpARRegressor().fit(X, y), Z, weights={"other": other})


@pytest.mark.parametrize("form", ["coo", "bsr", "dia", "csc", "lil"])
def test_sparse_rows_of_any_form_may_be_grouped(shifted, form):
    import scipy.sparse as sp

    X, y, Z = shifted
    est = SpARRegressor().fit(X, y)
    groups = np.arange(len(Z)) % 2
    expected = inspect(est, Z, groups=groups).outputs[0].groups
    for rows in (sp.coo_array(Z).asformat(form), sp.coo_matrix(Z).asformat(form)):
        found = inspect(est, rows, groups=groups).outputs[0].groups
        for name, forecasts in expected.items():
            assert [f.rmse for f in found[name]] == pytest.approx([f.rmse for f in forecasts])


def test_a_group_whose_rows_do_not_count_is_named(shifted):
    X, y, Z = shifted
    groups, weight = np.where(np.arange(len(Z)) < 30, "north", "south"), np.arange(len(Z)) < 30
    est = SpARRegressor().fit(X, y)
    with pytest.raises(InputError, match=r"sample_weight must not be zero for a whole group. Got that for 'south'"):
        inspect(est, Z, groups=groups, sample_weight=np.where(weight, 3.0, 0.0))
    with pytest.raises(InputError, match="group 'south': sample_weight must have its largest between"):
        inspect(est, Z, groups=groups, sample_weight=np.where(weight, 3.0, 1e-200))


def test_errors_beyond_float64_are_told_in_words(shifted):
    from pyspar.cli.show import forecast_lines

    X, y, Z = shifted
    found = inspect(SpARRegressor().fit(X, y), Z * 1e300)
    assert found.outputs[0].forecast("OLS").rmse == np.inf
    assert "unknown" in repr(found)
    told = "\n".join(forecast_lines(found))
    assert "beyond what numbers can hold RMSE" in told
    assert "nan" not in told

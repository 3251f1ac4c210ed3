"""``inspect``: its input, pipelines, and numbers that do not fit into float64."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from pyspar import BayesSpARRegressor, InputError, Moments, SpARRegressor, TargetCorrection, expected_rmse, inspect


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"target_groups": [1, 2]}, r"^target_groups.*\(2,\).* 90 rows"),
        ({"columns": ["a", "b"]}, "^columns.* 8 names, got 2"),
        ({"outputs": "y"}, "^outputs.* 1 names, got 'y'"),
    ],
)
def test_arguments_of_the_wrong_length_are_rejected(shifted, arguments, text):
    X, y, Z = shifted
    with pytest.raises(InputError, match=text):
        inspect(SpARRegressor().fit(X, y), Z, **arguments)


def test_other_estimators_are_rejected(shifted):
    from sklearn.linear_model import Ridge

    X, y, Z = shifted
    with pytest.raises(TypeError, match=r"SpARRegressor.*\bRidge\b.*source="):
        inspect(Ridge().fit(X, y), Z)


@pytest.mark.parametrize("with_source", [False, True])
def test_the_error_for_a_network_names_adapt_head(shifted, with_source):
    nn = pytest.importorskip("torch.nn")
    X, y, Z = shifted
    with pytest.raises(TypeError, match=r"Linear.*adapt_head\(\.\.\.\)\.expected_rmse\(\)"):
        inspect(nn.Linear(8, 1), Z, source=(X, y) if with_source else None)


@pytest.mark.parametrize("scale", [1e-50, 1e50])
def test_numbers_of_any_size_can_be_written_as_json(shifted, scale):
    X, y, Z = shifted
    features, labels = SpARRegressor().fit(X * scale, y), SpARRegressor().fit(X, y * scale)
    for inspection in (inspect(features, Z * scale), inspect(labels, Z)):
        assert "NaN" not in json.dumps(inspection.as_dict())
        assert json.dumps(inspection.as_dict(), allow_nan=False)


def test_a_pipeline_is_inspected_like_its_last_step(shifted):
    import pandas as pd
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    X, y, Z = shifted
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    target = pd.DataFrame(Z[:, :3], columns=["a", "b", "c"])
    pipe = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), SpARRegressor()).fit(frame, y)
    inspection = inspect(pipe, target, target_groups=["all"] * len(Z))
    by_hand = inspect(pipe[-1], pipe[:-1].transform(target))
    assert inspection.outputs[0].forecasts == by_hand.outputs[0].forecasts == inspection.outputs[0].groups["all"]
    assert "b c" in inspection.columns
    assert by_hand.columns[0] == "x0"
    assert inspection.estimator.startswith("Pipeline(")
    assert inspection.outputs[0].predictions.before == pytest.approx(pipe.predict(target))


def test_a_pipeline_with_another_last_step_or_with_moments_is_rejected(shifted):
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, Z = shifted
    with pytest.raises(TypeError, match="SpARRegressor"):
        inspect(make_pipeline(StandardScaler(), Ridge()).fit(X, y), Z)
    with pytest.raises(TypeError, match="Moments"):
        inspect(make_pipeline(StandardScaler(), SpARRegressor()).fit(X, y), Moments.of(Z))


@pytest.mark.parametrize("steps", [[], ["passthrough"]])
def test_a_pipeline_without_names_uses_those_of_its_last_step(shifted, steps):
    from sklearn.pipeline import make_pipeline

    X, y, Z = shifted
    assert inspect(make_pipeline(*steps, SpARRegressor()).fit(X, y), Z).columns[:2] == ("x0", "x1")


def test_the_text_of_several_outputs_names_each(shifted):
    X, y, Z = shifted
    inspection = inspect(SpARRegressor().fit(X, np.column_stack([y, -y])), Z, outputs=["price", "rent"])
    verdicts = [output.verdict for output in inspection.outputs]
    assert repr(inspection).split("\n") == [f"price: {verdicts[0]}", f"rent: {verdicts[1]}"]


def test_a_corrected_model_is_refused_with_the_functions_that_accept_it(shifted):
    X, y, Z = shifted
    labels = dict.fromkeys(range(12), 1.0) | {3: 2.0}
    for model in (LinearRegression().fit(X, y), BayesSpARRegressor().fit(X, y)):
        fixed = TargetCorrection(model).fit(Z, labels)
        for source in (None, (X, y)):
            with pytest.raises(TypeError, match=r"TargetCorrection.*expected_rmse.*inspect\(model\.model"):
                inspect(fixed, Z, source=source)
        assert inspect(fixed.model, Z, source=(X, y)).outcome
        assert expected_rmse(fixed, Z).rmse_uncorrected > 0.0


def test_labels_may_be_a_mapping_of_row_positions(shifted):
    X, y, Z = shifted
    labels = np.full(len(Z), np.nan)
    labels[[2, 5, 40]] = 1.0, -1.0, 3.0
    est = BayesSpARRegressor().fit(X, y)
    by_position = inspect(est, Z, y={2: 1.0, 5: -1.0, 40: 3.0})
    assert by_position.outputs[0].evidence == inspect(est, Z, y=labels).outputs[0].evidence
    with pytest.raises(ValueError, match=r"target y .* 90 rows.* 89\b"):
        inspect(est, Z, y=labels[1:])


@pytest.mark.parametrize(("label_mean", "feature_mean", "unit"), [(0.0, 0.0, 1.0), (1e6, 0.0, 1e-6), (0.0, 1e5, 1.0)])
def test_rounding_errors_of_an_exact_fit_are_not_harm(label_mean, feature_mean, unit):
    rng = np.random.default_rng(0)
    X, Z = (spread * rng.normal(size=(90, 4)) + feature_mean for spread in (1.0, 3.0))
    model = SpARRegressor().fit(X, unit * (X @ [1.0, 2.0, 3.0, 4.0] + label_mean)).adapt(Z)
    (result,) = inspect(model, Z).outputs
    assert {forecast.rmse for forecast in result.forecasts} == {result.home} == {0.0}
    assert result.outcome == "unverified"

"""The inspection of any fitted regressor."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_predict

from pyspar import BayesSpARRegressor, InputError, SpARRegressor, inspect, report


@pytest.fixture(scope="module")
def homes():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"area": rng.normal(size=400), "rooms": rng.normal(size=400)})
    y = pd.Series(np.abs(3.0 * X["area"] + rng.normal(size=400)) + 1.0, name="price")
    return X, y, X + 1.0


def test_any_regressor_is_judged_by_its_cross_validated_error(homes):
    X, y, Z = homes
    model = Ridge().fit(X, y)
    inspection = inspect(model, Z, source=(X, y))
    (output,) = inspection.outputs
    own = np.sqrt(np.mean((cross_val_predict(Ridge(), X, y) - y) ** 2))
    assert output.home == pytest.approx(own, rel=0.02)  # other folds
    assert (output.name, output.recommended, inspection.before) == ("price", "Ridge", "Ridge")
    assert inspection.outcome in ("unverified", "hurts")
    assert "Keep Ridge" in output.next_step
    low, high = output.expected.interval95
    assert low < output.expected.rmse < high
    assert output.directions == ()


def test_target_labels_come_first_for_any_regressor(homes):
    X, y, Z = homes
    model = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
    labels = np.where(np.arange(400) < 50, 10.0 + model.predict(Z), np.nan)
    output = inspect(model, Z, source=(X, y), y=labels).outputs[0]
    assert output.outcome == "hurts"
    assert output.labels.n == 50
    assert output.labels.rmse == pytest.approx(10.0)
    assert not output.labels.confirmed


def test_implausible_predictions_of_any_regressor_are_reported(homes):
    X, y, Z = homes
    Z = Z.copy()
    Z.loc[3, "area"] = 1000.0
    output = inspect(Ridge().fit(X, y), Z, source=(X, y)).outputs[0]
    assert output.absurd.rows[0] == 3
    assert any(finding.code == "SPAR018" for finding in output.findings)


def test_unseen_categories_make_the_error_of_any_regressor_unknown(homes):
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    X, y, Z = homes
    X, Z = X.assign(kind=["house", "flat"] * 200), Z.assign(kind=["house", "farm"] * 200)
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["kind"]), remainder="passthrough")
    inspection = inspect(make_pipeline(encode, Ridge()).fit(X, y), Z, source=(X, y))
    assert inspection.outcome == "unknown"
    (finding,) = [finding for finding in inspection.findings if finding.code == "SPAR014"]
    assert finding.severity == "serious"
    assert "'kind' in 50.0 %" in finding.text
    rate = inspection.outputs[0].base_rate
    assert rate.n_tasks > 0
    assert f"Of {rate.n_tasks:,} real shifts" in inspection.outputs[0].experience


def test_columns_that_moved_far_are_reported_for_any_regressor_as_for_linear_ones(homes):
    X, y, Z = homes
    far = Z.assign(area=Z["area"] + 8.0)
    texts = []
    for found in (inspect(BayesSpARRegressor().fit(X, y), far), inspect(Ridge().fit(X, y), far, source=(X, y))):
        texts += [finding.text for finding in found.findings if finding.code == "SPAR009"]
    assert len(texts) == 2
    assert texts[0] == texts[1]
    assert "'area'" in texts[0]
    assert not [f for f in inspect(Ridge().fit(X, y), Z, source=(X, y)).findings if f.code == "SPAR009"]


def test_the_page_of_any_regressor_has_no_directions(homes):
    X, y, Z = homes
    html = report(Ridge().fit(X, y), Z, source=(X, y)).html()
    assert "o0-plane" not in html
    assert not re.search(r"\b(nan|NaN|None)\b", re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.S))
    assert "Ridge" in html


def test_a_search_is_inspected_like_its_best_estimator(homes):
    X, y, Z = homes
    search = GridSearchCV(BayesSpARRegressor(), {"fit_intercept": [True]}).fit(X, y)
    assert inspect(search, Z).outputs[0].forecasts == inspect(search.best_estimator_, Z).outputs[0].forecasts


def test_options_that_need_linear_weights_are_refused_for_any_regressor(homes):
    X, y, Z = homes
    with pytest.raises(InputError, match=r"^weights"):
        inspect(Ridge().fit(X, y), Z, source=(X, y), weights={"mine": (np.ones(2), 0.0)})


def test_groups_of_source_and_target_have_their_own_parameters():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    model, names = Ridge().fit(X, y), np.arange(40) % 5
    plain, grouped = (inspect(model, X, source=(X, y), groups=g).outputs[0].home for g in (None, names))
    assert plain != grouped
    with pytest.raises(InputError, match="target_groups"):
        inspect(model, X, source=(X, y), target_groups=names)
    with pytest.raises(InputError, match="fit"):
        inspect(SpARRegressor().fit(X, y), X, groups=names)

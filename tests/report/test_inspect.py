"""``inspect`` of every kind of model and target, compared with independent computations."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from pyspar import BayesSpARRegressor, InputError, Moments, SpARRegressor, TargetCorrection, align, inspect
from pyspar.report.shift_report import Advice

REGRESSORS = [SpARRegressor, BayesSpARRegressor]


def make_data(n=400, m=300, d=4, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    return X, X @ np.linspace(1.0, 2.0, d) + noise * rng.normal(size=n), Z


def codes(report):
    return {finding.code: finding for finding in report.findings}


class Predicts:
    """An object with ``predict`` that scikit-learn knows nothing about."""

    def __init__(self, coef):
        self.coef = np.asarray(coef)

    def predict(self, X):
        return np.asarray(X) @ self.coef


@pytest.mark.parametrize("regressor", REGRESSORS)
def test_the_forecasts_are_those_of_the_regressor_before_and_after_adapting(shift, regressor):
    est = regressor().fit(shift.X, shift.y)
    before, after = est.expected_rmse(shift.Z), regressor().fit(shift.X, shift.y).adapt(shift.Z).expected_rmse(shift.Z)
    report = inspect(est, shift.Z)
    for errors, forecast in zip(report.outputs[0].models, (before, after), strict=True):
        assert errors.rmse == pytest.approx(forecast.rmse)
        assert (*errors.interval80, *errors.interval95) == pytest.approx((*forecast.interval80, *forecast.interval95))
    assert not hasattr(est, "adaptation_")
    assert inspect(est.adapt(shift.Z), shift.Z).to_dict() == report.to_dict()


@pytest.mark.parametrize("regressor", REGRESSORS)
def test_rows_sparse_rows_batches_moments_and_dask_have_the_same_forecasts(shift, regressor):
    import dask.array as da
    import scipy.sparse as sp

    est = regressor().fit(shift.X, shift.y)
    expected = inspect(est, shift.Z)
    kinds = [
        pd.DataFrame(shift.Z), sp.csr_array(shift.Z), iter([shift.Z[:50], shift.Z[50:]]), Moments.of(shift.Z),
        da.from_array(shift.Z, chunks=(40, 5)),
    ]  # fmt: skip
    for Z in kinds:
        report = inspect(est, Z)
        assert report.outcome == expected.outcome
        assert report.n_target == len(shift.Z)
        rmses = [model.rmse for model in report.outputs[0].models]
        assert rmses == pytest.approx([model.rmse for model in expected.outputs[0].models])
    with pytest.raises(InputError, match="rows in memory"):
        inspect(est, Moments.of(shift.Z), y=np.zeros(len(shift.Z)))


@pytest.mark.parametrize("regressor", REGRESSORS)
def test_the_responsible_column_is_in_the_headline_and_leads_the_drift(regressor):
    X, y, Z = make_data()
    Z[:, 2] *= 30.0
    report = inspect(regressor().fit(X, y), Z, columns=["a", "b", "garden", "d"])
    assert report.outputs[0].responsible[0][0] == "garden"
    assert "'garden'" in report.outputs[0].headline.text
    assert ((first := report.columns[0]).name, round(first.spread_ratio / 30.0, 1)) == ("garden", 1.0)
    assert 0.9 < first.share <= sum(column.share for column in report.columns) == pytest.approx(1.0)
    numbered = inspect(LinearRegression().fit(X, y), pd.DataFrame(Z), source=(pd.DataFrame(X), y))
    assert numbered.columns[0].name == "2"


def test_one_column_has_the_features_of_a_category(rng):
    frame = pd.DataFrame({"size": rng.normal(size=300), "town": rng.choice(["Bonn", "Kiel", "Ulm"], 300)})
    y = frame["size"] + (frame["town"] == "Ulm") + 0.1 * rng.normal(size=300)
    target = frame.assign(town="Kiel")
    encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    for model, options in (
        (make_pipeline(encode, BayesSpARRegressor()), {}),
        (make_pipeline(encode, HistGradientBoostingRegressor(max_iter=5)), {"source": (frame, y)}),
    ):
        report = inspect(model.fit(frame, y), target, **options)
        assert "town" in report.columns[0].name
        assert report.separation.found
    assert [column.name for column in report.columns] == ["town", "size"]


def test_pipelines_are_inspected_at_their_last_step(shift):
    frame = pd.DataFrame(shift.X[:, :3], columns=["a", "b", "c"])
    target = pd.DataFrame(shift.Z[:, :3], columns=["a", "b", "c"])
    pipe = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), SpARRegressor())
    pipe.fit(frame, shift.y)
    report, by_hand = inspect(pipe, target), inspect(pipe[-1], pipe[:-1].transform(target))
    assert [m.rmse for m in report.outputs[0].models] == [m.rmse for m in by_hand.outputs[0].models]
    assert {"a", "b c"} <= {column.name for column in report.columns}
    search = GridSearchCV(pipe, {"sparregressor__alpha": [0.9]}).fit(frame, shift.y)
    assert inspect(search, target).outcome == inspect(search.best_estimator_, target).outcome
    with pytest.raises(TypeError, match="source="):
        inspect(make_pipeline(StandardScaler(), Ridge()).fit(frame, shift.y), target)
    with pytest.raises(TypeError, match="Moments"):
        inspect(pipe, Moments.of(shift.Z))


def test_the_source_error_of_any_regressor_is_the_cross_validated_one(rng):
    X = rng.normal(size=(120, 3))
    y, Z, groups = X[:, 0] + 0.5 * rng.normal(size=120), rng.normal(size=(120, 3)) + 2.0, np.arange(120) // 10
    model = KNeighborsRegressor().fit(X, y)
    for given, folds in ((None, KFold(5, shuffle=True, random_state=0)), (groups, GroupKFold(5))):
        report = inspect(model, Z, source=(X, y), groups=given)
        predicted = cross_val_predict(model, X, y, cv=folds, groups=given)
        assert report.outputs[0].source_rmse == pytest.approx(root_mean_squared_error(y, predicted))
        assert (report.outcome, report.outputs[0].recommended) == ("unverified", "KNeighborsRegressor")
        assert report.outputs[0].advice is Advice.LABEL
        assert ("new groups" in report.outputs[0].headline.text) == (given is not None)
    assert inspect(model, X, source=(X, y)).outcome == "no-shift"
    model = Ridge().fit(X, y)
    dense, sparse = inspect(model, Z, source=(X, y)), inspect(model, csr_array(Z), source=(csr_array(X), y))
    assert [column.name for column in sparse.columns] == [column.name for column in dense.columns]
    assert sparse.outputs[0].source_rmse == pytest.approx(dense.outputs[0].source_rmse)


def test_an_object_that_is_no_estimator_is_measured_on_the_given_source_rows():
    X, y, Z = make_data()
    model = Predicts(np.linspace(1.0, 2.0, 4))
    report = inspect(model, Z + 1.0, source=(X, y))
    assert report.outputs[0].source_rmse == pytest.approx(root_mean_squared_error(y, model.predict(X)))
    assert codes(report)["SPAR021"].severity == "warning"
    assert "SPAR021" not in codes(inspect(Ridge().fit(X, y), Z, source=(X, y)))


def test_categories_that_the_source_does_not_have_make_the_error_unknown(rng):
    frame = pd.DataFrame({"a": rng.normal(size=120), "town": rng.choice(["Bonn", "Kiel"], 120)})
    frame.loc[:5, "a"] = np.nan
    y, target = frame["a"].fillna(0.0) + rng.normal(size=120), frame.copy()
    target.loc[:29, "town"] = "Ulm"
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough")
    model = make_pipeline(encode, HistGradientBoostingRegressor(max_iter=3)).fit(frame, y)
    assert inspect(model, frame, source=(frame, y)).outcome == "no-shift"
    report = inspect(model, target, source=(frame, y))
    assert (report.outcome, report.outputs[0].advice) == ("unknown", Advice.LABEL)
    assert codes(report)["SPAR014"].severity == "serious"
    assert codes(report)["SPAR014"].numbers == {"rows": 30, "total": 120, "columns": {"town": ["Ulm"]}}
    own = make_pipeline(encode, BayesSpARRegressor()).fit(frame.fillna(0.0), y)
    assert inspect(own, target.fillna(0.0)).outcome == "unknown"
    target.loc[5:, "town"] = "Bonn"  # five rows of 120
    assert codes(inspect(model, target, source=(frame, y)))["SPAR014"].severity == "warning"


def test_one_row_with_a_new_category_is_a_finding_and_no_shift():
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough")
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        frame, target = (pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd")) for n in (300, 200))
        frame["town"] = rng.choice(["Bonn", "Kiel"], 300)
        target["town"] = np.append(rng.choice(["Bonn", "Kiel"], 199), "Ulm")
        y = frame["a"] + rng.normal(size=300)
        report = inspect(make_pipeline(encode, RidgeCV()).fit(frame, y), target, source=(frame, y))
        assert codes(report)["SPAR014"].severity == "warning"
        alarms += report.outcome != "no-shift"
    assert alarms <= 4


@pytest.mark.parametrize("make", [np.asarray, lambda rows: pd.DataFrame(rows, columns=list("abcd"))])
@pytest.mark.parametrize(("share", "severity"), [(1.0, "serious"), (0.5, "serious"), (0.06, "warning")])
def test_a_column_that_is_missing_in_the_target_is_a_finding(make, share, severity):
    X, y, Z = make_data(n=300, m=200, noise=0.5)
    model = HistGradientBoostingRegressor(max_iter=9).fit(make(X), y)
    Z[: round(200 * share), 1] = np.nan
    report = inspect(model, make(Z), source=(make(X), y))
    name = "b" if hasattr(make(Z), "columns") else "x1"
    finding = codes(report)["SPAR024"]
    assert (finding.severity, finding.numbers) == (severity, {"columns": {name: (0.0, share)}})
    assert report.outcome == ("unknown" if severity == "serious" else "unverified")
    assert (f"missing values changed in '{name}'" in report.outputs[0].headline.text) == (severity == "serious")
    if severity == "serious":
        assert report.outputs[0].advice is Advice.LABEL


def test_equal_shares_of_missing_values_are_no_finding(rng):
    found = 0
    for _ in range(40):
        X, Z = rng.normal(size=(100, 3)), rng.normal(size=(80, 3))
        X[rng.random(X.shape) < 0.2], Z[rng.random(Z.shape) < 0.2] = np.nan, np.nan
        model = HistGradientBoostingRegressor(max_iter=2).fit(X, np.arange(100.0))
        found += "SPAR024" in codes(inspect(model, Z, source=(X, np.arange(100.0))))
    assert found <= 1
    frame = pd.DataFrame({"a": pd.array([1, None] * 50, dtype="Int64"), "town": ["Ulm", None] * 50})
    model = Predicts([1.0])
    model.predict = lambda X: np.zeros(len(X))
    report = inspect(model, frame[::2], source=(frame, np.arange(100.0)))
    assert codes(report)["SPAR024"].numbers == {"columns": {"a": (0.5, 0.0), "town": (0.5, 0.0)}}


@pytest.mark.parametrize("kind", [BayesSpARRegressor, LinearRegression])
def test_the_outcome_does_not_contradict_implausible_predictions(kind):
    X, y, Z = make_data(n=300, m=200, noise=0.5)
    report = inspect(kind().fit(X, y), 4.2 * Z, **({} if kind is BayesSpARRegressor else {"source": (X, y)}))
    assert codes(report)["SPAR018"].severity == "serious"
    assert report.outcome == "unknown"
    assert "the forecast does not hold" in report.outputs[0].headline.text
    assert "which does not hold for this target" in " ".join(str(report).split())
    assert "does not hold" not in str(inspect(kind().fit(X, y), Z, source=(X, y)))
    unknown_range = codes(inspect(BayesSpARRegressor().fit(Moments.of(X, y)), 9.0 * Z))["SPAR018"]
    ends = [y.mean() - 6.0 * y.std(), y.mean() + 6.0 * y.std()]
    assert unknown_range.numbers["limits"] == pytest.approx(ends, rel=1e-6)


def test_the_finding_about_constant_columns_is_true_without_weights():
    X, y, Z = make_data()
    X[:, 3] = 1.0
    report = inspect(HistGradientBoostingRegressor(max_iter=5).fit(X, y), Z, source=(X, y))
    assert "weight" not in codes(report)["SPAR004"].text


@pytest.mark.parametrize("factor", [2.0, 3.0, 0.4])
def test_a_change_of_the_spread_alone_is_found_for_any_regressor(factor):
    X, y, Z = make_data(n=300, m=200, noise=0.5)
    model = HistGradientBoostingRegressor(max_iter=30).fit(X, y)
    report, alike = (inspect(model, rows, source=(X, y)) for rows in (factor * Z, Z))
    (wide,), (narrow,) = ([model.interval95 for model in of.outputs[0].models] for of in (report, alike))
    assert (report.outcome != "no-shift", alike.outcome) == (True, "no-shift")
    assert wide[1] > 1.5 * narrow[1]


def test_several_outputs_and_partial_labels(shifts):
    shift = shifts(outputs=2)
    labels = np.full((len(shift.Z), 2), np.nan)
    labels[:12, 0] = (shift.Z @ shift.w_star)[:12, 0]
    for model, options in ((BayesSpARRegressor(), {}), (Ridge(), {"source": (shift.X, shift.y)})):
        report = inspect(model.fit(shift.X, shift.y), shift.Z, y=labels, outputs=["price", "rent"], **options)
        assert [output.n_labels for output in report.outputs] == [12, 0]
        assert report.outputs[0].models[0].measured is not None
        assert report.outputs[1].models[0].measured is None
        assert {finding.output for finding in report.findings} >= {"price", "rent"}
        assert "rent: " in str(report)


def test_a_correction_with_the_labels_is_that_of_target_correction(rng):
    X, Z, w = rng.normal(size=(300, 3)), 1.5 * rng.normal(size=(120, 3)), np.array([1.0, 2.0, 0.5])
    y, truth = X @ w + rng.normal(size=300), Z @ (w + 0.5) + 2.0 + rng.normal(size=120)
    labels = np.where(np.arange(120) < 15, truth, np.nan)
    boosting = HistGradientBoostingRegressor(max_iter=20)
    for model, options in ((boosting, {"source": (X, y)}), (BayesSpARRegressor(), {})):
        report = inspect(model.fit(X, y), Z, y=labels, **options)
        own = model if options else model.adapt(Z)
        expected = TargetCorrection(own).fit(Z, labels).expected_rmse()
        correction = report.outputs[0].correction
        assert (correction.rmse, *correction.interval95) == pytest.approx((expected.rmse, *expected.interval95))
        assert codes(report)["SPAR020"].numbers["rmse"] == correction.rmse
        assert report.outputs[0].advice is Advice.CORRECT
    assert inspect(model, Z, y=truth).outputs[0].correction is None  # nothing is left to correct


def test_a_target_correction_gives_its_own_forecast():
    X, y, Z = make_data()
    labels = {row: float(Z[row].sum() + 3.0) for row in range(12)}
    fixed = TargetCorrection(LinearRegression().fit(X, y)).fit(Z, labels)
    report, forecast = inspect(fixed, Z), fixed.expected_rmse(Z)
    assert report.outputs[0].forecast.rmse == pytest.approx(forecast.rmse)
    assert report.outputs[0].headline.numbers["rmse_uncorrected"] == pytest.approx(forecast.rmse_uncorrected)
    assert "12 target labels" in str(report)
    with pytest.raises(InputError, match="already uses"):
        inspect(fixed, Z, y=labels)


@pytest.mark.parametrize("regressor", [*REGRESSORS, RidgeCV])
def test_the_error_is_unknown_if_every_source_column_is_constant(regressor):
    _, y, Z = make_data()
    X = np.full((len(y), 4), 7.0)
    source = {"source": (X, y)} if regressor is RidgeCV else {}
    assert inspect(regressor().fit(X, y), Z, **source).outcome == "unknown"
    assert inspect(regressor().fit(X, y), np.full_like(Z, 7.0), **source).outcome == "no-shift"


@pytest.mark.parametrize("regressor", REGRESSORS)
def test_variation_outside_the_source_is_measured_in_any_units(regressor):
    X, y, Z = make_data()
    X[:, 3] = X[:, 2]
    source, target = X - X.mean(axis=0), Z - X.mean(axis=0)
    units = np.sqrt(np.maximum(np.mean(source**2, axis=0), np.mean(target**2, axis=0)))
    unknown = np.linalg.svd(source / units)[2][3:]
    share = np.sum((target / units @ unknown.T) ** 2) / np.sum((target / units) ** 2)
    for scale in (1.0, np.array([1.0, 1e5, 1.0, 0.01])):
        report = inspect(regressor().fit(X * scale, y), Z * scale)
        assert codes(report)["SPAR003"].numbers["outside"] == pytest.approx(share, rel=1e-6)
        assert report.outcome == "unknown"


def test_invalid_arguments_are_refused_with_the_fix():
    X, y, Z = make_data(n=40)
    est = BayesSpARRegressor().fit(X, y)
    for options, text in (
        ({"groups": np.zeros(40)}, "pass them to fit"),
        ({"columns": ["a"]}, "4 names, got 1"),
        ({"outputs": "price"}, "1 names, got 'price'"),
        ({"source": (X, y), "sample_weight": np.ones(300)}, "leave it out"),
        ({"source": X}, "pair"),
        ({"source": (X, y[:5])}, "40 source rows"),
    ):
        with pytest.raises(InputError, match=re.escape(text)):
            inspect(est, Z, **options)
    with pytest.raises(ValueError, match=r"target y .* 300 rows.* 299\b"):
        inspect(est, Z, y=np.zeros(299))
    assert inspect(est, Z, y={2: 1.0, 5: -1.0}).outputs[0].n_labels == 2
    weight = np.ones(300)
    weight[5] = 0.0
    assert inspect(est, Z, y={2: 1.0, 5: -1.0}, sample_weight=weight).outputs[0].n_labels == 1
    with pytest.raises(InputError, match="repeat rows"):
        inspect(est, Z, y={2: 1.0, 5: -1.0}, sample_weight=weight + 1.0)
    aligned = align(Ridge().fit(X, y), source=X, target=2.0 * Z + 1.0)  # source rows do not show its error
    with pytest.raises(InputError, match=r"inspect its \.model, or label target rows"):
        inspect(aligned, 2.0 * Z + 1.0, source=(X, y))


@pytest.mark.parametrize("regressor", REGRESSORS)
def test_adapting_is_not_advised_if_it_changes_nothing(regressor):
    X, _, Z = make_data()
    (output,) = inspect(regressor().fit(X, np.ones(len(X))), 3.0 * Z).outputs
    assert output.recommended.endswith("as fitted")
    assert "adapted to the target" not in output.advice_text


@pytest.mark.parametrize("error", [10.0, 1000.0])
def test_one_wrong_label_of_ten_is_named_and_decides_nothing(error):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(300, 4)), rng.normal(size=(200, 4))
    y, truth = (rows @ [1.0, 2.0, 0.0, -1.0] + 0.5 * rng.normal(size=len(rows)) for rows in (X, Z))
    labels = np.where(np.arange(200) < 10, truth, np.nan)
    labels[3] += error
    report = inspect(BayesSpARRegressor().fit(X, y), Z, y=labels)
    output = report.outputs[0]
    assert report.outcome == "no-shift"
    assert output.n_labels == 10
    expected = output.correction.rmse_uncorrected
    assert expected / 1.5 < output.forecast.measured < 1.5 * expected
    text = codes(report)["SPAR023"].text
    assert "row 3" in text
    assert f"{labels[3]:g}" in text
    labels[10:] = truth[10:]  # the RMSE of all rows is measured, not estimated
    everything = inspect(BayesSpARRegressor().fit(X, y), Z, y=labels).outputs[0]
    assert everything.forecast.measured > 0.9 * error / np.sqrt(200.0)


def test_ten_equal_labels_are_a_finding():
    X, y, Z = make_data(n=60, m=40)
    found = codes(inspect(LinearRegression().fit(X, y), Z, source=(X, y), y=dict.fromkeys(range(10), 7.0)))
    assert found["SPAR023"].severity == "warning"
    assert "all 10 labels are 7" in found["SPAR023"].text


@pytest.mark.parametrize(("n", "words"), [(8, "label 2 more target rows"), (9, "label 1 more target row (")])
def test_the_number_of_missing_labels_is_grammatical(n, words):
    X, y, Z = make_data()
    report = inspect(BayesSpARRegressor().fit(X, y), Z, y=dict(enumerate(Z[:n] @ np.linspace(1.0, 2.0, 4))))
    assert words in report.outputs[0].advice_text

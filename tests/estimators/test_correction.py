"""TargetCorrection: corrections around any model, tables, outputs and invalid labels."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler

from pyspar import BayesSpARRegressor, InputError, SparWarning, TargetCorrection, inspect, rows_to_label


@pytest.fixture
def shifted():
    """A model fitted on a source, target rows, and their labels, which are larger by 2."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(300, 3)), rng.normal(size=(200, 3))
    model = LinearRegression().fit(X, X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=300))
    return model, Z, Z @ [1.0, 2.0, 0.0] + 2.0 + 0.1 * rng.normal(size=200)


def hide(y, n):
    return np.where(np.arange(len(y)) < n, y, np.nan)


def test_labels_can_be_given_in_three_forms_and_must_not_be_durations(shifted):
    model, Z, y = shifted
    expected = TargetCorrection(model).fit(Z, hide(y, 10)).predict(Z)
    for labels in ({i: y[i] for i in range(10)}, pd.Series(y, dtype=object).where(np.arange(200) < 10, pd.NA)):
        np.testing.assert_array_equal(TargetCorrection(model).fit(Z, labels).predict(Z), expected)
    with pytest.raises(ValueError, match=r"1 sample.*required; pass more"):
        TargetCorrection(model).fit(Z[:1], y[:1])
    with pytest.raises(TypeError, match="durations"):
        TargetCorrection(model).fit(Z, pd.to_timedelta(np.arange(200), unit="D"))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (lambda y: hide(y, 2), ["2 sample", "3"]),
        (lambda y: hide(y, 0), ["0 sample", "label more rows"]),
        (lambda y: y[:150], ["200", "150", "position"]),
        (lambda y: {3: 1.0, 200: 2.0, "a": 1.0}, ["200", "'a'", "199"]),
        (lambda y: np.where(np.arange(200) == 5, np.inf, y), ["infinity"]),
        (lambda y: np.column_stack([y, y]), ["'model': 1", "2"]),
        (lambda y: ["a"] * 200, ["numbers"]),
        (lambda y: None, ["None"]),
    ],
    ids=["two", "none", "length", "rows", "infinity", "outputs", "text", "missing"],
)
def test_invalid_labels_raise_and_change_nothing(shifted, labels, words):
    model, Z, y = shifted
    fixed = TargetCorrection(model).fit(Z, hide(y, 10))
    before, state = fixed.predict(Z), dict(fixed.__dict__)
    with pytest.raises(ValueError) as error:
        fixed.fit(Z, labels(y))
    assert all(word in str(error.value) for word in words)
    assert fixed.__dict__ == state
    np.testing.assert_array_equal(fixed.predict(Z), before)


@pytest.mark.parametrize("spreads", [100.0, 1e12, 1e20, 1e59])
def test_a_label_far_from_the_others_is_named_and_destroys_neither_the_result_nor_the_forecast(shifted, spreads):
    model, Z, y = shifted
    for n in (5, 11, 40):
        spoilt = hide(y, n)
        spoilt[4] += spreads * y.std()
        with pytest.warns(SparWarning, match=r"row 4 .*counts as .* of a label"):
            fixed = TargetCorrection(model).fit(Z, spoilt)
        assert fixed.n_labels_ == fixed.drift_.n_labels == n
        assert list(fixed.drift_.label_weights) == [4]
        assert np.sqrt(np.mean((fixed.predict(Z) - y)[n:] ** 2)) < (0.5 if n > 5 else 1.5)  # 2 without labels
        assert 0.09 < fixed.expected_rmse().rmse < 2.0  # 0.1 with the exact correction


def test_no_right_label_is_ignored_or_suspected(recwarn):
    rng = np.random.default_rng(0)
    model = type("First", (), {"predict": lambda self, Z: Z[:, 0]})()
    for draw in range(300):
        Z, n = rng.normal(size=(30, 2)), (4, 10, 25)[draw % 3]
        noise = rng.standard_t(4, size=30) if draw % 2 else rng.normal(size=30)
        change = (1.5, 1.0, 0.3, -1.0, 3.0)[draw % 5]  # of the relation
        assert TargetCorrection(model, smooth=False).fit(Z, hide(Z[:, 0] * change + noise, n)).n_labels_ == n
    Z = rng.normal(size=(1000, 2))  # a weak relation: labels vary more than right predictions
    TargetCorrection(model, smooth=False).fit(Z, Z[:, 0] + 7.0 * rng.normal(size=1000))
    assert not recwarn.list


@pytest.mark.parametrize("convert", [float, Decimal])
def test_numbers_of_the_dtype_object_are_numbers(shifted, convert):
    _, Z, y = shifted
    model = type("First", (), {"predict": lambda self, Z: np.asarray(Z, dtype=float)[:, 0]})()
    frame = pd.DataFrame(Z, columns=[f"x{j}" for j in range(Z.shape[1])])
    objects = frame.map(convert).astype(object)
    plain, same = (TargetCorrection(model).fit(f, hide(y, 15)).predict(f) for f in (frame, objects))
    np.testing.assert_allclose(same, plain, rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-3, 0.05, 30.0])
def test_labels_in_another_unit_cause_a_warning(shifted, factor):
    model, Z, y = shifted
    with pytest.warns(SparWarning, match=rf"vary {factor:g}\d* times as much; check"):
        TargetCorrection(model).fit(Z, hide(factor * y, 10))


def test_a_weight_is_the_same_as_copies_also_with_a_wrong_label():
    Z = np.random.default_rng(0).normal(size=(20, 2))
    model = LinearRegression().fit(Z, Z[:, 0])
    y, weight = np.full(20, np.nan), np.ones(20)
    y[:3], weight[:2] = Z[:3, 0] + [0.1, -0.1, 1e4], 3.0
    copies = np.repeat(np.arange(20), weight.astype(int))
    with pytest.warns(SparWarning):
        weighted = TargetCorrection(model).fit(Z, y, sample_weight=weight).predict(Z)
    with pytest.warns(SparWarning):
        copied = TargetCorrection(model).fit(Z[copies], y[copies]).predict(Z)
    np.testing.assert_allclose(weighted, copied, rtol=1e-9)
    assert np.abs(weighted - Z[:, 0]).max() < 10.0


class FillsZeros(RegressorMixin, BaseEstimator):
    """A model that accepts missing values and sparse matrices."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.nan_to_num(X.toarray() if hasattr(X, "toarray") else np.asarray(X))[:, 0]

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@pytest.mark.parametrize("form", ["frame", "array", "pipeline", "sparse"])
def test_a_weight_is_the_same_as_copies_also_with_missing_features(form):
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.normal(size=60), rng.exponential(size=60), np.full(60, np.nan)])
    Z[rng.random(60) < 0.4, 1] = np.nan
    y = hide(Z[:, 0] + np.nan_to_num(Z[:, 1]) + 0.1 * rng.normal(size=60), 25)
    weight = rng.integers(1, 4, 60).astype(float)
    copies = np.repeat(np.arange(60), weight.astype(int))
    Z = pd.DataFrame(Z, columns=list("abc")) if form == "frame" else Z
    steps = {"pipeline": [FunctionTransformer()], "sparse": [FunctionTransformer(csr_array)]}.get(form, [])
    model = make_pipeline(*steps, FillsZeros()).fit(Z, y) if steps else FillsZeros()
    weighted = TargetCorrection(model).fit(Z, y, sample_weight=weight)
    copied = TargetCorrection(model).fit(Z.iloc[copies] if form == "frame" else Z[copies], y[copies])
    np.testing.assert_allclose(weighted.predict(Z), copied.predict(Z), rtol=1e-9, atol=1e-9)
    assert weighted.expected_rmse().rmse == pytest.approx(copied.expected_rmse().rmse, rel=1e-9)


def test_labels_of_some_outputs_only(shifted):
    model, Z, y = shifted
    both = LinearRegression().fit(Z, np.column_stack([model.predict(Z), -3.0 * model.predict(Z)]))
    fixed = TargetCorrection(both).fit(Z, {i: [y[i], np.nan] for i in range(10)})
    np.testing.assert_allclose(fixed.predict(Z)[:, 0], TargetCorrection(model).fit(Z, hide(y, 10)).predict(Z))
    np.testing.assert_array_equal(fixed.predict(Z)[:, 1], both.predict(Z)[:, 1])
    assert fixed.drift_[1] is None
    assert fixed.expected_rmse()[1] is None
    assert np.isnan(fixed.predict_interval(Z)[0][:, 1]).all()
    mixed = TargetCorrection(both).fit(Z, {i: [y[i], np.nan] if i % 2 else [np.nan, -3.0 * y[i]] for i in range(20)})
    assert [drift.n_labels for drift in mixed.drift_] == [10.0, 10.0]


class Scaled:
    """A model that multiplies the first column, which a changed measurement has divided."""

    def __init__(self, factor, outputs=1):
        self.factor, self.outputs, self.calls = factor, outputs, 0

    def predict(self, Z):
        self.calls += 1
        return np.column_stack([self.factor * Z[:, 0]] * self.outputs).squeeze()


def test_labels_choose_between_candidates(shifted):
    _, Z, _ = shifted
    rng = np.random.default_rng(1)
    models = {"trained": Scaled(1.0), "aligned": Scaled(3.0), "other": Scaled(-2.0)}
    y = 3.0 * Z[:, 0] + 0.03 * rng.normal(size=200)
    fixed = TargetCorrection(models).fit(Z, hide(y, 30))
    alone = TargetCorrection(models["aligned"]).fit(Z, hide(y, 30))
    assert fixed.chosen_ == "aligned"
    assert fixed.model_ is models["aligned"]
    np.testing.assert_array_equal(fixed.predict(Z), alone.predict(Z))
    assert fixed.expected_rmse() == alone.expected_rmse()
    assert [candidate.weight for candidate in fixed.candidates_.values()] == [0.0, 1.0, 0.0]
    assert [model.calls for model in models.values()] == [1, 4, 1]  # one for the fit, two of ``alone``, two predictions
    assert alone.chosen_ == "model"
    residual = (y - Z[:, 0])[:30]
    found = fixed.candidates_
    assert found["trained"].rmse == pytest.approx(np.sqrt(np.mean(residual**2)))
    spread = np.std(residual**2, ddof=1) / np.sqrt(30.0)
    assert found["trained"].standard_error == pytest.approx(spread / 2.0 / found["trained"].rmse)
    assert found["aligned"].rmse < found["trained"].rmse < found["other"].rmse
    assert clone(fixed).fit(Z, hide(y, 30)).model is models


def test_the_chosen_candidate_has_the_smallest_expected_error():
    rng = np.random.default_rng(1)
    models, chosen = {"a": Scaled(1.0, 2), "b": Scaled(1.3, 2)}, []
    for _ in range(40):
        Z, counts = rng.normal(size=(60, 1)), rng.integers(1, 4, size=60)
        y = 1.15 * Z + rng.normal(size=(60, 2))  # both are equally wrong
        y[12:] = np.nan
        fixed = TargetCorrection(models, smooth=False).fit(Z, y, counts)
        low, high = fixed.predict_interval(Z)
        truths = rng.normal((low + high) / 2.0, (high - low) / 4.0, size=(4000, 60, 2))
        unit = counts[:12] @ np.square((y - Z)[:12])  # outputs count relative to the error of the first candidate
        squares = {name: np.square(truths - model.predict(Z)).mean(axis=0) for name, model in models.items()}
        mse = {name: (counts @ values / unit).sum() for name, values in squares.items()}
        if abs(mse["a"] / mse["b"] - 1.0) > 0.01:  # more than the noise of the draws
            assert fixed.chosen_ == min(mse, key=mse.get)
            chosen.append(fixed.chosen_)
    assert min(chosen.count("a"), chosen.count("b")) > 3


def test_the_choice_is_better_than_a_paired_comparison_and_than_no_choice():
    rng = np.random.default_rng(2)
    models, errors = {"a": Scaled(1.0), "b": Scaled(2.5)}, np.empty((500, 3))
    for draw in errors:
        Z = rng.normal(size=(100, 2))
        y = rng.uniform(1.0, 2.5) * Z[:, 0] + rng.laplace(size=100)
        fixed = TargetCorrection(models).fit(Z, hide(y, 10))
        a, b = (np.square(y - model.predict(Z)) for model in models.values())
        paired = "b" if (a - b)[:10].mean() > (a - b)[:10].std(ddof=1) / np.sqrt(10.0) else "a"
        draw[:] = np.log([{"a": a, "b": b}[name][10:].mean() for name in (fixed.chosen_, paired, "a")])
    chosen, paired, first = np.exp(errors.mean(axis=0) / 2.0)
    assert chosen < 0.995 * paired < 0.95 * first


def test_candidates_are_averaged_by_their_evidence():
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(300, 2))
    models = {"a": Scaled(1.0), "b": Scaled(1.1)}
    y = 1.05 * Z[:, 0] + Z[:, 1] + rng.normal(size=300)
    fixed = TargetCorrection(models).fit(Z, hide(y, 12))
    parts = {name: TargetCorrection(model).fit(Z, hide(y, 12)) for name, model in models.items()}
    weight = {name: candidate.weight for name, candidate in fixed.candidates_.items()}
    assert sum(weight.values()) == pytest.approx(1.0)
    assert weight["a"] > weight["b"] > 0.1  # the first has twice the prior weight
    a, b = (part._parts["model"][2][0].log_evidence for part in parts.values())
    assert weight["a"] / weight["b"] == pytest.approx(2.0 * np.exp(0.4 * (a - b)))  # 0.4: of a kurtosis of 6
    expected = sum(weight[name] * part.predict(Z) for name, part in parts.items())
    np.testing.assert_allclose(fixed.predict(Z), expected)
    low, high = fixed.predict_interval(Z)
    assert 0.8 < np.mean((low <= y) & (y <= high)) <= 1.0
    error = np.sqrt(np.mean(fixed._correct(Z)[1]))
    assert fixed.expected_rmse().rmse == pytest.approx(error)
    assert fixed.expected_rmse(Z).rmse == pytest.approx(error)
    assert fixed.expected_rmse().interval95[0] < fixed.expected_rmse().interval80[0] < error


class Wave:
    """A linear model plus a wave of the first column."""

    def __init__(self, size):
        self.size = size

    def predict(self, Z):
        return Z @ [1.0, 2.0, -1.0] + self.size * np.sin(7.0 * Z[:, 0])


@pytest.mark.parametrize("error", [10.0, 60.0, 300.0, 1e4])
@pytest.mark.parametrize("size", [5.0, 20.0])
def test_a_hopeless_candidate_does_not_make_a_wrong_label_count(error, size):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(200, 3))
        y = Z @ [1.0, 2.0, -1.0] + 0.3 * rng.normal(size=200)
        labels = hide(y, 10)
        labels[4] += error
        alone = TargetCorrection(Wave(0.0)).fit(Z, labels) if error < 50.0 else warns_of_row_4(Wave(0.0), Z, labels)
        for models in ({"good": Wave(0.0), "bad": Wave(size)}, {"bad": Wave(size), "good": Wave(0.0)}):
            both = TargetCorrection(models).fit(Z, labels) if error < 50.0 else warns_of_row_4(models, Z, labels)
            assert both.chosen_ == "good"
            assert both.candidates_["good"].weight > 0.97
            assert both.drift_.label_weights == alone.drift_.label_weights
            assert both.candidates_["good"].standard_error < 0.3 * both.candidates_["good"].rmse  # 0.24 on average
            np.testing.assert_allclose(both.predict(Z), alone.predict(Z), atol=0.12)


def warns_of_row_4(model, Z, labels):
    with pytest.warns(SparWarning, match="row 4"):
        return TargetCorrection(model).fit(Z, labels)


def test_candidates_that_predict_all_labels_keep_their_prior_weights(shifted):
    _, Z, y = shifted
    exact = {"a": Scaled(1.0), "b": Scaled(1.0), "c": Scaled(1.0), "d": Scaled(2.0)}
    with pytest.warns(SparWarning, match="equal to the predictions"):
        fixed = TargetCorrection(exact).fit(Z, hide(Z[:, 0], 10))
    assert [one.weight for one in fixed.candidates_.values()] == pytest.approx([0.5, 0.25, 0.25, 0.0])
    both = {name: Scaled(model.factor, outputs=2) for name, model in exact.items()}
    both["b"] = type("Second", (), {"predict": lambda self, Z: Z[:, [0, 0]] * [1.0, 3.0]})()
    labels = np.column_stack([hide(Z[:, 0], 10), hide(3.0 * Z[:, 0] + 0.1 * y, 10)])
    with pytest.warns(SparWarning, match="equal to the predictions"):
        fixed = TargetCorrection(both).fit(Z, labels)  # the second output decides
    assert fixed.candidates_["b"].weight > 0.8


def test_candidates_with_different_shapes_change_nothing_and_failing_ones_are_named(shifted):
    model, Z, y = shifted
    fixed = TargetCorrection(model).fit(Z, hide(y, 10))
    before = fixed.predict(Z)
    fixed.model = {"trained": model, "two": Scaled(1.0, outputs=2)}
    with pytest.raises(ValueError, match=r"'trained': 1, 'two': 2"):
        fixed.fit(Z, hide(y, 10))
    np.testing.assert_array_equal(fixed.predict(Z), before)
    for n in (0, 101):
        with pytest.raises(InputError, match=f"of 1 to 100 of them, got {n}; "):
            TargetCorrection(dict.fromkeys(range(n), model)).fit(Z, y)
    with pytest.raises(ValueError, match="2 features") as error:
        TargetCorrection({"first": model, "second": LinearRegression().fit(Z[:, :2], y)}).fit(Z, hide(y, 10))
    assert error.value.__notes__ == ["raised by model['second'].predict"]


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (Scaled(np.nan), ValueError),
        (type("Short", (), {"predict": lambda self, Z: Z[1:, 0]})(), ValueError),
        (LinearRegression(), NotFittedError),
        (LinearRegression, TypeError),
        (None, TypeError),
        (StandardScaler(), TypeError),
    ],
    ids=["nan", "short", "unfitted", "class", "none", "transformer"],
)
def test_a_candidate_that_fails_is_named(shifted, bad, error):
    model, Z, y = shifted
    with pytest.raises(error, match=r"model\['second'\]"):
        TargetCorrection({"first": model, "second": bad}).fit(Z, hide(y, 10))


def test_constant_labels_and_labels_that_are_the_predictions_cause_a_warning(shifted):
    model, Z, _ = shifted
    with pytest.warns(SparWarning, match="all 20 labels are 7"):
        fixed = TargetCorrection(model).fit(Z, hide(np.full(200, 7.0), 20))
    assert np.abs(fixed.predict(Z) - 7.0).mean() < 0.5 * np.abs(model.predict(Z) - 7.0).mean()
    with pytest.warns(SparWarning, match="all 10 labels are equal to the predictions"):
        fixed = TargetCorrection(model).fit(Z, hide(model.predict(Z), 10))
    np.testing.assert_array_equal(fixed.predict(Z), model.predict(Z))


def test_outputs_with_different_labels_are_corrected_separately(shifted):
    model, Z, y = shifted
    both = LinearRegression().fit(Z, np.column_stack([model.predict(Z), -3.0 * model.predict(Z)]))
    labels = np.column_stack([hide(y, 10), hide(-3.0 * y, 30)])
    fixed = TargetCorrection(both).fit(Z, labels)
    single = TargetCorrection(model).fit(Z, labels[:, 0])
    np.testing.assert_allclose(fixed.predict(Z)[:, 0], single.predict(Z))
    assert [drift.n_labels for drift in fixed.drift_] == [10.0, 30.0]
    assert len(fixed.expected_rmse()) == 2
    low, high = fixed.predict_interval(Z, 0.5)
    assert low.shape == (200, 2)
    assert ((low < fixed.predict(Z)) & (fixed.predict(Z) < high)).all()


def mixed_table(rng, rows):
    frame = pd.DataFrame({"a": rng.normal(size=rows), "town": rng.choice(["Bonn", "Kiel", "Ulm"], rows)})
    frame.loc[::7, "a"] = np.nan
    return frame.assign(sold=pd.Timestamp("2020-01-01"), town=frame["town"].astype("category"))


def test_columns_of_a_data_frame_are_encoded():
    rng = np.random.default_rng(0)
    X, Z = mixed_table(rng, 300), mixed_table(rng, 200)
    only_a = ColumnTransformer([("a", "passthrough", ["a"])])
    model = make_pipeline(only_a, HistGradientBoostingRegressor()).fit(X, X["a"].fillna(0.0))
    truth = Z["a"].fillna(0.0) + 3.0 * (Z["town"] == "Ulm")  # in the target, one town has larger labels
    fixed = TargetCorrection(FrozenEstimator(model)).fit(Z, hide(truth.to_numpy(), 40))
    assert np.sqrt(np.mean((fixed.predict(Z) - truth)[40:] ** 2)) < 0.3
    assert fixed.drift_.weights.probability > 0.99
    assert fixed.features_.get_feature_names_out().tolist() == [
        "numbers__a", "words__town_Bonn", "words__town_Kiel", "words__town_Ulm",
    ]  # fmt: skip
    new = Z.head(3).assign(town=pd.Categorical(["Rom"] * 3))
    assert np.isfinite(fixed.predict(new)).all()


def test_features_come_from_the_pipeline_or_from_a_transformer(shifted):
    _, Z, y = shifted
    pipe = make_pipeline(PolynomialFeatures(2), LinearRegression()).fit(Z, y)
    labels = hide(y + Z[:, 0] * Z[:, 1], 60)
    by_pipe = TargetCorrection(pipe, smooth=False).fit(Z, labels)
    by_transformer = TargetCorrection(FrozenEstimator(pipe), PolynomialFeatures(2), smooth=False).fit(Z, labels)
    by_fitted = TargetCorrection(FrozenEstimator(pipe), pipe[0], smooth=False).fit(Z, labels)
    np.testing.assert_allclose(by_pipe.predict(Z), by_transformer.predict(Z))
    np.testing.assert_allclose(by_pipe.predict(Z), by_fitted.predict(Z))
    assert np.abs(by_pipe.predict(Z) - y - Z[:, 0] * Z[:, 1]).max() < 0.5


@pytest.mark.parametrize("encode", [OrdinalEncoder(), OneHotEncoder()])
def test_missing_numbers_inside_a_pipeline_are_imputed_by_the_mean(encode):
    rng = np.random.default_rng(0)
    X, Z = mixed_table(rng, 300)[["a", "town"]], mixed_table(rng, 200)[["a", "town"]]
    encoder = ColumnTransformer([("num", "passthrough", ["a"]), ("cat", encode, ["town"])])
    model = make_pipeline(encoder, HistGradientBoostingRegressor()).fit(X, X["a"].fillna(0.0))
    mean = Z["a"].mean()
    labels = hide(model.predict(Z) + 2.0 * Z["a"].fillna(mean).to_numpy(), 100)
    rows = Z.head(2).assign(a=[np.nan, mean])
    rise = TargetCorrection(model).fit(Z, labels).predict(rows) - model.predict(rows)
    np.testing.assert_allclose(rise, 2.0 * mean, atol=0.1)
    few = Z.dropna().head(50)  # NaN in predict alone
    noise = rng.normal(size=50)
    assert np.isfinite(TargetCorrection(model).fit(few, hide(model.predict(few) + noise, 10)).predict(rows)).all()
    assert len(rows_to_label(model, Z, 5)) == 5


def test_intervals_and_expected_error_hold(shifted):
    model, Z, _ = shifted
    rng = np.random.default_rng(1)
    covered, inside = [], []
    for _ in range(12):
        labels = Z @ [1.0, 2.5, 0.5] + 1.0 + rng.normal(size=200)
        fixed = TargetCorrection(model).fit(Z, hide(labels, 30))
        low, high = fixed.predict_interval(Z[30:])
        covered.append(np.mean((low <= labels[30:]) & (labels[30:] <= high)))
        forecast = fixed.expected_rmse()
        actual = np.sqrt(np.mean((fixed.predict(Z[30:]) - labels[30:]) ** 2))
        inside.append(forecast.interval80[0] <= actual <= forecast.interval80[1])
        assert forecast.rmse < forecast.rmse_uncorrected
        assert float(forecast) ** 2 == pytest.approx(forecast.variance + forecast.noise)
    assert np.mean(covered) == pytest.approx(0.9, abs=0.04)
    assert np.mean(inside) >= 0.6


def test_the_drift_is_readable(golden, shifted):
    model, Z, y = shifted
    golden("drift", repr(TargetCorrection(model).fit(Z, hide(y, 10)).drift_))


@pytest.mark.parametrize(("weight", "value"), [(1e-3, "0.01"), (1e-300, "1e-300"), (1e300, "1e\\+300")])
def test_weights_that_count_too_few_or_too_many_rows_are_refused(shifted, weight, value):
    model, Z, y = shifted
    with pytest.raises(ValueError, match=f"sample_weight.*{value}"):
        TargetCorrection(model).fit(Z, hide(y, 10), sample_weight=np.full(200, weight))


class FirstColumn:
    """A model of data frames that uses one column."""

    def predict(self, Z):
        return np.asarray(Z["a"], dtype=np.float64)


@pytest.mark.parametrize(
    "column",
    [
        pd.array(["x", pd.NA, "y", "x"] * 10, dtype="string"),
        pd.Series(["x", 1, 2.5, None] * 10, dtype=object),
        pd.Series(pd.Categorical(["u", "v", None, "u"] * 10)),
        pd.to_timedelta(np.arange(40), unit="D"),
    ],
    ids=["NA", "mixed", "categorical", "timedelta"],
)
def test_columns_of_odd_types_are_encoded_or_left_out_and_a_repeated_one_is_named(column):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=40), "k": column})
    fixed = TargetCorrection(FirstColumn()).fit(frame, hide(frame["a"].to_numpy() + 1.0, 12))
    assert np.abs(fixed.predict(frame) - frame["a"] - 1.0).max() < 0.5
    with pytest.raises(ValueError, match="'kk'"):
        TargetCorrection(FirstColumn()).fit(frame.set_axis(["kk", "kk"], axis=1), np.arange(40.0))


@pytest.mark.parametrize(
    "use", [lambda model, Z, y: TargetCorrection(model).fit(Z, y), lambda model, Z, y: inspect(model, Z, y=y)]
)
def test_labels_with_another_index_than_the_rows_are_refused(use):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    y = rows["a"] + 0.1 * rng.normal(size=60)
    model = BayesSpARRegressor().fit(rows, y)
    Z = rows.iloc[40:]
    for target, labels, pair in (
        (Z, y[:39:-1], r"40 and 59.*y\.reindex\(Z\.index\).*y\.to_numpy\(\)"),
        (Z, y[:20].set_axis([0, *range(2, 21)]), "40 and 0"),
        (rows, y[::-1], "0 and 59"),  # the default index, in another order
        (rows, y.set_axis(range(1, 61)), "0 and 1"),  # moved by one
        (rows.set_axis(range(1, 61)), y, "1 and 0"),
    ):
        with pytest.raises(ValueError, match=f"row 0: {pair}"):
            use(model, target, labels)
    for labels in (y[40:], y[40:].reset_index(drop=True), y[:39:-1].reindex(Z.index), y[40:].to_numpy()):
        use(model, Z, labels)


def test_pipelines_nested_pipelines_and_searches_have_the_same_correction(shifted):
    _, Z, y = shifted
    source = np.random.default_rng(1).normal(size=(12, 3))
    square, scale = PolynomialFeatures(2, include_bias=False), StandardScaler()
    flat = make_pipeline(square, scale, BayesSpARRegressor()).fit(source, source @ [1.0, 2.0, 0.5])
    nested = make_pipeline(flat[0], make_pipeline(*(step for _, step in flat.steps[1:])))
    search = GridSearchCV(clone(flat), {"bayessparregressor__fit_intercept": [True]}, cv=2)
    search.fit(source, source @ [1.0, 2.0, 0.5])
    fixed = [TargetCorrection(model).fit(Z, hide(y - 1.9, 10)) for model in (flat, nested, search)]
    for one in fixed[1:]:
        assert one.drift_.probability == pytest.approx(fixed[0].drift_.probability, rel=1e-6)
        np.testing.assert_allclose(one.predict(Z), fixed[0].predict(Z), rtol=1e-9)


@pytest.mark.parametrize("search", [False, True])
def test_a_classifier_is_refused_also_in_a_pipeline_and_a_search(rng, search):
    X = rng.normal(size=(40, 2))
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model = GridSearchCV(model, {"logisticregression__C": [1.0]}, cv=2) if search else model
    model.fit(X, (X[:, 0] > 0.0).astype(int))
    for call in (
        lambda: TargetCorrection(model).fit(X, X[:, 0]),
        lambda: rows_to_label(model, X, n=3),
        lambda: inspect(model, X, source=(X, X[:, 0])),
    ):
        with pytest.raises(TypeError, match="LogisticRegression"):
            call()


def test_a_torch_module_is_a_model_and_stays_as_it_was(rng):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6, 4), torch.nn.Dropout(), torch.nn.Linear(4, 1))
    images = rng.normal(size=(60, 2, 3))
    state = {name: value.clone() for name, value in net.state_dict().items()}
    before = net.eval()(torch.as_tensor(images, dtype=torch.float32)).detach().numpy()[:, 0]
    net.train()
    net[1].eval()
    constant = type("Constant", (), {"predict": lambda self, Z: np.full(len(Z), 100.0)})()
    fixed = TargetCorrection({"net": net, "mean": constant}).fit(images, hide(before + 2.0, 20))
    assert fixed.chosen_ == "net"
    np.testing.assert_allclose(fixed.predict(images), before + 2.0, atol=0.05)
    assert [net.training, net[1].training, net[2].training] == [True, False, True]
    assert all(torch.equal(state[name], value) for name, value in net.state_dict().items())
    words = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(4, 1))
    tokens = rng.integers(0, 9, size=(257, 1))
    before = words(torch.as_tensor(tokens)).detach().numpy()[:, 0]
    words.register_forward_hook(lambda module, args, output: output.squeeze())  # no dimension is left for one row
    fixed = TargetCorrection(words).fit(tokens, hide(before + 2.0, 20))
    np.testing.assert_allclose(fixed.predict(tokens), before + 2.0, atol=0.05)
    words.register_forward_hook(lambda module, args, output: [output])
    with pytest.raises(TypeError, match="must return a tensor, got a list"):
        fixed.predict(tokens)


def test_masked_rows_are_refused():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = LinearRegression().fit(X, X[:, 0])
    masked, y = np.ma.masked_array(X, X > 1.0), dict(enumerate(X[:10, 0] + 1.0 + 0.1 * X[:10, 1]))
    with pytest.raises(ValueError, match="Z has masked entries"):
        TargetCorrection(model).fit(masked, y)
    with pytest.raises(ValueError, match="Z has masked entries"):
        TargetCorrection(model).fit(X, y).predict(masked)

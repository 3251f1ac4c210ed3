"""``adapt_files`` and ``inspect_files``: the numbers of the regressors, equal in memory and streamed."""

from __future__ import annotations

import copy
import re
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import pyspar
from pyspar import BayesSpARRegressor
from pyspar.tables import reduce
from pyspar.tables.adapt import adapt_files
from pyspar.tables.inputs import Request
from pyspar.tables.inspect import inspect_files
from pyspar.tables.summarize import summarize_file
from pyspar.tables.write import Output
from pyspar.terminal import LineProgress

COLUMNS = ["area", "garden"]
NUMBERS = ["area", "garden", "lift", "price"]


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(reduce, "open_rows", partial(reduce.open_rows, batch_bytes=1000))


def standardised(source, target):
    mean, std = source[COLUMNS].mean(), source[COLUMNS].std(ddof=0)
    return tuple(((table[COLUMNS] - mean) / std).to_numpy() for table in (source, target))


@pytest.fixture
def paths(files, source, target):
    return tuple(map(Path, files(source[[*COLUMNS, "price"]], target[[*COLUMNS, "price"]])))


@pytest.mark.parametrize("method", ["bayes", "spar", "ols"])
@pytest.mark.parametrize("alpha", [None, 0.9])
@pytest.mark.parametrize("labelled", [True, False])
def test_both_pipelines_give_the_same_account(files, source, target, small_batches, tmp_path, method, alpha, labelled):
    rows = target[NUMBERS] if labelled else target[NUMBERS].drop(columns="price")
    paths = tuple(map(Path, files(source[NUMBERS], rows)))
    accounts, predictions = [], []
    for stream in (False, True):
        out = tmp_path / f"{stream}.npy"
        account = adapt_files(Request(*paths, "price", alpha=alpha, stream=stream), method=method, output=Output(out))
        accounts.append(replace(account, output=None))
        predictions.append(np.load(out))
    np.testing.assert_allclose(predictions[1], predictions[0], rtol=1e-10)
    in_memory, from_stream = accounts
    numbers = {"judgement", "scored", "findings"}
    found = tuple(finding for finding in in_memory.findings if finding.code != "SPAR018")  # needs all predictions
    assert found == from_stream.findings
    # The next step of a stream names no commands that need the rows in memory.
    assert in_memory.judgement.verdict == replace(from_stream.judgement, is_command=True).verdict
    for field in fields(in_memory):
        if field.name not in numbers:
            assert getattr(in_memory, field.name) == getattr(from_stream, field.name), field.name
    assert in_memory.judgement.outside == pytest.approx(from_stream.judgement.outside, abs=1e-12)
    for name in ("before", "after"):
        one, other = getattr(in_memory, name), getattr(from_stream, name)
        assert one.rmse == pytest.approx(other.rmse, rel=1e-10)
        assert one.interval95 == pytest.approx(other.interval95, rel=1e-10)
    assert (in_memory.scored is not None) == labelled == (from_stream.scored is not None)
    if labelled:
        assert in_memory.scored.model.n == from_stream.scored.model.n == 80
        assert in_memory.scored.model.rmse == pytest.approx(from_stream.scored.model.rmse, rel=1e-10)
        least_squares = in_memory.scored.least_squares.rmse
        assert least_squares == pytest.approx(from_stream.scored.least_squares.rmse, rel=1e-10)


def test_both_pipelines_give_the_same_inspection(files, source, target, small_batches):
    paths = tuple(map(Path, files(source[NUMBERS], target[NUMBERS])))
    in_memory = inspect_files(Request(*paths, "price"))
    from_stream = inspect_files(Request(*paths, "price", stream=True))
    assert in_memory.data == from_stream.data
    sides = [account.inspection.outputs[0].directions for account in (in_memory, from_stream)]
    for one, other in zip(*sides, strict=True):
        assert other.keeping == pytest.approx(one.keeping, rel=1e-10)
        assert other.goes == one.goes
        assert other.loads == tuple((name, pytest.approx(share, abs=1e-10)) for name, share in one.loads)


def test_bayes_is_the_default_and_predicts_like_the_regressor(paths, source, target, tmp_path):
    account = adapt_files(Request(*paths, "price"), output=Output(tmp_path / "p.npy"))
    assert account.method == "bayes"
    X, Z = standardised(source, target)
    est = BayesSpARRegressor().fit(X, source["price"]).adapt(Z)
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), est.predict(Z), rtol=1e-10)
    assert account.after.rmse == pytest.approx(est.expected_rmse(Z).rmse, rel=1e-10)
    assert f"noise {np.sqrt(est.sigma2_):.3g} " in account.chosen
    assert "rule" not in account.chosen


def test_with_a_confidence_bayes_uses_the_rule_of_the_paper(paths, source, target, tmp_path):
    account = adapt_files(Request(*paths, "price", alpha=0.9), output=Output(tmp_path / "p.npy"))
    X, Z = standardised(source, target)
    est = BayesSpARRegressor(alpha=0.9).fit(X, source["price"]).adapt(Z)
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), est.predict(Z), rtol=1e-10)
    assert "0.9" in account.chosen
    assert account.directions.removed == est.adaptation_.removed.sum() > 0


@pytest.mark.parametrize("alpha", [None, 0.9])
def test_a_summary_of_the_source_predicts_like_its_rows(paths, tmp_path, alpha):
    adapt_files(Request(*paths, "price", alpha=alpha), output=Output(tmp_path / "memory.npy"))
    summarize_file(paths[0], tmp_path / "s.npz", label="price")
    adapt_files(Request(tmp_path / "s.npz", paths[1], None, alpha=alpha), output=Output(tmp_path / "p.npy"))
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), np.load(tmp_path / "memory.npy"), rtol=1e-10)


def test_the_expected_error_of_spar_is_the_forecast_of_the_regressor(paths, source, target):
    account = adapt_files(Request(*paths, "price"), method="spar")
    (inspected,) = inspect_files(Request(*paths, "price")).inspection.outputs
    X, Z = standardised(source, target)
    plain = pyspar.SpARRegressor().fit(X, source["price"])
    adapted = copy.copy(plain).adapt(Z)
    assert account.directions.removed == int(adapted.adaptation_.removed.sum()) == 1
    for forecast, est in ((account.before, plain), (account.after, adapted)):
        own = est.expected_rmse(Z)
        assert forecast.rmse == pytest.approx(own.rmse, rel=1e-6)
        assert forecast.interval95_if_linear == pytest.approx(own.interval95_if_linear, rel=1e-6)
        # The calibrated interval depends on the error at home, which is that of Bayes-SpAR in both commands.
        assert forecast.interval95 == inspected.forecast(forecast.name).interval95
    assert account.after.rmse < account.before.rmse


def test_the_true_errors_are_those_of_least_squares_and_of_the_predictions(paths, source, target, tmp_path):
    account = adapt_files(Request(*paths, "price"), output=Output(tmp_path / "p.npy"))
    plain = LinearRegression().fit(source[COLUMNS], source["price"]).predict(target[COLUMNS])
    assert account.scored.least_squares.rmse == pytest.approx(rmse(plain, target["price"]), rel=1e-6)
    assert account.scored.model.rmse == pytest.approx(rmse(np.load(tmp_path / "p.npy"), target["price"]), rel=1e-9)
    assert account.scored.model.rmse < account.scored.least_squares.rmse / 2


@pytest.mark.parametrize("stream", [False, True])
def test_target_rows_without_a_label_do_not_count_in_the_score(adapt, source, target, small_batches, stream):
    target.loc[:69, "price"] = np.nan
    assert adapt(source[NUMBERS], target[NUMBERS], stream=stream).scored.model.n == 10


def test_ols_is_least_squares_on_the_encoded_columns(paths, source, target, tmp_path):
    adapt_files(Request(*paths, "price"), method="ols", output=Output(tmp_path / "p.npy"))
    plain = LinearRegression().fit(source[COLUMNS], source["price"]).predict(target[COLUMNS])
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), plain, rtol=1e-6)


@pytest.mark.parametrize("rows", [2, 3, 5, 7])
def test_a_source_that_is_fitted_exactly_has_a_forecast(adapt, source, target, rows):
    account = adapt(source[:rows], target, method="spar")
    assert account.rank + 1 == rows
    low, high = account.after.interval95
    assert 0.0 < low < high < np.inf


@pytest.mark.parametrize(("alpha", "groups"), [(None, None), (0.9, None), (None, "town")])
def test_adapt_and_inspect_give_the_same_forecasts(files, source, target, alpha, groups):
    request = Request(*map(Path, files(source, target)), "price", alpha=alpha, groups=groups)
    expected = adapt_files(request)
    inspection = inspect_files(request).inspection
    output = inspection.outputs[0]
    for one, other in ((expected.before, output.forecast("OLS")), (expected.after, output.forecast("Bayes-SpAR"))):
        # The weights differ by rounding, and the draws have the same seed.
        assert one.rmse == pytest.approx(other.rmse, rel=1e-9)
        assert one.interval95 == pytest.approx(other.interval95, rel=1e-9)
    assert expected.judgement.outside == pytest.approx(inspection.outside_energy, rel=1e-9)


def test_only_directions_in_which_the_target_varies_are_counted(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    table = pd.DataFrame(X, columns=list("abcd")).assign(y=X.sum(axis=1) + rng.normal(size=60))
    table.to_csv(tmp_path / "s.csv", index=False)
    table[:2].drop(columns="y").to_csv(tmp_path / "t.csv", index=False)
    request = Request(tmp_path / "s.csv", tmp_path / "t.csv", "y")
    totals = [adapt_files(replace(request, alpha=alpha)).directions.total for alpha in (None, 0.999)]
    assert totals[0] == totals[1] <= 2


def test_inspect_forecasts_the_method_of_the_paper(files, source, target):
    request = Request(*map(Path, files(source, target)), "price")
    expected = adapt_files(request, method="spar")
    output = inspect_files(request).inspection.outputs[0]
    assert sum(direction.goes for direction in output.directions) == expected.directions.removed > 0
    assert len(output.directions) == expected.directions.total
    assert output.forecast("SpAR").rmse == pytest.approx(expected.after.rmse, rel=1e-9)


def test_loads_of_encoded_features_are_summed_per_raw_column(files, source, target):
    columns = ["town", "price"]
    account = inspect_files(Request(*map(Path, files(source[columns], target[columns])), "price"))
    assert account.data.n_encoded == 3
    for direction in account.inspection.outputs[0].directions:
        assert direction.loads == (("town", pytest.approx(1.0)),)


@pytest.mark.parametrize("stream", [False, True])
def test_progress_reports_every_stage_and_ends_it(paths, stream, tmp_path):
    lines = []
    log = LineProgress(lines.append)
    adapt_files(Request(*paths, "price", stream=stream), output=Output(tmp_path / "p.csv"), progress=log)
    inspect_files(Request(*paths, "price", stream=stream), reports=[tmp_path / "r.json"], progress=log)
    summarize_file(paths[0], tmp_path / "s.npz", progress=log)
    for stage in ("reading the source", "reading the target", "fitting and adapting", "writing the report"):
        assert any(line.startswith(stage) for line in lines)
    assert log._tasks == {}


def rmse(predictions, labels):
    return np.sqrt(np.mean((predictions - labels) ** 2))


def test_float32_rounding_is_not_a_direction(tmp_path):
    rng = np.random.default_rng(5)
    paths = []
    for n, name in ((200, "s"), (150, "t")):
        base = rng.normal(size=(n, 3)).astype(np.float32)
        X = np.column_stack([base, (base[:, 0] + base[:, 1]).astype(np.float32)])
        paths.append(tmp_path / f"{name}.npz")
        np.savez(paths[-1], X=X, y=base[:, 2].astype(np.float64) + rng.normal(size=n))
    assert inspect_files(Request(*paths, "y")).inspection.rank == 3


def test_a_float32_column_does_not_round_the_other_columns(tmp_path):
    rng = np.random.default_rng(0)
    t, k = 1.7e9 + rng.uniform(0, 1000, 500), rng.normal(size=500)
    for kind in ("f4", "f8"):
        frame = pd.DataFrame({"t": t, "k": k.astype(kind), "y": (t - 1.7e9) / 100 + k})
        frame["y"] += 0.01 * np.random.default_rng(1).normal(size=500)
        frame[:400].to_parquet(tmp_path / "a.parquet")
        frame[400:].to_parquet(tmp_path / "b.parquet")
        account = adapt_files(Request(tmp_path / "a.parquet", tmp_path / "b.parquet", "y"))
        assert account.scored.model.rmse < 0.02


@pytest.mark.parametrize(("method", "sign"), [("ridge", 1)])
def test_the_choice_of_ridge_and_pcr_leaves_groups_out(tmp_path, method, sign):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(8), 5)
    X = rng.normal(size=(8, 6))[group] + 0.1 * rng.normal(size=(40, 6))
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    table = table.assign(y=rng.normal(size=8)[group] + 0.1 * rng.normal(size=40), patient=[f"p{i}" for i in group])
    table.to_csv(tmp_path / "s.csv", index=False)
    table.to_csv(tmp_path / "t.csv", index=False)
    chosen = {}
    for groups in (None, "patient"):
        drop = () if groups else ("patient",)
        request = Request(tmp_path / "s.csv", tmp_path / "t.csv", "y", groups=groups, drop=drop)
        chosen[groups] = adapt_files(request, method=method).chosen
    numbers = [float(re.search(r"[\d.e+-]*\d", text).group()) for text in chosen.values()]
    # The columns describe the group, so left-out groups need a larger penalty or fewer components.
    assert sign * numbers[1] > sign * numbers[0]
    assert chosen[None] != chosen["patient"]

"""``spar adapt`` without a method: the Bayesian regressor, its choice told, in memory and from streams."""

from pathlib import Path

import numpy as np
import pytest

from pyspar import BayesSpARRegressor, Moments
from pyspar.tables.job import Request, adapt_files

LABEL = ("--label", "price")
COLUMNS = ["area", "garden"]


def standardised(source, target):
    mean, std = source[COLUMNS].mean(), source[COLUMNS].std(ddof=0)
    return tuple(((table[COLUMNS] - mean) / std).to_numpy() for table in (source, target))


@pytest.fixture
def paths(files, source, target):
    return files(source[[*COLUMNS, "price"]], target[[*COLUMNS, "price"]])


def test_it_is_the_default_and_predicts_what_the_regressor_does(paths, source, target, tmp_path):
    account = adapt_files(Request(*map(Path, paths), "price"), output=tmp_path / "p.npy")
    assert account.method == "bayes"
    X, Z = standardised(source, target)
    est = BayesSpARRegressor().fit(X, source["price"]).adapt(Z)
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), est.predict(Z), rtol=1e-6)
    assert account.expected.after.rmse == pytest.approx(est.expected_rmse(Z).rmse, rel=1e-6)
    assert account.chosen == est.rule_scores_.summary


def test_the_output_says_what_the_weights_are_an_average_of_and_why(spar, paths):
    out = spar("adapt", *paths, *LABEL).stdout
    assert "bayes, an average" in out
    assert "by extrapolation cross-validation" in out
    assert "(least squares) → " in out
    assert "(bayes; 95 %" in out


def test_a_stream_holds_out_rows_as_batches_do(spar, paths, source, target, tmp_path):
    result = spar("adapt", *paths, *LABEL, "--stream", "-o", tmp_path / "p.npy")
    assert result.exit_code == 0, result.output
    assert "an average by extrapolation cross-validation" in result.stdout
    X, Z = standardised(source, target)
    est = BayesSpARRegressor().fit_batches([(X, source["price"].to_numpy())]).adapt(Z)
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), est.predict(Z), rtol=1e-6)


def test_a_summary_has_no_rows_to_hold_out_and_says_so(spar, paths, source, target, tmp_path):
    assert spar("summarize", paths[0], *LABEL, "-o", tmp_path / "s.npz").exit_code == 0
    result = spar("adapt", tmp_path / "s.npz", paths[1], "-o", tmp_path / "p.npy")
    assert result.exit_code == 0, result.output
    assert "as fixed, because the source's rows were not there to be held out" in result.stdout
    X, Z = standardised(source, target)
    est = BayesSpARRegressor().fit_moments(Moments.of(X, source["price"])).adapt(Z)
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), est.predict(Z), rtol=1e-6)


def test_a_confidence_asks_for_the_rule_of_the_paper(spar, paths, source, target, tmp_path):
    result = spar("adapt", *paths, *LABEL, "--alpha", "0.9", "-o", tmp_path / "p.npy")
    assert "bayes, the paper's rule at alpha 0.9" in result.stdout
    X, Z = standardised(source, target)
    est = BayesSpARRegressor(rule="chi2", alpha=0.9).fit(X, source["price"]).adapt(Z)
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), est.predict(Z), rtol=1e-6)


def test_fewer_rows_than_directions_still_have_an_expected_error(spar, files, source, target):
    result = spar("adapt", *files(source[:4], target), *LABEL)
    assert result.exit_code == 0, result.output
    assert "(bayes; 95 %" in result.stdout
    assert "remove nothing" not in result.stdout

"""``spar adapt`` without a method: the Bayesian regressor, in memory, from streams and from summaries."""

from pathlib import Path

import numpy as np
import pytest

from pyspar import BayesSpARRegressor
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
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), est.predict(Z), rtol=1e-10)
    assert account.expected.after.rmse == pytest.approx(est.expected_rmse(Z).rmse, rel=1e-10)
    assert f"noise {np.sqrt(est.sigma2_):.3g} " in account.chosen
    assert "rule" not in account.chosen


def test_the_output_says_what_was_found_and_what_error_is_expected(spar, paths):
    out = spar("adapt", *paths, *LABEL).stdout
    account = adapt_files(Request(*map(Path, paths), "price"))
    assert f"bayes, {account.chosen}: 1 of 2 target directions removed" in out
    assert f"{account.expected.before.rmse:.4g} (least squares) → {account.expected.after.rmse:.4g} (bayes; 95 %" in out


@pytest.mark.parametrize("given", ["stream", "summary"])
@pytest.mark.parametrize("alpha", [(), ("--alpha", "0.9")])
def test_streams_and_summaries_predict_what_memory_does(spar, paths, tmp_path, given, alpha):
    assert spar("adapt", *paths, *LABEL, *alpha, "-o", tmp_path / "memory.npy").exit_code == 0
    if given == "stream":
        result = spar("adapt", *paths, *LABEL, *alpha, "--stream", "-o", tmp_path / "p.npy")
    else:
        assert spar("summarize", paths[0], *LABEL, "-o", tmp_path / "s.npz").exit_code == 0
        result = spar("adapt", tmp_path / "s.npz", paths[1], *alpha, "-o", tmp_path / "p.npy")
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), np.load(tmp_path / "memory.npy"), rtol=1e-10)


def test_a_confidence_asks_for_the_rule_of_the_paper(spar, paths, source, target, tmp_path):
    result = spar("adapt", *paths, *LABEL, "--alpha", "0.9", "-o", tmp_path / "p.npy")
    X, Z = standardised(source, target)
    est = BayesSpARRegressor(rule="chi2", alpha=0.9).fit(X, source["price"]).adapt(Z)
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), est.predict(Z), rtol=1e-10)
    account = adapt_files(Request(*map(Path, paths), "price", alpha=0.9))
    assert account.chosen.startswith("the paper's rule at alpha 0.9, ")
    assert account.expected.removed == est.adaptation_.removed.sum() > 0
    assert f"bayes, {account.chosen}: {account.expected.removed} of 2 target directions removed" in result.stdout


def test_fewer_rows_than_directions_still_have_an_expected_error(spar, files, source, target):
    result = spar("adapt", *files(source[:4], target), *LABEL)
    assert result.exit_code == 0, result.output
    assert "(bayes; 95 %" in result.stdout
    assert "estimated as zero" not in result.stdout

"""``spar reproduce --check``: the committed records and the page are of the current methods."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pyspar.errors import InputError
from pyspar.paper.experiments import check
from pyspar.paper.experiments.check import check_results
from pyspar.paper.experiments.suite import published, read_suite
from pyspar.paper.output.page import is_current
from pyspar.paper.runs import heads as heads_module
from pyspar.paper.runs.records import group_values, read_records, write_records
from pyspar.paper.runs.summary import read_summaries

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results"
NAME = "rcf-mnist-pretrained"


def test_every_committed_record_is_current():
    """Each problem contains the command that solves it."""
    pytest.importorskip("optuna")
    assert [str(p) for p in check_results(RESULTS)] == []


def test_the_committed_page_follows_from_the_records_and_is_short():
    """If this fails, run ``python -m pyspar.paper.output.page``."""
    page = ROOT / "docs" / "reproduction.md"
    assert is_current(page, RESULTS)
    text = page.read_text()
    assert len(text.split()) <= 3000
    assert "could not be obtained" in text.partition("\n## ")[0]


def test_the_figures_in_the_notes_of_suites_follow_from_the_records():
    means = {}
    for name in ("rcf-mnist", "rcf-mnist-pretrained"):
        cells = group_values(read_records(RESULTS / name / "records.jsonl"), "method", "metric")
        means[name] = {method: np.mean(values) for (method, metric), values in cells.items() if metric == "rmse"}
    ratios = [means[name]["DANN"] / means[name]["ERM"] for name in ("rcf-mnist-pretrained", "rcf-mnist")]
    theirs = published("images").cells["rcf-mnist"]
    ratios.append(float(theirs["DANN"][0]) / float(theirs["ERM"][0]))
    note = read_suite("rcf-mnist-pretrained").differs[-1]
    assert [f"{ratio:.2f}" for ratio in ratios] == re.findall(r"\d\.\d\d", note)[:3]
    records = read_records(RESULTS / "povertymap-angola" / "records.jsonl")
    assert max(r.value for r in records if r.metric == "rmse" and " + " not in r.method) < 1.4
    values = {(r.method, r.seed): r.value for r in records if r.metric == "r"}
    for method in ("ERM", "C-Mixup"):  # "the same as least squares"
        pairs = [(values[f"{method} + SpAR", seed], values[f"{method} + OLS", seed]) for seed in range(5)]
        np.testing.assert_allclose(*zip(*pairs), atol=1e-5)


def test_the_committed_summaries_reproduce_the_committed_errors():
    from pyspar import SpARRegressor

    summaries = read_summaries(RESULTS / "rcf-mnist" / "summaries.npz")
    records = {(r.method, r.seed): r.value for r in read_records(RESULTS / "rcf-mnist" / "records.jsonl")}
    assert len(summaries) == 20
    for method, seed in [("ERM", 0), ("C-Mixup", 1), ("Deep CORAL", 4), ("DANN", 2)]:
        summary = summaries[method, seed]
        assert summary.trained_rmse == pytest.approx(records[method, seed], abs=5e-4)
        spar = SpARRegressor(fit_intercept=False).fit(summary.source).adapt(summary.target)
        assert summary.rmse(spar.coef_) == pytest.approx(records[f"{method} + SpAR", seed], abs=5e-4)


@pytest.fixture
def results(tmp_path):
    shutil.copytree(RESULTS / NAME, tmp_path / NAME)
    return tmp_path


def change(results, edit):
    """Return the problems of current methods after ``edit``."""
    file = results / NAME / "records.jsonl"
    write_records(file, edit(read_records(file)))
    return check_results(results, [NAME])


def test_records_of_an_older_recipe_are_stale(results, monkeypatch):
    monkeypatch.setattr(heads_module, "recipe_of", lambda name: 99 if name == "SpAR" else 1)
    problems = change(results, lambda records: [replace(r, recipe=1) for r in records])
    assert {(p.kind, p.rows.split(" (")[0]) for p in problems} == {
        ("stale", f"rcf-mnist, {method} + SpAR") for method in ("ERM", "C-Mixup", "Deep CORAL", "DANN")
    }
    assert all("99" in p.reason for p in problems)
    assert all(f"spar reproduce {NAME} --device cuda" in p.command for p in problems)


def test_other_settings_make_the_whole_method_stale(results, monkeypatch):
    suite = check.read_suite(NAME)
    block = replace(suite.blocks[0], config={**suite.blocks[0].config, "epochs": 31})
    monkeypatch.setattr(check, "read_suite", lambda name: replace(suite, blocks=(block,)))
    problems = check_results(results, [suite.name])
    assert {p.kind for p in problems} == {"stale"}
    assert len(problems) == 12  # four methods with three heads


def test_a_missing_seed_a_foreign_row_and_a_second_value_are_problems(results):
    def edit(records):
        first = next(r for r in records if (r.method, r.seed) == ("ERM", 0))
        foreign = replace(first, method="ERM + ridge")
        second = replace(first, seed=1, value=9.0, run="another run")
        return [*(r for r in records if r is not first), foreign, second]

    assert {(p.kind, p.rows) for p in change(results, edit)} == {
        ("missing", "rcf-mnist, ERM (seeds '0')"),
        ("orphaned", "rcf-mnist, ERM + ridge (seeds '0')"),
        ("orphaned", "rcf-mnist, ERM (seeds '1')"),
    }


def test_a_suite_without_records_is_missing_unless_it_was_never_run(tmp_path):
    assert check_results(tmp_path, ["povertymap"]) == []
    assert {p.kind for p in check_results(tmp_path, [NAME])} == {"missing"}
    (tmp_path / "old-suite").mkdir()
    (orphan,) = (p for p in check_results(tmp_path) if p.kind == "orphaned")
    assert orphan.suite == "old-suite"
    with pytest.raises(InputError, match="nowhere"):
        check_results(tmp_path / "nowhere")

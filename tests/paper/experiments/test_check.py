"""``spar reproduce --check``: the committed records and the page are of the current methods."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pyspar.errors import InputError
from pyspar.paper.experiments import check
from pyspar.paper.experiments.check import check_results
from pyspar.paper.output.page import is_current
from pyspar.paper.runs import heads as heads_module
from pyspar.paper.runs.records import read_records, write_records

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results"


def test_every_committed_record_is_current():
    """Each problem contains the command that solves it."""
    pytest.importorskip("optuna")
    assert list(map(str, check_results(RESULTS))) == []


def test_the_committed_page_follows_from_the_records():
    """If this fails, run ``python -m pyspar.paper.output.page``."""
    assert is_current(ROOT / "docs" / "reproduction.md", RESULTS)


@pytest.fixture
def results(tmp_path):
    shutil.copytree(RESULTS / "chair-angles-pretrained", tmp_path / "chair-angles-pretrained")
    return tmp_path


def change(results, edit):
    file = results / "chair-angles-pretrained" / "records.jsonl"
    write_records(file, edit(read_records(file)))
    return check_results(results, ["chair-angles-pretrained"])


def test_records_of_an_older_recipe_are_stale(results, monkeypatch):
    monkeypatch.setattr(heads_module, "recipe_of", lambda name: 99 if name == "SpAR" else 1)
    problems = change(results, lambda records: [replace(r, recipe=1) for r in records])
    assert {(p.kind, p.rows.split(" (")[0]) for p in problems} == {
        ("stale", f"chair-angles-recreated, {method} + SpAR") for method in ("ERM", "C-Mixup", "Deep CORAL", "DANN")
    }
    assert all("99" in p.reason for p in problems)
    assert all("spar reproduce chair-angles-pretrained --device cuda" in p.command for p in problems)


def test_other_settings_make_the_whole_method_stale(results, monkeypatch):
    suite = check.read_suite("chair-angles-pretrained")
    block = replace(suite.blocks[0], config={**suite.blocks[0].config, "epochs": 31})
    monkeypatch.setattr(check, "read_suite", lambda name: replace(suite, blocks=(block,)))
    problems = check_results(results, [suite.name])
    assert {p.kind for p in problems} == {"stale"}
    assert len(problems) == 12  # four methods with three heads


def test_a_missing_seed_a_foreign_row_and_a_second_value_are_problems(results):
    def edit(records):
        first = records[0]
        foreign = replace(first, method="ERM + ridge")
        second = replace(first, seed=1, value=9.0, run="another run")
        return [*records[1:], foreign, second]

    problems = change(results, edit)
    assert {(p.kind, p.rows) for p in problems} == {
        ("missing", "chair-angles-recreated, ERM (seeds 0)"),
        ("orphaned", "chair-angles-recreated, ERM + ridge (seeds 0)"),
        ("orphaned", "chair-angles-recreated, ERM (seeds 1)"),
    }


def test_seeds_may_be_recorded_in_batches_but_each_needs_every_row(results, monkeypatch):
    suite = replace(check.read_suite("chair-angles-pretrained"), recorded_seeds=3)
    monkeypatch.setattr(check, "read_suite", lambda name: suite)

    def split(records):
        return [replace(r, run="batch", spec={**r.spec, "seeds": [3, 4]}) if r.seed > 2 else r for r in records]

    assert change(results, split) == []
    problems = change(results, lambda records: [r for r in records if r.seed != 4 or r.method == "DANN"])
    assert {p.kind for p in problems} == {"missing"}
    assert len(problems) == 11


def test_a_suite_without_records_is_missing_unless_it_was_never_run(tmp_path):
    assert check_results(tmp_path, ["povertymap"]) == []
    kinds = {p.kind for p in check_results(tmp_path, ["chair-angles-pretrained"])}
    assert kinds == {"missing"}
    (tmp_path / "old-suite").mkdir()
    (orphan,) = (p for p in check_results(tmp_path) if p.kind == "orphaned")
    assert orphan.suite == "old-suite"


def test_a_folder_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        check_results(tmp_path / "nowhere")


def test_stored_summaries_shorten_the_renewal_of_a_recipe(tmp_path, monkeypatch):
    shutil.copytree(RESULTS / "chair-angles", tmp_path / "chair-angles")
    recipes = {"Bayes-SpAR": 99}
    monkeypatch.setattr(heads_module, "recipe_of", lambda name: recipes.get(name, 1))
    problems = check_results(tmp_path, ["chair-angles"])
    assert {p.kind for p in problems} == {"stale"}
    assert {p.command for p in problems} == {"python -m pyspar.paper.runs.summary results/chair-angles"}

"""Summaries of trained networks: a head is scored from them as it is from the features."""

from pathlib import Path

import numpy as np
import pytest

from pyspar.paper.runs.heads import Head, predictions
from pyspar.paper.runs.records import Record, read_records, write_records
from pyspar.paper.runs.store import Features
from pyspar.paper.runs.summary import FILE, HEAD, main, read_summaries, rescored, summarise, write_summaries

CHAIRS = Path(__file__).parents[3] / "results" / "chair-angles"


def features(seed, spoiled=0.5):
    """Return features of 300 source and 200 test rows, one direction faint, behind a head that is wrong along one."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=6)
    parts = {}
    for name, n, spread in (("train", 300, 1.0), ("val", 20, 1.0), ("test", 200, 2.0)):
        rows = rng.normal(size=(n, 6)) * [3.0, 1.0, 1.0, 1.0, 0.3, 1e-6] * spread
        parts[name] = rows.astype(np.float32)
        parts[f"y_{name}"] = rows @ w + 0.3 * rng.normal(size=n)
    head = (w + spoiled * np.eye(6)[0])[None]
    groups = {f"group_{name}": np.zeros(len(parts[name]), dtype=np.int64) for name in ("val", "test")}
    return Features(head=head, **parts, **groups)


def rmse(prediction, labels):
    return float(np.sqrt(np.mean((prediction - labels) ** 2)))


@pytest.mark.parametrize("spoiled", [0.5, 0.0])
def test_the_error_from_a_summary_is_that_of_the_features(tmp_path, spoiled):
    one = features(0, spoiled)
    expected = rmse(predictions(one, [HEAD])[HEAD.key], one.y_test)
    assert summarise(one).rmse() == pytest.approx(expected, rel=1e-9)
    write_summaries(tmp_path / FILE, {("run", 3): summarise(one)})
    # In the file the moments are in float32.
    assert read_summaries(tmp_path / FILE)["run", 3].rmse() == pytest.approx(expected, rel=1e-5)
    trained = rmse(predictions(one, [Head("trained")])[Head("trained").key], one.y_test)
    assert (expected < trained) if spoiled else (expected == pytest.approx(trained, rel=1e-12))


def test_only_the_head_whose_rule_changes_is_scored_again():
    old = [Record("t", f"ERM + {name}", 0, "rmse", 9.0, run="r") for name in ("OLS", HEAD.name)]
    elsewhere = Record("t", f"ERM + {HEAD.name}", 0, "rmse", 9.0, run="another run")
    new = rescored([*old, elsewhere], {("r", 0): summarise(features(0))})
    assert new[0] == old[0]
    assert new[2] == elsewhere
    assert new[1].recipe == HEAD.recipe
    assert new[1].value < 1.0


def test_the_committed_chairs_are_those_of_the_present_rule(tmp_path):
    """After a change of the rule, ``python -m pyspar.paper.runs.summary results/chair-angles`` must be run."""
    committed = read_records(CHAIRS / "records.jsonl")
    again = rescored(committed, read_summaries(CHAIRS / FILE))
    mine = [(a, b) for a, b in zip(committed, again, strict=True) if a.method.endswith(HEAD.name)]
    assert len(mine) == 20
    for before, after in mine:
        assert before.recipe == after.recipe == HEAD.recipe
        assert after.value == pytest.approx(before.value, rel=1e-5)  # float32 in the file


def test_the_command_writes_the_records_and_names_what_is_missing(tmp_path, capsys):
    write_records(tmp_path / "records.jsonl", [Record("t", f"ERM + {HEAD.name}", 0, "rmse", 9.0, run="r")])
    assert main([str(tmp_path)]) == 2
    assert FILE in capsys.readouterr().err
    write_summaries(tmp_path / FILE, {("r", 0): summarise(features(0))})
    assert main([str(tmp_path)]) == 0
    assert read_records(tmp_path / "records.jsonl")[0].value < 1.0
    assert main([str(tmp_path), "--runs", str(tmp_path)]) == 2  # no features there

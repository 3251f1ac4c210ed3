"""Summaries of trained networks: the score of a head from a summary is the score from the features."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pyspar.paper.runs.heads import Head, predict_with_heads
from pyspar.paper.runs.records import Record, read_records, write_records
from pyspar.paper.runs.run import run_one
from pyspar.paper.runs.store import Features
from pyspar.paper.runs.summary import FILE, main, read_summaries, rescore_records, summarise, write_summaries

HEAD = Head("Bayes-SpAR")
CHAIRS = Path(__file__).parents[3] / "results" / "chair-angles"


def make_features(seed, head_error=0.5):
    """Return features of 300 source and 200 test rows with one faint direction, and a head with an error along one."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=6)
    parts = {}
    for name, n, spread in (("train", 300, 1.0), ("val", 20, 1.0), ("test", 200, 2.0)):
        rows = rng.normal(size=(n, 6)) * [3.0, 1.0, 1.0, 1.0, 0.3, 1e-6] * spread
        parts[name] = rows.astype(np.float32)
        parts[f"y_{name}"] = rows @ w + 0.3 * rng.normal(size=n)
    head = (w + head_error * np.eye(6)[0])[None]
    groups = {f"group_{name}": np.zeros(len(parts[name]), dtype=np.int64) for name in ("val", "test")}
    return Features(head=head, **parts, **groups)


def rmse(prediction, labels):
    return float(np.sqrt(np.mean((prediction - labels) ** 2)))


@pytest.mark.parametrize("head_error", [0.5, 0.0])
def test_the_error_from_a_summary_is_the_error_from_the_features(tmp_path, head_error):
    one = make_features(0, head_error)
    expected = rmse(predict_with_heads(one, [HEAD])[HEAD.key], one.y_test)
    assert summarise(one).rmse() == pytest.approx(expected, rel=1e-9)
    write_summaries(tmp_path / FILE, {("run", 3): summarise(one)})
    # The file stores the moments with 24 bits.
    again = read_summaries(tmp_path / FILE)["run", 3]
    assert again.rmse() == pytest.approx(expected, rel=1e-6)
    ols = Head("OLS")
    assert again.rmse("ols") == pytest.approx(rmse(predict_with_heads(one, [ols])[ols.key], one.y_test), rel=1e-6)
    trained = rmse(predict_with_heads(one, [Head("trained")])[Head("trained").key], one.y_test)
    assert (expected < trained) if head_error else (expected == pytest.approx(trained, rel=1e-12))


@pytest.mark.parametrize("head_error", [0.5, 0.0])
def test_a_score_depends_on_the_errors_of_single_rows(tmp_path, head_error):
    # One row with a large error makes a correction significant if all rows have the same noise.
    one = make_features(0, head_error)
    one.y_train[0] += 30.0
    one.train[0] *= 5.0
    expected = rmse(predict_with_heads(one, [HEAD])[HEAD.key], one.y_test)
    summary = summarise(one)
    assert summary.rmse() == pytest.approx(expected, rel=1e-9)
    equal_noise = np.linalg.qr(summary.source.root[:, 1:-1], mode="r")
    assert replace(summary, error_root=equal_noise).rmse() != pytest.approx(expected, rel=1e-3)
    write_summaries(tmp_path / FILE, {("run", 3): summary})
    assert read_summaries(tmp_path / FILE)["run", 3].rmse() == pytest.approx(expected, rel=1e-6)


def test_the_errors_of_single_rows_are_stored_with_four_digits(tmp_path):
    summary = summarise(make_features(0))
    write_summaries(tmp_path / FILE, {("run", 3): summary})
    again = read_summaries(tmp_path / FILE)["run", 3]
    # The coordinates are another basis, in which the head is stored too.
    for root, head in ((summary.error_root, summary.head), (again.error_root, again.head)):
        assert root.shape[1] == head.shape[1]
    lengths = [np.linalg.norm(one.error_root @ one.head[0]) for one in (summary, again)]
    assert lengths[1] == pytest.approx(lengths[0], rel=1e-4)
    values = [np.linalg.svd(one.error_root, compute_uv=False) for one in (summary, again)]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-3)


def test_only_records_of_an_older_recipe_are_scored_again():
    records = [Record("t", f"ERM + {name}", 0, "rmse", 9.0, run="r") for name in ("OLS", "SpAR", HEAD.name)]
    without_summary = replace(records[-1], run="another run")
    summary = summarise(make_features(0))
    new = rescore_records([*records, without_summary], {("r", 0): summary})
    assert new[:2] == records[:2]  # their recipe is the first one
    assert new[3] == without_summary
    assert new[2].recipe == HEAD.recipe
    assert new[2].value == pytest.approx(summary.rmse(), rel=1e-6)


def test_the_committed_scores_of_chairs_follow_from_the_summaries_to_the_printed_digits():
    committed = read_records(CHAIRS / "records.jsonl")
    summaries = read_summaries(CHAIRS / FILE)
    outdated = [replace(r, recipe=0) for r in committed]
    again = rescore_records(outdated, summaries)
    pairs = [(a, b) for a, b in zip(committed, again, strict=True) if b.recipe]
    assert len(pairs) == 40  # two heads
    for before, after in pairs:
        assert f"{after.value:.3f}" == f"{before.value:.3f}"
    assert (CHAIRS / FILE).stat().st_size / len(summaries) < 60_000


def test_a_run_leaves_summaries_and_its_heads_are_scored_from_them_without_features(run, tmp_path):
    pytest.importorskip("torch")
    heads = (Head("OLS"), HEAD)
    outcome = run_one(replace(run, heads=heads, metrics=("rmse",), keep_features=False), lambda message: None)
    assert not list(run.folder.path.glob("features-*.npz"))
    expected = [
        (f"ERM + {h.name}", seed, outcome.scores[h.key]["seeds"][str(seed)]["rmse"]) for h in heads for seed in (0, 1)
    ]
    stale = [Record("t", method, seed, "rmse", 9.0, run=outcome.key, recipe=0) for method, seed, _ in expected]
    write_records(tmp_path / "records.jsonl", stale)
    assert main([str(tmp_path), "--runs", str(run.folder.path.parent)]) == 0
    for record, (_, _, value) in zip(read_records(tmp_path / "records.jsonl"), expected, strict=True):
        assert record.recipe >= 1
        assert record.value == pytest.approx(value, rel=1e-5)


def test_the_command_writes_the_records_and_names_a_missing_file(tmp_path, capsys):
    write_records(tmp_path / "records.jsonl", [Record("t", f"ERM + {HEAD.name}", 0, "rmse", 9.0, run="r")])
    assert main([str(tmp_path)]) == 2
    assert FILE in capsys.readouterr().err
    write_summaries(tmp_path / FILE, {("r", 0): summarise(make_features(0))})
    assert main([str(tmp_path)]) == 0
    score = read_records(tmp_path / "records.jsonl")[0].value
    assert score == pytest.approx(summarise(make_features(0)).rmse(), rel=1e-5)
    (tmp_path / FILE).unlink()
    assert main([str(tmp_path), "--runs", str(tmp_path)]) == 2  # the folder has no features


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_file_is_one_error_and_the_records_are_kept(tmp_path, capsys, damage):
    (tmp_path / "records.jsonl").write_bytes((CHAIRS / "records.jsonl").read_bytes())
    content = bytearray((CHAIRS / FILE).read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    else:
        content[len(content) // 2] ^= 1
    (tmp_path / FILE).write_bytes(content)
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"error: cannot read {tmp_path / FILE}")
    assert (tmp_path / "records.jsonl").read_bytes() == (CHAIRS / "records.jsonl").read_bytes()

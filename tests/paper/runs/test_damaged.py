"""Whatever happens to the files of a run, they are made again; a line of records is refused by its number."""

import json
import shutil

import numpy as np
import pytest

from pyspar.errors import InputError
from pyspar.paper.experiments.reproduce import miniature, reproduce
from pyspar.paper.experiments.suite import suite_named
from pyspar.paper.runs import run as stage
from pyspar.paper.runs.heads import Head
from pyspar.paper.runs.records import Record, append_records, read_records
from pyspar.paper.runs.run import Job, carry_out
from pyspar.paper.runs.run_suite import Options
from pyspar.paper.runs.store import DamagedError, RunFolder

pytest.importorskip("torch")


def silently(done, total):
    """Watch nothing."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that was done, and what came of it."""
    options = Options(out=tmp_path_factory.mktemp("finished"), mini=True)
    spec = options.specs(miniature(suite_named("alpha")))[0]
    job = Job(spec, (Head("OLS"), Head("SpAR")), ("rmse",), options.out)
    return job, carry_out(job, silently)


@pytest.fixture
def done(finished, tmp_path):
    """The same in a folder of its own: the job, its folder, and what came of it."""
    job, first = finished
    shutil.copytree(job.root, tmp_path / "out")
    job = Job(job.spec, job.heads, job.metrics, tmp_path / "out")
    return job, RunFolder.of(job.root, job.spec), first


def healed(job, first):
    again = carry_out(job, silently)
    assert (again.kind, again.reason) == ("done", "")
    assert (again.scores, again.validation) == (first.scores, first.validation)
    return again


def test_every_flipped_bit_of_the_headers_of_a_features_file_is_seen_or_harmless(done):
    # Headers are where a reader stumbles before a checksum is compared: of the zip's entries and of the arrays.
    _, folder, _ = done
    path = folder.path / "features-0.npz"
    whole, expected = path.read_bytes(), folder.read_features(0)
    headers = [*range(192), *range(len(whole) - 900, len(whole))]
    seen = 0
    for place in headers:
        bit = place % 8
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
        try:
            found = folder.read_features(0)
        except DamagedError:
            seen += 1
        else:
            for name, value in vars(expected).items():
                np.testing.assert_array_equal(vars(found)[name], value)
    assert seen > len(headers) / 3


def test_a_features_file_with_a_damaged_header_is_made_again(done):
    job, folder, first = done
    path = folder.path / "features-0.npz"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"'descr': '<f4'", b"'descr': '<f4(", 1))
    (folder.path / "scores.json").unlink()
    assert not healed(job, first).reused


@pytest.mark.parametrize(
    "change",
    [
        lambda a: {"y_train": a["y_train"][:-1]},
        lambda a: {"group_test": a["group_test"][:3]},
        lambda a: {"test": a["test"][:, :-1]},
        lambda a: {"train": a["train"][0]},
        lambda a: {"head": np.vstack([a["head"], a["head"]])},
        lambda a: {"y_test": a["y_test"].astype(str)},
        lambda a: {"extra": a["y_test"]},
    ],
)
def test_features_that_do_not_fit_together_are_made_again(done, change):
    job, folder, first = done
    path = folder.path / "features-1.npz"
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **{**arrays, **change(arrays)})
    (folder.path / "scores.json").unlink()
    assert not healed(job, first).reused


@pytest.mark.parametrize(
    "content",
    [
        *('{"scores": []}', '{"training": 5}', '{"training": {"versions": {}}}', '{"training": {"versions": 1}}'),
        *('{"scores": {"x": 3}}', '{"training": {"versions": {"numpy": []}, "machine": {}}}', "[" * 5000),
    ],
)
def test_a_note_of_versions_that_is_none_is_no_note(mini, done, content):
    job, folder, first = done
    folder.write_json("made.json", {})
    (folder.path / "made.json").write_text(content)
    assert healed(job, first).made == {"scores": {}}
    (folder.path / "scores.json").unlink()
    assert set(healed(job, first).made["scores"]) == {head.key for head in job.heads}


def test_records_are_made_of_runs_whose_notes_are_damaged(mini):
    suite = suite_named("alpha")
    first = reproduce(suite, mini)
    for path, content in zip(mini.out.glob("runs/*/made.json"), ('{"scores": []}', '{"training": 5}'), strict=True):
        path.write_text(content)
    (mini.out / "alpha" / "records.jsonl").unlink()
    again = reproduce(suite, mini)
    assert again.troubles == []
    assert again.sheets == first.sheets


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.pop("1"),
        lambda told: told["1"].update(best_epoch=99),
        lambda told: told["1"].update(validation=[True, True]),
        lambda told: told["1"].update(validation=[10**400] * 2),
    ],
)
def test_a_history_that_lacks_a_seed_is_made_again(done, change):
    job, folder, first = done
    told = folder.read_json("train.json")
    change(told)
    (folder.path / "train.json").write_text(json.dumps(told))
    assert not healed(job, first).reused


@pytest.mark.parametrize("value", [True, None, "5.0", [], 10**400])
def test_scores_that_are_no_numbers_are_computed_again_from_the_features(done, value, monkeypatch):
    job, folder, first = done
    monkeypatch.setattr(stage, "train", lambda *_: pytest.fail("trained again"))
    scores = folder.read_json("scores.json")
    scores[Head("SpAR").key]["1"]["rmse"] = value
    (folder.path / "scores.json").write_text(json.dumps(scores))
    assert healed(job, first).reused


@pytest.mark.parametrize("value", [True, 10**400])
def test_times_that_are_no_numbers_are_taken_again(done, value):
    job, folder, first = done
    folder.write_json("timing.json", {"train": value, "features": 1.0})
    assert not healed(job, first).reused


def test_folders_that_others_keep_in_the_folder_of_a_run_stay(done):
    job, folder, first = done
    (folder.path / ".ipynb_checkpoints").mkdir()
    (folder.path / ".ipynb_checkpoints" / "spec-checkpoint.json").write_text("{}")
    (folder.path / ".scores-cut-off.json").write_text("{")
    assert healed(job, first).reused
    assert (folder.path / ".ipynb_checkpoints" / "spec-checkpoint.json").exists()
    assert not (folder.path / ".scores-cut-off.json").exists()


RECORD = '{"task":"a","method":"m","seed":%s,"metric":"r","value":%s}'


@pytest.mark.parametrize(
    "line",
    ["[" * 5000, '{"a":' * 5000, RECORD % (1, "9" * 400), RECORD % ("9" * 400, 1), RECORD % (1, "true")],
    ids=["brackets", "braces", "long value", "long seed", "true"],
)
def test_a_line_that_cannot_be_a_record_is_refused_by_its_number(tmp_path, line):
    path = tmp_path / "r.jsonl"
    append_records(path, [Record("t", "m", 0, "rmse", 1.0)])
    path.write_text(path.read_text() + line + "\n")
    before = path.read_bytes()
    with pytest.raises(InputError, match="line 2: expected a record") as refused:
        read_records(path)
    assert len(str(refused.value)) < 500
    with pytest.raises(InputError, match="line 2"):
        append_records(path, [Record("t", "m", 1, "rmse", 1.0)])
    assert path.read_bytes() == before


def test_more_seeds_than_memory_is_made_for_are_refused():
    assert Options(seeds=1000).seeds == 1000
    with pytest.raises(InputError, match=r"--seeds must be at most 1000; the paper has 10. Got 1001\."):
        Options(seeds=1001)

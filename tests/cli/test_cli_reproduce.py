"""``spar reproduce``: what it lists, what it refuses, and where it writes."""

import pytest

from pyspar.bench.suite import suite_names
from pyspar.errors import MissingDataError


def test_without_a_name_the_suites_are_listed_with_whether_their_data_is_here(spar):
    shown = spar("reproduce")
    assert shown.exit_code == 0
    for name in suite_names():
        assert name in shown.stdout
    assert "ready" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tabluar"], "did you mean 'tabular'"),
        (["table1", "nothing-like-it"], "There are: alpha, chair-angles"),
        (["tabular", "--jobs", "0"], "--jobs must be at least 1. Got 0."),
        (["tabular", "--device", "gpu"], "'gpu' is not one of 'cpu', 'cuda'"),
        (["tabular", "--seeds", "-3"], "--seeds must be at least 1. Got -3."),
    ],
)
def test_what_cannot_be_begun_is_refused_before_anything_is_written(spar, tmp_path, arguments, said):
    shown = spar("reproduce", *arguments, "--out", tmp_path / "out")
    assert shown.exit_code == 2
    assert said in shown.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_one_clear_message(spar, tmp_path):
    (tmp_path / "file").write_text("")
    shown = spar("reproduce", "alpha", "--mini", "--out", tmp_path / "file")
    assert shown.exit_code == 2
    assert "expected to be able to write" in shown.stderr
    assert "Traceback" not in shown.output


def test_a_corrupt_line_is_named_and_nothing_is_lost(spar, tmp_path):
    pytest.importorskip("torch")
    records = tmp_path / "alpha" / "records.jsonl"
    records.parent.mkdir()
    records.write_text('{"task": "skillcraft", "method": "E\n')
    shown = spar("reproduce", "alpha", "--mini", "--out", tmp_path)
    assert shown.exit_code == 2
    assert "records.jsonl, line 1: expected a record" in shown.stderr
    assert records.read_text() == '{"task": "skillcraft", "method": "E\n'
    assert not (tmp_path / "runs").exists()


def test_a_full_disk_stops_with_one_message_and_keeps_what_was_done(spar, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from pyspar.bench import stage

    train = stage.train

    def full(spec, *rest):
        if spec.task == "communities-and-crime":
            raise OSError(28, "No space left on device")
        return train(spec, *rest)

    monkeypatch.setattr(stage, "train", full)
    shown = spar("reproduce", "alpha", "--mini", "--out", tmp_path)
    assert shown.exit_code == 2
    assert "No space left on device" in shown.stderr
    assert "run the same command again" in shown.stderr
    kept = (tmp_path / "alpha" / "records.jsonl").read_bytes()
    assert kept
    monkeypatch.setattr(stage, "train", train)
    assert spar("reproduce", "alpha", "--mini", "--out", tmp_path).exit_code == 0
    assert (tmp_path / "alpha" / "records.jsonl").read_bytes().startswith(kept)


def test_data_that_is_not_here_skips_its_rows_with_the_way_to_get_it(spar, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from pyspar.bench import stage

    def missing(spec, folder):
        raise MissingDataError(f"The data set {spec.task!r} was not found. Get it with: a shovel")

    monkeypatch.setattr(stage, "run_data", missing)
    shown = spar("reproduce", "povertymap", "--out", tmp_path, "--seeds", "1")
    assert shown.exit_code == 1
    assert (
        shown.stdout.count("povertymap: skipped. The data set 'povertymap' was not found. Get it with: a shovel") == 1
    )
    assert "a shovel" in (tmp_path / "povertymap" / "table.md").read_text()


def test_tables_are_printed_and_the_files_named(spar, tmp_path):
    pytest.importorskip("torch")
    shown = spar("reproduce", "alpha", "--mini", "--out", tmp_path)
    assert shown.exit_code == 0
    assert "ERM + SpAR" in shown.stdout
    assert f"wrote {tmp_path / 'alpha' / 'table.md'}" in shown.stdout

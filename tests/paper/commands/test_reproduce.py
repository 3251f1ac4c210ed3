"""``spar reproduce``: the list of suites, errors, and written files."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from pyspar.errors import MissingDataError
from pyspar.paper.experiments.suite import list_suite_names


def test_without_a_name_the_suites_and_their_states_are_listed(spar):
    result = spar("reproduce")
    assert result.exit_code == 0
    for name in list_suite_names():
        assert name in result.stdout
    assert "ready" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["tabluar"], ["'tabluar'", "'tabular'"]),
        (["all", "tabluar"], ["'tabluar'", "'tabular'"]),
        (["table1", "nothing-like-it"], ["'nothing-like-it'", "alpha, chair-angles"]),
        (["tabular", "--jobs", "0"], ["--jobs", "got 0"]),
        (["tabular", "--device", "gpu"], ["'gpu'", "'cpu', 'cuda'"]),
        (["tabular", "--seeds", "-3"], ["--seeds", "got -3"]),
        (["tabular", "--data", "/nowhere/at/all"], ["/nowhere/at/all"]),
    ],
)
def test_wrong_arguments_are_errors_before_anything_is_written(spar, tmp_path, arguments, parts):
    result = spar("reproduce", *arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    for part in parts:
        assert part in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_one_error_and_records_are_kept(spar, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from pyspar.paper.runs import run as run_module
    from pyspar.paper.runs.records import read_records

    train = run_module.train_network

    def fill_disk(spec, *rest, **options):
        if spec.task == "communities-and-crime":
            raise OSError(28, "No space left on device")
        return train(spec, *rest, **options)

    monkeypatch.setattr(run_module, "train_network", fill_disk)
    result = spar("reproduce", "alpha", "--mini", "--jobs", "1", "--out", tmp_path)
    assert result.exit_code == 2
    assert "no space left on device" in result.stderr
    kept = read_records(tmp_path / "alpha" / "records.jsonl")
    assert kept
    monkeypatch.setattr(run_module, "train_network", train)
    assert spar("reproduce", "alpha", "--mini", "--jobs", "1", "--out", tmp_path).exit_code == 0
    assert read_records(tmp_path / "alpha" / "records.jsonl")[: len(kept)] == kept


@pytest.mark.skipif(sys.platform == "win32", reason="needs groups of processes")
def test_ctrl_c_ends_the_command_with_a_message_and_it_can_be_continued(tmp_path):
    pytest.importorskip("torch")
    words = ["reproduce", "tabular", "--mini", "--jobs", "1", "--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "pyspar", *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("out/runs/*/done.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "same command" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    subprocess.run(command, check=True, capture_output=True)


def test_missing_data_skips_its_rows_and_the_table_contains_the_instructions(spar, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from pyspar.paper.runs import run as run_module

    def raise_missing(spec, folder):
        raise MissingDataError(f"The data set {spec.task!r} was not found. Get it with: a shovel")

    monkeypatch.setattr(run_module, "load_run_data", raise_missing)
    result = spar("reproduce", "povertymap", "--out", tmp_path, "--seeds", "1", "--jobs", "1")
    assert result.exit_code == 1
    assert result.stdout.count("a shovel") == 1  # once for both methods
    assert "povertymap: skipped." in result.stdout
    assert "povertymap needs povertymap; how to get it: spar data where povertymap" in result.stderr.splitlines()[0]
    assert "a shovel" in (tmp_path / "povertymap" / "table.md").read_text()


def test_a_changed_data_file_skips_its_rows_only_and_shows_its_checksum(spar, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from pyspar.paper.data import load
    from pyspar.paper.runs import run as run_module

    load_run_data = run_module.load_run_data

    def load_or_generate(spec, folder):
        return load(spec.task, folder=folder) if spec.task == "skillcraft" else load_run_data(spec, folder)

    monkeypatch.setattr(run_module, "load_run_data", load_or_generate)
    (tmp_path / "SkillCraft1_Dataset.csv").write_text("GameID,LeagueIndex\n1,1\n")
    result = spar("reproduce", "alpha", "--mini", "--jobs", "1", "--out", tmp_path / "out", "--data", tmp_path)
    assert result.exit_code == 1
    assert "skillcraft: skipped." in result.stdout
    assert "9201edfe" in result.stdout
    text = (tmp_path / "out" / "alpha" / "table.md").read_text()
    assert "9201edfe" in text
    assert "**communities-and-crime**" in text


def test_seeds_limit_the_draws_of_a_synthetic_suite(spar, tmp_path):
    from pyspar.paper.runs.records import read_records

    result = spar("reproduce", "table1", "--seeds", "2", "--out", tmp_path)
    assert result.exit_code == 0
    records = read_records(tmp_path / "table1" / "records.jsonl")
    assert {r.seed for r in records} == {123, 124}
    assert len(records) == 5 * 3 * 2
    assert "--seeds 2" in result.stderr


def test_messages_and_progress_lines_are_those_of_the_golden_file(spar, tmp_path, golden):
    pytest.importorskip("torch")
    (tmp_path / "damaged" / "alpha").mkdir(parents=True)
    (tmp_path / "damaged" / "alpha" / "records.jsonl").write_text("not a record\n")
    commands = [
        "tabluar",
        "nothing-like-it",
        "tabular --jobs 0",
        "tabular --seeds 1001",
        "alpha --mini --out OUT/damaged",
        "alpha --mini --jobs 1 --out OUT/out",  # progress, because stderr is not a terminal
        "alpha --mini --jobs 1 --out OUT/out",  # reuse
    ]
    parts = []
    for command in commands:
        result = spar("reproduce", *command.replace("OUT", str(tmp_path)).split())
        parts.append(f"$ spar reproduce {command}\n{result.stderr}exit code {result.exit_code}\n")
    golden("reproduce", "\n".join(parts).replace(str(tmp_path), "OUT"))


def test_without_torch_the_runs_are_skipped_and_the_extra_is_named(spar, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("pyspar.nn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    result = spar("reproduce", "alpha", "--mini", "--jobs", "1", "--out", tmp_path)
    assert result.exit_code == 1
    assert "pip install 'pyspar[torch]'" in " ".join(result.stdout.split())


def test_check_exits_with_one_for_a_stale_record_and_with_zero_without(spar, tmp_path):
    from pathlib import Path

    from pyspar.paper.runs.records import read_records, write_records

    committed = Path(__file__).parents[3] / "results" / "rcf-mnist-pretrained" / "records.jsonl"
    file = tmp_path / "rcf-mnist-pretrained" / "records.jsonl"
    file.parent.mkdir()
    records = read_records(committed)
    write_records(file, records)
    result = spar("reproduce", "rcf-mnist-pretrained", "--check", "--results", tmp_path)
    assert result.exit_code == 0
    assert "every record is current" in result.stdout
    write_records(file, [replace(r, recipe=r.recipe - 1) for r in records])
    result = spar("reproduce", "rcf-mnist-pretrained", "--check", "--results", tmp_path)
    assert result.exit_code == 1
    assert "spar reproduce rcf-mnist-pretrained --device cuda" in result.stderr
    assert spar("reproduce", "--check", "--results", tmp_path / "nowhere").exit_code == 2

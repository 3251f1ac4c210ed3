"""Records are written and read without loss, and a file of records only grows."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyspar.errors import InputError
from pyspar.paper.experiments.suite import read_suite
from pyspar.paper.output.page import select_newest
from pyspar.paper.runs.records import Record, append_records, read_records, write_records

RESULTS = Path(__file__).parents[3] / "results"
ONE = Record("a", "m", 1, "rmse", 0.1 + 0.2)
TWO = Record("b", "n", 2, "rmse", 1e-300, at=0.999, run="abc", spec={"lr": 0.01}, versions={"numpy": "2"})


def test_records_are_read_as_they_were_written(tmp_path):
    write_records(tmp_path / "r.jsonl", [ONE, TWO])
    assert read_records(tmp_path / "r.jsonl") == [ONE, TWO]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_value_that_is_not_finite_is_null_in_the_file_and_read_as_nan(tmp_path, value):
    write_records(tmp_path / "r.jsonl", [Record("a", "m", 1, "r", float(value))])
    (record,) = read_records(tmp_path / "r.jsonl")
    assert record.value != record.value
    assert '"value": null' in (tmp_path / "r.jsonl").read_text()


FIELDS = '"origin":0,"task":"a","method":"m","seed":1,"metric":"r","value":1'
LINE = '{"origin":0,"task":"a","method":"m","seed":%s,"metric":"r","value":%s}'


@pytest.mark.parametrize(
    "line",
    [
        *("not json", "[]", "", '{"task": "a"}', '{"task":"a","method":"m","seed":1,"metric":"r","v":1}'),
        *(f"{{{FIELDS},{more}}}" for more in ('"at":"x"', '"at":true', '"run":3', '"spec":[]', '"versions":"2"')),
        pytest.param("[" * 5000, id="brackets"),
        pytest.param('{"a":' * 5000, id="braces"),
        pytest.param(LINE % (1, "9" * 400), id="long value"),
        pytest.param(LINE % ("9" * 400, 1), id="long seed"),
        pytest.param(LINE % (1, "true"), id="true"),
    ],
)
def test_an_error_names_the_invalid_line_and_leaves_the_file_unchanged(tmp_path, line):
    path = tmp_path / "r.jsonl"
    write_records(path, [ONE])
    path.write_text(path.read_text() + line + "\n")
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"r\.jsonl, line 3:") as error:
        read_records(path)
    assert len(str(error.value)) < 500
    with pytest.raises(InputError, match=r"r\.jsonl, line 3:"):
        append_records(path, [TWO])
    assert path.read_bytes() == before


def test_a_file_of_records_only_grows_and_contains_each_number_once(tmp_path):
    path = tmp_path / "r.jsonl"
    append_records(path, [ONE])
    before = path.read_bytes()
    append_records(path, [ONE, TWO, TWO])
    assert path.read_bytes().startswith(before)
    assert read_records(path) == [ONE, TWO]


def test_a_full_disk_does_not_change_the_file(tmp_path, monkeypatch):
    path = tmp_path / "r.jsonl"
    append_records(path, [ONE])
    before = path.read_bytes()

    def fill_disk(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fill_disk)
    with pytest.raises(OSError, match="No space left"):
        append_records(path, [TWO])
    assert path.read_bytes() == before


APPEND = """
import sys
from pathlib import Path
from pyspar.paper.runs.records import Record, append_records
path, start = Path(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for i in range(start, start + 40):
    append_records(path, [Record("t", "m", i, "rmse", float(i))])
"""


@pytest.mark.skipif(os.name == "nt", reason="needs flock")
def test_two_processes_that_append_the_same_records_write_each_once(tmp_path):
    path = tmp_path / "r.jsonl"
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    commands = [[sys.executable, "-c", APPEND, str(path), str(start)] for start in (0, 20)]
    processes = [subprocess.Popen(command, **options) for command in commands]
    for process in processes:
        process.stdout.readline()
    for process in processes:  # both are ready, so that they write at the same time
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(line["value"] for line in lines if "value" in line) == list(range(60))


def test_the_first_version_of_a_rule_is_not_written(tmp_path):
    path = tmp_path / "r.jsonl"
    old, new = Record("t", "m", 1, "rmse", 1.0), Record("t", "m", 1, "rmse", 2.0, recipe=2)
    append_records(path, [old])
    assert "recipe" not in path.read_text()
    append_records(path, [new])
    assert read_records(path) == [old, new]
    assert select_newest(read_records(path), read_suite("tabular")) == [new]


@pytest.mark.skipif(not RESULTS.is_dir(), reason="the records are in the repository only")
def test_committed_records_are_current_and_written_unchanged(tmp_path):
    files = sorted(RESULTS.glob("*/records.jsonl"))
    assert files
    for file in files:
        records = read_records(file)
        write_records(tmp_path / "r.jsonl", records)
        assert (tmp_path / "r.jsonl").read_text() == file.read_text()
        assert select_newest(records, read_suite(file.parent.name)) == records

"""The fault injection with a few trials each, and its ability to detect failures."""

import errno
import json
import os
import resource
import signal
import time

import pytest

pytest.importorskip("benchmarks.faults", reason="the benchmarks are not part of an installed package")
pytest.importorskip("pyarrow", reason="needs: pip install 'pyspar[cli]'")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

from benchmarks.faults import __main__ as command  # noqa: E402
from benchmarks.faults import clocks, commands, damage, disks, formats, kills, signals  # noqa: E402
from benchmarks.faults.trials import COPY_FAULT, Row, map_in_children, run, run_command  # noqa: E402

from pyspar.errors import InputError  # noqa: E402

FORMATS = formats.list_formats()
BY_NAME = {entry.name: entry for entry in commands.COMMANDS}


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_damaged_files_are_refused_or_read_correctly(form):
    for row in damage.damage_format(form, 12):
        assert (row.trials, row.lost) == (12, 0), row
        assert (form.has_checksum and "another" in row.outcome) is False


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spar adapt -o .csv --save", "spar predict -o .csv", "pyspar.save of a model"])
def test_a_killed_command_leaves_old_or_new_files(name):
    row = kills.kill_command(BY_NAME[name], 4)
    assert (row.trials, row.lost) == (4, 0), row


def test_two_writers_never_show_a_part_of_a_file():
    assert disks.write_twice(4).lost == 0


def test_a_clock_that_goes_backwards_changes_nothing():
    assert clocks.replace_files((BY_NAME["spar adapt -o .npy"],), 1).lost == 0


def test_a_stopped_watch_ends_in_time():
    assert signals.stop_watch(1).lost == 0


def test_a_rename_before_its_fsync_is_detected(monkeypatch):
    monkeypatch.setattr(disks, "LONG_COMMANDS", ())
    monkeypatch.setattr(disks, "COMMANDS", (BY_NAME["pyspar.save of Moments"],))
    row = disks.check_order()
    assert (row.trials, row.lost) == (1, 0)
    monkeypatch.setattr("pyspar.io.atomic._Draft.sync", lambda self: None)
    assert disks.check_order().lost > 0


@pytest.mark.slow
def test_a_command_that_writes_in_place_is_detected(monkeypatch):
    def write_in_place(self):
        self.temporary = self.path
        self.path.write_bytes(b"")
        time.sleep(0.2)
        self._handle = os.open(self.path, os.O_RDWR)
        return self

    monkeypatch.setattr("pyspar.io.atomic._Draft.__enter__", write_in_place)
    monkeypatch.setattr("pyspar.io.atomic._Draft.__exit__", lambda self, *error: None)
    assert kills.kill_command(BY_NAME["spar adapt -o .npy"], 6).lost > 0


def test_raw_errors_and_undetected_changes_are_counted():
    def read(path):
        size = path.stat().st_size
        if size % 3 == 0:
            raise KeyError("raw")
        if size % 3 == 2 and size < 3002:
            raise InputError("refused")
        return size

    form = formats.Format("made up", ".bin", lambda path: path.write_bytes(bytes(3002)), read, True)
    truncated, flipped = damage.damage_format(form, 30)
    assert "KeyError" in truncated.outcome
    assert "another valid content" in truncated.outcome
    assert truncated.lost == 30 - int(truncated.outcome.split(" refused")[0])
    assert (flipped.lost, flipped.outcome) == (0, "30 read correctly")


def test_crashes_and_hangs_are_results():
    def end(number):
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 3:
            time.sleep(60)
        return "fine"

    assert list(map_in_children(end, 5, limit=0.5)) == ["fine", "crash", "fine", "hang", "fine"]


def test_the_page_has_the_stored_counts(tmp_path):
    records = command.read_records()
    assert set(records) == set(command.GROUPS)
    rows = [row for group in records.values() for row in group]
    assert [row["fault"] for row in rows if row["lost"]] == [COPY_FAULT]
    assert json.dumps(records).count("/tmp/") == 0
    assert command.format_table(records) in command.PAGE.read_text(encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{command.BEGIN}\nold\n{command.END}\nafter\n")
    command.write_page(page, {"kills": rows[:1]})
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old\n" not in text.partition(command.END)[0].partition(command.BEGIN)[2][:6]
    assert rows[0]["where"] in text


def test_an_interrupted_group_keeps_its_measured_rows_and_those_that_it_did_not_reach(tmp_path, monkeypatch):
    def measure(scale):
        yield Row("fault", "here", 5, 0, "new")
        if scale < 1:
            raise KeyboardInterrupt

    old = {"kills": [], "disks": [{"fault": "fault", "where": w, "outcome": "old"} for w in ("here", "there")]}
    (tmp_path / "faults.json").write_text(json.dumps(old))
    monkeypatch.setattr(command, "RECORDS", tmp_path / "faults.json")
    monkeypatch.setitem(command.GROUPS, "disks", measure)
    with pytest.raises(KeyboardInterrupt):
        command.run_group("disks", 0.5)
    assert [row["outcome"] for row in command.read_records()["disks"]] == ["new", "old"]
    command.run_group("disks", 1)
    assert [row["outcome"] for row in command.read_records()["disks"]] == ["new"]
    assert command.read_records()["kills"] == []


@pytest.mark.parametrize("suffix", ["npy", "csv", "parquet"])
def test_a_file_that_cannot_grow_is_reported_with_the_reason_of_the_system(tmp_path, suffix):
    commands.write_inputs(tmp_path)
    output = tmp_path / f"p.{suffix}"

    def adapt():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # the system refuses larger files, as on a full disk
        return run_command("adapt", tmp_path / "old.csv", tmp_path / "target.csv", "--label", "y", "-o", output)

    end = run(adapt, tmp_path)
    assert end.code == 2
    assert f"p.{suffix}: {os.strerror(errno.EFBIG).lower()}" in end.text
    assert not list(tmp_path.glob("*p.*"))

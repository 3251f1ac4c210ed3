"""The fault injection with a few trials, and its ability to detect failures."""

import os
from pathlib import Path

import pytest

pytest.importorskip("benchmarks.faults", reason="the benchmarks are not part of an installed package")
pytest.importorskip("pyarrow", reason="needs: pip install 'pyspar[cli]'")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

from benchmarks import faults  # noqa: E402

BY_NAME = {command.name: command for command in faults.COMMANDS}
TESTS = {"kills": faults.kill, "signals": faults.stop, "disks": faults.fill_disk, "writers": faults.write_twice}


@pytest.mark.parametrize("fault", TESTS)
@pytest.mark.parametrize("name", ["pyspar.save, Moments", "spar adapt"])
def test_a_command_leaves_old_or_new_files(fault, name, tmp_path):
    lost, counts = TESTS[fault](faults.Prepared(BY_NAME[name], tmp_path), 4)
    assert lost == 0, counts


def test_a_damaged_file_is_refused():
    for row in faults.damage(6):
        assert row.lost == 0, row


def test_a_writer_without_a_temporary_file_is_detected(tmp_path, monkeypatch):
    def write_in_place(folder: Path, table):
        (folder / "s.npz").write_bytes(b"")
        faults.time.sleep(0.05)
        faults.pyspar.save(faults.pyspar.Moments.of(table[faults.NUMBERS], table["y"]), folder / "s.npz")

    command = faults.Command("in place", faults.call(write_in_place), ("s.npz",))
    lost, _ = faults.kill(faults.Prepared(command, tmp_path), 8)
    assert lost > 0

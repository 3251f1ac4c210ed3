"""Atomic writes: a file is replaced completely or not at all."""

import errno
import os
import subprocess
import sys

import pytest

from pyspar.errors import InputError
from pyspar.io.atomic import whole_file, whole_files


def test_a_failed_write_leaves_only_the_old_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def write():
        with whole_file(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_new_file_appears_at_the_end_with_default_permissions(tmp_path):
    path = tmp_path / "a.parquet"
    with whole_file(path) as temporary:
        assert temporary.suffix == ".parquet"
        assert not path.exists()
        temporary.write_text("new")
    plain = tmp_path / "plain"
    plain.write_text("")
    assert path.read_text() == "new"
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "secret.csv"
    path.write_text("old")
    path.chmod(0o600)
    with whole_file(path) as temporary:
        temporary.write_text("new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    with whole_file(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_missing_folder_is_an_error_that_names_the_path(tmp_path):
    def write():
        with whole_file(tmp_path / "nowhere" / "a.csv"):
            pass

    with pytest.raises(InputError, match=r"nowhere/a\.csv"):
        write()


WRITE_AND_DIE = """
import os, signal, sys
from pyspar.io.atomic import whole_file, whole_files
with whole_file(sys.argv[1]) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_write_removes_what_a_killed_process_left(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    for _ in range(2):
        subprocess.run([sys.executable, "-c", WRITE_AND_DIE, str(path)], check=False)
    (tmp_path / ".a.csv").write_text("a hidden file of the user")
    (tmp_path / ".a-notes.csv").write_text("another one")
    assert len(os.listdir(tmp_path)) == 4  # the second process removed what the first one left
    assert path.read_text() == "old"
    with whole_file(path) as temporary:
        temporary.write_text("new")
    assert sorted(os.listdir(tmp_path)) == [".a-notes.csv", ".a.csv", "a.csv"]


def test_two_writers_do_not_remove_each_others_files(tmp_path):
    path = tmp_path / "a.csv"
    with whole_file(path) as first:
        first.write_text("first")
        with whole_file(path) as second:
            second.write_text("second")
            assert first.exists()
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_the_content_is_on_the_disk_before_the_rename_and_the_name_after_it(tmp_path, monkeypatch):
    events = []
    sync, replace = os.fsync, os.replace

    def record_sync(handle):
        events.append(os.path.basename(os.readlink(f"/proc/self/fd/{handle}")))
        sync(handle)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append("rename"), replace(a, b)))
    with whole_files([tmp_path / "a.csv", tmp_path / "b.npz"]) as temporaries:
        for temporary in temporaries:
            temporary.write_text("new")
    assert events == [*(t.name for t in temporaries), "rename", tmp_path.name, "rename", tmp_path.name]


@pytest.mark.parametrize("code", [errno.EXDEV, errno.ESTALE, errno.EBUSY])
def test_a_rename_that_fails_leaves_the_old_file_and_names_it(tmp_path, monkeypatch, code):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match=os.strerror(code)) as raised, whole_file(path) as temporary:
        temporary.write_text("new")
    assert raised.value.filename == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_rename_whose_answer_was_lost_is_a_success(tmp_path, monkeypatch):
    path, replace = tmp_path / "a.csv", os.replace

    def rename_and_fail(a, b):
        replace(a, b)
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(a))

    monkeypatch.setattr(os, "replace", rename_and_fail)
    with whole_file(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


def test_an_error_at_the_second_of_two_files_lists_the_first(tmp_path, monkeypatch):
    replace = os.replace

    def fail_for_b(a, b):
        if b.name == "b.csv":
            raise OSError(errno.EBUSY, "Device or resource busy")
        replace(a, b)

    monkeypatch.setattr(os, "replace", fail_for_b)

    def write():
        with whole_files([tmp_path / "a.csv", tmp_path / "b.csv"]) as temporaries:
            for temporary in temporaries:
                temporary.write_text("new")

    with pytest.raises(InputError, match=r"b\.csv: device or resource busy; .*a\.csv was written"):
        write()
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_disk_error_that_is_reported_late_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def fail(_):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="quota") as raised, whole_file(path) as temporary:
        temporary.write_text("new")
    assert (raised.value.filename, path.read_text()) == (str(path), "old")
    assert os.listdir(tmp_path) == ["a.csv"]


def test_the_umask_of_the_process_is_not_touched(tmp_path, monkeypatch):
    masks = []
    monkeypatch.setattr(os, "umask", masks.append)  # other threads would create files with this mask
    with whole_file(tmp_path / "a.csv") as temporary:
        temporary.write_text("new")
    assert masks == []
    assert (tmp_path / "a.csv").read_text() == "new"


def test_a_file_system_without_locks_is_written_and_nothing_removed(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("pyspar.io.atomic.fcntl.flock", fail)
    left = tmp_path / ".a.pyspar-0123.csv"
    left.write_text("perhaps in use on another machine")
    with whole_file(tmp_path / "a.csv") as temporary:
        temporary.write_text("new")
    assert left.exists()
    assert (tmp_path / "a.csv").read_text() == "new"

"""Atomic writes: a file is replaced completely or not at all."""

import errno
import os
import subprocess
import sys

import pytest

from pyspar.errors import InputError
from pyspar.persist import write_atomically


def test_a_failed_write_leaves_only_the_old_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def write():
        with write_atomically(path) as (temporary,):
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_new_file_appears_at_the_end_with_default_permissions(tmp_path):
    path = tmp_path / "a.parquet"
    with write_atomically(path) as (temporary,):
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
    with write_atomically(path) as (temporary,):
        temporary.write_text("new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    with write_atomically(link) as (temporary,):
        temporary.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_missing_folder_is_an_error_that_names_the_path(tmp_path):
    def write():
        with write_atomically(tmp_path / "nowhere" / "a.csv"):
            pass

    with pytest.raises(InputError, match=r"nowhere/a\.csv"):
        write()


WRITE_AND_DIE = """
import os, signal, sys
from pyspar.persist import write_atomically
with write_atomically(sys.argv[1]) as (temporary,):
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_two_writers_do_not_remove_each_others_files(tmp_path):
    path = tmp_path / "a.csv"
    with write_atomically(path) as (first,):
        first.write_text("first")
        with write_atomically(path) as (second,):
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
    with write_atomically(tmp_path / "a.csv", tmp_path / "b.npz") as temporaries:
        for temporary in temporaries:
            temporary.write_text("new")
    assert events == [*(t.name for t in temporaries), "rename", tmp_path.name, "rename", tmp_path.name]


@pytest.mark.parametrize(
    ("call", "code"),
    [("replace", errno.EXDEV), ("replace", errno.ESTALE), ("replace", errno.EBUSY), ("fsync", errno.EDQUOT)],
)
def test_a_rename_or_a_late_report_of_the_disk_that_fails_leaves_the_old_file_and_names_it(
    tmp_path, monkeypatch, call, code
):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match=os.strerror(code)) as raised, write_atomically(path) as (temporary,):
        temporary.write_text("new")
    assert raised.value.filename == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_killed_process_loses_nothing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    subprocess.run([sys.executable, "-c", WRITE_AND_DIE, str(path)], check=False)
    assert path.read_text() == "old"
    assert all(name == "a.csv" or name.startswith(".a.") for name in os.listdir(tmp_path))
    with write_atomically(path) as (temporary,):
        temporary.write_text("new")
    assert path.read_text() == "new"


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path):
    path = tmp_path / "a.csv"
    (tmp_path / ".a.note.csv").write_text("a file of the user")
    for _ in range(2):
        subprocess.run([sys.executable, "-c", WRITE_AND_DIE, str(path)], check=False)
    left = [name for name in os.listdir(tmp_path) if name != ".a.note.csv"]
    assert len(left) == 2
    os.utime(tmp_path / left[0], (1.7e9, 1.7e9))  # the other one may belong to a live process
    with write_atomically(path) as (temporary,):
        temporary.write_text("new")
    assert sorted(os.listdir(tmp_path)) == sorted([left[1], ".a.note.csv", "a.csv"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_folder_a_pipe_or_a_device_is_refused_and_not_replaced(tmp_path):
    pipe, link, folder = tmp_path / "pipe", tmp_path / "a.csv", tmp_path / "b.csv"
    os.mkfifo(pipe)
    link.symlink_to(pipe)  # a link to /dev/null would replace the device itself
    folder.mkdir()
    before = sorted(os.listdir(tmp_path))
    for path in (link, folder):

        def write(path=path):
            with write_atomically(tmp_path / "c.csv", path) as temporaries:
                temporaries[1].write_text("new")

        with pytest.raises(InputError, match=rf"{path.name}.*not a file"):
            write()
        assert sorted(os.listdir(tmp_path)) == before
    assert pipe.is_fifo()

"""Atomic writes: a file is replaced completely or not at all."""

import os

import pytest

from pyspar.errors import InputError
from pyspar.io.atomic import whole_file


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

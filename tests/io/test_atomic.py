"""Files are written whole or not at all."""

import os

import pytest

from pyspar.errors import InputError
from pyspar.io.atomic import whole_file


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
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


def test_a_file_appears_at_the_end_with_its_suffix_and_ordinary_permissions(tmp_path):
    path = tmp_path / "a.parquet"
    with whole_file(path) as temporary:
        assert temporary.suffix == ".parquet"
        assert not path.exists()
        temporary.write_text("new")
    plain = tmp_path / "plain"
    plain.write_text("")
    assert path.read_text() == "new"
    assert path.stat().st_mode == plain.stat().st_mode


def test_permissions_of_a_replaced_file_are_kept(tmp_path):
    path = tmp_path / "secret.csv"
    path.write_text("old")
    path.chmod(0o600)
    with whole_file(path) as temporary:
        temporary.write_text("new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    with whole_file(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_missing_folder_is_named_as_it_was_asked_for(tmp_path):
    def write():
        with whole_file(tmp_path / "nowhere" / "a.csv"):
            pass

    with pytest.raises(InputError, match=r"nowhere/a\.csv"):
        write()

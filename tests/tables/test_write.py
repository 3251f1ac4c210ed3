"""Outputs are checked before anything is read."""

from __future__ import annotations

import os

import pytest

from pyspar.errors import InputError
from pyspar.tables.write import check_path


def test_an_output_in_a_read_only_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match=r"--output '.*p\.csv': .*read-only"):
        check_path(tmp_path / "p.csv", "--output", (".csv",), ())


def test_an_output_that_is_a_folder_is_refused(tmp_path):
    (tmp_path / "p.csv").mkdir()
    with pytest.raises(InputError, match=r"--output '.*p\.csv' is a folder"):
        check_path(tmp_path / "p.csv", "--output", (".csv",), ())

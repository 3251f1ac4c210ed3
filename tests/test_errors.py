"""What a missing package is called: by its own name, however deep it was asked for."""

import subprocess
import sys

import pytest

from pyspar.errors import MissingExtraError, need


def test_a_module_of_ours_that_lacks_a_package_names_the_package_and_not_us():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from pyspar.errors import MissingExtraError, need\n"
        "try:\n    need('pyspar.nn', 'torch')\nexcept MissingExtraError as error:\n    sys.stdout.write(str(error))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "This needs the package 'torch'. Install it with: pip install 'pyspar[torch]'", done.stderr


def test_what_a_package_itself_lacks_is_named(tmp_path, monkeypatch):
    (tmp_path / "half_a_package.py").write_text("import the_other_half.inner\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match=r"needs the package 'the_other_half'.*pyspar\[cli\]"):
        need("half_a_package", "cli")


def test_a_package_that_is_here_and_broken_is_called_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("from json import no_such_name\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match="needs the package 'broken_package'"):
        need("broken_package", "cli")

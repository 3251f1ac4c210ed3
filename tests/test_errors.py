"""``need`` names the package that is missing and the pip command that installs it, and ``warn`` the caller's line."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import pyspar
from pyspar.errors import MissingExtraError, SparWarning, need


def test_a_module_of_pyspar_without_its_package_names_the_package():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from pyspar.errors import MissingExtraError, need\n"
        "try:\n    need('pyspar.nn', 'torch')\nexcept MissingExtraError as error:\n    sys.stdout.write(str(error))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "'torch'" in done.stdout, done.stderr
    assert "pip install 'pyspar[torch]'" in done.stdout


@pytest.mark.parametrize(("code", "name"), [("import other_half.inner", "other_half"), ("from json import no", "half")])
def test_a_package_that_cannot_be_imported_is_named(tmp_path, monkeypatch, code, name):
    (tmp_path / "half.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match=rf"'{name}'.*pyspar\[cli\]"):
        need("half", "cli")


def test_an_error_that_a_stop_caused_is_reported_as_a_stop(capsys):
    typer = pytest.importorskip("typer")
    from pyspar.__main__ import Stopped
    from pyspar.paper.commands import handle_errors

    for cause, code in ((Stopped(), 130), (ValueError("bad"), 1)):
        with pytest.raises(typer.Exit) as ended, handle_errors(debug=False):
            raise ImportError("a library changed the exception") from cause
        assert ended.value.exit_code == code
    assert "internal error" in capsys.readouterr().err


@pytest.mark.parametrize("call", ["adapt", "inspect", "expected_rmse", "fit"])
def test_a_warning_names_the_file_of_the_caller(call):
    rng = np.random.default_rng(0)
    X, Z, y = rng.normal(size=(60, 2)), rng.normal(size=(20, 2)), rng.normal(size=60)
    model = pyspar.BayesSpARRegressor().fit(X, y)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    kinds = make_pipeline(encoder, pyspar.BayesSpARRegressor()).fit(np.repeat([["a"], ["b"]], 30, axis=0), y)
    calls = {
        "adapt": lambda: model.adapt(Z, sample_weight=np.full(20, 1e-3)),
        "inspect": lambda: pyspar.inspect(model, Z, sample_weight=np.full(20, 1e-3)),
        "expected_rmse": lambda: pyspar.expected_rmse(kinds, [["c"]] * 20),
        "fit": lambda: make_pipeline(pyspar.SpARRegressor()).fit(X[:3], y[:3]),  # through scikit-learn
    }
    with pytest.warns(SparWarning) as warned:
        calls[call]()
    assert {warning.filename for warning in warned} == {__file__}

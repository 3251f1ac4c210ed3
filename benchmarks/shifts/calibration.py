"""Compare the forecast of the target RMSE, made without target labels, with the RMSE that was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.shifts.records import Key, Record


@dataclass(frozen=True)
class Calibration:
    """Forecasts of one method.

    ``covered`` is the share of tasks whose RMSE lies in the recorded 95 % interval (``interval95_if_linear``). ``low``,
    ``median`` and ``high`` are the 2.5 %, 50 % and 97.5 % quantiles of actual / expected RMSE.
    """

    tasks: int
    covered: float
    low: float
    median: float
    high: float

    @classmethod
    def of(cls, records: dict[Key, Record], method: str, part: str | None = None) -> Calibration:
        own = [r for (_, m), r in records.items() if m == method and part in (None, r["part"]) and r["rmse"]]
        forecasts = [r for r in own if r["expected"] and r.get("low") is not None and r.get("high") is not None]
        if not forecasts:
            return cls(0, *(math.nan,) * 4)
        covered = float(np.mean([r["low"] <= r["rmse"] <= r["high"] for r in forecasts]))
        low, median, high = np.quantile([r["rmse"] / r["expected"] for r in forecasts], (0.025, 0.5, 0.975))
        return cls(len(forecasts), covered, float(low), float(median), float(high))

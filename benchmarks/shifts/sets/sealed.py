"""The sealed part: sets chosen by a written rule before anything was run on them.

A table was chosen only if it satisfies all of the following conditions. No model was fitted to a table during the
choice, so no result influenced it:

- It contains real measurements, not a simulation, and is part of an installable package.
- It has 120 rows or more with a response, at least 80 of them in the source and 30 in the target.
- The response is the quantity for which the table was collected. If that is a category, the response is a measurement
  that the others do not determine. It has 25 values or more in the source.
- It has 3 to 800 columns without names, row numbers and columns that are known only after the response.
- A column of the table separates source and target: a date, a place, a category, a dose, an age or a size. If it has no
  natural break, its upper third is the target.
- It contains other measurements, or other units, than any table of the other parts, and a study is used once.

Themes and sizes are mixed. Amounts that span orders of magnitude are replaced by their logarithms. The modules
``sealed_*`` contain the sets by theme. The part has been opened since then; ``last`` was collected after it.
"""

from __future__ import annotations

from functools import partial

from benchmarks.shifts.sets.shift import shift

sealed = partial(shift, part="sealed")

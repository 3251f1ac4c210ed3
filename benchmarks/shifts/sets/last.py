"""The last part: sets chosen by the rule of ``sealed``, after that part had been opened, to be run once.

The rule is the same, word for word, and none of these tables was used before: see ``sealed``. Nothing was fitted to any
table while choosing, and no error was computed, so that no result can have spoken for or against one. The modules
``last_*`` hold the sets by theme. They were run once the method was fixed, and nothing was chosen after that.
"""

from __future__ import annotations

from functools import partial

from benchmarks.shifts.sets.shift import shift

last = partial(shift, part="last")

"""The last part: sets chosen by the rule of ``sealed``, after that part had been opened.

None of these tables is used in another part. No model was fitted to a table during the choice. The modules ``last_*``
contain the sets by theme. The part was run after an earlier method was fixed. It was looked at again when the present
method was proposed, so it is not an untouched test; see ``docs/evidence.md``.
"""

from __future__ import annotations

from functools import partial

from benchmarks.shifts.sets.shift import shift

last = partial(shift, part="last")

"""The data sets, and the tasks: each set with each feature map."""

from benchmarks.shifts.sets import (  # noqa: F401 - importing registers the sets
    by_group,
    by_range,
    by_time,
    check_health,
    check_nature,
    check_people,
    check_trade,
    final_health,
    final_nature,
    final_people,
    final_series,
    final_trade,
    fresh_by_group,
    fresh_by_range,
    fresh_by_time,
    last_health,
    last_nature,
    last_people,
    last_society,
    last_work,
    new_health,
    new_nature,
    new_people,
    new_society,
    new_work,
    newest_series,
    newest_trade,
    reserve_nature,
    reserve_people,
    reserve_series,
    reserve_trade,
    sealed_health,
    sealed_nature,
    sealed_play,
    sealed_society,
    sealed_work,
)
from benchmarks.shifts.sets.shift import REGISTER, Shift
from benchmarks.shifts.sets.tasks import CHECK, EVIDENCE_PARTS, FINAL, NEW, NEWEST, RESERVE, Task, tasks

__all__ = ["CHECK", "EVIDENCE_PARTS", "FINAL", "NEW", "NEWEST", "REGISTER", "RESERVE", "Shift", "Task", "tasks"]

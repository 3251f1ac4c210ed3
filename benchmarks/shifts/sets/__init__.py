"""The data sets, and the tasks: each set with each feature map."""

from benchmarks.shifts.sets import (  # noqa: F401 - importing registers the sets
    blind_health,
    blind_nature,
    blind_people,
    blind_series,
    blind_trade,
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
    unseen_nature,
    unseen_people,
)
from benchmarks.shifts.sets.shift import PARTS, REGISTER, Shift
from benchmarks.shifts.sets.tasks import Task, tasks

EVIDENCE_PARTS = ("develop",)  # temporary, with the next three lines, until nothing imports the former parts
NEW = NEWEST = FINAL = "develop"  # temporary
RESERVE = CHECK = "validate"  # temporary
BLIND = UNSEEN = "test"  # temporary

__all__ = ["PARTS", "REGISTER", "Shift", "Task", "tasks"]

"""Run methods on tasks in worker processes of one thread each, and write a record for each pair."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from benchmarks.measure import ONE_THREAD
from benchmarks.shifts.methods import METHODS, ONLY_ON
from benchmarks.shifts.peers import PEERS, import_library
from benchmarks.shifts.records import Record, append, read, tidy
from benchmarks.shifts.sets import REGISTER, Task


def measure(task: Task, method: str) -> Record:
    """Fit one method on one task. The labels of the target are used only for the score."""
    X, y, Z, yz = task.arrays()
    record: Record = {
        "task": task.name, "set": task.shift.name, "map": task.map, "part": task.part, "method": method,
        "n": len(X), "m": len(Z), "d": X.shape[1], "spread": _digits(float(y.std())),
        "rmse": None, "expected": None, "noise": None, "low": None, "high": None, "seconds": None, "note": "",
    }  # fmt: skip
    try:
        import_library(method)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = {**METHODS, **PEERS}[method](X, y, Z)
            record["seconds"] = round(time.perf_counter() - start, 4)
            forecast = answer.forecast() if answer.forecast else (None,) * 4
            rmse = float(np.sqrt(np.mean((answer.predictions - yz) ** 2)))
    except Exception as error:  # noqa: BLE001 - the failure of a method is recorded with its reason
        record["note"] = f"{type(error).__name__}: {str(error)[:100]}"
        return record
    record["note"] = "" if math.isfinite(rmse) else "predictions are not finite"
    record["rmse"] = _digits(rmse)
    record |= {name: _digits(value) for name, value in zip(("expected", "noise", "low", "high"), forecast, strict=True)}
    return record


def run(
    tasks: Sequence[Task],
    methods: Sequence[str],
    path: Path,
    *,
    jobs: int = 1,
    limit: float = 120.0,
    again: bool = False,
) -> int:
    """Make the records that are missing from ``path``, or all with ``again``; return their number."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    known = {} if again else read(path)
    pairs = [(t, m) for t in tasks for m in methods if t.map in ONLY_ON.get(m, (t.map,))]
    missing = [(t, m) for t, m in pairs if (t.name, m) not in known]
    for name in ONE_THREAD:
        os.environ[name] = "1"
    workers: SimpleQueue[_Worker] = SimpleQueue()
    for _ in range(jobs):
        workers.put(_Worker(methods))

    def run_one(task: Task, method: str) -> Record:
        worker = workers.get()
        try:
            return worker.run(task, method, limit)
        finally:
            workers.put(worker)

    columns = (TextColumn("{task.description:<45}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as bar, ThreadPoolExecutor(jobs) as pool:
        line = bar.add_task("", total=len(missing))
        for future in as_completed([pool.submit(run_one, *pair) for pair in missing]):
            record = future.result()
            append(path, record)
            bar.update(line, advance=1, description=f"{record['task']} {record['method']}")
    while not workers.empty():
        workers.get().stop()
    if missing:
        tidy(path)
    return len(missing)


class _Worker:
    """A process that runs one task after another. It is replaced if it exceeds the time limit or ends."""

    def __init__(self, methods: Sequence[str]) -> None:
        self._methods = list(methods)
        self._process: Any = None

    def run(self, task: Task, method: str, limit: float) -> Record:
        if self._process is None:
            spawn = multiprocessing.get_context("spawn")
            self._connection, worker_end = spawn.Pipe()
            self._process = spawn.Process(target=_serve, args=(worker_end, self._methods), daemon=True)
            self._process.start()
            worker_end.close()
            self._connection.recv()  # the worker is ready; the time limit starts now
        self._connection.send((task.shift.name, task.map, method))
        try:
            if self._connection.poll(limit):
                return self._connection.recv()
            note = f"stopped after {limit:g} s"
        except EOFError:
            note = "the process died"
        self.stop()
        return {
            "task": task.name, "set": task.shift.name, "map": task.map, "part": task.part, "method": method,
            "rmse": None, "expected": None, "noise": None, "low": None, "high": None, "seconds": None, "note": note,
        }  # fmt: skip

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def _serve(connection: Connection, methods: list[str]) -> None:
    """Run the tasks that arrive on a connection, and send their records back."""
    with contextlib.suppress(ImportError):  # the run of the method records the error
        for method in methods:
            import_library(method)
    connection.send("ready")
    while True:
        try:
            name, feature_map, method = connection.recv()
        except EOFError:
            return
        connection.send(measure(Task(REGISTER[name], feature_map), method))


def _digits(value: float | None) -> float | None:
    return float(f"{value:.8g}") if value is not None and math.isfinite(value) else None

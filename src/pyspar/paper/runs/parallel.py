"""Run several specs side by side, each in a process with one thread.

The numbers do not depend on how many runs are active, because every run uses one thread. Child processes end when their
parent is interrupted or dies.
"""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.context import SpawnProcess
from typing import Any

from pyspar.paper.runs.run import Outcome, Run, record_failure, run_one
from pyspar.terminal import Progress

_EXIT_SECONDS = 5.0  # between the end of a pipe and the exit of its process


def run_parallel(runs: list[Run], n: int, progress: Progress, *, title: str = "runs") -> list[Outcome]:
    """Do runs, at most ``n`` at a time, and return their outcomes in the same order.

    A run that another process has locked is postponed to the end and then waited for without a limit. If files cannot
    be written, the remaining runs are not started and have no outcome.
    """
    reporter = _Reporter(progress, title, len(runs))
    outcomes = _run_all(runs, n, reporter)
    busy = [run for run in runs if run.spec.key in outcomes and outcomes[run.spec.key].kind == "busy"]
    if busy and not any(outcome.kind == "storage" for outcome in outcomes.values()):
        for run in busy:
            progress.note(f"{run.spec.title}: waiting for another process; Ctrl-C cancels")
        outcomes |= _run_all([replace(run, lock_timeout=math.inf) for run in busy], n, reporter)
    reporter.close()
    return [outcomes[run.spec.key] for run in runs if run.spec.key in outcomes]


class _Reporter:
    """Reports the start, the epochs and the outcome of each run, and the number of finished runs."""

    def __init__(self, progress: Progress, title: str, total: int) -> None:
        self._progress = progress
        self._started: set[str] = set()
        self._finished = 0
        progress.start("runs", f"{title}, {total} run{'s' * (total != 1)}", total=total)

    def start(self, run: Run) -> None:
        if run.spec.key not in self._started:  # a postponed run is already shown
            self._started.add(run.spec.key)
            self._progress.start(run.spec.key, run.spec.title, unit="epochs")

    def advance(self, run: Run, done: int, total: int) -> None:
        self._progress.advance(run.spec.key, done, total=total)

    def finish(self, run: Run, outcome: Outcome) -> None:
        if outcome.kind == "busy":
            self._progress.note(f"{run.spec.title}: postponed, another process is doing this run")
            return
        self._progress.finish(run.spec.key, outcome.text)
        self._finished += 1
        self._progress.advance("runs", self._finished)

    def close(self) -> None:
        self._progress.finish("runs")


def _run_all(runs: list[Run], n: int, reporter: _Reporter) -> dict[str, Outcome]:
    """Return outcomes by the key of the run. Stop at the first storage error."""
    return _run_in_turn(runs, reporter) if n == 1 else _run_in_processes(runs, n, reporter)


def _run_in_turn(runs: list[Run], reporter: _Reporter) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for run in runs:
        reporter.start(run)
        with one_thread():
            outcome = run_one(run, partial(reporter.advance, run))
        reporter.finish(run, outcome)
        outcomes[run.spec.key] = outcome
        if outcome.kind == "storage":
            break
    return outcomes


def _run_in_processes(runs: list[Run], n: int, reporter: _Reporter) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    waiting = list(runs)
    workers: dict[Any, _Worker] = {}  # by the pipe from which their messages come
    try:
        while waiting or workers:
            while waiting and len(workers) < n:
                worker = _Worker.start(waiting.pop(0))
                workers[worker.pipe] = worker
                reporter.start(worker.run)
            for pipe in connection.wait(list(workers)):
                outcome = _receive(workers[pipe], reporter.advance)
                if outcome is not None:
                    worker = workers.pop(pipe)
                    worker.process.join()
                    outcomes[worker.run.spec.key] = outcome
                    reporter.finish(worker.run, outcome)
                    if outcome.kind == "storage":
                        waiting.clear()
    finally:
        for worker in workers.values():
            worker.process.terminate()
        for worker in workers.values():
            worker.process.join()
    return outcomes


@dataclass(frozen=True)
class _Worker:
    """A process that does one run. Its pipe yields ``(epoch, epochs)`` after each epoch, and the outcome at the end."""

    run: Run
    process: SpawnProcess
    pipe: Any

    @classmethod
    def start(cls, run: Run) -> _Worker:
        context = get_context("spawn")  # a forked child would share torch's threads with its parent
        pipe, child_pipe = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(run, child_pipe), daemon=True)
        with _blocked_interrupts():
            process.start()
        child_pipe.close()
        return cls(run, process, pipe)


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Block Ctrl-C in a child that is started inside: during its imports it would print a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # started by the first child otherwise, which would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # delivers a Ctrl-C that arrived in the meantime


def _receive(worker: _Worker, advance: Callable[[Run, int, int], None]) -> Outcome | None:
    """Read one message of a worker. Return its outcome, or None if it reported an epoch."""
    try:
        message = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join(_EXIT_SECONDS)
        if worker.process.is_alive():  # without a pipe it cannot report its outcome
            worker.process.terminate()
            worker.process.join()
        return record_failure(worker.run, "failed", f"the process died (exit code {worker.process.exitcode})")
    if isinstance(message, Outcome):
        return message
    advance(worker.run, *message)
    return None


def _work(run: Run, pipe: Any) -> None:
    # Ctrl-C reaches all processes of the group; only the parent reacts, and it ends its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with one_thread():
        pipe.send(run_one(run, lambda done, total: pipe.send((done, total))))
    pipe.close()


def _exit_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # finished work is in files


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch and the libraries below NumPy to one thread: small networks are faster, and sums are reproducible."""
    from threadpoolctl import threadpool_limits  # a dependency of scikit-learn

    with ExitStack() as stack:
        try:
            import torch
        except ImportError:  # the run reports the missing package
            pass
        else:
            stack.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
        stack.enter_context(threadpool_limits(1))
        yield

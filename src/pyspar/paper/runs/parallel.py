"""Several runs side by side: a process for each, one thread in each, told off when the parent is stopped or dies.

A run's numbers do not depend on how many are done at once: each has one thread, here and in a process of its own.
"""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol

from pyspar.paper.runs.run import Job, Outcome, carry_out, failed

_FAREWELL = 5.0  # seconds between closing a pipe and being gone


class Progress(Protocol):
    """Who is told how far things are."""

    def planned(self, runs: int) -> None:
        """So many runs are to come."""

    def started(self, key: str, title: str, step: str = "epoch") -> None:
        """A run begins; ``step`` is what it has many of, such as a draw."""

    def advanced(self, key: str, done: int, total: int) -> None:
        """A run has done so many of its steps."""

    def noted(self, key: str, text: str) -> None:
        """There is something to know of a run that is not over."""

    def ended(self, key: str, how: str) -> None:
        """A run is over; ``how`` is an ``Outcome`` in a word or a few."""


class Silent:
    """Tells nobody."""

    def planned(self, runs: int) -> None:
        pass

    def started(self, key: str, title: str, step: str = "epoch") -> None:
        pass

    def advanced(self, key: str, done: int, total: int) -> None:
        pass

    def noted(self, key: str, text: str) -> None:
        pass

    def ended(self, key: str, how: str) -> None:
        pass


def carry_out_all(jobs: list[Job], n: int, progress: Progress) -> list[Outcome]:
    """Do runs, at most ``n`` at a time, and return what came of each, in the order given.

    A run that another process is at is left for the end, and is then waited for, however long that takes.
    """
    progress.planned(len(jobs))
    do = _in_turn if n == 1 else partial(_side_by_side, n=n)
    found = do(jobs, _Told(progress))
    busy = [job for job in jobs if job.spec.key in found and found[job.spec.key].kind == "busy"]
    if busy and not any(outcome.kind == "storage" for outcome in found.values()):
        for job in busy:
            progress.noted(job.spec.key, f"{job.spec.title}: waiting for the other process; Ctrl-C stops that")
        found |= do([replace(job, patience=math.inf) for job in busy], _Told(progress, again=True))
    return [found[job.spec.key] for job in jobs if job.spec.key in found]


@dataclass(frozen=True)
class _Told:
    """Tells of each run when it begins and when it is over; of one that is busy, that it comes last."""

    progress: Progress
    again: bool = False

    def started(self, job: Job) -> None:
        if not self.again:
            self.progress.started(job.spec.key, job.spec.title)

    def ended(self, job: Job, outcome: Outcome) -> None:
        if outcome.kind == "busy":
            self.progress.noted(job.spec.key, f"{job.spec.title}: another process is at it, so it comes last")
        else:
            self.progress.ended(job.spec.key, outcome.word)


def _side_by_side(jobs: list[Job], told: _Told, *, n: int) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    waiting = list(jobs)
    working: dict[Any, _Worker] = {}
    try:
        while waiting or working:
            while waiting and len(working) < n:
                worker = _Worker.start(waiting.pop(0))
                working[worker.mail] = worker
                told.started(worker.job)
            for mail in connection.wait(list(working)):
                outcome = _read(working[mail], told.progress)
                if outcome is not None:
                    worker = working.pop(mail)
                    worker.process.join()
                    found[worker.job.spec.key] = outcome
                    told.ended(worker.job, outcome)
                    if outcome.kind == "storage":
                        waiting.clear()
    finally:
        for worker in working.values():
            worker.process.terminate()
        for worker in working.values():
            worker.process.join()
    return found


def _in_turn(jobs: list[Job], told: _Told) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for job in jobs:
        key = job.spec.key
        told.started(job)
        with one_thread():
            outcome = carry_out(job, partial(told.progress.advanced, key))
        told.ended(job, outcome)
        found[key] = outcome
        if outcome.kind == "storage":
            break
    return found


@dataclass(frozen=True)
class _Worker:
    job: Job
    process: SpawnProcess
    mail: Any

    @classmethod
    def start(cls, job: Job) -> _Worker:
        """Start a process for a job; it tells of its epochs, and last of its outcome, through a pipe of its own."""
        context = get_context("spawn")  # a forked child would share torch's threads with its parent
        mail, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(job, theirs), daemon=True)
        with _born_deaf():
            process.start()
        theirs.close()
        return cls(job, process, mail)


@contextmanager
def _born_deaf() -> Iterator[None]:
    """Keep Ctrl-C from a child that is started meanwhile: one that still imports would answer with a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which a first child would start, and that lets signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # here, one that came meanwhile is heard now


def _read(worker: _Worker, progress: Progress) -> Outcome | None:
    try:
        said = worker.mail.recv()
    except (EOFError, OSError):
        worker.process.join(_FAREWELL)
        if worker.process.is_alive():  # but nobody hears it any more
            worker.process.terminate()
            worker.process.join()
        return failed(worker.job, "failed", f"the process died (exit code {worker.process.exitcode})")
    if isinstance(said, Outcome):
        return said
    progress.advanced(worker.job.spec.key, *said)
    return None


def _work(job: Job, mail: Any) -> None:
    # Ctrl-C reaches the whole group of processes; the parent alone decides, and ends its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with one_thread():
        mail.send(carry_out(job, lambda epoch, epochs: mail.send((epoch, epochs))))
    mail.close()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # nobody is left to report to; what is done is in files


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch and what is under NumPy use one thread: small networks are faster, and sums come out alike."""
    undo: list[Callable[[], None]] = []
    try:
        import torch
    except ImportError:  # the run itself says what to install
        pass
    else:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        undo.append(lambda: torch.set_num_threads(before))
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    try:
        with threadpool_limits(1):
            yield
    finally:
        for step in undo:
            step()

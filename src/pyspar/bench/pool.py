"""Several runs side by side: a process for each, one thread in each, told off when the parent is stopped or dies.

A run's numbers do not depend on how many are done at once: each has one thread, here and in a process of its own.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol

from pyspar.bench.stage import Job, Outcome, carry_out, failed

_FAREWELL = 5.0  # seconds between closing a pipe and being gone


class Progress(Protocol):
    """Who is told how far things are."""

    def planned(self, runs: int) -> None:
        """So many runs are to come."""

    def started(self, key: str, title: str) -> None:
        """A run begins."""

    def advanced(self, key: str, done: int, total: int) -> None:
        """A run has done so many of its epochs."""

    def ended(self, key: str, kind: str) -> None:
        """A run is over; ``kind`` as of an ``Outcome``."""


class Silent:
    """Tells nobody."""

    def planned(self, runs: int) -> None:
        pass

    def started(self, key: str, title: str) -> None:
        pass

    def advanced(self, key: str, done: int, total: int) -> None:
        pass

    def ended(self, key: str, kind: str) -> None:
        pass


def carry_out_all(jobs: list[Job], n: int, progress: Progress) -> list[Outcome]:
    """Do runs, at most ``n`` at a time, and return what came of each, in the order given."""
    progress.planned(len(jobs))
    if n == 1:
        return _in_turn(jobs, progress)
    found: dict[str, Outcome] = {}
    waiting = list(jobs)
    working: dict[Any, _Worker] = {}
    try:
        while waiting or working:
            while waiting and len(working) < n:
                worker = _Worker.start(waiting.pop(0))
                working[worker.mail] = worker
                progress.started(worker.job.spec.key, worker.job.spec.title)
            for mail in connection.wait(list(working)):
                outcome = _read(working[mail], progress)
                if outcome is not None:
                    worker = working.pop(mail)
                    worker.process.join()
                    found[worker.job.spec.key] = outcome
                    progress.ended(worker.job.spec.key, outcome.kind)
                    if outcome.kind == "storage":
                        waiting.clear()
    finally:
        for worker in working.values():
            worker.process.terminate()
        for worker in working.values():
            worker.process.join()
    return [found[job.spec.key] for job in jobs if job.spec.key in found]


def _in_turn(jobs: list[Job], progress: Progress) -> list[Outcome]:
    found = []
    for job in jobs:
        key = job.spec.key
        progress.started(key, job.spec.title)
        with one_thread():
            outcome = carry_out(job, partial(progress.advanced, key))
        progress.ended(key, outcome.kind)
        found.append(outcome)
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
        process.start()
        theirs.close()
        return cls(job, process, mail)


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

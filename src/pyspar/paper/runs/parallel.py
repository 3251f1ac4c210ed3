"""Run several specs side by side, each in a process with one thread.

The numbers do not depend on how many runs are active, because every run uses one thread. Child processes end when their
parent is interrupted or dies.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.context import SpawnProcess
from typing import Any

from pyspar.paper.runs.run import Outcome, Run, record_failure, run_one
from pyspar.terminal import Progress

_EXIT_SECONDS = 5.0  # between the end of a pipe and the exit of its process


def run_parallel(runs: list[Run], n: int, progress: Progress, *, title: str = "runs") -> list[Outcome]:
    """Do runs, at most ``n`` at a time, and return their outcomes in the same order.

    The function waits for runs that another process executes. If files cannot be written, the other runs are stopped
    and have no outcome.
    """
    outcomes: dict[str, Outcome] = {}
    progress.start("runs", f"{title}, {len(runs)} run{'s' * (len(runs) != 1)}", total=len(runs))
    with closing(_run_in_turn(runs, progress) if n == 1 else _run_in_processes(runs, n, progress)) as finished:
        for run, outcome in finished:
            outcomes[run.spec.key] = outcome
            progress.finish(run.spec.key, outcome.text)
            progress.advance("runs", len(outcomes))
            if outcome.kind == "storage":
                break
    progress.finish("runs")
    return [outcomes[run.spec.key] for run in runs if run.spec.key in outcomes]


def _run_in_turn(runs: list[Run], progress: Progress) -> Generator[tuple[Run, Outcome], None, None]:
    for run in runs:
        progress.start(run.spec.key, run.spec.title, unit="epochs")
        with one_thread():
            outcome = run_one(run, partial(_show, progress, run))
        yield run, outcome


def _run_in_processes(runs: list[Run], n: int, progress: Progress) -> Generator[tuple[Run, Outcome], None, None]:
    waiting = list(runs)
    workers: dict[Any, _Worker] = {}  # by the pipe from which their messages come
    try:
        while waiting or workers:
            while waiting and len(workers) < n:
                worker = _Worker.start(waiting.pop(0))
                workers[worker.pipe] = worker
                progress.start(worker.run.spec.key, worker.run.spec.title, unit="epochs")
            for pipe in connection.wait(list(workers)):
                message = _receive(workers[pipe])
                if isinstance(message, Outcome):
                    worker = workers.pop(pipe)
                    worker.process.join()
                    yield worker.run, message
                else:
                    _show(progress, workers[pipe].run, message)
    finally:
        for worker in workers.values():
            worker.process.terminate()
        for worker in workers.values():
            worker.process.join()


def _show(progress: Progress, run: Run, message: tuple[int, int] | str) -> None:
    if isinstance(message, str):
        progress.note(message)
    else:
        progress.advance(run.spec.key, message[0], total=message[1])


@dataclass(frozen=True)
class _Worker:
    """A process that does one run. Its pipe yields ``(epoch, epochs)``, messages, and the outcome at the end."""

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


def _receive(worker: _Worker) -> Any:
    """Return one message of a worker. If it died, return the outcome of a failed run."""
    try:
        return worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join(_EXIT_SECONDS)
        if worker.process.is_alive():  # without a pipe it cannot report its outcome
            worker.process.terminate()
            worker.process.join()
        return record_failure(worker.run, "failed", f"the process died (exit code {worker.process.exitcode})")


def _work(run: Run, pipe: Any) -> None:
    # Ctrl-C reaches all processes of the group; only the parent reacts, and it ends its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with one_thread():
        pipe.send(run_one(run, pipe.send))
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

"""Kill the workers and the scheduler of a Dask cluster while it fits a model."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.faults.trials import Row
from pyspar import SpARRegressor

BLOCKS = 20


def fail_clusters(trials: int) -> Iterator[Row]:
    """Yield the rows of killed workers and of killed and restarted schedulers."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    yield kill_workers(trials)
    yield kill_schedulers(trials)


def kill_workers(trials: int) -> Row:
    """Kill one of two workers at a random moment of each fit; the weights must be those without a cluster."""
    import distributed

    rng = random.Random(0)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    lost = 0
    for _ in range(trials):  # a new cluster each time: Dask does not always restart a worker that is killed again
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            client.wait_for_workers(2, timeout=120)
            victim = next(iter(cluster.workers.values())).pid
            with _call_later(rng.uniform(0.0, 2.0), lambda pid=victim: os.kill(pid, signal.SIGKILL)):
                coef = SpARRegressor().fit(*make_rows(sleep=0.2)).coef_
            lost += not np.allclose(coef, _expected(), rtol=1e-9, atol=0)
    return Row("killed Dask worker", "fit", trials, lost, "the weights equal those without a cluster")


def kill_schedulers(trials: int) -> Row:
    """Kill the scheduler at a random moment of a fit, then start another one and fit again."""
    import distributed

    rng = random.Random(0)
    lost, message = 0, ""
    for number in range(trials):
        port = 18_800 + number
        model = SpARRegressor()
        with _start_cluster(port) as scheduler, distributed.Client(f"127.0.0.1:{port}", timeout=20) as client:
            client.wait_for_workers(1, timeout=120)
            with _call_later(rng.uniform(0.0, 3.0), scheduler.kill):  # the fit takes at least four seconds
                try:
                    model.fit(*make_rows(sleep=0.2))
                except ConnectionError as error:
                    message = str(error)
                else:
                    lost += 1
        lost += hasattr(model, "coef_")
        with _start_cluster(port), distributed.Client(f"127.0.0.1:{port}", timeout=20):
            lost += not np.allclose(model.fit(*make_rows(sleep=0.0)).coef_, _expected(), rtol=1e-9, atol=0)
    outcome = "the estimator is unchanged; the fit on the restarted cluster gives the same weights"
    return Row("killed and restarted Dask scheduler", "fit", trials, lost, outcome, message)


def make_rows(*, sleep: float) -> tuple[Any, Any]:
    """Return features and labels as Dask arrays whose blocks take a while to read."""
    import dask
    import dask.array as da

    def read(X: Any) -> Any:  # inside a function, so that it is sent to the workers by value
        import time

        time.sleep(sleep)
        return X

    X, y = _data()
    blocks = [da.from_delayed(dask.delayed(read)(part), part.shape, float) for part in np.array_split(X, BLOCKS)]
    return da.concatenate(blocks), da.from_array(y, chunks=len(y) // BLOCKS)


def _data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50 * BLOCKS, 4))
    return X, X @ [1.0, -2.0, 0.5, 3.0] + rng.normal(size=len(X))


def _expected() -> Any:
    return SpARRegressor().fit(*_data()).coef_


@contextmanager
def _start_cluster(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a scheduler and one worker as processes of their own; yield the scheduler."""
    start = [sys.executable, "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = [*start, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    worker = [*start, "distributed.cli.dask_worker", f"127.0.0.1:{port}", "--nthreads", "1", "--no-dashboard"]
    processes = [subprocess.Popen(command, **quiet) for command in (scheduler, [*worker, "--no-nanny"])]  # type: ignore[call-overload]
    try:
        yield processes[0]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def _call_later(seconds: float, action: Callable[[], object]) -> Iterator[None]:
    timer = threading.Timer(seconds, action)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()

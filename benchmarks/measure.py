"""Measure times of tasks in one run, run tasks in processes, describe the machine, and format tables.

Times on a shared machine are noisy, so only ratios are compared: the tasks take turns, and the medians of at least five
turns are divided.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def median_seconds(tasks: Mapping[str, Callable[[], Any]], turns: int = 5) -> dict[str, float]:
    """Return the median seconds of each task. The tasks take turns, and the first turn is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(turns + 1):
        for name, task in tasks.items():
            rest()
            start = time.perf_counter()
            task()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def rest() -> None:
    """Wait until the BLAS threads of the last task are idle; numpy and scipy have separate libraries."""
    time.sleep(0.15)


def run_in_processes(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], *, jobs: int, description: str
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each task with the result of ``function(*task)``, in the order in which they end.

    Each process has one thread. A task that raises is reported with its name, and the others continue. An interrupt
    ends the processes.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # before the libraries are loaded in the processes
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _ignore_interrupts)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns) as bar:
            line = bar.add_task(description, total=len(tasks))
            futures = {pool.submit(function, *task): task for task in tasks}
            for future in as_completed(futures):
                task, error = futures.pop(future), future.exception()
                bar.advance(line)
                if isinstance(error, BrokenProcessPool):
                    raise SystemExit("a process ended without a result, perhaps for lack of memory; use fewer --jobs")
                if error is None:
                    yield task, future.result()
                else:
                    reason = f"{type(error).__name__}: {error}"
                    bar.console.print(f"failed: {' '.join(map(str, task))}: {reason}", markup=False, highlight=False)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()


def _ignore_interrupts() -> None:
    """Leave an interrupt of the process group to the main process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def shifted_pair(n: int, d: int, seed: int = 0, dtype: Any = np.float64) -> tuple[Any, Any, Any]:
    """Return X, y, Z of a regression whose target has other scales than its source."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    Z = (rng.standard_normal((n, d)) * np.linspace(0.2, 5.0, d)).astype(dtype)
    y = X @ rng.standard_normal(d).astype(dtype) + rng.standard_normal(n).astype(dtype)
    return X, y, Z


def machine() -> dict[str, Any]:
    """Return the processor and the versions with which the times are measured."""
    import scipy
    import sklearn
    from threadpoolctl import threadpool_info

    import pyspar

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "pyspar": pyspar.__version__,
        "blas": sorted({f"{p['internal_api']} {p['version']} x{p['num_threads']}" for p in threadpool_info()}),
    }


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table."""
    cells = [[_cell(v) for v in row] for row in rows]
    widths = [max(len(r[i]) for r in [list(header), *cells]) for i in range(len(header))]
    print(f"\n{title}")
    for line in (list(header), ["-" * w for w in widths], *cells):
        print("  ".join(v.rjust(w) if i else v.ljust(w) for i, (v, w) in enumerate(zip(line, widths, strict=True))))


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table of a page."""
    lines = [list(header), ["---"] * len(header), *([_cell(v) for v in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def wrap(text: str) -> str:
    """Wrap the paragraphs of a page at 120 characters. A paragraph that starts with a dash is an item of a list."""
    paragraphs = text.strip().split("\n\n")
    keep = {"break_long_words": False, "break_on_hyphens": False}
    lines = [fill(p, 120, subsequent_indent="  " if p.startswith("- ") else "", **keep) for p in paragraphs]
    return "\n\n".join(lines) + "\n"


def replace_section(page: Path, name: str, section: str) -> str:
    """Return the text of a page with a new section between ``<!-- name -->`` and ``<!-- end of name -->``."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest_of_page = page.read_text(encoding="utf-8").partition(start)
    _, found, after = rest_of_page.partition(end)
    if not found:
        raise SystemExit(f"{page} has no section between {start.strip()} and {end}")
    return "".join([before, start, section, end, after])


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        return platform.processor()
    return platform.processor()

"""Count the functions, files and changes of file of six common calls: ``python -m benchmarks.walks``."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import pyspar

ROOT = str(Path(pyspar.__file__).parent) + os.sep


@dataclass(frozen=True)
class Walk:
    """Counts of one call, and the files that it visited."""

    calls: int
    functions: int
    files: tuple[str, ...]
    switches: int
    depth: int


def trace(call: Callable[[], object]) -> Walk:
    """Run a call and record each function of pyspar that it enters."""
    visited: list[Any] = []
    switches = deepest = depth = 0
    last = ""

    def profile(frame: Any, event: str, _: Any) -> None:
        nonlocal switches, deepest, depth, last
        code = frame.f_code
        if not code.co_filename.startswith(ROOT) or code.co_name == "<module>":
            return
        if event == "return":
            depth -= 1
        elif event == "call":
            visited.append(code)
            depth += 1
            deepest = max(deepest, depth)
            switches += code.co_filename != last
            last = code.co_filename

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    files = sorted({code.co_filename.removeprefix(ROOT) for code in visited})
    return Walk(len(visited), len(set(visited)), tuple(files), switches, deepest)


def walks(folder: Path) -> dict[str, Callable[[], object]]:
    """Return the calls to trace, on toy data."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(60, 4)), rng.normal(size=(40, 4)) * [1, 1, 1, 8]
    y = X @ np.arange(4.0) + rng.normal(size=60)
    header = "a,b,c,d"
    np.savetxt(folder / "s.csv", np.c_[X, y], delimiter=",", header=header + ",y", comments="")
    np.savetxt(folder / "t.csv", Z, delimiter=",", header=header, comments="")

    def fit_adapt_predict(name: str) -> Callable[[], object]:
        estimator = getattr(pyspar, name)
        return lambda: estimator().fit(X, y).adapt(Z).predict(Z)

    return {
        "SpARRegressor fit + adapt + predict": fit_adapt_predict("SpARRegressor"),
        "BayesSpARRegressor fit + adapt + predict": fit_adapt_predict("BayesSpARRegressor"),
        "spar adapt, CSV": lambda: _run_command(
            "adapt", str(folder / "s.csv"), str(folder / "t.csv"), "--label", "y", "--output", str(folder / "o.csv")
        ),
        "adapt_head, bayes": lambda: _adapt_head(X, y, Z, "bayes"),
        "adapt_head, spar": lambda: _adapt_head(X, y, Z, "spar"),
        "reproduce tabular, miniature": _reproduce,
    }


def _run_command(*arguments: str) -> None:
    from typer.testing import CliRunner

    from pyspar.cli.app import app

    result = CliRunner().invoke(app, list(arguments))
    if result.exit_code:
        raise RuntimeError(result.output)


def _adapt_head(X: Any, y: Any, Z: Any, method: str) -> None:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from pyspar.nn import adapt_head

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    X, y, Z = (torch.tensor(a, dtype=torch.float32) for a in (X, y, Z))
    loaders = DataLoader(TensorDataset(X, y[:, None]), 20), DataLoader(Z, 20)
    adapt_head(model, *loaders, method=method, labels_scale="ignore")  # the model is not trained


def _reproduce() -> None:
    from pyspar.paper.experiments.reproduce import reproduce
    from pyspar.paper.experiments.suite import read_suite
    from pyspar.paper.runs.run_suite import Options

    with tempfile.TemporaryDirectory() as folder:
        reproduce(read_suite("tabular"), Options(out=Path(folder), mini=True))


def main() -> None:
    """Print the table."""
    heads = " ".join(f"{head:>9s}" for head in ("calls", "functions", "files", "switches", "depth"))
    print(f"{'walk':40s} {heads}")
    with tempfile.TemporaryDirectory() as folder:
        for name, call in walks(Path(folder)).items():
            call()  # the first call is not counted because it imports modules
            walk = trace(call)
            numbers = walk.calls, walk.functions, len(walk.files), walk.switches, walk.depth
            print(f"{name:40s} {' '.join(f'{n:9d}' for n in numbers)}")
            if "--files" in sys.argv:
                print("    " + " ".join(walk.files))


if __name__ == "__main__":
    main()

"""Speed as ratios: each case compares two tasks that take turns in one run. Run ``python -m benchmarks.speed``.

Times on a shared machine are noisy, so only medians of one run are divided. The results are written to
``benchmarks/results/speed.json``, and the table of ``docs/scale.md`` is written from them.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import (
    machine,
    markdown_table,
    median_seconds,
    print_table,
    replace_section,
    rest,
    shifted_pair,
    wrap,
)
from pyspar import BayesSpARRegressor, SpARRegressor, SparWarning, TargetCorrection

RESULTS = Path(__file__).parent / "results" / "speed.json"
PAGE = Path(__file__).parents[1] / "docs" / "scale.md"

Tasks = dict[str, Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """Two tasks, ``ours`` and ``reference``, and the largest ratio of their times that is promised, if any."""

    name: str
    ours: str
    reference: str
    make: Callable[[], Tasks]
    limit: float | None = None


@dataclass(frozen=True)
class Result:
    """Median seconds of both tasks."""

    case: str
    ours: str
    reference: str
    seconds: float
    reference_seconds: float
    limit: float | None

    @property
    def ratio(self) -> float:
        return self.seconds / self.reference_seconds


def fit_adapt(X: Any, y: Any, Z: Any, make: Any = SpARRegressor) -> Any:
    return make().fit(X, y).adapt(Z)


def floor() -> Tasks:
    """Two Gram products and two eigendecompositions, which every implementation needs."""
    X, y, Z = shifted_pair(30_000, 384)

    def decompose() -> None:
        np.linalg.eigh(X.T @ X)
        np.linalg.eigh(Z.T @ Z)

    return {"ours": lambda: fit_adapt(X, y, Z), "reference": decompose}


def float32() -> Tasks:
    """Products of float32 rows are computed in float64: in float32 they would lose weak directions."""
    X, y, Z = shifted_pair(30_000, 384)
    rows = [values.astype(np.float32) for values in (X, y, Z)]
    return {"ours": lambda: fit_adapt(*rows), "reference": lambda: fit_adapt(X, y, Z)}


def bayes() -> Tasks:
    X, y, Z = shifted_pair(30_000, 384)
    return {"ours": lambda: fit_adapt(X, y, Z, BayesSpARRegressor), "reference": lambda: fit_adapt(X, y, Z)}


def collinear() -> Tasks:
    X, y, Z = shifted_pair(30_000, 384)
    doubled_x, doubled_z = X.copy(), Z.copy()
    doubled_x[:, 1], doubled_z[:, 1] = X[:, 0] + X[:, 2], Z[:, 0] + Z[:, 2]
    return {"ours": lambda: fit_adapt(doubled_x, y, doubled_z), "reference": lambda: fit_adapt(X, y, Z)}


def wide() -> Tasks:
    X, y, Z = shifted_pair(200, 2048)

    def decompose() -> None:
        np.linalg.svd(X, full_matrices=False)
        np.linalg.svd(Z, full_matrices=False)

    return {"ours": lambda: fit_adapt(X, y, Z), "reference": decompose}


def sparse() -> Tasks:
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X, Z = (sp.random_array((n, 100_000), density=0.01, format="csr", rng=rng) for n in (500, 200))
    y = rng.normal(size=500)
    dense_x, dense_z = X.toarray(), Z.toarray()
    return {"ours": lambda: fit_adapt(X, y, Z), "reference": lambda: fit_adapt(dense_x, y, dense_z)}


def streaming() -> Tasks:
    X, y, _ = shifted_pair(400_000, 64, dtype=np.float32)

    def batches() -> Iterator[tuple[Any, Any]]:
        for start in range(0, len(X), 4096):
            yield X[start : start + 4096], y[start : start + 4096]

    return {"ours": lambda: SpARRegressor().fit(batches()), "reference": lambda: SpARRegressor().fit(X, y)}


def parquet() -> Tasks:
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    X, y, _ = shifted_pair(1_000_000, 64, dtype=np.float32)
    folder = tempfile.mkdtemp(prefix="pyspar-speed-")
    path = Path(folder) / "rows.parquet"
    names = [f"x{i}" for i in range(64)]
    pq.write_table(pa.table([*X.T, y], names=[*names, "y"]), path, row_group_size=131_072)

    def batches() -> Iterator[tuple[Any, Any]]:
        for batch in ds.dataset(path).to_batches():
            columns = [batch[name].to_numpy() for name in [*names, "y"]]
            yield np.column_stack(columns[:-1]), columns[-1]

    def read() -> None:
        for _ in batches():
            pass

    return {"ours": lambda: SpARRegressor().fit(batches()), "reference": read}


def dask() -> Tasks:
    import dask.array as da

    X, y, _ = shifted_pair(400_000, 64)
    blocks = da.from_array(X, chunks=(50_000, 64)), da.from_array(y, chunks=50_000)
    return {"ours": lambda: SpARRegressor().fit(*blocks), "reference": lambda: SpARRegressor().fit(X, y)}


def many_outputs() -> Tasks:
    X, _, Z = shifted_pair(1_000, 40)
    Y = X @ np.random.default_rng(0).normal(size=(40, 1_000))
    model = BayesSpARRegressor().fit(X, Y).adapt(Z)
    return {"ours": lambda: model.expected_rmse(Z), "reference": lambda: fit_adapt(X, Y, Z, BayesSpARRegressor)}


def imports() -> Tasks:
    def run(code: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    return {"ours": run("import pyspar"), "reference": run("import sklearn.linear_model")}


def correction() -> Tasks:
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, y, Z = shifted_pair(2_000, 30)
    labels = Z[:30] @ np.ones(30)
    model = HistGradientBoostingRegressor(random_state=0).fit(X, y)

    def correct() -> None:
        TargetCorrection(model).fit(Z, np.append(labels, np.full(len(Z) - 30, np.nan)))

    return {"ours": correct, "reference": lambda: HistGradientBoostingRegressor(random_state=0).fit(X, y)}


def partners() -> Tasks:
    from pyspar.paper.objectives.mixup import Partners

    rng = np.random.default_rng(0)
    y, rows = rng.normal(size=5_000), rng.permutation(5_000)

    def draw_from_all_pairs() -> None:
        sums = np.cumsum(np.exp(-0.5 * (np.subtract.outer(y, y) / 0.1) ** 2), axis=1)
        levels = rng.random(len(rows)) * sums[rows, -1]
        np.array([sums[i].searchsorted(v, side="right") for i, v in zip(rows.tolist(), levels, strict=True)])

    return {"ours": lambda: Partners(y, 0.1).draw(rows, rng), "reference": draw_from_all_pairs}


def head() -> Tasks:
    import torch
    from torch import nn

    from pyspar.nn import adapt_head

    X, y, Z = shifted_pair(20_000, 256, dtype=np.float32)
    model = nn.Linear(256, 1)
    rows, target = [(torch.tensor(X), torch.tensor(y)[:, None])], [torch.tensor(Z)]

    def adapt() -> None:
        adapt_head(model, rows, target, progress=False)

    return {"ours": adapt, "reference": lambda: fit_adapt(X, y, Z, BayesSpARRegressor)}


def align_network(kind: str) -> Tasks:
    """Align with 4,000 images, or train the same parameters with their labels. Random values suffice for the speed."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from benchmarks.align.networks import AngleNetwork
    from pyspar.nn import align

    torch.manual_seed(0)
    model, parts = AngleNetwork(kind).eval(), [(torch.rand(n, 1, 32, 32), torch.rand(n)) for n in (10_000, 4_000)]
    source, target = (DataLoader(TensorDataset(*part), batch_size=64, shuffle=True) for part in parts)

    def fine_tune() -> None:
        tuned = copy.deepcopy(model).requires_grad_(False)
        scales = [p for m in tuned.modules() if "Norm" in type(m).__name__ for p in m.parameters()]
        optimizer = torch.optim.Adam([p.requires_grad_() for p in scales])
        for _ in range(5):
            for rows, labels in target:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(tuned(rows), labels).backward()
                optimizer.step()

    return {"ours": lambda: align(model, source, target, force=True, progress=False), "reference": fine_tune}


def gpu() -> Tasks:
    import torch

    if not torch.cuda.is_available():
        raise ModuleNotFoundError("no GPU")
    X, Z = (torch.randn(1_000_000, 2048, device="cuda") for _ in range(2))
    y = X[:, :8].sum(dim=1) + torch.randn(1_000_000, device="cuda")

    def products() -> None:
        for rows in (X, Z):
            total = torch.zeros(2048, 2048, dtype=torch.float64, device="cuda")
            for part in rows.split(32_768):
                total.addmm_(part.double().T, part.double())
        torch.cuda.synchronize()

    def ours() -> None:
        fit_adapt(X, y, Z)
        torch.cuda.synchronize()

    return {"ours": ours, "reference": products}


TUNING = "five epochs of fine-tuning the same parameters"
CASES = (
    Case("floor", "SpAR, 30,000 x 384", "two Gram products and two eigendecompositions", floor, limit=1.6),
    Case("float32", "SpAR, the same rows in float32", "in float64", float32, limit=1.6),
    Case("bayes", "BayesSpAR, 30,000 x 384", "SpAR", bayes),
    Case("collinear", "SpAR, one collinear column", "SpAR without it", collinear, limit=2.0),
    Case("wide", "SpAR, 200 x 2048", "two singular value decompositions", wide, limit=3.0),
    Case("sparse", "SpAR, sparse 500 x 100,000", "the same rows, dense", sparse, limit=1.0),
    Case("streaming", "400,000 x 64 in batches of 4,096", "fit in memory", streaming, limit=4.0),
    Case("parquet", "a Parquet file of 1,000,000 x 64, streamed", "only reading it", parquet, limit=3.0),
    Case("dask", "Dask, 400,000 x 64 in 8 blocks", "fit in memory", dask),
    Case("outputs", "forecast of 1,000 outputs", "fit + adapt of the same", many_outputs, limit=3.0),
    Case("import", "import pyspar", "import sklearn.linear_model", imports, limit=0.5),
    Case("correction", "TargetCorrection with 30 labels", "one fit of gradient boosting", correction, limit=3.0),
    Case("head", "adapt_head, 20,000 x 256", "BayesSpAR on the same features", head),
    Case("align batch", "nn.align, BatchNorm", TUNING, partial(align_network, "batch"), 1.3),
    Case("align group", "nn.align, GroupNorm", TUNING, partial(align_network, "group"), 1.4),
    Case("partners", "partners of C-Mixup, 5,000 rows", "the matrix of all pairs", partners, limit=1.0),
    Case("gpu", "SpAR, 1,000,000 x 2048 float32 on a GPU", "two Gram products in float64", gpu),
)


def measure(case: Case, turns: int) -> Result | None:
    """Return the result of a case, or None if something that it needs is missing."""
    try:
        tasks = case.make()
    except ImportError as error:
        print(f"{case.name}: skipped, {error}")
        return None
    rest()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SparWarning)  # least squares fits few rows exactly
        seconds = median_seconds(tasks, turns)
    return Result(case.name, case.ours, case.reference, seconds["ours"], seconds["reference"], case.limit)


def read_results() -> list[Result]:
    """Return the stored results. A run of some cases replaces only theirs."""
    return [Result(**r) for r in json.loads(RESULTS.read_text())["results"]] if RESULTS.exists() else []


def table(results: list[Result]) -> tuple[list[str], list[list[Any]]]:
    header = ["ours", "compared with", "seconds", "ratio", "promised"]
    rows: list[list[Any]] = [[r.ours, r.reference, r.seconds, r.ratio, r.limit or "-"] for r in results]
    return header, rows


def write_table(results: list[Result], where: dict[str, Any]) -> str:
    """Return the page on large data with the table of these results."""
    versions = f"{where['processor']}, {where['cores']} cores; numpy {where['numpy']}, {', '.join(where['blas'])}"
    return replace_section(PAGE, "speed", f"{markdown_table(*table(results))}\n{wrap(f'*{versions}.*')}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"of {', '.join(c.name for c in CASES)} (default: all)"
    )
    parser.add_argument("--turns", type=int, default=7, help="number of turns (default 7)")
    parser.add_argument("--no-page", action="store_true", help="print only")
    args = parser.parse_args(arguments)
    if unknown := set(args.cases) - {case.name for case in CASES}:
        parser.error(f"unknown cases {sorted(unknown)}; choose from {[case.name for case in CASES]}")
    results, where = {r.case: r for r in read_results()}, machine()
    measured = []
    for case in CASES:
        if (not args.cases or case.name in args.cases) and (result := measure(case, args.turns)):
            measured.append(result)
            print(f"{case.name}: {result.ratio:.2f}", flush=True)
            results[case.name] = result
            if not args.no_page:
                ordered = [results[c.name] for c in CASES if c.name in results]
                found = {"machine": where, "turns": args.turns, "results": [asdict(r) for r in ordered]}
                RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
                PAGE.write_text(write_table(ordered, where), encoding="utf-8")
    print_table("fit + adapt, if nothing else is said", *table(measured))
    if slow := [r.case for r in measured if r.limit is not None and r.ratio > r.limit]:
        raise SystemExit(f"slower than promised: {', '.join(slow)}")


if __name__ == "__main__":
    main()

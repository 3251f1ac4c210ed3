"""Compare three ways to draw the partners of C-Mixup, and measure what drawing adds to an epoch of training.

All three draw from the same distribution. *Published*: one kernel density per sample gives a row of an N x N matrix;
each draw calls ``choice`` (Yao et al. 2022). *All pairs*: array operations compute the same matrix as cumulative sums,
and each draw is a bisection. *Ours*: sorted labels and rings. Preparation is done once per run, drawing once per epoch.

Everything runs on one thread, and processor time is measured, which does not depend on other processes. Only a GPU is
measured by elapsed time.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.neighbors import KernelDensity

from benchmarks.measure import print_table, save_record
from pyspar.paper.data.task import Part, ShiftTask
from pyspar.paper.networks.mlp import MLP
from pyspar.paper.networks.resnet import resnet
from pyspar.paper.objectives.base import ERM, Batch
from pyspar.paper.objectives.mixup import CMixup
from pyspar.paper.objectives.partners import Partners, draw_within_batches
from pyspar.paper.output.figures import SOURCE, TARGET, new_figure, save_figure
from pyspar.paper.training.config import TrainConfig
from pyspar.paper.training.train import train

FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "cmixup.png"
SIZES = (500, 1000, 2000, 5000)
LARGER = (10_000, 20_000, 40_000)
BANDWIDTH = 0.1
N = 40_000


class Published:
    def __init__(self, y: Any) -> None:
        column = y[:, None]
        self.rates = np.empty((len(y), len(y)))
        for i in range(len(y)):
            density = KernelDensity(kernel="gaussian", bandwidth=BANDWIDTH).fit(column[i : i + 1])
            rate = np.exp(density.score_samples(column))
            self.rates[i] = rate / rate.sum()

    def draw(self, rows: Any, rng: np.random.Generator) -> Any:
        candidates = np.arange(len(self.rates))
        return np.array([rng.choice(candidates, p=self.rates[i]) for i in rows])


class AllPairs:
    def __init__(self, y: Any) -> None:
        weights = np.subtract.outer(y, y)
        weights *= weights
        weights *= -0.5 / BANDWIDTH**2
        np.exp(weights, out=weights)
        self.sums = np.cumsum(weights, axis=1, out=weights)

    def draw(self, rows: Any, rng: np.random.Generator) -> Any:
        levels = rng.random(len(rows)) * self.sums[rows, -1]
        return np.array([self.sums[i].searchsorted(v, side="right") for i, v in zip(rows.tolist(), levels)])


def median_seconds(tasks: dict[str, Any], turns: int, clock: Any = time.process_time) -> dict[str, float]:
    """Return the median seconds of each task. They take turns; the first is not counted unless it is the only one."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(turns + (turns > 1)):
        for name, task in tasks.items():
            start = clock()
            task()
            seconds[name].append(clock() - start)
    return {name: statistics.median(times[turns > 1 :]) for name, times in seconds.items()}


def ours(y: Any) -> Partners:
    return Partners.of(y, BANDWIDTH)


WAYS: dict[str, Any] = {"ours": ours, "all pairs": AllPairs, "published": Published}


def curves(turns: int) -> list[dict[str, Any]]:
    """Return the seconds and bytes of each way for each number of rows."""
    results = []
    for n in (*SIZES, *LARGER):
        rng = np.random.default_rng(n)
        y, rows = rng.normal(size=n), rng.permutation(n)
        ways = {way: make for way, make in WAYS.items() if n in SIZES or way == "ours"}
        makers = {way: partial(make, y) for way, make in ways.items()}
        slow = {way: makers.pop(way) for way in ("published",) if way in makers}  # slow enough to be measured once
        prepare = median_seconds(makers, turns) | median_seconds(slow, 1)
        draw = {}
        for way, make in ways.items():  # not in turns, because a matrix of 200 MB would empty the caches of the others
            draw |= median_seconds({way: partial(make(y).draw, rows, rng)}, turns)
        results += [
            {"way": way, "rows": n, "prepare": prepare[way], "draw": draw[way], "bytes": peak(make, y, rows, rng)}
            for way, make in ways.items()
        ]
    return results


def peak(make: Any, y: Any, rows: Any, rng: np.random.Generator) -> int:
    """Return the peak bytes of preparing and drawing one epoch; for the published way, the bytes of its matrix."""
    if make is Published:
        return 8 * len(y) ** 2
    tracemalloc.start()
    try:
        make(y).draw(rows, rng)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def epochs(turns: int) -> dict[str, float]:
    """Return the median seconds of an epoch of the paper's MLP at 40,000 rows, for ERM and for C-Mixup."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N + 200, 17)).astype(np.float32)
    y = X @ rng.normal(size=17) + rng.normal(size=N + 200)
    y /= y.std()
    parts = [Part(X[rows], y[rows], np.zeros(len(y[rows]), dtype=np.int64)) for rows in (slice(N), slice(N, None))]
    task = ShiftTask("made up", parts[0], parts[1], parts[1], "none", "a random number generator", "none")
    torch.manual_seed(0)
    model, state, order = MLP(17), Partners.of(y[:N], BANDWIDTH), rng.permutation(N).reshape(-1, 32)

    def run_training(objective: Any, count: int) -> None:
        config = TrainConfig(epochs=count, batch_size=32, lr=1e-3, device="cpu", shuffle="epoch")
        train(model, objective, task, config, 0, progress=False)

    results = median_seconds(
        {
            "ERM, 1": lambda: run_training(ERM(), 1),
            "C-Mixup, 1": lambda: run_training(CMixup(BANDWIDTH), 1),
            "ERM, 4": lambda: run_training(ERM(), 4),
            "C-Mixup, 4": lambda: run_training(CMixup(BANDWIDTH), 4),
            "prepare": lambda: Partners.of(y[:N], BANDWIDTH),
            "draw": lambda: state.draw(order, rng),
        },
        turns,
    )
    # Work that is done once per run, such as moving the data, cancels. The difference is three epochs.
    erm, cmixup = ((results[f"{name}, 4"] - results[f"{name}, 1"]) / 3 for name in ("ERM", "C-Mixup"))
    parts_of_it = {name: results[name] for name in ("prepare", "draw")}
    return {"ERM": erm, "C-Mixup": cmixup, **parts_of_it, "overhead": cmixup / erm - 1}


def images(turns: int, steps: int = 3) -> dict[str, float]:
    """Return the seconds of an epoch of ResNet-18 on 40,000 images of 28 x 28, extrapolated from a few steps."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    steps = 50 if device.type == "cuda" else steps
    torch.manual_seed(0)
    net = resnet(18).to(device)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-4)
    rng = np.random.default_rng(0)
    y, order = rng.random(N), rng.permutation(N).reshape(-1, 64)
    x, partner = torch.randn(64, 3, 28, 28, device=device), torch.randn(64, 3, 28, 28, device=device)
    label, mix = torch.rand(64, 1, device=device), torch.tensor(0.3, device=device)
    batch = Batch(x, label, partner, label.flip(0), draws={"mix": mix})

    def train_on(objective: Any) -> None:
        for _ in range(steps):
            optimiser.zero_grad()
            objective.loss(net, batch, None, "train")["mse"].backward()
            optimiser.step()
        if device.type == "cuda":
            torch.cuda.synchronize()

    state = Partners.of(y, BANDWIDTH)
    results = median_seconds(
        {
            "ERM": lambda: train_on(ERM()),
            "C-Mixup": lambda: train_on(CMixup(BANDWIDTH)),
            "draw": lambda: state.draw(order, rng),
            "draw within batches": lambda: draw_within_batches(y, order, BANDWIDTH, rng),
        },
        turns,
        time.perf_counter if device.type == "cuda" else time.process_time,
    )
    for name in ("ERM", "C-Mixup"):
        results[name] *= len(order) / steps
    slower = max(results["draw"], results["draw within batches"])
    share = {"share": slower / results["ERM"], "overhead": (results["C-Mixup"] + slower) / results["ERM"] - 1}
    return results | share | {"device": torch.cuda.get_device_name() if device.type == "cuda" else "CPU, one thread"}


def draw_figure(results: list[dict[str, Any]], path: Path = FIGURE) -> Path:
    """Draw seconds and bytes as a function of the number of rows."""
    panels = (
        ("time to prepare, once per run", "s", "prepare"),
        ("time to draw, once per epoch", "s", "draw"),
        ("peak memory", "B", "bytes"),
    )
    styles = {"published": ("#555555", "^", ":"), "all pairs": (TARGET, "s", "--"), "ours": (SOURCE, "o", "-")}
    names = {"published": "published, N x N", "all pairs": "all pairs, N x N"}
    figure = new_figure(11.0, 3.9)
    from matplotlib.ticker import EngFormatter

    for axes, (title, unit, field) in zip(figure.subplots(1, 3), panels):
        for way, (colour, marker, line) in styles.items():
            points = [(f["rows"], f[field]) for f in results if f["way"] == way]
            axes.loglog(
                *zip(*points), color=colour, marker=marker, linestyle=line, markersize=4, label=names.get(way, way)
            )
        axes.set_title(title)
        axes.set_xlabel("training rows N")
        axes.yaxis.set_major_formatter(EngFormatter(unit=unit))
        axes.set_xticks([500, 1000, 2000, 5000, 10_000, 40_000], ["500", "1k", "2k", "5k", "10k", "40k"])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return save_figure(figure, path)


def main(turns: int = 5) -> None:
    torch.set_num_threads(1)
    start = time.perf_counter()
    results = curves(turns)
    rows = [[f["way"], f["rows"], f["prepare"], f["draw"], f["bytes"] / 1e6] for f in results]
    print_table("partners by the kernel", ["way", "rows", "prepare, s", "draw, s", "peak MB"], rows)
    print(f"wrote {draw_figure(results)}")
    table, pictures = epochs(turns), images(turns)
    for title, record in (("an epoch of the MLP at 40,000 rows", table), ("an epoch of ResNet-18", pictures)):
        print_table(title, ["what", "seconds or share"], [[name, value] for name, value in record.items()])
    save_record("cmixup", {"curves": results, "mlp": table, "resnet18": pictures}, turns=turns, bandwidth=BANDWIDTH)
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()

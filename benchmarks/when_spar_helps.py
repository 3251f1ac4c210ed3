"""How the effect of a new head depends on training, width and the labelled source rows: twelve real shifts.

A network is trained once. Its weights are copied after a few steps (short), at the best validation error (stopped) and
at the end (long). Its head is refitted on the training rows or on as many held-out rows. There is one record per data
set, width, training and rows: the geometric mean of the ratios over three seeds, and the largest ratio. A ratio is the
target RMSE divided by that of the trained head. Run it with ``python -m benchmarks.when_spar_helps``.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.records import RESULTS, known_keys, update
from benchmarks.shifts.sets import REGISTER, Task
from pyspar.nn import adapt_head
from pyspar.paper.data import load

RECORDS = RESULTS / "when-spar-helps.csv.gz"
KEYS = ("set", "width", "training", "rows")
PAPER_SETS = ("skillcraft", "communities-and-crime")
N_SHIFTS = 10
SOURCE_ROWS = (1000, 3000)
FEWEST_TARGET_ROWS = 300
FEWEST_COLUMNS = 5
WIDTHS = (16, 64, 256)
TRAINING = ("short", "stopped", "long")
ROWS = ("training rows", "held-out rows")
METHODS = ("ols", "spar", "bayes")
SEEDS = (0, 1, 2)
SHORT_STEPS, LONG_STEPS, CHECK_STEPS = 100, 4000, 50
BATCH = 64
TRAIN_SHARE = 0.4
"""Share of the source rows that train. As many are held out, and the rest decides when to stop."""

Rows = tuple[Tensor, Tensor]


def choose_sets() -> list[str]:
    """Return the first ten sets of suitable size, in the order of the hash of their name, and two of the paper."""
    chosen: list[str] = []
    for name in sorted(REGISTER, key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        if REGISTER[name].part == "develop" and name not in PAPER_SETS and len(chosen) < N_SHIFTS:
            X, _, Z, _ = Task(REGISTER[name], "raw").arrays()
            in_range = SOURCE_ROWS[0] <= len(X) <= SOURCE_ROWS[1]
            if in_range and len(Z) >= FEWEST_TARGET_ROWS and X.shape[1] >= FEWEST_COLUMNS:
                chosen.append(name)
    return [*chosen, *PAPER_SETS]


def load_parts(name: str, seed: int) -> tuple[Rows, Rows, Rows, Rows]:
    """Return training, held-out, validation and target rows, standardised by the training rows."""
    if name in PAPER_SETS:
        task = load(name)
        X, y = np.concatenate([task.train.X, task.val.X]), np.concatenate([task.train.y, task.val.y])
        Z, yz = task.test.X, task.test.y
    else:
        X, y, Z, yz = Task(REGISTER[name], "raw").arrays()
    order = np.random.default_rng(seed).permutation(len(X))
    n = round(TRAIN_SHARE * len(X))
    train, held_out, validation = order[:n], order[n : 2 * n], order[2 * n :]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    spread[spread == 0.0] = 1.0

    def scale(features: np.ndarray, labels: np.ndarray) -> Rows:
        labels = (labels - y[train].mean()) / y[train].std()
        return torch.as_tensor((features - mean) / spread).float(), torch.as_tensor(labels[:, None]).float()

    first, second, third = (scale(X[rows], y[rows]) for rows in (train, held_out, validation))
    return first, second, third, scale(Z, yz)


def train_network(rows: Rows, validation: Rows, width: int, seed: int) -> dict[str, nn.Module]:
    """Return copies of one network after each level of training."""
    X, y = rows
    torch.manual_seed(seed)
    hidden = [nn.Linear(X.shape[1], width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*hidden, nn.Linear(width, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    lowest, kept = math.inf, {"stopped": copy.deepcopy(model)}
    for step in range(1, LONG_STEPS + 1):
        batch = torch.randint(len(X), (BATCH,))
        loss = (model(X[batch]) - y[batch]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % CHECK_STEPS == 0 and (error := rmse(model, validation)) < lowest:
            lowest, kept["stopped"] = error, copy.deepcopy(model)
        if step == SHORT_STEPS:
            kept["short"] = copy.deepcopy(model)
    return kept | {"long": model}


def rmse(model: nn.Module, rows: Rows) -> float:
    with torch.inference_mode():
        return float((model(rows[0]) - rows[1]).double().square().mean().sqrt())


def measure(name: str, width: int) -> list[dict[str, Any]]:
    """Train the networks of one set and width, and return their records."""
    ratios: dict[tuple[str, str, str], list[float]] = {}
    trained: dict[tuple[str, str], list[float]] = {}
    for seed in SEEDS:
        train, held_out, validation, target = load_parts(name, seed)
        for training, model in train_network(train, validation, width, seed).items():
            before = rmse(model, target)
            for rows, source in zip(ROWS, (train, held_out), strict=True):
                trained.setdefault((training, rows), []).append(before)
                for method in METHODS:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # too few rows per direction: the score shows the effect
                        new = adapt_head(model, [source], [target[0]], method=method, progress=False).model
                    ratios.setdefault((training, rows, method), []).append(rmse(new, target) / before)
    return [
        {
            "set": name, "width": width, "training": training, "rows": rows,
            "n": len(train[0]), "m": len(target[0]), "trained": float(np.mean(before)),
            **{m: float(np.exp(np.mean(np.log(ratios[training, rows, m])))) for m in METHODS},
            **{f"{m}_worst": max(ratios[training, rows, m]) for m in METHODS},
        }
        for (training, rows), before in trained.items()
    ]  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.when_spar_helps", description=__doc__)
    parser.add_argument("--records", type=Path, default=RECORDS, help="another file of records")
    parser.add_argument("--again", action="store_true", help="replace existing records")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    known = set() if args.again else {key[:2] for key in known_keys(args.records, KEYS)}
    for name in choose_sets():
        for width in WIDTHS:
            if (name, width) not in known:
                update(args.records, measure(name, width), KEYS)
                print(f"{name}, width {width}", flush=True)


if __name__ == "__main__":
    main()

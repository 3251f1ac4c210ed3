"""Train networks on real shifts, refit their heads, and write one record per network and set of refitting rows.

Each network is trained once. Its weights are copied after a few steps, at the best validation error, and at the end, so
the three levels of training share their initial weights and batches. The rows for a refit are the training rows or as
many other source rows, so the two levels differ in nothing else.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.shifts.records import append
from benchmarks.shifts.sets import EVIDENCE_PARTS, REGISTER, Task
from pyspar.core.moments import Moments
from pyspar.estimators.head_weights import HeadMethod, error_roots_of, fit_head
from pyspar.paper import MLP, stack, unstack
from pyspar.paper.data import load
from pyspar.terminal import Progress

RECORDS = Path(__file__).parents[1] / "results" / "when-spar-helps.jsonl"

N_SHIFTS = 10
PAPER_SETS = ("skillcraft", "communities-and-crime")
SOURCE_ROWS = (1000, 3000)
FEWEST_TARGET_ROWS = 300
FEWEST_COLUMNS = 5

WIDTHS = (16, 64, 256)
TRAINING = ("short", "stopped", "long")
ROWS = ("training rows", "held-out rows")
METHODS: tuple[HeadMethod, ...] = ("ols", "spar", "bayes")
SEEDS = (0, 1, 2)

SHORT_STEPS = 100
LONG_STEPS = 4000
CHECK_STEPS = 50
BATCH = 64
LEARNING_RATE = 1e-3
TRAIN_SHARE = 0.4
"""Share of the source rows that train. As many are held out, and the rest decides when to stop."""

Record = dict[str, Any]
Key = tuple[str, int, str, str, int]


@dataclass(frozen=True, eq=False)
class Data:
    """The rows of one set, standardised by its training rows."""

    train: tuple[np.ndarray, np.ndarray]
    held_out: tuple[np.ndarray, np.ndarray]
    validation: tuple[np.ndarray, np.ndarray]
    target: tuple[np.ndarray, np.ndarray]


def choose_sets() -> list[str]:
    """Return the names of the sets, chosen by a rule that uses no result.

    The first sets with a suitable size in the order of the hash of their name, without those that have the name of a
    data set of the paper and without the part ``new``; then the paper's two tabular data sets.
    """
    names = (name for name, shift in REGISTER.items() if shift.part in EVIDENCE_PARTS and name not in PAPER_SETS)
    chosen: list[str] = []
    for name in sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        X, _, Z, _ = Task(REGISTER[name], "raw").arrays()
        in_range = SOURCE_ROWS[0] <= len(X) <= SOURCE_ROWS[1]
        if in_range and len(Z) >= FEWEST_TARGET_ROWS and X.shape[1] >= FEWEST_COLUMNS:
            chosen.append(name)
            if len(chosen) == N_SHIFTS:
                break
    return [*chosen, *PAPER_SETS]


def load_data(name: str, seed: int) -> Data:
    """Return the rows of a set with a random split of its source. The target labels are used only for scores."""
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
    y_mean, y_spread = y[train].mean(), y[train].std()

    def scale(features: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return ((features - mean) / spread).astype(np.float32), ((labels - y_mean) / y_spread).astype(np.float32)

    return Data(*(scale(X[rows], y[rows]) for rows in (train, held_out, validation)), scale(Z, yz))


def train_networks(parts: list[Data], width: int) -> dict[str, list[MLP]]:
    """Train one network per seed as one computation. Return the networks at each level of training."""
    X, y = (torch.as_tensor(np.stack([part.train[i] for part in parts])) for i in (0, 1))
    Xv, yv = (torch.as_tensor(np.stack([part.validation[i] for part in parts])) for i in (0, 1))
    networks = []
    for seed in SEEDS[: len(parts)]:
        torch.manual_seed(seed)
        networks.append(MLP(X.shape[2], hidden=width))
    model = stack(networks)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    generator = torch.Generator().manual_seed(0)
    at = torch.arange(len(parts))[:, None]
    lowest = torch.full((len(parts),), math.inf)
    kept: dict[str, list[MLP]] = {"stopped": networks}
    for step in range(1, LONG_STEPS + 1):
        rows = torch.randint(X.shape[1], (len(parts), BATCH), generator=generator)
        # The sum over networks: each gets the gradient of its own mean squared error.
        loss = (model(X[at, rows])[..., 0] - y[at, rows]).square().mean(dim=1).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % CHECK_STEPS == 0:
            with torch.inference_mode():
                errors = (model(Xv)[..., 0] - yv).square().mean(dim=1)
            better = (errors < lowest).tolist()
            if any(better):
                current = unstack(model)
                kept["stopped"] = [new if b else old for b, new, old in zip(better, current, kept["stopped"])]
                lowest = torch.minimum(lowest, errors)
        if step == SHORT_STEPS:
            kept["short"] = unstack(model)
    return kept | {"long": unstack(model)}


def measure(data: Data, model: MLP, rows: str) -> Record:
    """Refit the head of one network with every method. A ratio is target RMSE over that of the trained head."""
    X, y = data.train if rows == ROWS[0] else data.held_out
    with torch.inference_mode():
        F, G = (model.features(torch.as_tensor(part)).numpy() for part in (X, data.target[0]))
    head = model.head.weight.detach().numpy().astype(np.float64)
    source, target = Moments.of(F, y.astype(np.float64)), Moments.of(G)
    F, G, yz = F.astype(np.float64), G.astype(np.float64), data.target[1].astype(np.float64)
    trained = _rmse(G @ head[0], yz)
    error_roots = error_roots_of(F, y.astype(np.float64)[:, None], head)
    record: Record = {"n": len(F), "m": len(G), "trained": _digits(trained)}
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # too few rows per direction: the score shows the effect
            new = fit_head(source, None if method == "ols" else target, method, coef=head, error_roots=error_roots)
        record[method] = _digits(_rmse(G @ new.coef[0], yz) / trained)
        if method == "ols":
            record |= _describe_features(F, G, y, new.directions, F @ head[0], F @ new.coef[0])
    return record


def _describe_features(
    F: np.ndarray, G: np.ndarray, y: np.ndarray, kept: np.ndarray, trained: np.ndarray, refitted: np.ndarray
) -> Record:
    """Return what is known about a head without target labels.

    ``excess``: RMSE of the trained head on the refitting rows over the noise that least squares estimates on them,
    with its degrees of freedom. ``inflation``: mean leverage of target rows over mean leverage of the refitting rows.
    ``outside``: share of the target's squared length outside the kept directions of the refitting rows.
    """
    n, d = len(F), len(kept)
    noise = math.sqrt(float(((y - refitted) ** 2).sum()) / (n - d)) if n > d else math.nan
    Q = np.linalg.qr(F @ kept.T, mode="r")
    along = G @ kept.T
    leverage = float((np.linalg.solve(Q.T, along.T) ** 2).sum()) / len(G)
    outside = 1.0 - float((along**2).sum()) / float((G**2).sum())
    return {
        "directions": d,
        "excess": _digits(_rmse(trained, y) / noise) if noise > 0 else None,
        "inflation": _digits(leverage / (d / n)),
        "outside": _digits(max(outside, 0.0)),
    }


def run(names: list[str], path: Path, progress: Progress) -> int:
    """Write the records that are missing from ``path``; return how many networks were trained."""
    known = read_records(path)
    cells = [(name, width) for name in names for width in WIDTHS]
    missing = [cell for cell in cells if not all(key in known for key in _keys(*cell))]
    progress.start("cells", "training", total=len(missing), unit="sets and widths")
    path.parent.mkdir(parents=True, exist_ok=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for n_done, (name, width) in enumerate(missing, start=1):
            parts = [load_data(name, seed) for seed in SEEDS]
            models = train_networks(parts, width)
            for key in _keys(name, width):
                _, _, training, rows, seed = key
                cell = dict(zip(("set", "width", "training", "rows", "seed"), key, strict=True))
                append(path, cell | measure(parts[seed], models[training][seed], rows))
            progress.advance("cells", n_done)
    finally:
        torch.set_num_threads(threads)
    progress.finish("cells", "done")
    return len(missing) * len(SEEDS)


def read_records(path: Path) -> dict[Key, Record]:
    """Read the records. The last record of a key counts, and an incomplete last line is skipped."""
    records: dict[Key, Record] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        records[record["set"], record["width"], record["training"], record["rows"], record["seed"]] = record
    return records


def _keys(name: str, width: int) -> Iterator[Key]:
    for training in TRAINING:
        for rows in ROWS:
            for seed in SEEDS:
                yield name, width, training, rows, seed


def _rmse(prediction: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((prediction - y) ** 2)))


def _digits(value: float) -> float:
    return float(f"{value:.6g}")

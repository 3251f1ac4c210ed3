"""The file formats that pyspar reads: how a file of each format is written and read."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyspar
from benchmarks.faults.trials import run_command
from pyspar.errors import InputError, MissingDataError, collect_warnings

_SKILLCRAFT = "SkillCraft1_Dataset.csv"


@dataclass(frozen=True)
class Format:
    """A file format: how a file is written and read, and whether checksums cover its content."""

    name: str
    suffix: str
    write: Callable[[Path], Any]
    read: Callable[[Path], Any]
    has_checksum: bool


def list_formats() -> list[Format]:
    """Return every format that pyspar reads."""
    table = _make_table()
    X, y = table[["a", "b", "c"]].to_numpy(), table["y"].to_numpy()
    formats = [
        Format("CSV", ".csv", lambda p: table.to_csv(p, index=False), _read_table, False),
        Format("CSV, streamed", ".csv", lambda p: table.to_csv(p, index=False), _stream, False),
        Format("CSV, gzipped", ".csv.gz", lambda p: _write_gzip(table, p), _read_table, True),
        Format("CSV, gzipped, streamed", ".csv.gz", lambda p: _write_gzip(table, p), _stream, True),
        Format("Parquet without checksums", ".parquet", lambda p: table.to_parquet(p), _read_table, False),
        Format(
            "Parquet with checksums", ".parquet", lambda p: table.to_parquet(p, write_page_checksum=True), _read_table,
            False,
        ),
        Format("Parquet without checksums, streamed", ".parquet", lambda p: table.to_parquet(p), _stream, False),
        Format(
            "Parquet with checksums, streamed", ".parquet", lambda p: table.to_parquet(p, write_page_checksum=True),
            _stream, False,
        ),
        Format("xlsx", ".xlsx", lambda p: _make_mixed_table().to_excel(p, index=False), _read_table, True),
        Format("xlsx, summarized", ".xlsx", lambda p: table.to_excel(p, index=False), _open_input, True),
        Format("npy", ".npy", lambda p: np.save(p, table.to_numpy()), _read_table, False),
        Format("npy, streamed", ".npy", lambda p: np.save(p, table.to_numpy()), _stream_array, False),
        Format("npz", ".npz", lambda p: np.savez(p, X=X, y=y), _read_table, True),
        Format("npz, compressed", ".npz", lambda p: np.savez_compressed(p, X=X, y=y), _read_table, True),
        Format("npz, summarized", ".npz", lambda p: np.savez(p, X=X, y=y), _open_input, True),
        Format("labels of spar adapt --labels (CSV)", ".csv", _write_labels, _read_labels, False),
        Format("Moments", ".npz", lambda p: pyspar.save(pyspar.Moments.of(X, y), p), _load_moments, True),
        Format("summary of spar summarize", ".npz", _write_summary, _open_input, True),
        Format("model", ".skops", _write_model, _load_model, True),
        Format("model of spar adapt --save", ".skops", _write_pipeline, _load_pipeline, True),
        Format("records", ".jsonl", _write_records, _read_records, False),
    ]  # fmt: skip
    try:
        import torch  # noqa: F401 - the formats of training need it
    except ImportError:
        return formats
    downloaded = Format("downloaded data set (SkillCraft)", ".csv", _write_downloaded, _read_downloaded, True)
    return [
        *formats,
        Format("checkpoint of training", ".pt", train_with_checkpoint, _load_checkpoint, True),
        Format("features of a run", "-0.npz", _write_features, _read_features, True),
        Format("summaries of networks", ".npz", _write_network_summaries, _read_network_summaries, True),
        Format("JSON file of a run", ".json", _write_results, _read_results, True),
        Format("cached data set", ".npz", _write_cached, _read_cached, True),
        *([downloaded] if _has_skillcraft() else []),
    ]


def train_with_checkpoint(path: Path) -> Any:
    """Train a small network, and return its weights."""
    import torch

    from pyspar.paper import ERM, MLP, TrainConfig, train
    from pyspar.paper.data.task import Part, ShiftTask

    rng = np.random.default_rng(0)
    parts = [Part(rng.normal(size=(n, 5)), rng.normal(size=n), np.zeros(n, np.int64)) for n in (40, 20, 15)]
    task = ShiftTask("toy", *parts, "none", "here", "none")
    config = TrainConfig(epochs=6, batch_size=8, lr=1e-2, device="cpu")
    torch.manual_seed(0)
    trained = train(MLP(5, hidden=8), ERM(), task, config, 0, checkpoint=path)
    return [tensor.numpy() for tensor in trained.model.state_dict().values()]


def _make_table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "c"])
    return table.assign(y=table["a"] + rng.normal(size=30))


def _make_mixed_table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 30), unit="D")
    towns = rng.choice(["Bonn", "Kiel"], 30)
    return _make_table().assign(town=towns, sold=dates, code=[f"k{number:03}" for number in range(30)])


def _read_table(path: Path) -> Any:
    from pyspar.tables.load import load_table

    frame = load_table(path, "source").frame
    return [list(frame.columns), *(frame[name].to_numpy() for name in frame.columns)]


def _stream(path: Path, label: str = "y") -> Any:
    from pyspar.sources.files import moments_of_file

    moments = moments_of_file(path, label=label)
    return [list(moments.names), moments.root, moments.rows]


def _stream_array(path: Path) -> Any:
    return _stream(path, label="x3")


def _write_gzip(table: pd.DataFrame, path: Path) -> None:
    path.write_bytes(gzip.compress(table.to_csv(index=False).encode(), mtime=0))


def _load_moments(path: Path) -> Any:
    moments = pyspar.load(path)
    return [moments.root, moments.rows, moments.weight, moments.weight2, moments.eps, moments.blur, moments.names]


def _write_model(path: Path) -> None:
    table = _make_table()
    pyspar.save(pyspar.SpARRegressor().fit(table[["a", "b", "c"]].to_numpy(), table["y"].to_numpy()), path)


def _load_model(path: Path) -> Any:
    model = pyspar.load(path)
    return [type(model).__name__, str(model.get_params()), model.coef_, model.intercept_, model.moments_.root]


def _write_records(path: Path) -> None:
    from pyspar.paper.runs.records import Record, write_records

    write_records(path, [Record("a task", "a method", seed, "rmse", 1.0 + seed / 7, run="abc") for seed in range(8)])


def _read_records(path: Path) -> Any:
    from pyspar.paper.runs.records import read_records

    return [str(record) for record in read_records(path)]


def _load_checkpoint(path: Path) -> Any:
    from pyspar.paper import MLP, load_checkpoint

    return [tensor.numpy() for tensor in load_checkpoint(path, MLP(5, hidden=8)).state_dict().values()]


def _make_features(seed: int) -> Any:
    from pyspar.paper.runs.store import Features

    rng = np.random.default_rng(seed)
    X, y, group = rng.normal(size=(6, 2)).astype(np.float32), np.arange(6.0), np.arange(6)
    return Features(X, X, X, np.ones((1, 2)), y, y, y, group, group)


def _write_features(path: Path) -> None:
    from pyspar.paper.runs.store import RunFolder

    RunFolder(path.parent).write_features(0, _make_features(0))
    (path.parent / "features-0.npz").rename(path)


def _read_features(path: Path) -> Any:
    from pyspar.paper.runs.store import DamagedError, RunFolder

    path.replace(path.with_name("features-0.npz"))
    try:
        return [value for value in vars(RunFolder(path.parent).read_features(0)).values() if value is not None]
    except DamagedError as error:  # the features are computed again
        raise InputError(str(error)) from error


def _open_input(path: Path) -> Any:
    """Read a file as ``spar summarize`` does, or as ``spar adapt`` does if it is a summary."""
    from pyspar.tables.reduce import open_input
    from pyspar.terminal import SILENT

    file = open_input(path, "source")
    names = [name for name in file.names if name != "y"]
    moments = file.reduce(names, "y", SILENT).moments
    return [names, moments.root, moments.rows, moments.eps, file.outputs, str(file.signs)]


def _write_summary(path: Path) -> None:
    rows = path.with_name("rows.csv")
    table = _make_table()
    table.assign(price=[f"{100 * a:.2f} €" for a in table["a"]]).to_csv(rows, index=False)
    with redirect_stdout(None):
        assert run_command("summarize", rows, "--label", "y", "-o", path) == 0


def _write_pipeline(path: Path) -> None:
    source, target = path.with_name("source.csv"), path.with_name("target.csv")
    _make_mixed_table().to_csv(source, index=False)
    _make_mixed_table().drop(columns="y").to_csv(target, index=False)
    with redirect_stdout(None):
        assert run_command("adapt", source, target, "--label", "y", "--drop", "code", "--save", path) == 0


def _load_pipeline(path: Path) -> Any:
    return [pyspar.load(path).predict(_make_mixed_table())]


def _write_labels(path: Path) -> None:
    table = _make_table()
    table.insert(0, "row", range(len(table)))
    table.iloc[::2].assign(reason="a reason").to_csv(path, index=False)


def _read_labels(path: Path) -> Any:
    from pyspar.tables.label_file import add_labels
    from pyspar.tables.load import load_table

    return [np.nan_to_num(add_labels(None, load_table(path, "labels"), "y", _make_table()[["a", "b", "c"]], {}))]


def _write_network_summaries(path: Path) -> None:
    from pyspar.paper.runs.summary import summarise, write_summaries

    write_summaries(path, {("run", seed): summarise(_make_features(seed)) for seed in range(2)})


def _read_network_summaries(path: Path) -> Any:
    from pyspar.paper.runs.summary import read_summaries

    summaries = read_summaries(path)
    return [[key, s.source.root, s.test.root, s.head, s.error_root] for key, s in summaries.items()]


def _write_results(path: Path) -> None:
    from pyspar.paper.runs.store import RunFolder

    results = {"validation": {str(seed): 1.0 + seed for seed in range(3)}, "seconds": {"train": 2.5}}
    RunFolder(path.parent).write_json(path.name, results)


def _read_results(path: Path) -> Any:
    from pyspar.paper.runs.store import RunFolder

    if values := RunFolder(path.parent).read_json(path.name):
        return [str(values)]
    raise InputError("treated as missing; the run is repeated")


def _write_cached(path: Path) -> None:
    from pyspar.paper.data.cache import cache_file, load_or_build

    os.environ["PYSPAR_CACHE"] = str(path.parent)
    load_or_build("data", "key", lambda: {"X": np.arange(60.0), "y": np.arange(6)})
    path.write_bytes(cache_file("data", "key").read_bytes())


def _read_cached(path: Path) -> Any:
    from pyspar.paper.data.cache import cache_file, load_or_build

    def build() -> Any:
        raise InputError("does not match its checksum; building it again")

    path.replace(cache_file("data", "key"))
    with collect_warnings():
        return list(load_or_build("data", "key", build).values())


def _has_skillcraft() -> bool:
    from pyspar.paper.data.registry import where

    try:
        return where("skillcraft").path.is_file()
    except MissingDataError:
        return False


def _write_downloaded(path: Path) -> None:
    from pyspar.paper.data.registry import where

    path.write_bytes(where("skillcraft").path.read_bytes())


def _read_downloaded(path: Path) -> Any:
    from pyspar.paper.data.registry import load, where

    path.replace(path.with_name(_SKILLCRAFT))
    assert where("skillcraft", path.parent).path.parent == path.parent
    task = load("skillcraft", folder=path.parent)
    return [task.train.X, task.train.y, task.test.X, task.test.y]

"""Truncate files and flip bits in them. Each trial must end with an InputError or with the undamaged content.

Text and numbers without a checksum cannot be protected: a flipped bit in ``1.5`` gives another valid number. Such
changes are counted separately.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyspar
from benchmarks.faults.trials import Row, map_in_children
from pyspar.errors import InputError


@dataclass(frozen=True)
class Format:
    """A file format: how a file is written and read, and whether checksums cover its content."""

    name: str
    suffix: str
    write: Callable[[Path], Any]
    read: Callable[[Path], Any]
    has_checksum: bool


def damage_files(trials: int) -> Iterator[Row]:
    """Yield two rows per format: truncated files, and files with one flipped bit."""
    for form in list_formats():
        yield from damage_format(form, trials)


def damage_format(form: Format, trials: int) -> list[Row]:
    """Damage one format in ``trials`` ways of each kind."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{form.suffix}"
        form.write(path)
        whole = path.read_bytes()
        expected = form.read(path)
        rng = np.random.default_rng(0)
        lengths = rng.integers(0, len(whole), size=trials)
        bits = rng.integers(0, 8 * len(whole), size=trials)

        def truncate(number: int) -> str:
            return _read_damaged(form, path, whole[: lengths[number]], expected)

        def flip(number: int) -> str:
            changed = bytearray(whole)
            changed[bits[number] // 8] ^= 1 << (bits[number] % 8)
            return _read_damaged(form, path, bytes(changed), expected)

        return [
            _make_row(kind, form, list(map_in_children(function, trials)))
            for kind, function in (("truncated file", truncate), ("flipped bit", flip))
        ]


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
        Format("npy", ".npy", lambda p: np.save(p, table.to_numpy()), _read_table, False),
        Format("npy, streamed", ".npy", lambda p: np.save(p, table.to_numpy()), _stream_array, False),
        Format("npz", ".npz", lambda p: np.savez(p, X=X, y=y), _read_table, True),
        Format("npz, compressed", ".npz", lambda p: np.savez_compressed(p, X=X, y=y), _read_table, True),
        Format("Moments", ".npz", lambda p: pyspar.save(pyspar.Moments.of(X, y), p), _load_moments, True),
        Format("model", ".skops", _write_model, _load_model, True),
        Format("records", ".jsonl", _write_records, _read_records, False),
    ]  # fmt: skip
    try:
        import torch  # noqa: F401 - the formats of training need it
    except ImportError:
        return formats
    return [
        *formats,
        Format("checkpoint of training", ".pt", train_with_checkpoint, _load_checkpoint, True),
        Format("features of a run", "-0.npz", _write_features, _read_features, True),
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


def _read_damaged(form: Format, path: Path, content: bytes, expected: Any) -> str:
    path.write_bytes(content)
    try:
        value = form.read(path)
    except InputError as error:
        return f"refused {error}"
    except MemoryError:
        return "out of memory"
    except Exception as error:  # noqa: BLE001 - any other exception is the failure that is counted
        return f"raw {type(error).__name__}: {error}"
    return "unchanged" if _is_equal(value, expected) else "changed"


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    try:
        return bool(np.array_equal(one, other)) and type(one) is type(other)
    except (TypeError, ValueError):
        return False


def _make_row(fault: str, form: Format, results: list[str]) -> Row:
    counts = Counter(result.partition(" ")[0] for result in results)
    bad = sum(counts[word] for word in ("raw", "crash", "hang", "out")) + counts["changed"] * form.has_checksum
    words = {"refused": "refused", "unchanged": "read correctly", "changed": "another valid content"}
    outcome = ", ".join(f"{counts[key]} {text}" for key, text in words.items() if counts[key])
    others = Counter(result[:160] for result in results if result.split()[0] in ("raw", "crash", "hang", "out"))
    outcome += "".join(f"; {count} x {text}" for text, count in others.most_common(5))
    message = next((result.removeprefix("refused ") for result in results if result.startswith("refused")), "")
    message = re.sub(r"/[^\s']*/(?=file|features)", "", message)  # the temporary folder
    return Row(fault, form.name, len(results), bad, outcome, message)


def _make_table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "c"])
    return table.assign(y=table["a"] + rng.normal(size=30))


def _read_table(path: Path) -> Any:
    from pyspar.tables.read import check_input, read_table

    check_input(path, "source")
    frame = read_table(path, "source")[0]
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


def _write_features(path: Path) -> None:
    from pyspar.paper.runs.store import Features, RunFolder

    X, y, group = np.ones((6, 2), np.float32), np.arange(6.0), np.arange(6)
    features = Features(X, X, X, np.ones((1, 2)), y, y, y, group, group)
    RunFolder(path.parent).write_features(0, features)
    (path.parent / "features-0.npz").rename(path)


def _read_features(path: Path) -> Any:
    from pyspar.paper.runs.store import DamagedError, RunFolder

    path.replace(path.with_name("features-0.npz"))
    try:
        return [value for value in vars(RunFolder(path.parent).read_features(0)).values() if value is not None]
    except DamagedError as error:  # the features are computed again
        raise InputError(str(error)) from error

"""Records of benchmarks as compressed CSV files, with one row per data set, model and method."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

RESULTS = Path(__file__).parent / "results"


def read(path: Path) -> pd.DataFrame:
    """Return the rows of a file, or none if it does not exist."""
    return pd.read_csv(path) if path.exists() else pd.DataFrame()


def update(path: Path, rows: Sequence[dict[str, Any]], keys: Sequence[str]) -> None:
    """Add rows to a file and sort it by its keys. A row replaces the row with the same keys.

    The same rows give the same bytes. An interrupted call leaves the old file.
    """
    if not rows:
        return
    new = pd.DataFrame(rows)
    table = pd.concat([old, new], ignore_index=True) if len(old := read(path)) else new
    table = table.drop_duplicates(list(keys), keep="last").sort_values(list(keys))
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with part.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(table.convert_dtypes().to_csv(index=False, float_format="%.6g").encode())
    part.replace(path)


def known_keys(path: Path, keys: Sequence[str]) -> set[tuple[Any, ...]]:
    """Return the keys of the rows in a file."""
    table = read(path)
    return set(table[list(keys)].itertuples(index=False, name=None)) if len(table) else set()
